"""`synthesize NAME --seeds queries|F --judge J --out DIR`: write synthetic queries with documents (RTriever-Synth)."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from benchmark.models import Synthesis
from benchmark.synthesis import files, importing, lifecycle
from benchmark.synthesis.seeds import QUERIES, read_personas
from corpus.collections.audit_log import shell_user
from corpus.errors import BadInput, Incomplete
from jobs.models import JobState
from judges.management.commands.status import collection_named
from judges.management.job_command import JobCommand


class Command(JobCommand):
    name = "synthesize"
    act = "synthesis.started"
    help = (
        "Have a judge write synthetic queries with relevant and other passages from seed queries, as a training set "
        "for `train rtriever`. Running the command again continues where it stopped."
    )

    def arguments(self, parser: CommandParser) -> None:
        """Add the seeds, who writes, where to, and the limits."""
        parser.add_argument("name", help="name of the collection")
        parser.add_argument(
            "--seeds", required=True, metavar="queries|F", help="the collection's queries, or a file of queries"
        )
        parser.add_argument("--judge", required=True, help="judge whose model answers every step")
        parser.add_argument("--writer", help="judge whose model writes the passages (default: the same)")
        parser.add_argument("--limit", type=int, help="number of seeds, drawn at random (default: all)")
        parser.add_argument("--out", type=Path, metavar="DIR", help="output folder; must be new or empty")
        parser.add_argument(
            "--import", dest="into", action="store_true", help="add queries and documents to the collection, marked"
        )
        parser.add_argument("--personas", type=Path, metavar="F", help="examples of personas, one a line")
        parser.add_argument("--dev", type=float, default=0.0, help="share of bundles for a dev split (default: 0)")
        parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
        self.add_limits(parser)

    def run(self, **options: Any) -> object:
        """Ask about money, begin or go on, stay until the end, and write the folder."""
        collection = collection_named(options["name"])
        out: Path | None = options["out"]
        if out is None and not (options["into"] or options["estimate"]):
            raise BadInput("name an output folder (--out DIR), or ask for --import")
        if out is not None:
            files.check_new_folder(out)
        wanted = {name: options[name] for name in ("judge", "writer", "limit", "dev", "seed", "budget", "max_calls")}
        wanted["source"] = QUERIES if options["seeds"] == QUERIES else str(Path(options["seeds"]).resolve())
        wanted["personas"] = read_personas(options["personas"]) if options["personas"] else None
        expected = lifecycle.estimate_cost(collection, wanted)
        if (told := self.tell_estimate(collection, expected, options)) is not None:
            return told
        synthesis = lifecycle.start_or_join(collection=collection, options=wanted, by=shell_user())
        self.wait_for(synthesis, f"synthesis {synthesis.number}")
        return self.end_synthesis(synthesis, out, into=options["into"])

    def end_synthesis(self, synthesis: Synthesis, out: Path | None, *, into: bool) -> object:
        """Write and import what was made; raise Incomplete (exit 3) when it did not come to its end."""
        document = lifecycle.describe_synthesis(synthesis)
        if synthesis.state != JobState.READY:
            why = synthesis.error or f"it was {synthesis.state}"
            whole = f"{document['bundles']:,} of {synthesis.total:,} seeds have their bundle"
            raise Incomplete(f"{why}; {whole}; the same command goes on with the rest", document)
        if out is not None:
            document |= {"out": str(out), "counts": files.write_folder(synthesis, out)["counts"]}
        if into:
            document["imported"] = importing.import_bundles(synthesis)
        place = f" in {out}" if out else ""
        self.say(
            f"{document['bundles']:,} bundles of {synthesis.total:,} seeds{place}; dropped: "
            f"{document['dropped']:,} bundles, {document['dropped_negatives']:,} negatives; {document['calls']:,} calls"
        )
        return document
