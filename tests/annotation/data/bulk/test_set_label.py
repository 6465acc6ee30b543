"""Labels that an admin sets: a judgment in their name, above people and judges, kept in the history, undone."""

import csv
import io

import pytest
from django.test import Client

from annotation.models import AuditEntry, Role
from annotation.models.pair_table import BulkAct, PairNote
from corpus.labels import rebuild_labels
from corpus.models import Item, Judgment, Label
from judges.costs import counters
from tests.annotation.data.bulk.test_bulk_acts import do, plan
from tests.annotation.work.quality_control.test_set_aside import exported, judge
from tests.evidence import make_assessor, make_campaign, make_judgment
from tests.factories import client_of, make_item, make_member, make_pair, make_user
from tests.queue_scene import claim

pytestmark = pytest.mark.django_db


def label(pair: int) -> tuple[int, str] | None:
    return Label.objects.filter(pair=pair).values_list("grade", "origin").first()


def test_a_label_is_set_for_many_above_people_and_judges_and_undone(books, alice, charlie):
    items = [make_item(make_pair(books)) for _ in range(2)]
    judge(alice, [1, 1])
    untouched = make_pair(books)
    pairs = [items[0].pair_id, items[1].pair_id, untouched.pk]
    page = charlie.get(plan(charlie, "label", pair=pairs)).text
    assert "0 not relevant (3 pairs)" in page and Judgment.objects.count() == 2
    address = do(charlie, "label", option="0", note="The text is a stub.", pair=pairs)
    assert [label(pair) for pair in pairs] == [(0, "adjudicator")] * 3 and rebuild_labels(books) == 0
    row = Judgment.objects.get(pair=untouched)
    assert (row.step, row.assessor.name, row.item) == ("adjudication", "charlie", None)
    assert row.comment == "The text is a stub."
    entry = AuditEntry.objects.get(act="pairs.labelled")
    assert entry.details == {"bulk": BulkAct.objects.latest("pk").number, "pairs": 3, "option": "0"}

    make_item(untouched)
    judge(alice, [1])
    assert label(untouched.pk) == (0, "adjudicator"), "what people say later does not replace it"
    assert charlie.post(f"{address}undo/").status_code == 302
    assert [label(pair) for pair in pairs] == [(1, "people")] * 3 and rebuild_labels(books) == 0
    assert Judgment.objects.filter(step="adjudication").count() == 6, "nothing is deleted"
    assert AuditEntry.objects.filter(act="pairs.undone").count() == 1


def test_a_label_set_twice_is_one_chain_undo_brings_back_the_one_before_and_the_newest_of_two_admins_decides(
    books, charlie
):
    pair = make_pair(books)
    first = do(charlie, "label", option="1", pair=pair.pk)
    page = charlie.get(plan(charlie, "label", pair=pair.pk)).text
    assert "1 relevant (0 pairs)" in page and "0 not relevant (1 pair)" in page
    do(charlie, "label", option="1", pair=pair.pk)
    assert Judgment.objects.count() == 1, "the label that it has already"
    second = do(charlie, "label", option="0", note="On second thought.", pair=pair.pk)
    assert label(pair.pk) == (0, "adjudicator")
    charlie.post(f"{first}undo/")
    assert label(pair.pk) == (0, "adjudicator"), "a grade that was replaced is not withdrawn"
    charlie.post(f"{second}undo/")
    assert label(pair.pk) == (1, "adjudicator")
    assert Judgment.objects.filter(supersedes=None).count() == 1 and rebuild_labels(books) == 0

    pair, dora = make_pair(books), client_of(make_member(books, "dora", Role.ADMIN))
    do(charlie, "label", option="1", pair=pair.pk)
    newer = do(dora, "label", option="0", pair=pair.pk)
    assert label(pair.pk) == (0, "adjudicator")
    charlie.post(f"{newer}undo/")
    assert label(pair.pk) == (1, "adjudicator") and rebuild_labels(books) == 0


def test_tasks_that_wait_leave_the_queue_with_the_label_and_come_back_with_its_undo(books, alice, charlie):
    campaign = make_campaign(books, [])
    waiting = make_item(make_pair(books), campaign=campaign.pk)
    conflict = make_item(make_pair(books), state="conflict", taken=2, done=2, overlap=2, campaign=campaign.pk)
    audit = make_item(make_pair(books), reason="audit")
    items = [waiting, conflict, audit]
    held = make_item(make_pair(books), priority=-1)
    assert claim(alice).item == held
    address = do(charlie, "label", option="1", pair=[item.pair_id for item in (*items, held)])
    states = [Item.objects.get(pk=item.pk).state for item in (*items, held)]
    assert states == ["withdrawn", "withdrawn", "open", "open"], "audits and open pairs stay"
    assert counters.read(campaign.pk)["settled"] == 2
    charlie.post(f"{address}undo/")
    assert [Item.objects.get(pk=item.pk).state for item in items] == ["open", "conflict", "open"]
    assert counters.read(campaign.pk)["settled"] == 0 and rebuild_labels(books) == 0

    first = do(charlie, "label", option="1", pair=waiting.pair_id)
    do(charlie, "label", option="0", pair=waiting.pair_id)
    charlie.post(f"{first}undo/")
    assert Item.objects.get(pk=waiting.pk).state == "withdrawn", "a label that was replaced brings no task back"


def test_a_pair_is_labelled_sent_and_noted_on_its_own_page(books, charlie):
    pair = make_pair(books)
    make_judgment(pair, make_assessor(books, "debate", "policy"), 1)
    home = f"/c/books/pairs/{pair.pk}/"
    done = charlie.post(f"{home}act/", {"kind": "label", "option": "0", "note": "No."}, follow=True).text
    assert "Set label" in done and 'name="undo"' in done and label(pair.pk) == (0, "adjudicator")
    charlie.post(f"{home}act/", {"undo": BulkAct.objects.get().number})
    rebuild_labels(books)
    assert label(pair.pk) == (1, "debate")
    charlie.post(f"{home}act/", {"kind": "send"})
    assert Item.objects.get(pair=pair).reason == "requested"
    charlie.post(f"{home}note/", {"text": "Ask <b>dora</b>."})
    assert "charlie" in charlie.get(home).text and "Ask &lt;b&gt;dora&lt;/b&gt;." in charlie.get(home).text
    assert AuditEntry.objects.get(act="pairs.noted").details == {"pair": pair.pk}
    for bad in ({"kind": "exclude"}, {"kind": "label", "option": "7"}, {"kind": "label"}, {"undo": "999"}, {}):
        assert charlie.post(f"{home}act/", bad).status_code in (404, 422), bad
    assert charlie.post(f"{home}note/", {"text": "  "}).status_code == 422
    assert (BulkAct.objects.count(), PairNote.objects.count()) == (2, 1), "a refused act leaves no plan"


def test_an_owner_who_is_no_member_is_told_to_join_first(books):
    pair, client = make_pair(books), Client()
    client.force_login(make_user("olga", is_owner=True))
    refused = client.post(f"/c/books/pairs/{pair.pk}/act/", {"kind": "label", "option": "1"})
    assert refused.status_code == 422 and "Join it on the People page" in refused.text
    assert not Judgment.objects.exists() and not BulkAct.objects.exists()


def test_an_export_says_whose_label_it_is(books, charlie):
    pair = make_pair(books)
    do(charlie, "label", option="1", note="By the manual.", pair=pair.pk)
    (row,) = exported(books)
    assert {"charlie", "adjudication"} <= set(row), row
    sent = charlie.post(f"{plan(charlie, 'export', pair=pair.pk)}run/", {"option": "csv"})
    (line,) = csv.DictReader(io.StringIO(sent.getvalue().decode()))
    assert (line["grade"], line["origin"]) == ("1", "adjudicator")
