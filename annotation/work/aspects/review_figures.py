"""Figures of all reviews of aspects: accepted shares, kappa of weights and decisions; their table as a file."""

import json
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
"""The rows of the table, each a share or a kappa."""


def measure_reviews(collection: Collection) -> dict[str, Any]:
    """Compute the figures with 95% intervals over the first review of each query, weights over blind ones."""
    submitted = AspectReview.objects.filter(query__collection=collection, state=State.SUBMITTED, query__is_current=True)
    # DISTINCT ON keeps the first row of each query in this order, which is its oldest review.
    first_reviews = list(submitted.select_related("revision").order_by("query", "pk").distinct("query"))
    steps_of_review: dict[int, dict[str, ReviewStep]] = {review.pk: {} for review in first_reviews}
    for step in ReviewStep.objects.filter(review__in=first_reviews, undone_by=None).order_by("pk"):
        steps_of_review[step.review_id][step.kind] = step
    reviewed = [(review, steps_of_review[review.pk]) for review in first_reviews]
    first_and_own, accepted = [], []
    for review, steps in reviewed:
        own = steps[Kind.WEIGHTS].answers["importances"]
        if review.blind:
            entries = load_aspects(review.revision.aspects)
            first_and_own.append([(entry.importance, own[entry.id]) for entry in entries])
        # Whether the document supports the aspect, and whether the reviewer accepts that.
        decisions_of_query = [
            (bool(decision["aspect"]), decision["accept"]) for decision in steps[Kind.DOCUMENTS].answers["decisions"]
        ]
        accepted.append(decisions_of_query)
    weights = importance_agreement(first_and_own)
    pairs = [[(int(keeps), int(keeps == accepts)) for keeps, accepts in decisions] for decisions in accepted]
    agreement = importance_agreement(pairs, levels=range(2))
    shares = {
        key: [steps[Kind.ASPECTS].answers["criteria"][key]["accept"] for _r, steps in reviewed] for key in CRITERIA
    }
    for key, is_kept in (("kept", True), ("discarded", False)):
        shares[key] = [accepts for decisions in accepted for keeps, accepts in decisions if keeps is is_kept]
    figures = {key: (share_statistic(hits, NO_REVIEW), len(reviewed)) for key, hits in shares.items()} | {
        "weights_quadratic": (weights.quadratic, weights.queries),
        "weights_linear": (weights.linear, weights.queries),
        "weights_equal": (weights.percent, weights.queries),
        "decisions_kappa": (agreement.plain, agreement.queries),
        "decisions_equal": (agreement.percent, agreement.queries),
    }
    rows = [
        {"key": key, "name": name, "statistic": figures[key][0], "queries": figures[key][1]}
        for key, name in ROWS.items()
    ]
    return {"rows": rows, "weights": weights, "decisions": agreement, "queries": len(reviewed)}


def write_table(collection: Collection, form: str) -> str:
    """Return the table as a file: CSV and JSON in English for programs, LaTeX in the reader's language."""
    rows = measure_reviews(collection)["rows"]
    cells = [
        (row["key"], statistic.value, statistic.low, statistic.high, statistic.n, row["queries"])
        for row in rows
        for statistic in [row["statistic"]]
    ]
    if form == "json":
        documents = [dict(zip(HEADER, row_cells, strict=True)) for row_cells in cells]
        return json.dumps({"collection": collection.name, "reviews": documents}, indent=1) + "\n"
    if form == "csv":
        lines = [HEADER, *(["" if cell is None else cell for cell in row_cells] for row_cells in cells)]
        return "".join(map(csv_line, lines))
    named = [(_(row["name"]), *row_cells[1:]) for row, row_cells in zip(rows, cells, strict=True)]
    header = [_("Measure"), _("Value"), _("From"), _("To"), "n", _("Queries")]
    return latex_table(header, named, caption=_("Second review of aspects"), label="aspect-reviews", places=3)
