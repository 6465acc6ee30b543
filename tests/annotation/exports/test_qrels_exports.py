"""Versions of the qrels, such as those with holes filled, as BEIR and MTEB folders."""

import pytest
from django.urls import reverse

from annotation.models import Role
from annotation.models.snapshots import Snapshot
from benchmark.models import Qrels
from benchmark.qrels import reading
from benchmark.qrels.importing import import_version
from benchmark.qrels.versions import labels_version, original_version, store_version
from corpus.errors import BadInput
from corpus.models import ExportedLabels, Judgment, Label, Pair, Query
from tests.evidence import make_assessor
from tests.factories import make_member
from tests.judged_books import export, lines, make_books

pytestmark = pytest.mark.django_db


@pytest.fixture
def books():
    """Labels of all pairs; version 1 is the reference of three queries, version 2 has holes of theirs filled."""
    books = make_books()
    reference = make_assessor(books, "qrels", "reference")
    for pair in Pair.objects.filter(collection=books, query__external_id__in=["q0", "q1", "q2"]).order_by("pk")[::3]:
        Judgment.objects.create(pair=pair, assessor=reference, step="import", grade=3)
    first = original_version(books)
    rows = reading.load_rows(labels_version(books))
    Qrels.objects.filter(kind="labels").delete()
    kept = {query: row for query, row in rows.items() if query in reading.load_rows(first)}
    store_version(books, Qrels.Kind.FILLED, kept, parent=first, note="pool of two runs")
    return books


def test_a_filled_version_is_a_beir_folder_with_all_queries_in_test(books, tmp_path):
    manifest = export(books, "beir", tmp_path / "out", qrels=2)
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

    Query.objects.filter(collection=books, external_id="q2").update(is_current=False)
    manifest = export(books, "beir", tmp_path / "newer", qrels=2)
    assert manifest["counts"]["pairs"] == 6
    assert list(manifest["counts"]["left_out"].values()) == [3] and "newer version" in str(manifest["counts"])


def test_mteb_has_the_grades_of_the_version_and_not_those_of_now(books, tmp_path):
    Label.objects.filter(pair__collection=books).update(grade=0)
    export(books, "mteb", tmp_path / "out", qrels=1)
    rows = lines(tmp_path / "out" / "qrels" / "test.jsonl")
    assert [row["score"] for row in rows] == [3, 3, 3]
    assert "split: test" in (tmp_path / "out" / "README.md").read_text()
    with pytest.raises(BadInput, match="no qrels version 7"):
        export(books, "mteb", tmp_path / "no", qrels=7)


def test_a_version_with_pairs_that_are_no_candidates_is_exported_whole(books, tmp_path):
    qrels = tmp_path / "qrels.txt"
    qrels.write_text("q0 0 d9-0 1\nq0 0 d0-0 2\n")
    made = import_version(books, qrels)
    export(books, "beir", tmp_path / "out", qrels=made.number)
    assert (tmp_path / "out" / "qrels" / "test.tsv").read_text().splitlines()[1:] == ["q0\td0-0\t2", "q0\td9-0\t1"]
    (held,) = ExportedLabels.objects.all()
    assert held.split == "test" and held.grades == [None] and len(held.pairs) == 1


def test_the_pages_lead_from_a_version_to_its_export(books, client, settings, tmp_path):
    settings.VAR = tmp_path
    client.force_login(make_member(books, "alice", Role.ADMIN).user)
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
