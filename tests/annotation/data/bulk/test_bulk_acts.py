"""Acts on many selected pairs: planned, confirmed, recorded, undone; and labels that an admin sets."""

import csv
import io
import json
import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from annotation.models import Assignment, AuditEntry, Role
from annotation.models.pair_table import BulkAct, PairNote, SavedView
from annotation.models.quality_control import JudgmentExclusion
from corpus.collections.configure import configure_collection
from corpus.labels import rebuild_labels
from corpus.models import Item, Judgment, Label, Query
from judges.costs import counters
from tests.annotation.work.quality_control.test_set_aside import claim, exported, figures, judge
from tests.evidence import make_assessor, make_campaign, make_judgment
from tests.factories import client_of, make_collection, make_item, make_member, make_pair, make_user

pytestmark = pytest.mark.django_db
ACTIONS = "/c/books/pairs/actions/"


def plan(client: Client, act: str, **selection: object) -> str:
    """The confirmation page of an act, and its address."""
    response = client.post(ACTIONS, {"act": act, **selection})
    assert response.status_code == 302, response.text
    page = client.get(response["Location"])
    assert page.status_code == 200 and "Confirm" in page.text
    return str(response["Location"])


def do(client: Client, act: str, *, option: str = "", note: str = "", **selection: object) -> str:
    address = plan(client, act, **selection)
    response = client.post(f"{address}run/", {"option": option, "note": note})
    assert response.status_code == 302 and response["Location"] == address, response.text
    return address


def test_selected_pairs_are_sent_to_people_once_and_those_that_nobody_took_are_withdrawn_by_undo(books, alice, charlie):
    pairs = [make_pair(books) for _ in range(4)]
    make_item(pairs[0])
    address = plan(charlie, "send", pair=[pair.pk for pair in pairs])
    page = charlie.get(address).text
    assert re.search(r"<strong>4</strong>\s*<span>\s*pairs selected", page)
    assert re.search(r"<strong>3</strong>\s*<span>\s*pairs will be affected", page)
    assert not Item.objects.filter(reason="requested").exists(), "nothing happens before it is confirmed"
    for _ in range(2):  # a second press changes nothing
        charlie.post(f"{address}run/")
    requested = Item.objects.filter(reason="requested", state="open")
    assert sorted(requested.values_list("pair", flat=True)) == [pair.pk for pair in pairs[1:]]
    taken = [lease.item_id for lease in (claim(alice), claim(alice)) if lease and lease.item.reason == "requested"]
    assert AuditEntry.objects.get(act="pairs.sent").details["pairs"] == 3
    assert charlie.post(f"{address}undo/").status_code == 302
    assert {item.pk for item in requested.all()} == set(taken)
    assert charlie.post(f"{address}undo/").status_code == 422, "it is undone once"
    assert AuditEntry.objects.filter(act="pairs.undone").count() == 1


def test_a_requested_judgment_becomes_the_label(books, alice, charlie):
    pair = make_pair(books)
    do(charlie, "send", pair=pair.pk)
    judge(alice, [1])
    assert Label.objects.get(pair=pair).grade == 1
    assert rebuild_labels(books) == 0
    do(charlie, "send", pair=pair.pk)
    judge(make_member(books, "bob"), [0])
    assert Label.objects.get(pair=pair).grade == 0, "the newest task decides"
    assert rebuild_labels(books) == 0


def test_a_pair_is_taken_from_its_holder_and_goes_to_somebody_else(books, alice, charlie):
    for _ in range(3):
        make_item(make_pair(books))
    lease = claim(alice)
    listed = charlie.get("/c/books/pairs/?state=assigned").text
    assert re.findall(r'name="pair" value="(\d+)"', listed) == [str(lease.item.pair_id)]
    address = do(charlie, "reassign", option="anyone", query="", all="1")
    act = BulkAct.objects.get()
    assert (act.size, act.affected) == (3, 1)
    lease.refresh_from_db()
    assert lease.state == Assignment.State.RETURNED
    assert list(Item.objects.order_by("pk").values_list("taken", flat=True)) == [0, 0, 0]
    assert claim(alice).item_id != lease.item_id
    bob = make_member(books, "bob")
    judge(bob, [1, 1])
    assert lease.item_id in set(Assignment.objects.filter(membership=bob).values_list("item", flat=True))
    assert "Undo" not in charlie.get(address).text
    assert charlie.post(f"{address}undo/").status_code == 422


def test_priority_moves_pairs_first_and_last_stays_through_a_new_order_and_is_undone(books, alice, charlie):
    items = [make_item(make_pair(books), priority=0.5) for _ in range(4)]
    address = do(charlie, "priority", option="first", pair=items[3].pair_id)
    do(charlie, "priority", option="last", pair=items[0].pair_id)
    table = charlie.get("/c/books/pairs/?sort=priority").text
    boxes = re.findall(r'name="pair" value="(\d+)"', table)
    assert (boxes[0], boxes[-1]) == (str(items[3].pair_id), str(items[0].pair_id))
    configure_collection(books, {"order": "query"})
    lease = claim(alice)
    assert lease is not None and lease.item_id == items[3].pk
    assert charlie.post(f"{address}undo/").status_code == 302
    assert Item.objects.get(pk=items[3].pk).priority == 0.5
    again = do(charlie, "priority", option="normal", pair=items[3].pair_id)
    assert Item.objects.get(pk=items[3].pk).priority == items[3].pair.query_id
    Item.objects.filter(pk=items[3].pk).update(priority=7.25)
    charlie.post(f"{again}undo/")
    assert Item.objects.get(pk=items[3].pk).priority == 7.25, "what changed since stays"


def test_excluded_pairs_leave_every_figure_and_come_back_by_undo_or_by_reinstating_them(books, alice, charlie):
    items = [make_item(make_pair(books)) for _ in range(4)]
    judge(alice, [1, 0, 1, 0])
    before = figures(books)
    some = [items[0].pair_id, items[1].pair_id]
    address = do(charlie, "exclude", pair=some)
    assert Label.objects.count() == 2
    assert charlie.post(f"{address}undo/").status_code == 302
    grades = Judgment.objects.filter(pair=some[0]).order_by("pk").values_list("grade", flat=True)
    assert list(grades) in ([1, None, 1], [0, None, 0]), "no judgment is deleted"
    assert figures(books) == before and rebuild_labels(books) == 0

    do(charlie, "exclude", pair=[item.pair_id for item in items])
    assert Label.objects.count() == 0
    back = do(charlie, "reinstate", pair=some)
    assert sorted(Label.objects.values_list("pair", flat=True)) == some
    assert BulkAct.objects.get(kind="reinstate").affected == 2
    person = charlie.get(f"/c/books/people/{alice.pk}/").text
    assert "2 reinstated" in person
    whole = JudgmentExclusion.objects.filter(reverses=None, reversed_by=None).exclude(why="pairs").get()
    assert charlie.post(f"{back}undo/").status_code == 302
    assert Label.objects.count() == 0
    charlie.post(f"/c/books/people/exclusions/{whole.pk}/reinstate/")
    do(charlie, "reinstate", pair=[item.pair_id for item in items])
    assert figures(books) == before and rebuild_labels(books) == 0
    states = set(Item.objects.values_list("state", "taken", "done"))
    assert states == {("settled", 1, 1)}


def test_selected_pairs_are_exported_as_a_file_and_formulas_stay_text(books, alice, charlie):
    items = [make_item(make_pair(books)) for _ in range(2)]
    judge(alice, [1, 0])
    Query.objects.filter(pk=items[0].pair.query_id).update(text="=1+1")
    for form, formula in (("csv", "'=1+1"), ("jsonl", "=1+1")):
        address = plan(charlie, "export", query="", all="1")
        response = charlie.post(f"{address}run/", {"option": form})
        number = BulkAct.objects.latest("pk").number
        assert f"-pairs-{number}.{form}" in response["Content-Disposition"]
        text = b"".join(response.streaming_content).decode()
        rows = list(csv.DictReader(io.StringIO(text))) if form == "csv" else list(map(json.loads, text.splitlines()))
        assert [(row["doc_id"], str(row["grade"]), row["state"]) for row in rows] == [
            (item.pair.document.external_id, str(Label.objects.get(pair=item.pair).grade), "settled") for item in items
        ]
        assert rows[0]["query"] == formula
        entry = AuditEntry.objects.filter(act="pairs.exported").latest("pk")
        assert entry.details == {"bulk": number, "pairs": 2, "option": form}


def test_bad_selections_are_refused_in_one_line_with_the_table_kept(books, charlie):
    pair = make_pair(books)
    for sent, reason in (
        ({"act": "send"}, "Select at least one pair."),
        ({"act": "send", "pair": ["x", "99999999999999999999"]}, "Select at least one pair."),
        ({"act": "burn", "pair": pair.pk}, "Choose one of the actions."),
        ({"act": "send", "all": "1", "query": "state=failed"}, "Select at least one pair."),
    ):
        response = charlie.post(ACTIONS, sent)
        assert response.status_code == 422 and reason in response.text and "Filter the pairs" in response.text
    assert not BulkAct.objects.exists()


def test_an_act_is_its_authors_until_it_is_done_and_no_pair_of_another_collection_is_touched(
    books, charlie, monkeypatch
):
    mine, other = make_pair(books), make_pair(make_collection("stones"))
    address = plan(charlie, "send", pair=[mine.pk, other.pk])
    assert BulkAct.objects.get().pairs == [mine.pk]
    dana = client_of(make_member(books, "dana", Role.ADMIN))
    assert dana.get(address).status_code == 404
    assert dana.post(f"{address}run/").status_code == 404
    charlie.post(f"{address}run/")
    assert dana.get(address).status_code == 200
    assert dana.get(ACTIONS).text.count("Undo") >= 1
    assert charlie.post(f"{address}run/").status_code == 422
    address = plan(charlie, "priority", pair=mine.pk)
    assert charlie.post(f"{address}run/", {"option": "sideways"}).status_code == 422
    monkeypatch.setattr("annotation.data.bulk.services.MOST", 1)
    make_pair(books)
    refused = charlie.post(ACTIONS, {"act": "send", "all": "1", "query": ""})
    assert refused.status_code == 422 and "at most 1 pairs" in refused.text


def test_views_are_kept_by_person_renamed_and_deleted(books, charlie):
    make_pair(books)
    views = "/c/books/pairs/views/"
    query = "state=failed&sort=-label"
    kept = charlie.post(views, {"name": "  Failed   first ", "query": f"{query}&after=3&evil=1"})
    assert kept["Location"] == f"/c/books/pairs/?{query}"
    page = charlie.get(kept["Location"]).text
    assert 'aria-current="true"' in page and "Failed first" in page
    charlie.post(views, {"name": "Failed first", "query": "state=failed"})
    view = SavedView.objects.get()
    assert view.query == "state=failed"
    charlie.post(views, {"name": "All", "query": ""})
    refused = charlie.post(f"{views}{view.pk}/", {"name": "All", "query": query})
    assert refused.status_code == 422 and "named “All”" in refused.text
    for name in ("", " ", "x" * 61):
        assert charlie.post(views, {"name": name, "query": query}).status_code == 422
    assert charlie.post(f"{views}{view.pk}/", {"name": "Broken", "query": query}).status_code == 302
    dana = client_of(make_member(books, "dana", Role.ADMIN))
    assert "Broken" not in dana.get("/c/books/pairs/").text
    assert dana.post(f"{views}{view.pk}/", {"delete": "1"}).status_code == 404
    charlie.post(f"{views}{view.pk}/", {"delete": "1", "query": query})
    assert list(SavedView.objects.values_list("name", flat=True)) == ["All"]


def test_excluding_and_reinstating_write_each_task_once(books, alice, charlie):
    """Counts and state of a task stand in the same indexes: written apart, ten thousand tasks take seconds more."""
    bob = make_member(books, "bob")
    pairs = [make_item(make_pair(books)).pair for _ in range(8)]  # a submit assigns the next one as well
    judge(alice, [1, 1, 0])
    judge(bob, [1, 0, 0])
    for act in ("exclude", "reinstate"):
        address = plan(charlie, act, pair=[pair.pk for pair in pairs])
        with CaptureQueriesContext(connection) as run:
            charlie.post(f"{address}run/")
        statements = [statement["sql"] for statement in run]
        written = [sql for sql in statements if re.search(r'UPDATE "?corpus_item"? ', sql)]
        assert len(written) == 2, "one statement for each person"
        reads = [sql for sql in statements if "FOR UPDATE" in sql and '"annotation_assignment"' in sql]
        assert len(reads) <= 2, "assignments change without being read first"
        assert BulkAct.objects.latest("pk").affected == 6


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

    client, judgments = Client(), Judgment.objects.count()
    client.force_login(make_user("olga", is_owner=True))
    refused = client.post(f"{home}act/", {"kind": "label", "option": "1"})
    assert refused.status_code == 422 and "Join it on the People page" in refused.text
    assert Judgment.objects.count() == judgments and BulkAct.objects.count() == 2


def test_an_export_says_whose_label_it_is(books, charlie):
    pair = make_pair(books)
    do(charlie, "label", option="1", note="By the manual.", pair=pair.pk)
    (row,) = exported(books)
    assert {"charlie", "adjudication"} <= set(row), row
    sent = charlie.post(f"{plan(charlie, 'export', pair=pair.pk)}run/", {"option": "csv"})
    (line,) = csv.DictReader(io.StringIO(sent.getvalue().decode()))
    assert (line["grade"], line["origin"]) == ("1", "adjudicator")
