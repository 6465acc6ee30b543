"""Figures of all reviews of aspects: shares accepted, kappa of weights and of decisions; their table as a file."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.agreement.measures import Statistic
from annotation.agreement.proportions import share_statistic
from annotation.aspects.kappa import decision_agreement, importance_agreement
from annotation.aspects.review_steps import CRITERIA
from annotation.aspects.reviews import State
from charts.cells import csv_line
from charts.latex import latex_table
from corpus.aspects.entries import load_aspects
from corpus.models import Collection
from corpus.models.aspects import AspectReview, ReviewStep

NO_REVIEW = gettext_noop("no query has been reviewed")
HEADER = ("measure", "value", "low", "high", "n", "queries")
FORMS = {"csv": "text/csv", "tex": "application/x-tex", "json": "application/json"}


def has_reviews(collection: Collection) -> bool:
    """Return whether a review of any query of the collection was submitted."""
    return AspectReview.objects.filter(query__collection=collection, state=State.SUBMITTED).exists()


def measure_reviews(collection: Collection) -> dict[str, Any]:
    """Compute the figures, with 95% intervals: exact for shares, by bootstrap over whole queries for kappa.

    Over the first review of each query; `weights`: over those given blind; `rows`: the lines of the table.
    """
    said = list(_first_reviews(collection))
    weights = importance_agreement([_weight_pairs(*one) for one in said if one[0].blind])
    decisions = decision_agreement([_decision_pairs(steps) for _review, steps in said])
    rows = [
        *(_criterion_row(key, said) for key in CRITERIA),
        _decisions_row("kept", [one for _review, steps in said for one in _decisions(steps) if one["aspect"]], said),
        _decisions_row(
            "discarded", [one for _review, steps in said for one in _decisions(steps) if not one["aspect"]], said
        ),
        _table_row("weights_quadratic", gettext_noop("Weights: kappa, quadratic"), weights.quadratic, weights.queries),
        _table_row("weights_linear", gettext_noop("Weights: kappa, linear"), weights.linear, weights.queries),
        _table_row("weights_equal", gettext_noop("Weights: equal"), weights.percent, weights.queries),
        _table_row("decisions_kappa", gettext_noop("Decisions: kappa"), decisions.plain, decisions.queries),
        _table_row("decisions_equal", gettext_noop("Decisions: equal"), decisions.percent, decisions.queries),
    ]
    return {"rows": rows, "weights": weights, "decisions": decisions, "queries": len(said)}


Answered = tuple[AspectReview, dict[str, ReviewStep]]


def _first_reviews(collection: Collection) -> Iterator[Answered]:
    """The first submitted review of each query, with its standing steps by kind: later ones are not blind."""
    submitted = AspectReview.objects.filter(query__collection=collection, state=State.SUBMITTED, query__is_current=True)
    # DISTINCT ON keeps the first row of each query in this order: its oldest review.
    first = list(submitted.select_related("revision").order_by("query", "pk").distinct("query"))
    steps: dict[int, dict[str, ReviewStep]] = {review.pk: {} for review in first}
    for step in ReviewStep.objects.filter(review__in=first, undone_by=None).order_by("pk"):
        steps[step.review_id][step.kind] = step
    for review in first:
        yield review, steps[review.pk]


def _weight_pairs(review: AspectReview, steps: dict[str, ReviewStep]) -> list[tuple[int, int]]:
    own = steps[ReviewStep.Kind.WEIGHTS].answers["importances"]
    return [(entry.importance, own[entry.id]) for entry in load_aspects(review.revision.aspects)]


def _decisions(steps: dict[str, ReviewStep]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = steps[ReviewStep.Kind.DOCUMENTS].answers["decisions"]
    return found


def _decision_pairs(steps: dict[str, ReviewStep]) -> list[tuple[int, int]]:
    """(first, second), 1: the document supports the aspect. Who accepts decides as the first person did."""
    return [(int(bool(one["aspect"])), int(bool(one["aspect"]) == one["accept"])) for one in _decisions(steps)]


def _criterion_row(key: str, said: Sequence[Answered]) -> dict[str, Any]:
    hits = [steps[ReviewStep.Kind.ASPECTS].answers["criteria"][key]["accept"] for _review, steps in said]
    names = {
        "granularity": gettext_noop("Granularity accepted"),
        "balance": gettext_noop("Balance accepted"),
        "coverage": gettext_noop("Coverage accepted"),
        "weights": gettext_noop("Weights accepted"),
    }
    return _table_row(key, names[key], share_statistic(hits, NO_REVIEW), len(hits))


def _decisions_row(key: str, decisions: Sequence[dict[str, Any]], said: Sequence[Answered]) -> dict[str, Any]:
    names = {
        "kept": gettext_noop("Kept documents accepted"),
        "discarded": gettext_noop("Discarded documents accepted"),
    }
    hits = [one["accept"] for one in decisions]
    return _table_row(key, names[key], share_statistic(hits, NO_REVIEW), len(said))


def _table_row(key: str, name: str, one: Statistic, queries: int) -> dict[str, Any]:
    """A line of the table: a share or a kappa over `one.n` things of so many queries."""
    return {"key": key, "name": name, "one": one, "queries": queries}


def write_table(collection: Collection, form: str) -> str:
    """The table as a file: CSV and JSON in English for programs, LaTeX in the language of who reads it."""
    rows = measure_reviews(collection)["rows"]
    cells = [(row["key"], one.value, one.low, one.high, one.n, row["queries"]) for row in rows for one in [row["one"]]]
    if form == "json":
        found = [dict(zip(HEADER, one, strict=True)) for one in cells]
        return json.dumps({"collection": collection.name, "reviews": found}, indent=1) + "\n"
    if form == "csv":
        lines = [HEADER, *(["" if cell is None else cell for cell in one] for one in cells)]
        return "".join(map(csv_line, lines))
    named = [(_(row["name"]), *one[1:]) for row, one in zip(rows, cells, strict=True)]
    header = [_("Measure"), _("Value"), _("From"), _("To"), "n", _("Queries")]
    return latex_table(header, named, caption=_("Second review of aspects"), label="aspect-reviews", places=3)
