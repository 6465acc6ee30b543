"""`synthesize NAME --seeds queries|F --judge J --out DIR`: write synthetic queries with documents (RTriever-Synth)."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from benchmark.models import Synthesis
from benchmark.synthesis import files, importing
from benchmark.synthesis.lifecycle import SYNTHESES, describe_synthesis
from benchmark.synthesis.seeds import QUERIES, read_personas
from corpus.errors import BadInput
from judges.management.job_command import JobCommand
from judges.model_jobs.jobs import LIMITS


class Command(JobCommand):
    name = "synthesize"
    act = SYNTHESES.started
    kind = SYNTHESES
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

    def wanted(self, options: dict[str, Any]) -> dict[str, Any]:
        """Check the output folder; return the seeds, who writes, and the limits. Raises BadInput."""
        if options["out"] is None and not (options["into"] or options["estimate"]):
            raise BadInput("Name an output folder (--out DIR), or ask for --import")
        if options["out"] is not None:
            files.check_new_folder(options["out"])
        given = {name: options[name] for name in ("judge", "writer", "limit", "dev", "seed", *LIMITS)}
        given["source"] = QUERIES if options["seeds"] == QUERIES else str(Path(options["seeds"]).resolve())
        return given | {"personas": read_personas(options["personas"]) if options["personas"] else None}

    def summarise(self, job: Synthesis) -> tuple[str, dict[str, Any]]:
        """Say how many bundles there are, and what was dropped."""
        document = describe_synthesis(job)
        line = (
            f"{document['bundles']:,} bundles of {job.total:,} seeds; dropped: {document['dropped']:,} bundles, "
            f"{document['dropped_negatives']:,} negatives; {document['calls']:,} calls"
        )
        return line, document

    def end_job(self, job: Synthesis, options: dict[str, Any]) -> object:
        """Write and import what was made."""
        document: Any = super().end_job(job, options)
        if options["out"] is not None:
            document |= {"out": str(options["out"]), "counts": files.write_folder(job, options["out"])["counts"]}
        if options["into"]:
            document["imported"] = importing.import_bundles(job)
        return document
