"""`runs NAME export RUN F`: write a stored run as a TREC file, for rerank, evaluate and other tools."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from benchmark.runs import builders, rankings
from corpus.commands import QuorumCommand, collection_named
from corpus.errors import BadInput
from jobs.models import JobState


class Command(QuorumCommand):
    """Write a run of a collection to a file."""

    help = "Write a collection's run to a TREC file."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of the collection")
        parser.add_argument("action", choices=("export",), help="export: write a run to a file")
        parser.add_argument("run_name", metavar="RUN", help="name of the run")
        parser.add_argument("out", type=Path, metavar="F", help="output file; must not exist")

    def run(self, **options: Any) -> object:
        collection, out = collection_named(options["name"]), options["out"]
        run = builders.find_run(collection, options["run_name"])
        if run is None:
            names = ", ".join(collection.runs.order_by("name").values_list("name", flat=True)) or "none"
            raise BadInput(f"collection {collection.name} has no run {options['run_name']!r}; there are: {names}")
        if run.state != JobState.READY:
            raise BadInput(f"run {run.name} is not ready ({run.state}): wait until it is, or `retrieve` it again")
        if out.exists():
            raise BadInput(f"{out} exists: name a new file")
        part = out.with_name(f".{out.name}.part")
        try:
            with part.open("w", encoding="utf-8") as file:
                lines = sum(bool(file.write(line)) for line in rankings.write_trec(run))
        except OSError as error:
            raise BadInput(f"{out}: {error.strerror}: name a file in a folder that can be written to") from None
        part.rename(out)
        self.say(f"{out}: {lines:,} lines of run {run.name}")
        return {"out": str(out), "run": run.name, "lines": lines}
