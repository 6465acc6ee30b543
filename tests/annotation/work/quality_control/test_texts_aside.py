"""Setting aside covers edited texts and grades under aspects too, and both come back."""

import pytest
from django.test import Client

from annotation.models import Membership
from annotation.work.judging.page import draft_of
from annotation.work.quality_control import exclusion
from corpus.aspects import documents, revising
from corpus.aspects.entries import Wording
from corpus.errors import BadInput
from corpus.evidence.targets import newest_targets
from corpus.models import Item, Judgment, Label, Pair, Target
from tests.annotation.work.judging.test_evidence_pages import TEXTS, item, status_of
from tests.annotation.work.judging.test_judging_pages import claim, signed_in
from tests.aspects_scene import ice_scene
from tests.factories import make_member

__all__ = ["item"]
pytestmark = pytest.mark.django_db


def write(client: Client, **changed: str) -> None:
    answer = client.post("/c/books/judge/evidence/", {**claim(client), **TEXTS, **changed})
    assert answer.status_code == 303


def counts(item: Item) -> tuple[str, int, int, int]:
    item.refresh_from_db()
    return item.state, item.taken, item.done, status_of(item)["settled"]


def test_an_edited_text_leaves_with_its_author_and_comes_back(item: Item, client: Client, alice: Membership) -> None:
    write(client)
    assert counts(item) == ("settled", 1, 1, 1)
    act = exclusion.exclude_judgments(membership=alice, by=None, note="asleep")
    assert (act.size, counts(item)) == (1, ("open", 0, 0, 0))
    assert not newest_targets(item.collection).exists()
    assert "boiling point" in draft_of(item.pk)["contribution"], "the next one begins with the judge's text"
    with pytest.raises(BadInput, match="Nothing to exclude"):
        exclusion.exclude_judgments(membership=alice, by=None)
    exclusion.reinstate_judgments(act=act, by=None)
    target = newest_targets(item.collection).get()
    assert (target.writer, target.contribution, target.evidence) == ("alice", *TEXTS.values())
    assert target.created_at == Target.objects.get(version=2).created_at
    assert counts(item) == ("settled", 1, 1, 1)
    assert exclusion.exclude_judgments(membership=alice, by=None).size == 1, "and it can go once more"


def test_where_somebody_else_wrote_meanwhile_their_text_holds(item, client, alice, collection):
    write(client)
    act = exclusion.exclude_judgments(membership=alice, by=None)
    write(signed_in(make_member(collection, "bob")), contribution="By Bob.")
    assert exclusion.reinstate_judgments(act=act, by=None).size == 0
    assert newest_targets(collection).get().contribution == "By Bob."
    assert counts(item) == ("settled", 1, 1, 1)


def test_grades_under_aspects_leave_and_come_back() -> None:
    _collection, query, people = ice_scene()
    bob, dana = people["bob"], people["dana"]
    revising.add_aspect(query, dana.assessor, Wording("It flows", "Without it the answer is wrong.", 5))
    first, second, *_others = (pair.document for pair in Pair.objects.filter(query=query).order_by("pk"))
    documents.keep(query, bob.assessor, first, ["a1"])
    documents.keep(query, dana.assessor, second, ["a1"])
    of_aspects = Label.objects.filter(aspect__isnull=False)
    assert of_aspects.count() == 2
    act = exclusion.exclude_judgments(membership=bob, by=None)
    assert [label.pair.document for label in of_aspects] == [second]
    exclusion.reinstate_judgments(act=act, by=None)
    assert sorted(of_aspects.values_list("pair__document", flat=True)) == [first.pk, second.pk]
    assert Judgment.objects.filter(assessor=bob.assessor, aspect__isnull=False).count() == 3
    documents.discard(query, dana.assessor, first, "It is about penguins.")
    with pytest.raises(BadInput, match="Nothing to exclude"):
        exclusion.exclude_judgments(membership=bob, by=None)
