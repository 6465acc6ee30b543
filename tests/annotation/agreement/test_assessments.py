"""What agreement compares: people's judgments, imports and counted votes, and nothing else."""

import json
import re

import pytest

from annotation.agreement.grade_matrix import choose_assessors, known_assessors, load_grade_matrix, pairs_where
from annotation.agreement.report import agreement_report, build_json_document
from corpus.errors import BadInput
from judges.domain.ensemble import drawn_first, pair_seed
from tests.called import call
from tests.evidence import make_assessor, make_campaign, make_judge, make_judgment, make_turn, make_votes
from tests.factories import make_collection, make_item, make_pair

pytestmark = pytest.mark.django_db


def told(collection, names=(), **options):
    """{assessor: {pair id: grade}} as assessments() has it."""
    chosen = choose_assessors(known_assessors(collection), names=names) if names else None
    found = load_grade_matrix(collection, chosen, **options)
    return {
        one.name: {int(pair): int(grade) for pair, grade in zip(found.pairs, row, strict=True) if grade >= 0}
        for one, row in zip(found.assessors, found.grades, strict=True)
    }


@pytest.fixture
def books():
    return make_collection("books")


def test_people_judges_and_imports_enter_and_policies_and_the_reference_only_by_name(books):
    pair, judge = make_pair(books), make_judge("judge-1")
    make_votes(make_campaign(books, [judge]), pair, [judge], [1])
    kinds = {"alice": "person", "old-votes": "judge-import", "paper": "human-import", "debate": "policy"}
    for name, kind in {**kinds, "qrels": "reference", "gold": "reference"}.items():
        make_judgment(pair, make_assessor(books, name, kind), 1)
    known = known_assessors(books)
    assert [one.name for one in known] == ["alice", "judge-1", "debate", "paper", "old-votes", "gold", "qrels"]
    assert set(told(books)) == {"alice", "judge-1", "old-votes", "paper"}
    assert told(books, ["qrels", "debate"]) == {"debate": {pair.pk: 1}, "qrels": {pair.pk: 1}}
    for options, names in (
        ({"people": True}, ["alice", "paper"]),
        ({"judges": True, "names": ["qrels"]}, ["judge-1", "old-votes", "qrels"]),
        ({"names": ["reference", "alice"]}, ["alice", "gold", "qrels"]),
    ):
        assert [one.name for one in choose_assessors(known, **options)] == names
    with pytest.raises(BadInput, match=r"nobody; .* alice"):
        choose_assessors(known, names=["nobody"])
    make_judgment(pair, make_assessor(books, "alice", "human-import"), 0)
    named = ["person:alice", "human-import:alice"]
    assert told(books, named) == {"person:alice": {pair.pk: 1}, "human-import:alice": {pair.pk: 0}}


def test_a_withdrawn_judgment_does_not_count_and_the_one_after_it_does(books):
    pair, alice, bob = make_pair(books), make_assessor(books, "alice"), make_assessor(books, "bob")
    first = make_judgment(pair, alice, 1)
    withdrawal = make_judgment(pair, alice, None, supersedes=first)
    gone = make_judgment(pair, bob, 1)
    make_judgment(pair, bob, None, supersedes=gone)
    assert told(books) == {}
    measured = build_json_document(agreement_report(books, [], bootstrap=3))
    assert (measured["items"], measured["fleiss"]["value"]) == (0, None)
    make_judgment(pair, alice, 0, supersedes=withdrawal)
    make_judgment(pair, make_assessor(books, "charlie"), 0, step="adjudication")
    assert told(books) == {"alice": {pair.pk: 0}}
    second = make_pair(books)
    make_judgment(second, alice, 1, item=make_item(second), step="first")
    make_judgment(second, alice, 0, item=make_item(second, reason="conflict"), step="final")
    assert told(books) == {"alice": {pair.pk: 0, second.pk: 1}}, "the first answer of a person counts"
    assert [one.name for one in known_assessors(books)] == ["alice"], "who only adjudicated is nobody to compare"


def test_the_newest_votes_with_a_verdict_count_for_each_pair_and_version_of_a_judge(books):
    pair, other, judges = make_pair(books), make_pair(books), [make_judge("a"), make_judge("b")]
    old, new = make_campaign(books, judges), make_campaign(books, judges, policy="debate+ensemble")
    make_turn(new, pair, judges[0], "for", 1, 1)
    make_votes(new, pair, judges, [0, None])
    make_votes(old, pair, judges[:1], [1])
    make_votes(old, other, judges[:1], [1])
    assert told(books) == {"a": {pair.pk: 0, other.pk: 1}, "b": {}}
    second = make_judge("a", version=2)
    make_votes(make_campaign(books, [second]), pair, [second], [1])
    assert told(books) == {"a": {pair.pk: 1}, "a@1": {pair.pk: 0, other.pk: 1}, "b": {}}


def test_after_an_early_stop_only_votes_of_the_three_drawn_first_are_used(books):
    judges = [make_judge(f"judge-{n}") for n in range(5)]
    campaign = make_campaign(books, judges, early_stop=True, seed=3)
    pairs = [make_pair(books) for _ in range(6)]
    for pair in pairs:
        make_votes(campaign, pair, judges, [1, 0, 1, 0, 1])
    found = told(books)
    for pair in pairs:
        drawn = drawn_first(5, True, pair_seed(3, pair.pk))
        assert {name for name, grades in found.items() if pair.pk in grades} == {f"judge-{n}" for n in drawn}
    everybody = make_campaign(books, judges, early_stop=True, policy="debate+ensemble")
    make_votes(everybody, pair := make_pair(books), judges, [1] * 5)
    assert all(pair.pk in grades for grades in told(books).values()), "all five are asked there"


def test_a_yes_stands_on_the_collections_scale(books):
    graded = make_collection("graded", grades=3, relevant_from=2)
    pair, judge = make_pair(graded), make_judge("judge-1")
    make_votes(make_campaign(graded, [judge]), pair, [judge], [1])
    make_judgment(pair, make_assessor(graded, "alice"), 3)
    assert told(graded) == {"alice": {pair.pk: 3}, "judge-1": {pair.pk: 2}}
    report = agreement_report(graded, choose_assessors(known_assessors(graded)), binarize=2)
    assert report.measures.pairwise[0].percent.value == 1.0


def test_the_population_can_be_the_escalated_pairs(books):
    alice = make_assessor(books, "alice")
    escalated, audited, plain = make_pair(books), make_pair(books), make_pair(books)
    make_item(escalated)
    make_item(audited, reason="audit")
    for pair in (escalated, audited, plain):
        make_judgment(pair, alice, 1)
    assert told(books, population="escalated") == {"alice": {escalated.pk: 1}}
    assert told(make_collection("films")) == {}


def test_the_pairs_behind_a_cell(books):
    alice, bob = make_assessor(books, "alice"), make_assessor(books, "bob")
    same, apart, alone = make_pair(books), make_pair(books), make_pair(books)
    for pair, first, second in ((same, 1, 1), (apart, 1, 0)):
        make_judgment(pair, alice, first)
        make_judgment(pair, bob, second)
    make_judgment(alone, alice, 1)
    assert list(pairs_where(books, "alice", "bob")) == [apart.pk]
    assert list(pairs_where(books, "alice", "bob", "agree")) == [same.pk]
    assert list(pairs_where(books, "alice", "bob", "both")) == [same.pk, apart.pk]


def test_measuring_takes_the_same_few_statements_however_many_pairs(books, django_assert_num_queries):
    judges = [make_judge(f"judge-{n}") for n in range(3)]
    campaign = make_campaign(books, judges)
    for _ in range(4):
        make_votes(campaign, make_pair(books), judges, [1, 0, 1])
    # Two more read the grades by COPY, which Django does not count.
    with django_assert_num_queries(4):
        agreement_report(books, choose_assessors(known_assessors(books)))


STATISTIC = {"value", "low", "high", "n", "reason"}


def test_the_document_has_the_contracts_keys(books):
    alice, bob = make_assessor(books, "alice"), make_assessor(books, "bob")
    for first, second in ((1, 1), (0, 0), (1, 0), (0, 0)):
        pair = make_pair(books)
        make_judgment(pair, alice, first)
        make_judgment(pair, bob, second)
    told_as = build_json_document(agreement_report(books, choose_assessors(known_assessors(books)), bootstrap=100))
    assert set(json.loads(json.dumps(told_as))) == {
        "collection", "binarize", "assessors", "items", "pairwise", "fleiss", "alpha_nominal", "alpha_ordinal",
        "alpha_interval", "majority", "dawid_skene", "fleiss_votes", "pairwise_left_out",
    }  # fmt: skip
    assert told_as["assessors"] == [
        {"name": "alice", "kind": "person", "n": 4},
        {"name": "bob", "kind": "person", "n": 4},
    ]
    (pair,) = told_as["pairwise"]
    assert set(pair) == {"a", "b", "n", "kappa", "kappa_linear", "kappa_quadratic", "percent"}
    assert (pair["a"], pair["b"], pair["n"]) == ("alice", "bob", 4)
    assert pair["kappa"]["value"] == pytest.approx(0.5)
    assert set(pair["kappa"]) == set(told_as["fleiss"]) == STATISTIC
    assert [set(one) for one in told_as["majority"]] == [{"name", "n", "kappa", "percent"}] * 2
    assert told_as["dawid_skene"] is None, "the command gives it (tests/annotation/agreement/test_dawid_skene.py)"


def test_the_command_prints_the_document_and_refuses_what_it_does_not_know(db):
    pair = make_pair(make_collection("poems", grades=3))
    for name, grade in (("alice", 1), ("bob", 2)):
        make_judgment(pair, make_assessor(pair.collection, name), grade)
    document = call("agreement", "poems", "--json", "--bootstrap", "20", "--binarize", "1").json
    assert (document["binarize"], document["items"]) == (1, 1)
    assert document["pairwise"][0]["percent"]["value"] == 1.0
    named = call("agreement", "poems", "--json", "--assessors", "bob").json["assessors"]
    assert named == [{"name": "bob", "kind": "person", "n": 1}]
    for options in (("films",), ("poems", "--assessors", "charlie"), ("poems", "--binarize", "9"),
                    ("poems", "--bootstrap", "-1")):  # fmt: skip
        refused = call("agreement", *options)
        assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1), options
    line = next(line for line in call("agreement", "poems").out.splitlines() if "alice - bob" in line)
    assert re.findall(r"[\d.]+", line) == ["0.000", "0.000", "1"]
