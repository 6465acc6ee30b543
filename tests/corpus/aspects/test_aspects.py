"""Aspects of a query: every act appends, undo takes back exactly one, documents stand under them by judgments."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.models import AuditEntry
from corpus.aspects import documents, revising
from corpus.aspects.entries import Wording, importance_weights
from corpus.aspects.exchange import export_aspects, import_aspects
from corpus.errors import BadInput
from corpus.labels import rebuild_labels
from corpus.models import Assessor, Document, Judgment, Label, Pair, Query
from corpus.models.aspects import Aspect, AspectRevision
from tests.called import call
from tests.evidence import make_assessor, make_judgment, make_label
from tests.factories import make_collection, make_document, make_member, make_pair, make_query
from tests.judged_books import lines

WHY = "Without it the answer is wrong."


@pytest.fixture
def query(db: None) -> Query:
    return make_query(make_collection("ice"), "Why is the ice sheet only kilometres thick?", external_id="q1")


@pytest.fixture
def alice(query: Query) -> Assessor:
    return make_member(query.collection, "alice").assessor


@pytest.fixture
def bob(query: Query) -> Assessor:
    return make_member(query.collection, "bob").assessor


def wording(text: str, importance: int = 3) -> Wording:
    return Wording(text, WHY, importance)


def decompose(query: Query, author: Assessor, *texts: str) -> None:
    for text in texts:
        revising.add_aspect(query, author, wording(text))


def names(query: Query) -> list[str]:
    return list(query.aspects.filter(is_current=True).order_by("place").values_list("external_id", flat=True))


def kept(query: Query) -> set[tuple[str, str]]:
    labels = Label.objects.filter(pair__query=query, aspect__is_current=True, grade__gte=1)
    return set(labels.values_list("pair__document__external_id", "aspect__external_id"))


def undo(query: Query, author: Assessor) -> None:
    revising.undo_revision(query, author, revising.undoable_revision(query).number)


def test_weights_add_up_to_one_and_keep_the_proportions() -> None:
    # BRIGHT-Pro 3.2: importances 3, 3, 3, 2 are 3/11 = 0.27 three times and 2/11 = 0.18, as its first example prints.
    assert [round(weight, 2) for weight in importance_weights([3, 3, 3, 2])] == [0.27, 0.27, 0.27, 0.18]
    assert importance_weights([]) == []


@given(st.lists(st.integers(1, 5), min_size=1, max_size=20))
def test_weights_are_a_distribution(importances: list[int]) -> None:
    assert abs(sum(importance_weights(importances)) - 1) < 1e-12


def test_a_query_is_decomposed_clarified_and_weighed_without_overwriting(query: Query, alice: Assessor) -> None:
    revising.add_aspect(query, alice, wording("Flow under pressure", 5))
    revising.add_aspect(query, alice, wording("Melting from below"))
    revising.clarify_aspect(query, alice, "a1", Wording("Ice creeps", WHY))
    revising.weigh_aspects(query, alice, {"a2": 2})
    rows = AspectRevision.objects.order_by("number")
    assert [(row.number, row.act) for row in rows] == [(1, "add"), (2, "add"), (3, "clarify"), (4, "weigh")]
    assert rows[1].aspects[0]["text"] == "Flow under pressure"
    found = query.aspects.order_by("place").values_list("text", "importance")
    assert list(found) == [("Ice creeps", 5), ("Melting from below", 2)]


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (Wording(" ", WHY, 3), "what the aspect is about"),
        (Wording("Flow", "", 3), "one or two sentences"),
        (Wording("Flow", "One thing. Another thing. A third thing.", 3), "one or two sentences"),
        (Wording("Flow", WHY, 6), "importance"),
        (Wording("Flow", WHY, 0), "importance"),
    ],
)
def test_a_wording_that_breaks_the_rules_is_refused(query: Query, alice: Assessor, broken: Wording, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        revising.add_aspect(query, alice, broken)
    assert not AspectRevision.objects.exists()


def test_a_revision_by_somebody_who_saw_an_older_set_is_refused(query: Query, alice: Assessor, bob: Assessor) -> None:
    revising.add_aspect(query, alice, wording("Flow"), base=0)
    with pytest.raises(BadInput, match="Another person changed"):
        revising.add_aspect(query, bob, wording("Melting"), base=0)
    assert names(query) == ["a1"]


def test_a_merged_aspect_takes_the_documents_of_its_parts_over(query: Query, alice: Assessor) -> None:
    first, second, third = (make_document(query.collection, external_id=f"d{n}") for n in (1, 2, 3))
    decompose(query, alice, "Flow", "Sliding", "Snowfall")
    documents.keep(query, alice, first, ["a1"])
    documents.keep(query, alice, second, ["a2"])
    documents.discard(query, alice, third, "off the topic")
    revising.merge_aspects(query, alice, ["a1", "a2"], wording("Movement", 5))
    assert names(query) == ["a4", "a3"]
    assert kept(query) == {("d1", "a4"), ("d2", "a4")}
    assert Judgment.objects.get(pair__document=third, aspect__external_id="a4").comment == "off the topic"
    undo(query, alice)
    assert names(query) == ["a1", "a2", "a3"]
    assert kept(query) == {("d1", "a1"), ("d2", "a2")}


def test_a_split_aspect_sends_its_documents_to_review_again(query: Query, alice: Assessor) -> None:
    document = make_document(query.collection, external_id="d1")
    decompose(query, alice, "Movement", "Snowfall")
    documents.keep(query, alice, document, ["a1"])
    revising.split_aspect(query, alice, "a1", [wording("Flow"), wording("Sliding")])
    assert names(query) == ["a3", "a4", "a2"]
    assert kept(query) == set()
    with pytest.raises(BadInput, match="at least two"):
        revising.split_aspect(query, alice, "a3", [wording("Flow")])


def test_no_id_ever_means_two_aspects(query: Query, alice: Assessor) -> None:
    decompose(query, alice, "Flow")
    revising.remove_aspect(query, alice, "a1")
    decompose(query, alice, "Melting")
    assert names(query) == ["a2"]
    assert Aspect.objects.get(external_id="a1").text == "Flow"


def test_undo_goes_back_act_by_act_and_each_step_is_kept(query: Query, alice: Assessor, bob: Assessor) -> None:
    document = make_document(query.collection, external_id="d1")
    decompose(query, alice, "Flow")
    documents.keep(query, alice, document, ["a1"])
    documents.discard(query, bob, document, "it says nothing of flow")
    revising.weigh_aspects(query, bob, {"a1": 5})
    with pytest.raises(BadInput, match="latest"):
        revising.undo_revision(query, alice, 1)
    for expected in ("weigh", "discard", "keep", "add"):
        assert revising.undoable_revision(query).act == expected
        undo(query, bob)
        if expected == "discard":
            assert kept(query) == {("d1", "a1")}
    assert revising.undoable_revision(query) is None
    assert names(query) == [] and kept(query) == set()
    assert AspectRevision.objects.count() == 8
    assert rebuild_labels(query.collection) == 0


def test_the_newest_word_on_a_document_holds_and_all_words_are_kept(
    query: Query, alice: Assessor, bob: Assessor
) -> None:
    document = make_document(query.collection, external_id="d1")
    decompose(query, alice, "Flow")
    documents.keep(query, alice, document, ["a1"])
    documents.discard(query, bob, document, "a menu, no evidence")
    assert kept(query) == set()
    documents.keep(query, bob, document, ["a1"])
    assert kept(query) == {("d1", "a1")}
    rows = Judgment.objects.order_by("pk").values_list("assessor__name", "grade", "comment")
    assert list(rows) == [("alice", 1, ""), ("bob", 0, "a menu, no evidence"), ("bob", 1, "")]
    documents.reopen(query, alice, document)
    assert kept(query) == set()
    assert rebuild_labels(query.collection) == 0


def test_the_judgment_of_an_aspect_leaves_the_label_of_the_pair_alone(query: Query, alice: Assessor) -> None:
    document = make_document(query.collection, external_id="d1")
    pair = make_pair(query.collection, query, document)
    make_label(pair, 0, "debate")
    make_judgment(pair, make_assessor(query.collection, "debate", "policy"), 0)
    decompose(query, alice, "Flow")
    documents.keep(query, alice, document, ["a1"])
    assert Label.objects.get(pair=pair, aspect=None).grade == 0
    assert Label.objects.get(pair=pair, aspect__external_id="a1").grade == 1


def test_a_document_that_was_no_pair_becomes_one_that_nobody_is_asked_to_judge(query: Query, alice: Assessor) -> None:
    document = make_document(query.collection)
    decompose(query, alice, "Flow")
    query.collection.guideline_version = 3
    query.collection.save()
    documents.keep(query, alice, document, ["a1"])
    assert not Pair.objects.get(document=document).is_candidate
    assert Judgment.objects.get().guideline == 3, "the guidelines that held"


def test_a_discard_needs_a_reason_and_an_aspect(query: Query, alice: Assessor) -> None:
    document = make_document(query.collection)
    with pytest.raises(BadInput, match="Decompose"):
        documents.discard(query, alice, document, "off the topic")
    decompose(query, alice, "Flow")
    with pytest.raises(BadInput, match="Say why"):
        documents.discard(query, alice, document, "  ")


# --- Passages ---------------------------------------------------------------------------------------------------


def test_the_same_new_passage_twice_is_one_document(query: Query, alice: Assessor) -> None:
    decompose(query, alice, "Flow")
    new = documents.NewPassage("Glen's law", "Ice creeps under stress.", ["a1"], {"source": {"kind": "paste"}})
    documents.add_passages(query, alice, [new])
    with pytest.raises(BadInput, match="No changes made"):
        documents.add_passages(query, alice, [new])
    document = Document.objects.get()
    assert (document.title, document.metadata["source"]["kind"]) == ("Glen's law", "paste")
    assert kept(query) == {(document.external_id, "a1")}


def test_contiguous_passages_of_one_source_and_aspect_are_joined(query: Query, alice: Assessor) -> None:
    decompose(query, alice, "Flow")
    shared = "and it spreads under its own weight."
    texts = [f"Ice is plastic {shared}", f"{shared} Friction slows it.", "Then it melts."]
    made = [make_document(query.collection, text, external_id=f"Ice_sheet_{n}") for n, text in enumerate(texts, 3)]
    for document in made:
        documents.keep(query, alice, document, ["a1"])
    documents.join(query, alice, [made[2], made[0], made[1]], "a1")
    whole = Document.objects.get(external_id__startswith="passage-")
    assert whole.text == f"{texts[0]} Friction slows it.\n\n{texts[2]}"
    assert whole.metadata["joined_from"] == ["Ice_sheet_3", "Ice_sheet_4", "Ice_sheet_5"]
    assert whole.metadata["chunks"] == [3, 5]
    assert kept(query) == {(whole.external_id, "a1")}
    undo(query, alice)
    assert kept(query) == {(f"Ice_sheet_{n}", "a1") for n in (3, 4, 5)}


@pytest.mark.parametrize(
    ("ids", "aspects", "words"),
    [
        (["Ice_3", "Ice_5"], ["a1", "a1"], "text missing between Ice_3 and Ice_5"),
        (["Ice_3", "Glacier_4"], ["a1", "a1"], "the same source"),
        (["Ice_3"], ["a1"], "two or more"),
        (["Ice_1", "Ice_2"], ["a1", "a2"], "Keep all of these"),
    ],
)
def test_passages_that_do_not_belong_together_are_not_joined(
    query: Query, alice: Assessor, ids: list[str], aspects: list[str], words: str
) -> None:
    decompose(query, alice, "Flow", "Melting")
    made = [make_document(query.collection, f"Text of {name}.", external_id=name) for name in ids]
    for document, aspect in zip(made, aspects, strict=True):
        documents.keep(query, alice, document, [aspect])
    with pytest.raises(BadInput, match=words):
        documents.join(query, alice, made, "a1")


def test_a_text_over_several_aspects_is_cut_into_documents_of_its_own(query: Query, alice: Assessor) -> None:
    decompose(query, alice, "Flow", "Melting")
    document = make_document(query.collection, "Ice flows. It melts below.", external_id="Ice_1")
    documents.keep(query, alice, document, ["a1"])
    record = documents.cut_record(document)
    assert record == {"source": {"document": "Ice_1"}, "cut_from": "Ice_1"}
    texts = {"Ice flows.": "a1", "It melts below.": "a2"}
    parts = [documents.NewPassage("", text, [aspect], record) for text, aspect in texts.items()]
    documents.cut(query, alice, document, parts)
    made = Document.objects.exclude(pk=document.pk)
    assert kept(query) == {(part.external_id, texts[part.text]) for part in made}
    assert len(made) == 2
    whole = Judgment.objects.filter(pair__document=document, superseded_by=None)
    assert {row.grade for row in whole} == {0}
    assert all(row.comment.startswith("cut into passage-") for row in whole)


# --- Files ------------------------------------------------------------------------------------------------------


def row(query: str = "q1", aspect: str = "a1", **values: object) -> dict[str, object]:
    line = {"query_id": query, "aspect_id": aspect, "text": "Flow", "rationale": WHY, "importance": 4, "doc_ids": []}
    return {**line, **values}


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(one if isinstance(one, str) else json.dumps(one) + "\n" for one in rows))
    return path


def test_aspects_make_a_round_trip(query: Query, tmp_path: Path) -> None:
    for name in ("d1", "d2"):
        make_document(query.collection, f"Text of {name}.", external_id=name)
    make_query(query.collection, "أين الجليد؟", external_id="q2")
    given = write(
        tmp_path / "in",
        row(aspect="flow", doc_ids=["d1", "d2"], importance=5),
        row(aspect="melt", text="الذوبان", rationale=""),
        row("q2", importance=1, doc_ids=["d2"]),
    )
    report = import_aspects(query.collection, given)
    assert report == {"collection": query.collection.name, "queries": 2, "aspects": 3, "documents": 3, "changed": 2}
    assert call("aspects", query.collection.name, "export", tmp_path / "out").code == 0
    assert lines(tmp_path / "out") == lines(given)
    again = call("aspects", query.collection.name, "import", tmp_path / "out", "--json")
    assert again.json["changed"] == 0
    assert AuditEntry.objects.filter(act="aspects.imported").count() == 2
    assert rebuild_labels(query.collection) == 0


def test_an_import_replaces_the_sets_of_its_queries_and_can_be_taken_back(
    query: Query, alice: Assessor, tmp_path: Path
) -> None:
    document = make_document(query.collection, external_id="d1")
    decompose(query, alice, "Flow")
    documents.keep(query, alice, document, ["a1"])
    import_aspects(query.collection, write(tmp_path / "f", row(aspect="a1", text="Creep"), row(aspect="x")))
    assert (names(query), kept(query)) == (["a1", "x"], set())
    undo(query, alice)
    assert (names(query), kept(query)) == (["a1"], {("d1", "a1")})
    assert query.aspects.get(external_id="a1").text == "Flow"


def test_bad_lines_are_told_by_number_and_nothing_is_imported(query: Query, tmp_path: Path) -> None:
    make_document(query.collection, external_id="d1")
    path = write(
        tmp_path / "f",
        row(doc_ids=["d1"]),
        "{not json\n",
        row(aspect="b", importance=6),
        row(aspect="c", importance=True),
        row(aspect="d", doc_ids=["d9"]),
        row("q9"),
        row(),
        row(aspect="e", text=" "),
        row(aspect="f", doc_ids="d1"),
        row(aspect="g", doc_ids=["d1", "d1"]),
        "[]\n",
        row(aspect="with space"),
    )
    with pytest.raises(BadInput) as refused:
        import_aspects(query.collection, path)
    said = str(refused.value)
    assert "11 bad lines" in said
    assert [f"line {line}: " in said for line in range(1, 13)] == [False] + [True] * 11
    bad = call("aspects", query.collection.name, "import", path, "--json")
    assert (bad.code, bad.out) == (2, "") and "line 6: " in bad.err and '"q9"' in bad.err
    assert not Aspect.objects.exists() and not Judgment.objects.exists()


def test_the_export_of_aspects_is_the_same_file_with_a_manifest(query: Query, alice: Assessor, tmp_path: Path) -> None:
    from annotation.exports.options import ExportOptions
    from annotation.exports.snapshots import create_snapshot, write_snapshot

    document = make_document(query.collection, external_id="d1")
    revising.add_aspect(query, alice, wording("Flow", 4))
    documents.keep(query, alice, document, ["a1"])
    export_aspects(query.collection, tmp_path / "plain")
    snapshot = write_snapshot(create_snapshot(query.collection, ExportOptions(format="aspects"), tmp_path / "out"))
    assert (tmp_path / "out" / "aspects.jsonl").read_text() == (tmp_path / "plain").read_text()
    assert snapshot.manifest["counts"]["importances"] == {"4": 1}


def test_two_people_at_once_lose_nothing(transactional_db: None) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from django.db import connection

    collection = make_collection("ice")
    query = make_query(collection)
    people = [make_member(collection, f"person-{n}").assessor for n in range(4)]

    def work(author: Assessor) -> None:
        try:
            for n in range(4):
                revising.add_aspect(query, author, wording(f"{author} {n}"))
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, people))
    assert len(names(query)) == 16
    assert [row.number for row in AspectRevision.objects.order_by("number")] == list(range(1, 17))


def test_a_deleted_collection_takes_its_aspects_and_passages_along(query: Query, alice: Assessor) -> None:
    from annotation.models import Membership
    from annotation.models.aspects import PassageDraft
    from annotation.work.aspects import second
    from corpus.collections.removal import delete_collection

    member = Membership.objects.get(assessor=alice)
    decompose(query, alice, "Flow")
    revising.undo_revision(query, alice, 1)
    decompose(query, alice, "Melting")
    documents.keep(query, alice, make_document(query.collection), ["a2"])
    PassageDraft.objects.create(query=query, asked_by=member, url="http://ice.example/")
    sample = second.draw_sample(member)
    second.submit_reading(sample, make_member(query.collection, "eve"), sample.revisions[0], {"a2": 3})
    assert delete_collection(query.collection)["aspect revisions"] == 4
    assert not AspectRevision.objects.exists() and not PassageDraft.objects.exists()
