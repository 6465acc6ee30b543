"""Versions of the qrels: the original, imported files, all labels; their differences, and measures on each."""

import pytest

from benchmark.models import Qrels
from benchmark.qrels import comparing, importing, reading
from benchmark.qrels.versions import labels_version, latest_version, original_version
from corpus.errors import BadInput
from corpus.importing.assess import import_judgments
from corpus.models import Assessor, Judgment, Label, Pair
from tests.factories import make_document, make_pair, make_query
from tests.rankings import make_texts

pytestmark = pytest.mark.django_db


@pytest.fixture
def books():
    """Queries q1, q2; documents a, b, c; the reference says q1: a 2, b 0; q2: c 1."""
    texts, queries = {name: f"Text {name}" for name in "abc"}, {name: f"Query {name}" for name in ("q1", "q2")}
    return make_texts("books", texts, queries, {"q1": {"a": 2, "b": 0}, "q2": {"c": 1}}, grades=3)


def test_the_original_holds_the_reference_grades_and_is_made_once(books):
    assert latest_version(books) is None
    made = original_version(books, by="alice")
    assert reading.load_named(made) == {"q1": {"a": 2, "b": 0}, "q2": {"c": 1}}
    assert (made.number, made.kind, made.made_by) == (1, "original", "alice")
    assert [made.counts[key] for key in ("queries", "judged", "relevant", "origins")] == [2, 3, 2, {"original": 3}]
    assert original_version(books) == latest_version(books) == made


def test_other_reference_grades_make_another_original_and_the_first_stays(books):
    first = original_version(books)
    pair = Pair.objects.get(query__external_id="q1", document__external_id="b")
    before = Judgment.objects.get(pair=pair)
    Judgment.objects.create(pair=pair, assessor=before.assessor, step="import", grade=3, supersedes=before)
    second = original_version(books)
    assert (second.number, reading.load_named(second)["q1"]) == (2, {"a": 2, "b": 3})
    assert reading.load_named(first)["q1"] == {"a": 2, "b": 0}
    found = comparing.diff_versions(first, second)
    assert found.counts == {"added": 0, "removed": 0, "changed": 1, "same": 2}
    (row,) = found.rows("changed")
    assert (row["query"], row["document"], row["before"], row["after"], row["origin"]) == ("q1", "b", 0, 3, "original")


def test_gold_of_the_collections_own_experts_is_no_part_of_it(books):
    from benchmark.qrels import versions
    from corpus.labels import EXPERTS

    assert EXPERTS == versions.EXPERTS
    experts = Assessor.objects.create(collection=books, kind="reference", name=EXPERTS)
    pair = make_pair(books, make_query(books, external_id="more"), make_document(books, external_id="more"))
    Judgment.objects.create(pair=pair, assessor=experts, step="import", grade=1)
    assert original_version(books).counts["judged"] == 3


def test_a_file_is_a_version_of_its_own_and_the_diff_lists_what_differs(books, tmp_path):
    (tmp_path / "other.txt").write_text("q1 0 a 1\nq1 0 c 2\nq2 0 c 1\n")
    one, other = original_version(books), importing.import_version(books, tmp_path / "other.txt", by="bob")
    assert (other.kind, other.number, other.note) == ("imported", 2, "other.txt")
    found = comparing.diff_versions(one, other)
    assert found.counts == {"added": 1, "removed": 1, "changed": 1, "same": 1}
    told = {
        what: [(row["query"], row["document"], row["before"], row["after"]) for row in found.rows(what)]
        for what in ("added", "removed", "changed")
    }
    assert told == {"added": [("q1", "c", None, 2)], "removed": [("q1", "b", 0, None)], "changed": [("q1", "a", 2, 1)]}
    assert original_version(books) == one, "a file changes nothing about the reference grades"


def test_a_bad_file_is_refused_with_its_lines_and_stores_nothing(books, tmp_path):
    (tmp_path / "bad.txt").write_text("q1 0 a 1\nq9 0 a 1\nq1 0 z 1\nq1 0 a 1\nq1 0 b 9\nq1 0 b x\n")
    with pytest.raises(BadInput) as told:
        importing.import_version(books, tmp_path / "bad.txt")
    for line in (
        *('line 2: no query has the id "q9"', 'line 3: no document has the id "z"'),
        *('line 4: document "a" is listed twice', "line 5: grade 9 is above", "line 6: the grade is not an integer"),
    ):
        assert line in str(told.value)
    assert not Qrels.objects.exists()


def test_a_row_below_0_is_left_out_of_a_version_and_counted(books, tmp_path):
    (tmp_path / "pool.txt").write_text("q1 0 a 1\nq1 0 b -1\nq2 0 c -1\n")
    made = importing.import_version(books, tmp_path / "pool.txt")
    assert reading.load_named(made) == {"q1": {"a": 1}}
    assert (made.counts["judged"], made.counts["not_judged"]) == (1, 2)
    (tmp_path / "none.txt").write_text("q1 0 a -1\n")
    with pytest.raises(BadInput, match="contains no grades"):
        importing.import_version(books, tmp_path / "none.txt")


def test_all_labels_are_a_version_with_their_origins(books):
    with pytest.raises(BadInput, match="has no labels yet"):
        labels_version(books)
    pairs = list(Pair.objects.order_by("pk"))
    for pair, origin in zip(pairs, ("people", "debate+ensemble", "adjudicator"), strict=True):
        Label.objects.create(pair=pair, grade=1, origin=origin)
    made = labels_version(books)
    assert made.kind == "labels"
    assert made.counts["origins"] == {"adjudicator": 1, "debate+ensemble": 1, "people": 1}


def test_trec_lines_are_read_back_the_same(books, tmp_path):
    made = original_version(books)
    (tmp_path / "out.txt").write_text("".join(reading.write_trec(made)))
    assert (tmp_path / "out.txt").read_text() == "q1 0 a 2\nq1 0 b 0\nq2 0 c 1\n"
    import_judgments(books, tmp_path / "out.txt", assessor="again", kind="reference")
    assert original_version(books) == made, "the same grades once more are the same version"
