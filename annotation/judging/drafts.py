"""Contribution and evidence as an annotator finds them: what a judge wrote, and what failed."""

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy

from corpus.evidence.measures import DIMENSIONS
from corpus.evidence.targets import last_of_judge, last_text
from corpus.models import Item

RATINGS = {
    1: gettext_lazy("useless"),
    2: gettext_lazy("poor"),
    3: gettext_lazy("usable"),
    4: gettext_lazy("good"),
    5: gettext_lazy("nothing to change"),
}


@dataclass(frozen=True, slots=True)
class Draft:
    """What stands in the two fields, and what a judge's own text failed at."""

    contribution: str
    evidence: str
    writer: str  # The judge whose texts failed; empty when none wrote.
    problems: tuple[str, ...]
    scores: dict[str, int]  # By judged dimension, as the page names it.
    scored_by: str
    meaning: str  # quality, or fidelity to teacher.


def draft_of(item: int) -> Draft:
    """What the desk shows for an item with the reason `evidence`; two statements, on such items only."""
    pair = Item.objects.values_list("pair", flat=True).get(pk=item)
    newest, judge = last_text(pair), last_of_judge(pair)
    measures: dict[str, Any] = judge.measures if judge else {}
    judged = measures.get("judged") or {}
    scores = judged.get("scores") or {}
    return Draft(
        contribution=newest.contribution if newest else "",
        evidence=newest.evidence if newest else "",
        writer=judge.writer if judge else "",
        problems=tuple(measures.get("problems", ())),
        scores={name.replace("_", " "): scores[name] for name in DIMENSIONS if name in scores},
        scored_by=judged.get("judge", ""),
        meaning=judged.get("as", ""),
    )
