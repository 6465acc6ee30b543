"""web_search NAME --judge J: pages that a web search finds for a collection's queries, as documents to be judged."""

from random import Random
from typing import Any

from django.core.management.base import CommandParser

from annotation.web_search import searching
from corpus.errors import BadInput, Incomplete
from corpus.models import Query
from judges.management.commands.judge import Command as Judge
from judges.management.commands.status import collection_named
from judges.retrieval import model_requests


class Command(Judge):
    name = "web_search"
    act = "import.web"
    help = (
        "Search the web for each query and add the pages as documents to be judged. Running the command again "
        "continues where it stopped, and repeats no search."
    )

    def arguments(self, parser: CommandParser) -> None:
        """Add whom to ask, for which queries, and the limits."""
        parser.add_argument("name", help="name of the collection")
        parser.add_argument("--judge", required=True, help="a judge of provider tavily or exa, or offline-web-search")
        parser.add_argument("--limit", type=int, help="number of queries, drawn at random (default: all)")
        parser.add_argument("--seed", type=int, default=0, help="random seed of --limit (default: 0)")
        parser.add_argument(
            "--fetch",
            action="store_true",
            help="fetch each page from its site, where robots.txt allows it (default: the text that the service gives)",
        )
        parser.add_argument("--budget", type=float, help="maximum cost in USD")
        parser.add_argument("--max-calls", type=int, help="maximum number of calls")
        parser.add_argument("--estimate", action="store_true", help="print the expected cost and create nothing")
        parser.add_argument("--yes", action="store_true", help="start paid work without asking for confirmation")

    def run(self, **options: Any) -> object:
        """Choose the queries, ask about money, search, and add what was found."""
        collection = collection_named(options["name"])
        judge = model_requests.judge_for(searching.ROLE, options["judge"])
        queries = list(Query.objects.filter(collection=collection, is_current=True).order_by("external_id"))
        if not queries:
            raise BadInput(f"{collection.name} has no queries")
        if options["limit"] is not None:
            if options["limit"] < 1:
                raise BadInput("--limit must be 1 or more")
            drawn = Random(options["seed"]).sample(queries, min(options["limit"], len(queries)))
            queries = sorted(drawn, key=lambda query: query.external_id)
        expected = searching.estimate_search(judge, queries)
        if options["estimate"]:
            self.say(expected.line())
            return {"collection": collection.name, "estimate": expected.line()}
        if not expected.free:
            self.stderr.write(f"estimate: {expected.line()}")
            self.confirm_start(options)
        limits = {name: options[name] for name in ("fetch", "budget", "max_calls")}
        return self.tell(searching.search_web(collection, judge, queries, tell=self.stderr.write, **limits))

    def tell(self, made: dict[str, Any]) -> object:
        """Print the outcome; raise Incomplete (exit 3) where some queries are still to be searched for."""
        left_out = sum(made["left_out"].values())
        line = (
            f"{made['answered']:,} of {made['queries']:,} queries searched, {made['without_results']:,} without a "
            f"result; {made['results']:,} results, {left_out:,} left out; {made['imported']['documents']:,} new "
            f"documents, {made['imported']['pairs']:,} new pairs; {made['calls']:,} calls"
        )
        if made["answered"] < made["queries"]:
            why = made["stopped"] or made["error"]
            raise Incomplete(f"{line} ({why}): the same command goes on with the rest", made)
        self.say(line)
        return made
