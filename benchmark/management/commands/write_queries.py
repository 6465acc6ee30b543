"""write_queries NAME --judge J --limit N: queries that the collection's documents answer, written by a judge."""

from typing import Any

from django.core.management.base import CommandParser

from benchmark.models import Synthesis
from benchmark.synthesis import lifecycle
from benchmark.synthesis.queries import PAIRS
from corpus.collections.audit_log import shell_user
from corpus.errors import Incomplete
from jobs.models import JobState
from judges.management.commands.status import collection_named
from judges.management.job_command import JobCommand


class Command(JobCommand):
    name = "write_queries"
    act = "synthesis.started"
    help = (
        "Have a judge write a query for each of some documents, marked synthetic, with pairs to be judged. "
        "Running the command again continues where it stopped."
    )
    kind = Synthesis.Product.ASK
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

    def run(self, **options: Any) -> object:
        """Ask about money, begin or go on, and stay until the queries are in the collection."""
        collection = collection_named(options["name"])
        wanted = {name: options[name] for name in ("judge", "seed", "pairs", "budget", "max_calls", *self.own)}
        wanted |= {"kind": self.kind.value, "source": self.source(options)}
        expected = lifecycle.estimate_cost(collection, wanted)
        if (told := self.tell_estimate(collection, expected, options)) is not None:
            return told
        synthesis = lifecycle.start_or_join(collection=collection, options=wanted, by=shell_user())
        self.wait_for(synthesis, f"synthesis {synthesis.number}")
        return self.tell(synthesis)

    def tell(self, synthesis: Synthesis) -> object:
        """Print the outcome; raise Incomplete (exit 3) where some queries are still to be written."""
        made = lifecycle.describe_synthesis(synthesis)
        line = (
            f"{made['written']:,} queries written with {made['pairs']:,} pairs; {made['there_before']:,} "
            f"were there before; {sum(made['failed'].values()):,} brought no query; {made['calls']:,} calls"
        )
        if synthesis.state != JobState.READY:
            why = synthesis.error or f"it was {synthesis.state}"
            raise Incomplete(f"{why}; {line}; the same command goes on with the rest", made)
        self.say(line)
        return made
