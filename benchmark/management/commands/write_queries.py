"""write_queries NAME --judge J --limit N: queries that the collection's documents answer, written by a judge."""

from typing import Any

from django.core.management.base import CommandParser

from benchmark.models import Synthesis
from benchmark.synthesis.lifecycle import SYNTHESES, describe_synthesis
from benchmark.synthesis.queries import PAIRS
from judges.management.job_command import JobCommand
from judges.model_jobs.jobs import LIMITS


class Command(JobCommand):
    name = "write_queries"
    act = SYNTHESES.started
    help = (
        "Have a judge write a query for each of some documents, marked synthetic, with pairs to be judged. "
        "Running the command again continues where it stopped."
    )
    kind = SYNTHESES
    product = Synthesis.Product.ASK
    own = ("limit",)  # Options of this kind alone.

    def arguments(self, parser: CommandParser) -> None:
        """Add what queries are written from, who writes, and the limits."""
        parser.add_argument("name", help="name of the collection")
        self.add_sources(parser)
        parser.add_argument("--judge", required=True, help="judge whose model writes the queries")
        parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
        parser.add_argument(
            "--pairs", type=int, default=PAIRS, help=f"documents that BM25 finds for each new query (default: {PAIRS})"
        )
        self.add_limits(parser)

    def add_sources(self, parser: CommandParser) -> None:
        """Add what queries are written from."""
        parser.add_argument("--limit", type=int, required=True, help="number of documents, drawn at random")

    def source(self, options: dict[str, Any]) -> str:
        """Return where the seeds come from: the documents, or the folder of a training set."""
        return "documents"

    def wanted(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return what is written from what, and the limits."""
        given = {name: options[name] for name in ("judge", "seed", "pairs", *self.own, *LIMITS)}
        return given | {"kind": self.product.value, "source": self.source(options)}

    def summarise(self, job: Synthesis) -> tuple[str, dict[str, Any]]:
        """Say how many queries were written, and what became of the others."""
        made = describe_synthesis(job)
        line = (
            f"{made['written']:,} queries written with {made['pairs']:,} pairs; {made['there_before']:,} "
            f"were there before; {sum(made['failed'].values()):,} brought no query; {made['calls']:,} calls"
        )
        return line, made
