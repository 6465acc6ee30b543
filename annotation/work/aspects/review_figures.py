"""Figures of all reviews of aspects: shares accepted, kappa of weights and of decisions; their table as a file."""

import json
from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.agreement.proportions import share_statistic
from annotation.work.aspects.kappa import importance_agreement
from annotation.work.aspects.review_steps import CRITERIA
from annotation.work.aspects.reviews import Kind, State
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


ROWS = {
    "granularity": gettext_noop("Granularity accepted"),
    "balance": gettext_noop("Balance accepted"),
    "coverage": gettext_noop("Coverage accepted"),
    "weights": gettext_noop("Weights accepted"),
    "kept": gettext_noop("Kept documents accepted"),
    "discarded": gettext_noop("Discarded documents accepted"),
    "weights_quadratic": gettext_noop("Weights: kappa, quadratic"),
    "weights_linear": gettext_noop("Weights: kappa, linear"),
    "weights_equal": gettext_noop("Weights: equal"),
    "decisions_kappa": gettext_noop("Decisions: kappa"),
    "decisions_equal": gettext_noop("Decisions: equal"),
}
"""Lines of the table: a share or a kappa over so many things of so many queries."""


def measure_reviews(collection: Collection) -> dict[str, Any]:
    """Compute the figures over first reviews (weights: blind ones), with 95% intervals; `rows`: the table's lines."""
    said = list(_first_reviews(collection))
    first_and_own, accepted = [], []
    for review, steps in said:
        own = steps[Kind.WEIGHTS].answers["importances"]
        if review.blind:
            entries = load_aspects(review.revision.aspects)
            first_and_own.append([(entry.importance, own[entry.id]) for entry in entries])
        # 1: the document supports the aspect. Who accepts decides as the first person did.
        found = [(bool(one["aspect"]), one["accept"]) for one in steps[Kind.DOCUMENTS].answers["decisions"]]
        accepted.append(found)
    weights = importance_agreement(first_and_own)
    pairs = [[(int(keeps), int(keeps == accepts)) for keeps, accepts in some] for some in accepted]
    decisions = importance_agreement(pairs, levels=range(2))
    shares = {key: [steps[Kind.ASPECTS].answers["criteria"][key]["accept"] for _r, steps in said] for key in CRITERIA}
    for key, is_kept in (("kept", True), ("discarded", False)):
        shares[key] = [accepts for some in accepted for keeps, accepts in some if keeps is is_kept]
    figures = {key: (share_statistic(hits, NO_REVIEW), len(said)) for key, hits in shares.items()} | {
        "weights_quadratic": (weights.quadratic, weights.queries),
        "weights_linear": (weights.linear, weights.queries),
        "weights_equal": (weights.percent, weights.queries),
        "decisions_kappa": (decisions.plain, decisions.queries),
        "decisions_equal": (decisions.percent, decisions.queries),
    }
    rows = [
        {"key": key, "name": name, "one": figures[key][0], "queries": figures[key][1]} for key, name in ROWS.items()
    ]
    return {"rows": rows, "weights": weights, "decisions": decisions, "queries": len(said)}


def _first_reviews(collection: Collection) -> Iterator[tuple[AspectReview, dict[str, ReviewStep]]]:
    """The first submitted review of each query, with steps by kind: later are not blind."""
    submitted = AspectReview.objects.filter(query__collection=collection, state=State.SUBMITTED, query__is_current=True)
    # DISTINCT ON keeps the first row of each query in this order: its oldest review.
    first = list(submitted.select_related("revision").order_by("query", "pk").distinct("query"))
    steps: dict[int, dict[str, ReviewStep]] = {review.pk: {} for review in first}
    for step in ReviewStep.objects.filter(review__in=first, undone_by=None).order_by("pk"):
        steps[step.review_id][step.kind] = step
    for review in first:
        yield review, steps[review.pk]


def write_table(collection: Collection, form: str) -> str:
    """The table as a file: CSV and JSON in English for programs, LaTeX in the reader's language."""
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
