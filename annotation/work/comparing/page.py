"""The page of a set's results: its figures, and a page of its queries with the strengths of their documents."""

from dataclasses import asdict
from typing import Any

from django.core.paginator import Paginator
from django.utils.translation import gettext as _

from annotation.agreement.measures import Statistic
from annotation.models.comparisons import ComparisonSet
from annotation.work.comparing import counting, selectors
from annotation.work.comparing.by_judges.selectors import comparing_judges
from annotation.work.comparing.counting import Sources
from annotation.work.comparing.selectors import ComparedQuery
from charts import Chart
from charts.intervals import IntervalSpan, draw_intervals
from charts.translation import gettext_noop

QUERIES = 10  # Queries on a page.
SHARES = ("agreement", "decided", "equal", "both_bad", "left")  # In the order of the table's columns.
SOURCES: tuple[Sources, ...] = ("resolved", "people", "machine")


def build_results(comparison_set: ComparisonSet, by: str, number: str) -> tuple[dict[str, Any], list[Chart]]:
    """Return the context of the page and its charts, one for each query on it.

    `by`: whose answers order the documents, a key of SOURCES; `number`: the page of queries.
    """
    sources: Sources = next((name for name in SOURCES if name == by), "resolved")
    outcomes = selectors.outcomes_of(comparison_set)
    queries = selectors.list_queries(outcomes, sources)
    page = Paginator(list(queries), QUERIES).get_page(number)
    ranked = selectors.rank_queries({query: queries[query] for query in page.object_list})
    charts = [_draw_strengths(comparison_set, query) for query in ranked]
    context = {
        "set": comparison_set,
        "by": sources,
        "kinds": {outcome.kind for outcome in outcomes},
        "figures": [
            {**figures, "shares": [figures[name] for name in SHARES]}
            for figures in selectors.describe_results(outcomes)
        ],
        "decided": len([couple for couple in counting.add_votes(outcomes) if couple.majority]),
        "page": page,
        "chart_query": f"by={sources}&page={page.number}",
        "queries": list(zip(ranked, charts, strict=True)),
        "judges": comparing_judges(comparison_set, outcomes),
        "judgings": comparison_set.judgings.order_by("-number"),
    }
    return context, charts


def _draw_strengths(comparison_set: ComparisonSet, query: ComparedQuery) -> Chart:
    spans = [IntervalSpan(document.id, *document.strength) for document in query.documents]
    first = query.documents[0]
    summary = _("The strongest is %(document)s: %(estimate).2f, 95%% interval %(low).2f to %(high).2f.")
    source = _("%(collection)s, comparisons %(number)s, query %(query)s")
    values = {"collection": comparison_set.collection.name, "number": comparison_set.number, "query": query.id}
    return draw_intervals(
        f"strengths-{query.key}",
        _("Strength of the documents of %(query)s") % {"query": query.id},
        spans,
        x=_("strength (log-odds)"),
        summary=summary % {"document": first.id, **first.strength._asdict()},
        source=source % values,
        kind=gettext_noop("document"),
    )


def build_document(comparison_set: ComparisonSet, by: str) -> dict[str, Any]:
    """Return the results as programs read them."""
    sources: Sources = next((name for name in SOURCES if name == by), "resolved")
    outcomes = selectors.outcomes_of(comparison_set)
    return {
        "figures": [
            {name: asdict(value) if isinstance(value, Statistic) else value for name, value in figures.items()}
            for figures in selectors.describe_results(outcomes)
        ],
        "queries": [
            {
                "query_id": query.id,
                "answers": query.answers,
                "documents": [
                    {"doc_id": document.id, **document.strength._asdict(), **asdict(document.counts)}
                    for document in query.documents
                ],
            }
            for query in selectors.rank_queries(selectors.list_queries(outcomes, sources))
        ],
    }
