"""`synthesize NAME --seeds queries|F --judge J --out DIR`: have synthetic queries with passages written (RTriever)."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from benchmark.models import Synthesis
from benchmark.synthesis import files, importing
from benchmark.synthesis.lifecycle import STARTS, SYNTHESES, describe_synthesis
from benchmark.synthesis.options import BundleOptions
from corpus.errors import BadInput
from judges.management.job_command import JobCommand


class Command(JobCommand):
    name = "synthesize"
    kind = SYNTHESES
    start = staticmethod(STARTS[BundleOptions.product])
    help = (
        "Have a judge write synthetic queries with relevant and other passages from seed queries, as a training set "
        "for `train rtriever`. Running the command again continues where it stopped."
    )

    def arguments(self, parser: CommandParser) -> None:
        """Add the options, the output folder and the import."""
        super().arguments(parser)
        parser.add_argument("--out", type=Path, metavar="DIR", help="output folder; must be new or empty")
        parser.add_argument(
            "--import", dest="into", action="store_true", help="add queries and documents to the collection, marked"
        )

    def wanted(self, arguments: dict[str, Any]) -> Any:
        """Check the output folder before anything starts. Raises BadInput."""
        if arguments["out"] is None and not (arguments["into"] or arguments["estimate"]):
            raise BadInput("Name an output folder (--out DIR), or ask for --import")
        if arguments["out"] is not None:
            folder = arguments["out"]
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise BadInput(f"{folder} is not empty: name a new folder")
        return super().wanted(arguments)

    def summarise(self, job: Synthesis) -> tuple[str, dict[str, Any]]:
        """Return the numbers of bundles and of what was dropped, as text and as a document."""
        document = describe_synthesis(job)
        line = (
            f"{document['bundles']:,} bundles of {job.total:,} seeds; dropped: {document['dropped']:,} bundles, "
            f"{document['dropped_negatives']:,} negatives; {document['calls']:,} calls"
        )
        return line, document

    def end_job(self, job: Synthesis, options: dict[str, Any]) -> object:
        """Write the bundles to the output folder, and import them if asked to."""
        document: Any = super().end_job(job, options)
        if options["out"] is not None:
            document |= {"out": str(options["out"]), "counts": files.write_folder(job, options["out"])["counts"]}
        if options["into"]:
            document["imported"] = importing.import_bundles(job)
        return document
