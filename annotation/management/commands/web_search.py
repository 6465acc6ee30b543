"""web_search NAME --judge J: pages that a web search finds for a collection's queries, as documents to be judged."""

from typing import Any

from annotation.data.web_search.searching import WEB_SEARCHES, describe_search
from annotation.models.web_search import WebSearch, WebSearchResult
from corpus.url_fetch.problems import describe_problem
from judges.management.job_command import JobCommand


class Command(JobCommand):
    name = "web_search"
    kind = WEB_SEARCHES
    help = (
        "Search the web for each query and add the pages as documents to be judged. Running the command again "
        "continues where it stopped, and repeats no search."
    )

    def summarise(self, job: WebSearch) -> tuple[str, dict[str, Any]]:
        """Say what came of it, and of each result that became no document why."""
        made = describe_search(job)
        lost = WebSearchResult.objects.filter(searched__search=job, document=None).order_by("searched", "rank")
        for url, problem in lost.values_list("url", "problem"):
            self.note(f"{url[:200]}: {describe_problem(problem)}")
        line = (
            f"{made['answered']:,} of {made['queries']:,} queries searched, {made['without_results']:,} without a "
            f"result; {made['results']:,} results, {sum(made['left_out'].values()):,} left out; "
            f"{made['imported']['documents']:,} new documents, {made['imported']['pairs']:,} new pairs; "
            f"{made['calls']:,} calls"
        )
        return line, made
