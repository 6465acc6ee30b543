"""Imported judgments: people's settle where nobody judged, others measure; bad rows are refused or counted."""

import re

import pytest

from corpus.errors import BadInput
from corpus.importing.assess import import_judgments
from corpus.models import Assessor, Judgment, Label, Pair
from tests.called import call
from tests.factories import make_collection, make_document, make_item, make_member, make_pair, make_query

pytestmark = pytest.mark.django_db


@pytest.fixture
def collection():
    """Two pairs of one query, and a document that is in no pair."""
    collection = make_collection("books", grades=2)
    query = make_query(collection, external_id="q1")
    for name in ("d1", "d2"):
        make_pair(collection, query, make_document(collection, external_id=name))
    make_document(collection, external_id="d3")
    return collection


@pytest.fixture
def bring(collection, tmp_path):
    def run(content, kind="human", **options):
        path = tmp_path / "file"
        path.write_text(content)
        return import_judgments(collection, path, assessor="alice", kind=kind, **options)

    return run


def labels():
    rows = Label.objects.values_list("pair__document__external_id", "grade", "origin")
    return {document: (grade, origin) for document, grade, origin in rows}


def test_judgments_of_people_settle_and_the_same_file_again_changes_nothing(bring):
    report = bring("q1 0 d1 2\nq1 0 d2 0\n")
    assert (report["judgments"], report["unchanged"], report["labels_changed"]) == (2, 0, 2)
    assert labels() == {"d1": (2, "people"), "d2": (0, "people")}
    again = bring("q1 0 d1 2\nq1 0 d2 0\n")
    assert (again["judgments"], again["unchanged"], again["labels_changed"]) == (0, 2, 0)
    assert Judgment.objects.count() == 2


@pytest.mark.parametrize("kind", ["judge", "reference"])
def test_other_judgments_never_settle(bring, kind):
    assert bring("q1 0 d1 2\n", kind)["judgments"] == 1
    assert labels() == {}
    assert Assessor.objects.get().kind == {"judge": "judge-import", "reference": "reference"}[kind]


def test_a_csv_names_its_assessors_and_their_majority_settles(bring):
    text = "query_id,doc_id,grade,assessor\nq1,d1,2,bob\nq1,d1,2,charlie\nq1,d1,0,\nq1,d2,1,bob\nq1,d2,0,charlie\n"
    assert bring(text)["assessors"] == ["alice", "bob", "charlie"]
    assert labels() == {"d1": (2, "people")}


def test_where_a_person_of_the_collection_judged_imports_do_not_settle(bring, collection):
    item = make_item(Pair.objects.get(document__external_id="d1"), taken=1, done=1, state="settled")
    bob = make_member(collection, "bob").assessor
    Judgment.objects.create(pair=item.pair, assessor=bob, item=item, step="final", grade=0)
    bring("q1 0 d1 2\n")
    assert labels() == {"d1": (0, "people")}


def test_a_grade_of_a_pair_that_is_no_candidate_is_kept_without_making_it_one(bring):
    bring("q1 0 d3 1\n", "reference")
    assert not Pair.objects.get(document__external_id="d3").is_candidate


BAD = "q1 0 d1 1\nq1 0 d1 1\nq1 0 d1 2\nq1 0 d9 1\nq9 0 d1 1\nq1 0 d2 3\nq1 0 d2\nq1 0 d2 x\nq1 0 d2 -1\n"


def test_bad_rows_refuse_the_file_by_line_and_the_first_twenty_are_named(bring):
    with pytest.raises(BadInput) as refusal:
        bring(BAD)
    said = str(refusal.value)
    assert "(1 conflicting from line 3, 1 duplicate from line 2, 2 malformed from line 7, 1 out-of-range from" in said
    assert ": 7 bad rows (" in said and "2 unknown from line 4)" in said
    assert re.findall(r"line (\d+): ", said) == ["2", "3", "4", "5", "6", "7", "8"]
    assert not Judgment.objects.exists() and not Assessor.objects.exists()
    with pytest.raises(BadInput) as refusal:
        bring("q1 0 d1 1\n" + "q1 0 d1 9\n" * 30)
    said = str(refusal.value)
    assert "30 out-of-range from line 2" in said and "(the first 20 of 30)" in said
    assert re.findall(r"line (\d+): ", said) == [str(line) for line in range(2, 22)]


def test_a_row_that_repeats_another_counts_once(bring):
    report = bring("q1 0 d1 2\nq1 0 d1 2\nq1 0 d2 0\nq1 0 d1 2\n")
    assert (report["judgments"], report["unchanged"], report["skipped"]) == (2, 0, {"duplicate": 2})
    assert labels() == {"d1": (2, "people"), "d2": (0, "people")}


def test_skipped_rows_are_counted_by_kind_and_the_others_taken(bring):
    report = bring(BAD, skip_invalid=True)
    assert report["skipped"] == {"conflicting": 1, "duplicate": 1, "malformed": 2, "out-of-range": 1, "unknown": 2}
    assert (report["judgments"], report["grades_below_zero"]) == (1, 1)
    assert labels() == {"d1": (1, "people")}


@pytest.mark.parametrize(
    "text",
    [
        "q1 0 d1 1\nq1 0 d2 -1\nq1 0 d3 -2\n",
        "query_id,doc_id,grade\nq1,d1,1\nq1,d2,-1\nq1,d3,-2\n",
        "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t-1\nq1\td3\t-999999999\n",
    ],
    ids=["trec", "csv", "beir"],
)
def test_a_grade_below_0_is_no_judgment_and_is_counted(bring, text):
    report = bring(text)
    assert (report["judgments"], report["unchanged"], report["grades_below_zero"]) == (1, 0, 2)
    assert labels() == {"d1": (1, "people")} and Judgment.objects.count() == 1
    again = bring(text)
    assert (again["judgments"], again["unchanged"], again["grades_below_zero"]) == (0, 1, 2)
    with pytest.raises(BadInput, match=r'document .*"d9"'):
        bring("q1 0 d9 -1\n")


def test_another_grade_of_the_same_assessor_is_a_conflict(bring):
    bring("q1 0 d1 1\n")
    with pytest.raises(BadInput, match=r"line 1: grade 2.* 1 "):
        bring("q1 0 d1 2\n")
    assert bring("q1 0 d1 2\n", skip_invalid=True)["skipped"] == {"conflicting": 1}
    assert Judgment.objects.get().grade == 1


def test_the_command_prints_json_and_knows_its_collections(collection, tmp_path):
    path = tmp_path / "qrels"
    path.write_text("q1 0 d1 1\n")
    options = ("--assessor=bob", "--kind=human", path)
    assert call("import_judgments", "books", *options, "--json").json["judgments"] == 1
    path.write_text(BAD)
    refused = call("import_judgments", "books", *options)
    assert refused.code == 2 and "(--skip-invalid)" in refused.err
    refused = call("import_judgments", "nobooks", *options)
    assert refused.code == 2 and '"nobooks"' in refused.err and ": books" in refused.err
