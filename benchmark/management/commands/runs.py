"""`runs NAME list`, `runs NAME export RUN F`: list the runs of a collection, or write one to a TREC file."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from benchmark.report.systems import chosen
from benchmark.runs import builders, rankings
from corpus.commands import QuorumCommand, collection_named
from corpus.errors import BadInput
from corpus.models import Collection
from jobs.models import JobState


class Command(QuorumCommand):
    """List the runs of a collection, or write one to a file."""

    help = "List a collection's runs, or write one to a TREC file."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of the collection")
        parser.add_argument("action", choices=("list", "export"), help="list: all runs; export: write a run to a file")
        parser.add_argument("run_name", nargs="?", metavar="RUN", help="for export: name of the run")
        parser.add_argument("out", nargs="?", type=Path, metavar="F", help="for export: output file; must not exist")

    def run(self, **options: Any) -> object:
        collection, out = collection_named(options["name"]), options["out"]
        if options["action"] == "list":
            return self.list_runs(collection)
        if out is None:
            raise BadInput(f"Name the run and the file: runs {collection.name} export RUN F")
        run = builders.find_run(collection, options["run_name"])
        if run is None:
            names = ", ".join(collection.runs.order_by("name").values_list("name", flat=True)) or "none"
            raise BadInput(f"Collection {collection.name} has no run {options['run_name']!r}; there are: {names}")
        if run.state != JobState.READY:
            raise BadInput(f"Run {run.name} is not ready ({run.state}): wait until it is, or `retrieve` it again")
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

    def list_runs(self, collection: Collection) -> object:
        """Print a line for each run."""
        rows = chosen.runs_of(collection)
        for run in rows:
            depth = f"depth {run.depth}" if run.depth else "no depth"
            self.say(f"{run.name}: {run.get_kind_display()}, {run.get_state_display()}, {depth}, {run.done:,} queries")
        if not rows:
            self.say(f"{collection.name} has no run yet: retrieve {collection.name}, or import_runs")
        run_rows = [
            {"name": run.name, "kind": run.kind, "state": run.state, "depth": run.depth or None, "queries": run.done}
            for run in rows
        ]
        return {"collection": collection.name, "runs": run_rows}
