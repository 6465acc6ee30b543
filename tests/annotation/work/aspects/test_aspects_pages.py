"""Pages of the workshop: every act by a plain form, errors keep what was typed, statements stay few."""

import json
from typing import Any

import pytest
from django.utils import timezone

from annotation.models import AuditEntry, Membership
from annotation.work.aspects import workspace
from corpus.aspects import documents, revising
from corpus.aspects.entries import Wording
from corpus.models import Document, Label, Query
from corpus.models.aspects import Aspect, AspectRevision
from tests.aspects_scene import ICE, ice_scene
from tests.factories import client_of, make_collection, make_document, make_query

pytestmark = pytest.mark.django_db
WHY = "Without it the answer is wrong."


class Desk:
    """Bob at the desk of the first query."""

    def __init__(self) -> None:
        self.collection, self.query, self.people = ice_scene()
        self.client = client_of(self.people["bob"])
        self.home = f"/c/ice/aspects/{self.query.pk}/"

    def act(self, name: str, **fields: Any) -> Any:
        return self.client.post(f"{self.home}{name}/", fields)

    def add(self, text: str, importance: int = 3) -> Any:
        return self.act("add", text=text, rationale=WHY, importance=importance)

    def names(self) -> list[str]:
        found = Aspect.objects.filter(query=self.query, is_current=True).order_by("place")
        return list(found.values_list("text", flat=True))

    def document(self, number: int) -> Document:
        return Document.objects.get(external_id=f"Ice_sheet_{number}")

    def page(self) -> str:
        return str(self.client.get(self.home).text)


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_decompose_weigh_and_review_without_javascript(desk: Desk) -> None:
    assert desk.add("Flow under pressure", 5)["Location"] == f"{desk.home}?focus=add-text#add-text"
    desk.add("Melting from below")
    desk.act("weigh", **{"w-a1": 4, "w-a2": 1})
    desk.act("keep", document=desk.document(0).pk, aspects=["a1"])
    desk.act("keep", document=desk.document(2).pk, aspects=["a1", "a2"])
    desk.act("discard", document=desk.document(3).pk, reason="A heading, a menu or a list of references")
    page = desk.page()
    assert "0.80" in page and "0.20" in page
    assert "A heading" in page
    kept = Label.objects.filter(aspect__isnull=False, grade=1).values_list("pair__document__external_id", flat=True)
    assert sorted(kept) == ["Ice_sheet_0", "Ice_sheet_2", "Ice_sheet_2"]
    assert AuditEntry.objects.filter(act="aspects.revised", person__username="bob").count() == 6
    answer = desk.client.post("/c/ice/aspects/export/")
    lines = [json.loads(line) for line in b"".join(answer.streaming_content).decode().splitlines()]
    assert [(row["query_id"], row["aspect_id"], row["importance"], row["doc_ids"]) for row in lines] == [
        ("q1", "a1", 4, ["Ice_sheet_0", "Ice_sheet_2"]),
        ("q1", "a2", 1, ["Ice_sheet_2"]),
    ]


def test_what_could_not_be_saved_is_still_in_the_form(desk: Desk) -> None:
    answer = desk.act("add", text="Flow & <pressure>", rationale="", importance=3)
    assert answer.status_code == 422
    page = answer.text
    assert "two sentences" in str(answer.context["problem"]) and answer.context["failed"] == "add"
    assert "Flow &amp; &lt;pressure&gt;" in page
    answer = desk.client.post(f"{desk.home}add/", {"text": "Flow", "importance": 3}, headers={"HX-Request": "true"})
    assert (answer.status_code, answer["HX-Retarget"]) == (422, "#problem") and "<html" not in answer.text
    assert not AspectRevision.objects.exists() and not AuditEntry.objects.filter(act="aspects.revised").exists()


def test_split_merge_remove_and_undo_from_the_page(desk: Desk) -> None:
    desk.add("Movement")
    desk.add("Snowfall")
    desk.act(
        "split", aspect="a1", text_1="Flow", rationale_1=WHY, importance_1=5, text_2="Sliding", rationale_2=WHY,
        importance_2=4, text_3="", rationale_3="", importance_3=3,
    )  # fmt: skip
    assert desk.names() == ["Flow", "Sliding", "Snowfall"]
    desk.act("merge", aspects=["a3", "a2"], text="Flow and snowfall", rationale=WHY, importance=4)
    assert desk.names() == ["Flow and snowfall", "Sliding"]
    desk.act("remove", aspect="a4")
    assert desk.names() == ["Flow and snowfall"]
    for expected in (["Flow and snowfall", "Sliding"], ["Flow", "Sliding", "Snowfall"], ["Movement", "Snowfall"]):
        desk.act("undo", number=revising.undoable_revision(desk.query).number)
        assert desk.names() == expected
    assert desk.page().count("undone</span>") == 3


def test_contiguous_passages_are_offered_and_joined(desk: Desk) -> None:
    desk.add("Flow")
    for number in (0, 1):
        desk.act("keep", document=desk.document(number).pk, aspects=["a1"])
    assert desk.page().count('name="documents"') == 2, "both passages are offered to be joined"
    desk.act("join", aspect="a1", documents=[desk.document(1).pk, desk.document(0).pk])
    whole = Document.objects.get(external_id__startswith="passage-")
    assert whole.text == f"{ICE[0]}\n\n{ICE[1]}"
    assert "joined into passage-" in desk.page()


def test_a_text_over_two_aspects_is_cut_by_its_sentences(desk: Desk) -> None:
    desk.add("Heat")
    desk.add("Sliding")
    address = f"{desk.home}cut/{desk.document(2).pk}/"
    page = desk.client.get(address).text
    assert page.count('<select name="s"') == 2
    digest = page.split('name="text_sha256" value="')[1].split('"')[0]
    stale = desk.client.post(address, {"text_sha256": "0", "s": ["a1", "a2"]})
    assert stale.status_code == 422
    desk.client.post(address, {"text_sha256": digest, "s": ["a1", "a2"]})
    made = Document.objects.filter(external_id__startswith="passage-").order_by("text")
    assert [row.text for row in made] == [
        "Geothermal heat melts the base of the sheet.",
        "Melt water lets it slide over its bed.",
    ]
    assert made[0].metadata["cut_from"] == "Ice_sheet_2"
    assert AuditEntry.objects.get(act="aspects.revised", details__did="cut").details["passages"] == 2


def test_a_pasted_passage_becomes_a_document_with_its_source_and_others_are_taken_by_id(desk: Desk) -> None:
    desk.add("Flow")
    empty = desk.act("paste", title="Glen", passage=" ", aspects=["a1"])
    assert empty.status_code == 422 and "Glen" in empty.text
    desk.act("paste", title="Glen", passage="Ice creeps.", source="https://ice.example/glen", aspects=["a1"])
    document = Document.objects.get(title="Glen")
    assert document.metadata["source"] == {"kind": "paste", "url": "https://ice.example/glen"}
    assert 'href="https://ice.example/glen"' in desk.page()
    desk.act("paste", title="Hutter", passage="Ice creeps fast.", source="javascript:alert(1)", aspects=["a1"])
    assert Document.objects.filter(title="Hutter").exists() and "javascript:" not in desk.page()
    # A document of the collection is taken by its id, and one of another is not.
    make_document(desk.collection, "Another text.", external_id="other")
    assert desk.act("bring", document="nowhere", aspects=["a1"]).status_code == 422
    desk.act("bring", document="other", aspects=["a1"])
    foreign = make_document(make_collection("fire"))
    assert desk.act("keep", document=foreign.pk, aspects=["a1"]).status_code == 404
    with pytest.raises(Exception, match="no longer in"):
        documents.keep(desk.query, desk.people["bob"].assessor, foreign, ["a1"])
    elsewhere = f"/c/ice/aspects/{make_query(foreign.collection).pk}/"
    assert desk.client.get(elsewhere).status_code == desk.client.post(f"{elsewhere}add/", {}).status_code == 404
    assert desk.act("nonsense").status_code == 404
    assert Label.objects.filter(aspect__external_id="a1", pair__document__external_id="other").exists()


def test_the_list_says_how_far_each_query_is(desk: Desk, django_assert_max_num_queries: Any) -> None:
    desk.add("Flow")
    desk.act("keep", document=desk.document(0).pk, aspects=["a1"])
    with django_assert_max_num_queries(20):
        desk.page()
    with django_assert_max_num_queries(15):
        page = desk.client.get("/c/ice/aspects/").text
    assert "1 of 3 queries decomposed" in page
    cells = page.split("q1</span></th>")[1].split("</tr>")[0]
    assert [cells.split(">")[n].split("<")[0].strip() for n in (1, 3, 5)] == ["1", "1", "3"]
    for state, expected in (("none", ["q2", "q3"]), ("review", ["q1"]), ("done", [])):
        shown = desk.client.get(f"/c/ice/aspects/?state={state}").text
        assert [name for name in ("q1", "q2", "q3") if f">{name}</span>" in shown] == expected
    arabic = Query.objects.get(external_id="q2")
    revising.add_aspect(arabic, desk.people["bob"].assessor, Wording("يتدفق الجليد", "لأن الجليد يزحف."))
    assert desk.client.get(f"/c/ice/aspects/{arabic.pk}/").text.count('lang="ar" dir="rtl"') >= 3


def test_a_query_with_a_new_text_can_take_its_aspects_over(desk: Desk) -> None:
    desk.add("Flow", 5)
    desk.add("Melting")
    desk.act("keep", document=desk.document(0).pk, aspects=["a1"])
    desk.act("discard", document=desk.document(3).pk, reason="Off topic")
    Query.objects.filter(pk=desk.query.pk).update(is_current=False)
    new = Query.objects.create(
        collection=desk.collection, external_id="q1", version=2, text="Why is the ice sheet thin?", content_hash="new"
    )
    assert desk.client.get(desk.home).status_code == 404
    desk.home, desk.query = f"/c/ice/aspects/{new.pk}/", new
    assert "/take-over/" in desk.page()
    desk.act("take-over", base=0)
    assert desk.names() == ["Flow", "Melting"]
    kept = Label.objects.filter(pair__query=new, aspect__query=new).values_list("grade", "pair__document__external_id")
    assert sorted(kept) == [(0, "Ice_sheet_3"), (0, "Ice_sheet_3"), (1, "Ice_sheet_0")]
    assert desk.act("take-over").status_code == 422


def test_what_a_paused_person_does_is_refused_and_kept_in_the_form(desk: Desk) -> None:
    desk.add("Flow")
    Membership.objects.filter(pk=desk.people["bob"].pk).update(paused_at=timezone.now())
    for answer in (
        desk.add("Melting"),
        desk.client.post(f"{desk.home}cut/{desk.document(2).pk}/", {"s": ["a1", "a1"]}),
        desk.client.post(f"{desk.home}upload/"),
    ):
        assert answer.status_code == 422
        assert "access is paused" in answer.text
    assert desk.names() == ["Flow"]


def test_what_waits_for_review_is_never_cut_off_by_what_does_not(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace, "MOST", 2)
    desk.add("Flow")
    for number in (0, 1, 2):
        desk.act("keep", document=desk.document(number).pk, aspects=["a1"])
    page = desk.page()
    assert f'id="card-{desk.document(3).pk}"' in page
    assert "2 are shown" in page
