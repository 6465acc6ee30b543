"""Options of a set of comparisons."""

from enum import StrEnum
from typing import Literal

from django.utils.translation import gettext_lazy as _

from actions.options import Options, option

MOST = 20_000  # Comparisons of a set.
MOST_SEED = 1 << 31


class ComparisonOptions(Options):
    """What is compared, and by how many people."""

    title: str = option(_("Title"), _("For the list of sets. Blank: none."), default="", at_most=200)
    documents: Literal["relevant", "judged", "pool"] = option(
        _("Documents"),
        _("Which documents of each query are compared."),
        default="relevant",
        choices={
            "relevant": _("labelled relevant, at random"),
            "judged": _("any label, at random"),
            "pool": _("the first of the pool by reranker score, labelled or not"),
        },
    )
    per_query: int = option(
        _("Documents per query"), _("The most of one query that are compared."), default=6, ge=2, le=50
    )
    queries: int | None = option(
        _("Queries"), _("So many, drawn at random. Blank: all with two such documents."), default=None, ge=1, le=MOST
    )
    query_list: str = option(
        _("Only queries of a list"), _("The name of a saved list of queries. Blank: all queries."), default=""
    )
    opponents: int = option(
        _("Opponents per document"),
        _("Each document is compared with at least so many others. More give narrower intervals."),
        default=3,
        ge=1,
        le=49,
    )
    people: int = option(
        _("People per comparison"),
        _("Two or more show how well people agree. 0: no one, for comparisons by models alone."),
        default=1,
        ge=0,
        le=25,
    )
    seed: int = option(_("Seed"), _("The same seed draws the same comparisons."), default=0, ge=0, lt=MOST_SEED)


class ComparisonAnswer(StrEnum):
    """An answer as its page shows it: by side."""

    LEFT = "left"
    RIGHT = "right"
    EQUAL = "equal"
    BOTH_BAD = "both_bad"


class ComparisonAnswerOptions(Options):
    """An answer to an assigned comparison."""

    set: int = option(_("Set"), _("The number of the set."), ge=1)
    comparison: int = option(_("Comparison"), _("Its number in the set."), ge=1)
    answer: ComparisonAnswer = option(_("Answer"), _("Which side is better, or neither."))
    seconds: float | None = option(_("Seconds"), _("Time on the comparison."), default=None, ge=0, le=86_400)
