"""A set of comparisons, and judges of the model server that prefer as scripted."""

import json
from collections.abc import Callable
from typing import Any

from annotation.models.comparisons import Comparison, ComparisonSet, Preference
from annotation.models.judged_comparisons import ComparisonJudging
from annotation.work.comparing.by_judges.judging import COMPARISON_JUDGINGS
from corpus.models import Assessor
from jobs import leases
from judges.prompts.render import document_block
from judges.records import Inputs
from tests.factories import make_collection, make_document, make_pair, make_query

GOOD = "A mapping object maps hashable values to arbitrary objects, said well."
BAD = "Assert statements insert debugging assertions."
# The good document is first, second, first, and in neither of the last two comparisons.
COUPLES = (("good", "bad"), ("worse", "good"), ("good", "other"), ("other", "bad"), ("bad", "worse"))
TEXTS = {
    "good": GOOD,
    "bad": BAD,
    "other": "Mappings are mutable objects, and map hashable values.",
    "worse": "The else clause of a loop runs once the loop is exhausted.",
}


def make_set(name: str = "maps", people: int = 1) -> ComparisonSet:
    """A collection with one query, its four documents, and a set that compares five couples of them."""
    collection = make_collection(name)
    query = make_query(collection, "What does a mapping map?")
    pairs = {key: make_pair(collection, query, make_document(collection, text)) for key, text in TEXTS.items()}
    comparison_set = ComparisonSet.objects.create(collection=collection, people=people)
    comparison_set.refresh_from_db()
    for seq, (first, second) in enumerate(COUPLES, 1):
        Comparison.objects.create(set=comparison_set, first=pairs[first], second=pairs[second], seq=seq)
    return comparison_set


def answer(preference: str) -> dict[str, Any]:
    return {"text": json.dumps({"reason": "It says so.", "preference": preference})}


def prefers(text: str) -> list[dict[str, Any]]:
    """A judge that prefers the document with this text wherever it stands, and finds all others equal."""
    fence = document_block(Inputs("", (), "", text))
    return [
        # The letter of a document is on the line before its fence.
        {"contains": f"Document A:\n{fence}", **answer("A")},
        {"contains": f"Document B:\n{fence}", **answer("B")},
        answer("equal"),
    ]


def begin(comparison_set: ComparisonSet, *judges: str, **limits: Any) -> ComparisonJudging:
    options = {"set": comparison_set.number, "judges": judges, **limits}
    return COMPARISON_JUDGINGS.start_or_join(comparison_set.collection, options)


def work(judging: ComparisonJudging, stopped: Callable[[], bool] = lambda: False) -> ComparisonJudging:
    claimed = leases.claim(ComparisonJudging, pk=judging.pk)
    assert claimed is not None
    COMPARISON_JUDGINGS.perform(claimed, stopped)
    judging.refresh_from_db()
    return judging


def judged(comparison_set: ComparisonSet, *judges: str, **limits: Any) -> ComparisonJudging:
    return work(begin(comparison_set, *judges, **limits))


def preferences_of(comparison_set: ComparisonSet, judge: str) -> dict[int, str]:
    """{number of the comparison: outcome} of a judge's version."""
    rows = Preference.objects.filter(comparison__set=comparison_set, assessor__name=judge, assessor__kind="judge")
    return dict(rows.order_by("id").values_list("comparison__seq", "outcome"))


def vote(comparison_set: ComparisonSet, person: str, outcomes: dict[int, str]) -> None:
    """Answers of a person, by number of the comparison."""
    assessor, _made = Assessor.objects.get_or_create(
        collection=comparison_set.collection, kind=Assessor.Kind.PERSON, name=person
    )
    for seq, outcome in outcomes.items():
        comparison = comparison_set.comparisons.get(seq=seq)
        Preference.objects.create(comparison=comparison, assessor=assessor, outcome=outcome)
