"""write_queries NAME --judge J --limit N: queries that the collection's documents answer, written by a judge."""

from typing import Any

from django.core.management.base import CommandParser

from benchmark.synthesis import queries
from benchmark.synthesis.seeds import Seed
from corpus.errors import BadInput, Incomplete
from corpus.models import Collection
from judges.management.commands.judge import Command as Judge
from judges.management.commands.status import collection_named
from judges.retrieval import model_requests

PAIRS = 20


class Command(Judge):
    name = "write_queries"
    act = "synthesis.started"
    help = (
        "Have a judge write a query for each of some documents, marked synthetic, with pairs to be judged. "
        "Running the command again continues where it stopped."
    )
    way = queries.ASK

    def arguments(self, parser: CommandParser) -> None:
        """Add what queries are written from, who writes, and the limits."""
        parser.add_argument("name", help="name of the collection")
        self.add_sources(parser)
        parser.add_argument("--judge", required=True, help="judge whose model writes the queries")
        parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
        parser.add_argument(
            "--pairs", type=int, default=PAIRS, help=f"documents that BM25 finds for each new query (default: {PAIRS})"
        )
        parser.add_argument("--budget", type=float, help="maximum cost in USD")
        parser.add_argument("--max-calls", type=int, help="maximum number of calls")
        parser.add_argument("--estimate", action="store_true", help="print the expected cost and create nothing")
        parser.add_argument("--yes", action="store_true", help="start paid work without asking for confirmation")

    def add_sources(self, parser: CommandParser) -> None:
        """Add what queries are written from."""
        parser.add_argument("--limit", type=int, required=True, help="number of documents, drawn at random")

    def choose(self, collection: Collection, options: dict[str, Any]) -> list[Seed]:
        """What queries are written from. Raises BadInput."""
        return queries.choose_documents(collection, limit=options["limit"], seed=options["seed"])

    def run(self, **options: Any) -> object:
        """Choose, ask about money, have the queries written, and add them to the collection."""
        collection = collection_named(options["name"])
        if not 1 <= options["pairs"] <= queries.MOST_PAIRS:
            raise BadInput(f"--pairs is a number from 1 to {queries.MOST_PAIRS:,}")
        judge = model_requests.judge_for(self.way.role, options["judge"])
        sources = self.choose(collection, options)
        expected = queries.estimate_queries(self.way, judge, sources)
        if options["estimate"]:
            self.say(expected.line())
            return {"collection": collection.name, "estimate": expected.line()}
        if not expected.free:
            self.note(f"estimate: {expected.line()}")
            self.confirm_start(options)
        limits = {name: options[name] for name in ("pairs", "budget", "max_calls")}
        made = queries.write_queries(collection, self.way, sources, judge, **limits)
        return self.tell(made)

    def tell(self, made: dict[str, Any]) -> object:
        """Say what came of it; raise Incomplete (exit 3) where some queries are still to be asked for."""
        failed = sum(made["failed"].values())
        line = (
            f"{made['written']:,} queries written with {made['imported']['pairs']:,} pairs; {made['there_before']:,} "
            f"were there before; {failed:,} brought no query; {made['calls']:,} calls"
        )
        if made["stopped"] or made["failed"].keys() & {"error", "not asked"}:
            raise Incomplete(f"{line}: the same command goes on with the rest", made)
        self.say(line)
        return made
