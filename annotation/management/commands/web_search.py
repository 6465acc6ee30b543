"""web_search NAME --judge J: pages that a web search finds for a collection's queries, as documents to be judged."""

from typing import Any

from django.core.management.base import CommandParser

from annotation.models.web_search import WebSearch, WebSearchResult
from annotation.url_fetch.problems import describe_problem
from annotation.web_search import searching
from corpus.collections.audit_log import shell_user
from corpus.errors import Incomplete
from jobs.models import JobState
from judges.management.commands.status import collection_named
from judges.management.job_command import JobCommand


class Command(JobCommand):
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
        self.add_limits(parser)

    def run(self, **options: Any) -> object:
        """Ask about money, begin or go on, and stay until the documents are in the collection."""
        collection = collection_named(options["name"])
        wanted = {name: options[name] for name in ("judge", "limit", "seed", "fetch", "budget", "max_calls")}
        expected = searching.estimate_cost(collection, wanted)
        if (told := self.tell_estimate(collection, expected, options)) is not None:
            return told
        search = searching.start_or_join(collection=collection, options=wanted, by=shell_user())
        self.wait_for(search, f"web search {search.pk}")
        return self.tell(search)

    def tell(self, search: WebSearch) -> object:
        """Say what came of it; raise Incomplete (exit 3) where some queries are still to be searched for."""
        made = searching.describe_search(search)
        lost = WebSearchResult.objects.filter(searched__search=search, document=None).order_by("searched", "rank")
        for url, problem in lost.values_list("url", "problem"):
            self.note(f"{url[:200]}: {describe_problem(problem)}")
        line = (
            f"{made['answered']:,} of {made['queries']:,} queries searched, {made['without_results']:,} without a "
            f"result; {made['results']:,} results, {sum(made['left_out'].values()):,} left out; "
            f"{made['imported']['documents']:,} new documents, {made['imported']['pairs']:,} new pairs; "
            f"{made['calls']:,} calls"
        )
        if search.state != JobState.READY:
            why = search.error or f"it was {search.state}"
            raise Incomplete(f"{line} ({why}): the same command goes on with the rest", made)
        self.say(line)
        return made
