"""32 annotators at once over HTTP: no item above its overlap, nothing lost, repeated submits count once."""

from collections import Counter
from urllib.parse import urlsplit

import pytest

from annotation.models import Assignment
from corpus.labels import rebuild_labels
from corpus.models import Item, Judgment
from judges.models import Tally
from tests.factories import make_collection, make_member
from tests.judging_clients import Annotator, run
from tests.judging_scene import make_scene
from tests.plugin_browser import session_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


def test_thirty_two_annotators_share_a_queue(live_site, instance):
    collection = make_collection("books", overlap=3)
    items = make_scene(collection, 60, overlap=3)
    port = urlsplit(live_site).port
    members = [make_member(collection, f"annotator-{number}") for number in range(32)]
    people = [
        Annotator(port, "books", session_of(member.user), scheme="http", repeat=1 + number % 2)
        for number, member in enumerate(members)
    ]
    run(people, seconds=60)
    # A claim skips what another transaction holds, so somebody may have left a moment too early: one more walk.
    late = [Annotator(port, "books", person.session, scheme="http") for person in people]
    run(late, seconds=60)

    assert [walk.problems for walk in people + late if walk.problems] == []
    assert set(Item.objects.values_list("taken", "done", "overlap")) == {(3, 3, 3)}
    stored = Counter(Judgment.objects.values_list("item_id", "assessor_id"))
    assert set(stored.values()) == {1}
    assert len(stored) == len(items) * 3
    walks = [(member, walk) for walked in (people, late) for member, walk in zip(members, walked, strict=True)]
    items_of = dict(Assignment.objects.values_list("public_id", "item_id"))
    assert {(items_of[item], member.assessor_id) for member, walk in walks for item in walk.judged} == set(stored)
    settled = Item.objects.filter(state="settled").count()
    assert sum(Tally.objects.filter(key="settled").values_list("value", flat=True)) == settled
    assert rebuild_labels(collection) == 0
