"""`web_search NAME --judge J`: search the web for a collection's queries and add the pages as documents."""

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
        """Return a line and the document of the search; note each result that became no document."""
        summary = describe_search(job)
        left_out = WebSearchResult.objects.filter(searched__search=job, document=None).order_by("searched", "rank")
        for url, problem in left_out.values_list("url", "problem"):
            self.note(f"{url[:200]}: {describe_problem(problem)}")
        line = (
            f"{summary['answered']:,} of {summary['queries']:,} queries searched, "
            f"{summary['without_results']:,} without a result; {summary['results']:,} results, "
            f"{sum(summary['left_out'].values()):,} left out; "
            f"{summary['imported']['documents']:,} new documents, {summary['imported']['pairs']:,} new pairs; "
            f"{summary['calls']:,} calls"
        )
        return line, summary
