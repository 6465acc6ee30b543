"""Fixed splits: kept lists, splits that queries carry, and versions of the qrels, of which none leaks into training."""

from collections import Counter

import pytest
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from annotation.exports.query_splits.lists import carried_names, keep_split, list_splits
from annotation.exports.sets.rows import SetQuery, SetRow
from annotation.exports.sets.splitting import IN_TEST, split_queries
from annotation.models import AuditEntry, Role
from annotation.models.snapshots import QuerySplit, Snapshot
from benchmark.models import Qrels
from benchmark.qrels import reading
from benchmark.qrels.importing import import_version
from benchmark.qrels.versions import labels_version, original_version, store_version
from corpus.collections.removal import delete_collection
from corpus.errors import BadInput
from corpus.models import Document, ExportedLabels, Judgment, Label, Pair, Query
from tests.called import call
from tests.evidence import make_assessor
from tests.factories import make_member
from tests.judged_books import export, lines, make_books
from tests.reading import flat


def query(number: int) -> SetQuery:
    row = SetRow("books", f"q{number}", f"d{number}", number, number, number, 1, "people", True)
    return SetQuery("books", f"q{number}", number, [row])


def divide(named, *, groups=None, documents=None, share=0.5, queries=10):
    left = Counter()
    given = {"groups": groups or {}, "documents": documents or {}, "left_out": left, "named": named}
    sides = split_queries([query(n) for n in range(queries)], share, 0, **given)
    return {side: {one.key for one in found} for side, found in sides.items()}, +left


def test_where_dev_is_named_the_rest_is_trained_on_and_where_train_is_named_the_rest_is_left_out():
    sides, left = divide({"dev": {5}, "test": {0, 1}})
    assert sides == {"train": {2, 3, 4, 6, 7, 8, 9}, "dev": {5}, "test": {0, 1}} and not left
    sides, left = divide({"train": {2, 3}, "test": {0}})
    assert sides == {"train": {2, 3}, "test": {0}} and left.total() == 7
    sides, _left = divide({"test": {0, 1}})
    assert sides["test"] == {0, 1} and (len(sides["train"]), len(sides["dev"])) == (4, 4)


def test_what_nearly_equals_a_query_or_a_document_of_test_gives_way():
    sides, left = divide({"test": {0, 1}}, groups={0: 1, 2: 1, 3: 1})
    assert sides["test"] == {0, 1} and {2, 3}.isdisjoint(sides["train"] | sides["dev"])
    assert list(left.values()) == [2] and "nearly equals" in str(left)
    alone = {n: n for n in range(10)}
    sides, left = divide({"test": {0, 1}}, documents=alone | {2: 0}, share=1)
    assert sides["train"] == set(range(3, 10)) and left == {IN_TEST: 1}


@given(
    st.dictionaries(st.integers(0, 11), st.sampled_from(["train", "dev", "test"]), max_size=6),
    st.lists(st.integers(0, 4), min_size=12, max_size=12),
    st.lists(st.integers(0, 9), min_size=12, max_size=12),
    st.floats(0.05, 1),
    st.integers(0, 3),
)
def test_named_dev_and_test_stay_whole_and_nothing_like_them_is_trained_on(place, groups, documents, share, seed):
    named = {side: {key for key, name in place.items() if name == side} for side in set(place.values())}
    left = Counter()
    queries = [query(n) for n in range(12)]
    near = {"groups": dict(enumerate(groups)), "documents": dict(enumerate(documents))}
    sides = split_queries(queries, share, seed, **near, left_out=left, named=named)
    keys = {side: [one.key for one in found] for side, found in sides.items()}
    for side in ("dev", "test"):
        if side in named:
            assert set(keys[side]) == named[side]
    measured = [key for side in ("dev", "test") for key in keys.get(side, [])]
    assert {documents[key] for key in keys["train"]}.isdisjoint({documents[key] for key in measured})
    assert {groups[key] for key in keys["train"]}.isdisjoint({groups[key] for key in measured})
    every = [key for found in keys.values() for key in found]
    assert len(every) == len(set(every)) == 12 - left.total()


@pytest.fixture
def alice(client, books, settings, tmp_path):
    settings.VAR = tmp_path / "var"
    client.force_login(make_member(books, "alice", Role.ADMIN).user)
    return client


def keep(books, name="fixed", ids=("q0", "q1")):
    return keep_split(None, books, name, ids, made_by="alice")


def test_queries_of_a_kept_list_enter_no_set_unless_it_is_named(books, tmp_path):
    keep(books)
    manifest = export(books, "prism", tmp_path / "one", teacher="votes")
    held = {row["query_id"] for split in ("train", "dev") for row in lines(tmp_path / "one" / f"{split}.jsonl")}
    assert held == {f"q{n}" for n in range(2, 10)}
    assert list(manifest["counts"]["left_out"].values()) == [6] and "kept list" in str(manifest["counts"])
    (told,) = manifest["held_out"]
    assert (told["name"], told["queries"], told["from"]) == ("fixed", 2, "list")
    manifest = export(books, "prism", tmp_path / "two", teacher="votes", named_splits={"test": "fixed"})
    assert {row["query_id"] for row in lines(tmp_path / "two" / "test.jsonl")} == {"q0", "q1"}
    assert manifest["named_splits"][0] | told == manifest["named_splits"][0]  # the same queries, the same sha256
    assert manifest["counts"]["splits"]["test"] == {"rows": 6, "pairs": 6, "queries": 2, "relevant": 2}
    assert "held_out" not in manifest
    keep(books, ids=["q1"])
    assert export(books, "prism", tmp_path / "three", teacher="votes")["held_out"][0]["sha256"] != told["sha256"]


def test_the_labels_of_a_test_split_are_held_as_such_and_no_quota_takes_from_it(books, tmp_path):
    keep(books)
    export(books, "beir", tmp_path / "out", named_splits={"test": "fixed"})
    assert set(ExportedLabels.objects.values_list("split", flat=True)) == {"train", "dev", "test"}
    assert (tmp_path / "out" / "qrels" / "test.tsv").read_text().count("\n") == 7
    manifest = export(books, "prism", tmp_path / "few", teacher="votes", named_splits={"test": "fixed"}, quota=4)
    assert manifest["counts"]["queries"] == 6
    delete_collection(books)
    assert not QuerySplit.objects.exists() and not Document.objects.exists(), "a list goes with its collection"


def test_queries_may_carry_their_split(books, tmp_path):
    for name, numbers in {"train": range(5), "dev": (5, 6), "test": (7, 8, 9)}.items():
        ids = [f"q{n}" for n in numbers]
        Query.objects.filter(collection=books, external_id__in=ids).update(metadata={"split": name})
    assert carried_names(books) == ["dev", "test", "train"]
    every = {side: side for side in ("train", "dev", "test")}
    manifest = export(books, "prism", tmp_path / "out", teacher="votes", named_splits=every)
    assert {side: n["queries"] for side, n in manifest["counts"]["splits"].items()} == {"train": 5, "dev": 2, "test": 3}
    assert {one["from"] for one in manifest["named_splits"]} == {"queries"}

    keep(books)
    old = Query.objects.get(collection=books, external_id="q0")
    Query.objects.filter(pk=old.pk).update(is_current=False)
    Query.objects.create(collection=books, external_id="q0", text="What is it?", content_hash="new", version=2)
    manifest = export(books, "prism", tmp_path / "newer", teacher="votes", named_splits={"test": "fixed"})
    assert manifest["named_splits"][0]["queries"] == 2, "a query whose text is updated stays on its list"


def test_names_that_do_not_exist_overlap_or_have_no_labelled_query_are_refused(books, tmp_path):
    Query.objects.create(collection=books, external_id="new", text="Who?", content_hash="new")
    for name, ids in (("fixed", ["q0", "q1"]), ("other", ["q1", "q2"]), ("nobody", ["new"])):
        keep(books, name, ids)
    Query.objects.filter(collection=books).exclude(external_id="new").update(metadata={"split": "everything"})
    for named, words in (
        ({"test": "none"}, r"No kept list .* is named none \(for test\). There are: "),
        ({"test": "fixed", "dev": "other"}, "Query q1 is in two of the named splits"),
        ({"dev": "nobody"}, "Dev would be empty.*: no query named nobody has a label, or allow an incomplete set"),
        ({"train": "nobody"}, "Nothing is left to train on: no query named nobody has a label"),
        ({"test": "everything"}, "Nothing is left to train on: every query with a label is one of dev or test"),
    ):
        with pytest.raises(BadInput, match=words):
            export(books, "prism", tmp_path / "out", teacher="votes", named_splits=named)


def test_the_commands_keep_a_list_and_export_by_its_name(books, tmp_path):
    def splits(*options):
        return call("query_splits", "books", *options)

    ids = tmp_path / "ids.txt"
    ids.write_text("q3\nq4\n\nq3\n")
    made = splits("--keep", "fixed", "--file", ids, "--json")
    assert made.code == 0 and made.json["lists"] == [{"name": "fixed", "queries": 2}]
    options = ("--format", "prism", "--teacher", "labels", "--split", "0.8", "--split", "test=fixed", "--seed", "7")
    manifest = call("export", "books", *options, "--json", "--out", tmp_path / "out").json
    taken = manifest["options"]
    assert (taken["split"], taken["named_splits"], taken["seed"]) == (0.8, ["test=fixed"], 7)
    assert [file["name"] for file in manifest["files"]] == ["train.jsonl", "dev.jsonl", "test.jsonl"]
    ids.write_text("q3\nnobody\n")
    refused = splits("--keep", "fixed", "--file", ids)
    assert (refused.code, refused.out) == (2, "") and "1 of 2 ids" in refused.err and "nobody" in refused.err
    assert QuerySplit.objects.get().query_ids == ["q3", "q4"]
    for wrong in (("--keep", "a b", "--file", ids), ("--keep", "fixed"), ("--delete", "none")):
        assert splits(*wrong).code == 2
    assert splits("--delete", "fixed").code == 0 and not list_splits(books)


def test_the_page_keeps_a_list_makes_the_set_and_deletes_it(alice, books):
    address = reverse("query_lists", args=["books"])
    refused = alice.post(address, {"name": "fixed", "ids": "q0\nnobody"})
    assert refused.status_code == 422 and "nobody" in refused.content.decode() and not list_splits(books)
    assert "q0\nnobody" in refused.content.decode()  # what was typed stays
    assert alice.post(address, {"name": "fixed", "ids": "q0\r\nq1\r\n"}).status_code == 302
    assert "2 queries of “fixed”" in alice.get(address).content.decode()
    page = flat(alice.get(reverse("exports", args=["books"])).content.decode())
    assert '<option value="fixed">fixed</option>' in page
    values = {"format": "beir", "teacher": "labels", "test_queries": "fixed"}
    assert alice.post(reverse("make_export", args=["books"]), values).status_code == 302
    assert Snapshot.objects.get().manifest["counts"]["splits"]["test"]["queries"] == 2
    page = flat(alice.get(reverse("exports", args=["books"])).content.decode())
    assert "test: fixed" in page and "Held out" not in page
    assert alice.post(reverse("delete_query_list", args=["books", "fixed"])).status_code == 302
    assert not list_splits(books)
    acts = AuditEntry.objects.filter(act__startswith="export.split").order_by("pk")
    told = [(one.act, one.person.username, one.details["split"]) for one in acts]
    assert told == [("export.split-kept", "alice", "fixed"), ("export.split-deleted", "alice", "fixed")]


@pytest.fixture
def filled(db):
    """Labels of all pairs; version 1 is the reference of three queries, version 2 has holes of theirs filled."""
    filled = make_books()
    reference = make_assessor(filled, "qrels", "reference")
    for pair in Pair.objects.filter(collection=filled, query__external_id__in=["q0", "q1", "q2"]).order_by("pk")[::3]:
        Judgment.objects.create(pair=pair, assessor=reference, step="import", grade=3)
    first = original_version(filled)
    rows = reading.load_rows(labels_version(filled))
    Qrels.objects.filter(kind="labels").delete()
    kept = {query: row for query, row in rows.items() if query in reading.load_rows(first)}
    store_version(filled, Qrels.Kind.FILLED, kept, parent=first, note="pool of two runs")
    return filled


def test_a_filled_version_is_a_beir_folder_with_all_queries_in_test(filled, tmp_path):
    manifest = export(filled, "beir", tmp_path / "out", qrels=2)
    names = sorted(path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.*"))
    assert names == ["corpus.jsonl", "manifest.json", "qrels/test.tsv", "queries.jsonl"]
    header, *rows = (tmp_path / "out" / "qrels" / "test.tsv").read_text().splitlines()
    assert header == "query-id\tcorpus-id\tscore" and len(rows) == 9
    wanted = reading.load_named(Qrels.objects.get(number=2))
    assert {tuple(row.split("\t")) for row in rows} == {
        (query, document, str(grade)) for query, found in wanted.items() for document, grade in found.items()
    }
    assert {row["_id"] for row in lines(tmp_path / "out" / "queries.jsonl")} == {"q0", "q1", "q2"}
    assert manifest["qrels"]["number"] == 2 and manifest["qrels"]["kind"] == "filled"
    assert manifest["qrels"]["sha256"] == Qrels.objects.get(number=2).content_hash
    assert manifest["options"]["split"] is None and manifest["counts"]["origins"] == {"ensemble": 9}

    Query.objects.filter(collection=filled, external_id="q2").update(is_current=False)
    manifest = export(filled, "beir", tmp_path / "newer", qrels=2)
    assert manifest["counts"]["pairs"] == 6
    assert list(manifest["counts"]["left_out"].values()) == [3] and "newer version" in str(manifest["counts"])


def test_mteb_has_the_grades_of_the_version_and_not_those_of_now(filled, tmp_path):
    Label.objects.filter(pair__collection=filled).update(grade=0)
    export(filled, "mteb", tmp_path / "out", qrels=1)
    rows = lines(tmp_path / "out" / "qrels" / "test.jsonl")
    assert [row["score"] for row in rows] == [3, 3, 3]
    assert "split: test" in (tmp_path / "out" / "README.md").read_text()
    with pytest.raises(BadInput, match="no qrels version 7"):
        export(filled, "mteb", tmp_path / "no", qrels=7)


def test_a_version_with_pairs_that_are_no_candidates_is_exported_whole(filled, tmp_path):
    qrels = tmp_path / "qrels.txt"
    qrels.write_text("q0 0 d9-0 1\nq0 0 d0-0 2\n")
    made = import_version(filled, qrels)
    export(filled, "beir", tmp_path / "out", qrels=made.number)
    assert (tmp_path / "out" / "qrels" / "test.tsv").read_text().splitlines()[1:] == ["q0\td0-0\t2", "q0\td9-0\t1"]
    (held,) = ExportedLabels.objects.all()
    assert held.split == "test" and held.grades == [None] and len(held.pairs) == 1


def test_the_pages_lead_from_a_version_to_its_export(filled, client, settings, tmp_path):
    settings.VAR = tmp_path
    client.force_login(make_member(filled, "alice", Role.ADMIN).user)
    page = client.get(reverse("qrels", args=["books"])).content.decode()
    address = f"{reverse('exports', args=['books'])}?format=beir&amp;qrels=2"
    assert address in page
    form = client.get(address.replace("&amp;", "&")).content.decode()
    assert '<option value="2" selected>version 2, 9 judged pairs (pool of two runs)</option>' in form
    values = {"format": "mteb", "split": "0.9", "seed": "0", "near_duplicates": "0.8", "labels": "resolved",
              "teacher": "labels", "preset": "paper", "shape": "pair", "qrels": "2"}  # fmt: skip
    assert client.post(reverse("make_export", args=["books"]), values).status_code == 302
    assert Snapshot.objects.get().manifest["counts"]["splits"]["test"]["pairs"] == 9
    assert "version 2 (pool" in " ".join(client.get(reverse("exports", args=["books"])).content.decode().split())
