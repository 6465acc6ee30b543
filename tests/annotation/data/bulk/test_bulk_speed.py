"""Each bulk act, and its undo, on 10,000 selected pairs takes under five seconds (issue 14, check 9)."""

import time

import pytest
from django.db import connection

from annotation.models import Assignment, Membership, ReservedFor, Role
from annotation.models.pair_table import BulkAct
from corpus.labels import rebuild_labels
from corpus.models import Item, Label
from tests.annotation.work.quality_control.test_set_aside import claim
from tests.factories import client_of, make_collection, make_member
from tests.large_site import TEXTS, analyse
from tests.speed import slowness

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.weekly]
MANY, MOST_S = 10_000, 5.0

# The first pairs were judged by one person each, the second are held by six people, the third are new.
JUDGED = """
INSERT INTO corpus_item (collection_id, pair_id, reason, seq, state, priority, place, overlap, taken, done, settled_at)
SELECT collection_id, id, 'policy', 0, CASE WHEN n <= %(many)s THEN 'settled' ELSE 'open' END, 0.5, n, 1, 1,
       CASE WHEN n <= %(many)s THEN 1 ELSE 0 END, now()
FROM (SELECT *, row_number() OVER (ORDER BY id) AS n FROM corpus_pair) p WHERE n <= 2 * %(many)s;
INSERT INTO corpus_judgment (pair_id, assessor_id, item_id, step, grade, arm, guideline, milliseconds, comment)
SELECT i.pair_id, m.assessor_id, i.id, 'final', 1, 'shown', 0, 15000, ''
FROM corpus_item i JOIN (SELECT *, row_number() OVER (ORDER BY id) - 1 AS n FROM annotation_membership WHERE role = 1) m
  ON m.n = i.id %% 6 WHERE i.done = 1;
INSERT INTO annotation_assignment (item_id, membership_id, state, token, lease_until, ended_at, skip_reason, flagged,
    flag_note, judgment_id)
SELECT j.item_id, m.id, 'done', 't' || j.id, now(), now(), '', false, '', j.id
FROM corpus_judgment j JOIN annotation_membership m ON m.assessor_id = j.assessor_id;
INSERT INTO annotation_assignment (item_id, membership_id, state, token, lease_until, skip_reason, flagged, flag_note,
    place)
SELECT i.id, m.id, 'open', 'o' || i.id, now() + interval '1 hour', '', false, '', i.place - %(many)s
FROM corpus_item i JOIN (SELECT *, row_number() OVER (ORDER BY id) - 1 AS n FROM annotation_membership WHERE role = 1) m
  ON m.n = i.id %% 6 WHERE i.done = 0;
"""


@pytest.fixture
def scene():
    collection = make_collection("large")
    for number in range(6):
        make_member(collection, f"annotator-{number}")
    charlie = make_member(collection, "charlie", Role.ADMIN)
    values = {"c": collection.pk, "queries": 300, "documents": 3 * MANY, "many": MANY}
    with connection.cursor() as cursor:
        for statement in filter(str.strip, f"{TEXTS};\n{JUDGED}".split(";\n")):
            cursor.execute(statement, values)
    rebuild_labels(collection)
    analyse()
    return collection, charlie


def test_each_act_on_ten_thousand_pairs_takes_under_five_seconds(scene):
    collection, charlie = scene
    client = client_of(charlie)
    ids = list(collection.pair_set.order_by("pk").values_list("pk", flat=True))
    judged, held, fresh = ids[:MANY], ids[MANY : 2 * MANY], ids[2 * MANY :]
    labels = sorted(Label.objects.values_list("pair", "grade", "origin"))
    took: dict[str, float] = {}

    def press(name: str, address: str, **sent: str) -> None:
        began = time.perf_counter()
        response = client.post(address, sent)
        if getattr(response, "streaming", False):
            assert sum(part.count(b"\n") for part in response.streaming_content) == MANY + 1
        took[name] = time.perf_counter() - began
        assert response.status_code in (200, 302)

    def do(kind: str, pairs: list[int], option: str = "", *, undo: bool = True) -> BulkAct:
        act = BulkAct.objects.create(collection=collection, kind=kind, pairs=pairs, made_by=charlie.user)
        address = f"/c/large/pairs/actions/{act.number}/"
        began = time.perf_counter()
        assert client.get(address).status_code == 200
        took[f"{kind}, its page"] = time.perf_counter() - began
        press(kind, f"{address}run/", option=option)
        act.refresh_from_db()
        assert act.affected == MANY, kind
        if undo:
            press(f"{kind}, undone", f"{address}undo/")
        return act

    do("send", fresh)
    assert not Item.objects.filter(reason="requested", state="open").exists()
    do("reassign", held, "anyone", undo=False)
    assert not Assignment.objects.filter(state="open").exists()
    first, second = Membership.objects.filter(role=Role.ANNOTATOR).order_by("pk")[:2]
    act = do("reassign", held, str(first.pk), undo=False)
    began = time.perf_counter()
    assert claim(second) is None, "all that waits is reserved"
    took["somebody else claims"] = time.perf_counter() - began
    press("reassign, undone", f"/c/large/pairs/actions/{act.number}/undo/")
    assert not ReservedFor.objects.exists()
    do("priority", held, "first")
    assert set(Item.objects.filter(pair__in=held).values_list("priority", flat=True)) == {0.5}
    do("exclude", judged)
    assert sorted(Label.objects.values_list("pair", "grade", "origin")) == labels
    do("exclude", judged, undo=False)
    do("reinstate", judged)
    do("reinstate", judged, undo=False)
    assert sorted(Label.objects.values_list("pair", "grade", "origin")) == labels
    do("export", judged, "csv", undo=False)
    press("all that match", "/c/large/pairs/actions/", act="export", all="1", query="state=settled")
    print("\n" + "\n".join(f"{seconds:6.2f} s {name}" for name, seconds in took.items()))
    slower = slowness()
    assert {name: seconds for name, seconds in took.items() if seconds > MOST_S * slower} == {}
