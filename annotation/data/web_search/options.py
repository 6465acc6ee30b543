"""Options of a web search."""

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from actions.options import option
from judges.model_jobs.options import DrawnOptions


class WebSearchOptions(DrawnOptions):
    """The search service, the queries, and where the text of documents comes from."""

    judge: str = option(_("Search service"))
    fetch: bool = option(
        pgettext_lazy(
            "web search", "Fetch each page from its own site where robots.txt allows it, instead of the service's text"
        ),
        default=False,
    )
