"""Labels are derived from judgments: the order of authority, and rebuilt = incremental = the rule written plainly."""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corpus.collections.task_order import MEASURING
from corpus.labels import ADJUDICATOR, PEOPLE, rebuild_labels, resolve_pairs
from corpus.models import Item, Judgment, Label
from corpus.models.aspects import Aspect
from tests.evidence import make_assessor, make_label
from tests.factories import make_collection, make_item, make_pair

PERSON, POLICY, HUMAN, JUDGE, REFERENCE = "person", "policy", "human-import", "judge-import", "reference"


@dataclass(frozen=True, slots=True)
class Grade:
    """A judgment as the resolution sees it. All those given to `resolve` are of one pair and aspect."""

    id: int
    kind: str
    name: str  # Of the assessor.
    step: str
    grade: int | None  # None withdraws what it supersedes.
    item: int | None = None
    # The item is settled; or the grade is of an aspect and was given in its workshop, which has no items.
    settled: bool = False
    supersedes: int | None = None
    # The item's reason is one of MEASURING: what was said there is no label.
    measures: bool = False


def resolve_label(grades: Iterable[Grade]) -> tuple[int, str] | None:
    """The label of one pair and aspect, and who it comes from: adjudicator, people, or the policy's name."""
    grades = list(grades)
    replaced = {grade.supersedes for grade in grades}
    standing = [one for one in grades if one.id not in replaced and one.grade is not None]
    standing = [one for one in standing if not one.measures or one.step == "adjudication"]
    if adjudications := [one for one in standing if one.step == "adjudication"]:
        return max(adjudications, key=attrgetter("id")).grade, ADJUDICATOR
    people = [one for one in standing if one.kind == PERSON]
    finals = [one for one in people if one.step == "final" and one.settled]
    for item in sorted({one.item or 0 for one in finals}, reverse=True):  # the newest that has a majority
        majority = majority_grade([one.grade for one in finals if (one.item or 0) == item])
        if majority is not None:
            return majority, PEOPLE
    imported = None if people else majority_grade([one.grade for one in standing if one.kind == HUMAN])
    if imported is not None:
        return imported, PEOPLE
    policies = [one for one in standing if one.kind == POLICY]
    newest = max(policies, key=attrgetter("id"), default=None)
    return newest and (newest.grade, newest.name)


def majority_grade(grades: Sequence[int | None]) -> int | None:
    """The grade that more gave than any other; None for a tie or for nobody."""
    ranked = Counter(grades).most_common(2)
    tie = len(ranked) == 2 and ranked[0][1] == ranked[1][1]
    return ranked[0][0] if ranked and not tie else None


def grade(number, kind, value, step="final", **more):
    return Grade(id=number, kind=kind, name=more.pop("name", kind), step=step, grade=value, **more)


def settled(number, value, item=1, **more):
    return grade(number, PERSON, value, item=item, settled=True, **more)


@pytest.mark.parametrize(
    ("grades", "label"),
    [
        ([], None),
        ([grade(1, POLICY, 1, name="debate")], (1, "debate")),
        ([grade(1, POLICY, 1, name="debate"), grade(2, POLICY, 0, name="single")], (0, "single")),
        ([settled(1, 1), grade(2, POLICY, 0)], (1, "people")),
        ([settled(1, 1), settled(2, 0), settled(3, 0)], (0, "people")),
        ([settled(1, 1), settled(2, 0)], None),
        ([settled(1, 1), settled(2, 0), grade(3, POLICY, 1, name="debate")], (1, "debate")),
        ([settled(1, 1), settled(2, 0), grade(3, PERSON, 1, "adjudication", item=1)], (1, "adjudicator")),
        ([settled(1, 1), settled(2, 1), grade(3, PERSON, 0, "adjudication", item=1)], (0, "adjudicator")),
        ([grade(1, PERSON, 1, item=1)], None),
        ([settled(1, 1, step="first")], None),
        ([settled(1, 0), settled(2, 1, item=2)], (1, "people")),
        ([settled(1, 0), settled(2, 1, item=2, measures=True)], (0, "people")),
        ([grade(1, HUMAN, 2, "import"), settled(2, 1, measures=True)], (2, "people")),
        ([grade(1, PERSON, 1, "adjudication", item=1, measures=True)], (1, "adjudicator")),
        ([grade(1, HUMAN, 2, "import")], (2, "people")),
        ([grade(1, HUMAN, 2, "import"), grade(2, POLICY, 0)], (2, "people")),
        ([grade(1, HUMAN, 2, "import"), grade(2, HUMAN, 1, "import")], None),
        ([grade(1, HUMAN, 2, "import"), grade(2, PERSON, 1, item=1), grade(3, POLICY, 0, name="p")], (0, "p")),
        ([grade(1, JUDGE, 1, "import"), grade(2, REFERENCE, 1, "import")], None),
        ([settled(1, 1), settled(2, None, supersedes=1)], None),
        ([settled(1, 1), settled(2, None, supersedes=1), settled(3, 0, supersedes=2)], (0, "people")),
        ([grade(1, POLICY, 1, name="p"), grade(2, POLICY, 0, name="p", supersedes=1)], (0, "p")),
    ],
)
def test_who_settles_what(grades, label):
    assert resolve_label(grades) == label
    assert resolve_label(reversed(grades)) == label


def by_the_rule(collection):
    """Every label of the collection by the pure function."""
    rows = Judgment.objects.filter(pair__collection=collection).select_related("assessor", "item")
    rows = sorted(rows, key=lambda row: (row.pair_id, row.aspect_id or 0, row.pk))
    labels = {}
    for key, judgments in groupby(rows, key=lambda row: (row.pair_id, row.aspect_id)):
        found = resolve_label(
            Grade(
                id=row.pk,
                kind=row.assessor.kind,
                name=row.assessor.name,
                step=row.step,
                grade=row.grade,
                item=row.item_id,
                settled=row.item.state == Item.State.SETTLED if row.item else row.aspect_id is not None,
                supersedes=row.supersedes_id,
                measures=row.item is not None and row.item.reason in MEASURING,
            )
            for row in judgments
        )
        if found:
            labels[key] = found
    return labels


def stored(collection):
    rows = Label.objects.filter(pair__collection=collection)
    return {(row.pair_id, row.aspect_id): (row.grade, row.origin) for row in rows}


REASONS = ("disagreement", "audit", "study")


class History:
    """A collection to which random things happen."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.collection = make_collection(grades=2, overlap=3)
        self.pairs = [make_pair(self.collection) for _ in range(3)]
        self.items = [make_item(pair, reason, overlap=3) for pair in self.pairs for reason in REASONS]
        kinds = [PERSON] * 3 + [POLICY] * 2 + [HUMAN] * 2 + [JUDGE, REFERENCE]
        self.assessors = [make_assessor(self.collection, f"{kind}-{n}", kind) for n, kind in enumerate(kinds)]
        self.aspect = Aspect.objects.create(query=self.pairs[0].query, external_id="a", text="An aspect")

    def step(self):
        """One thing happens to one pair, which is returned."""
        if self.random.random() < 0.25:
            item = self.random.choice(self.items)
            item.state = self.random.choice(Item.State.values)
            item.save()
            return item.pair
        assessor = self.random.choice(self.assessors)
        step, item = "import", None
        if assessor.kind == PERSON:
            item = self.random.choice([*self.items, None])
            step = self.random.choice(["first", "final", "final", "adjudication"]) if item else "final"
        elif assessor.kind == POLICY:
            step = "final"
        pair = item.pair if item else self.random.choice(self.pairs)
        aspect = self.aspect if pair == self.pairs[0] and self.random.random() < 0.3 and not item else None
        same = {"pair": pair, "assessor": assessor, "step": step, "item": item, "aspect": aspect}
        last = Judgment.objects.filter(**same, superseded_by=None).first()
        value = None if last and self.random.random() < 0.3 else self.random.randrange(3)
        Judgment.objects.create(**same, grade=value, supersedes=last)
        return pair


@pytest.mark.django_db
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 25))
def test_incremental_labels_equal_rebuilt_ones_and_the_rule(seed, steps):
    history = History(seed)
    for _ in range(steps):
        resolve_pairs([history.step().pk])
    expected = by_the_rule(history.collection)
    assert stored(history.collection) == expected
    assert rebuild_labels(history.collection) == 0
    Label.objects.all().delete()
    assert rebuild_labels(history.collection) == len(expected)
    assert stored(history.collection) == expected


@pytest.mark.django_db
def test_a_label_that_nothing_supports_any_more_goes():
    pair = make_pair(make_collection())
    make_label(pair, 1, "debate")
    assert resolve_pairs([pair.pk]) == 1
    assert not Label.objects.exists()
    assert resolve_pairs([]) == 0
