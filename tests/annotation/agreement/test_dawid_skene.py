"""Dawid and Skene's second aggregate: the 1979 result, collapse, the majority; and judges that err together."""

import json
import re

import numpy as np
import pytest
from django.core.management import call_command
from numpy.typing import NDArray

from annotation.agreement.aggregates import TOO_FEW
from annotation.agreement.dawid_skene import dawid_skene, sparse_counts
from annotation.agreement.resampling import MISSING
from annotation.agreement.shared_errors import find_shared_errors, majority_grades
from annotation.models import Role
from tests.called import call
from tests.evidence import make_assessor, make_campaign, make_judge, make_judgment, make_votes
from tests.factories import make_collection, make_member, make_pair

# Table 1 of Dawid & Skene, Applied Statistics 28 (1979): 45 patients x 5 anaesthetists, the first asked three times.
PATIENTS = """
111 1 1 1 1|333 4 3 3 4|112 2 1 2 2|222 3 1 2 1|222 3 2 2 2|222 3 3 2 2|122 2 1 1 1|333 3 4 3 3|222 2 2 2 3|223 2 2 2 3
444 4 4 4 4|222 3 3 4 3|111 1 1 1 1|222 3 2 1 2|112 1 1 1 1|111 2 1 1 1|111 1 1 1 1|111 1 1 1 1|222 2 2 2 1|222 1 3 2 2
222 2 2 2 2|222 2 2 2 1|222 3 2 2 2|122 2 2 2 2|111 1 1 1 1|111 1 1 1 1|223 2 2 2 2|111 1 1 1 1|111 1 1 1 1|112 1 1 2 1
111 1 1 1 1|333 3 2 3 3|111 1 1 1 1|222 2 2 2 2|222 3 2 3 2|334 4 3 4 3|122 2 2 3 2|223 3 2 3 3|333 3 4 3 2|111 1 1 1 1
111 1 1 1 1|112 2 1 1 1|223 2 2 2 2|112 1 1 1 1|222 2 2 2 2
"""
CLASSES = (1, 2, 3, 4)


def anaesthetists():
    counts = np.zeros((45, 5, 4))
    for patient, row in enumerate(PATIENTS.strip().replace("\n", "|").split("|")):
        for observer, said in enumerate(row.split()):
            for grade in said:
                counts[patient, observer, int(grade) - 1] += 1
    return counts


def simulated(items, share, right, seed=0):
    """Truth, and grades of assessors who are right with the given probabilities."""
    random = np.random.default_rng(seed)
    truth = (random.random(items) < share).astype(int)
    return truth, np.array([np.where(random.random(items) < p, truth, 1 - truth) for p in right])


def counts_of(grades):
    """Classes, and how often each assessor gave each item each of them, dense: items x assessors x classes."""
    classes, counts = sparse_counts(grades)
    return classes, counts.toarray().reshape(grades.shape[1], len(grades), len(classes))


def test_the_published_result_of_1979():
    found = dawid_skene(anaesthetists(), CLASSES)
    assert found.log_likelihood == pytest.approx(-192.8909, abs=5e-5)
    assert found.converged and not found.collapsed
    assert found.priors.round(2).tolist() == [0.40, 0.42, 0.11, 0.07]
    assert found.confusion[0].round(2).tolist() == [
        [0.89, 0.11, 0, 0], [0.07, 0.88, 0.05, 0], [0, 0.34, 0.66, 0], [0, 0, 0.56, 0.44],
    ]  # fmt: skip
    # Other starts, which are seeded, are tried, and a higher maximum is told.
    more, again = (dawid_skene(anaesthetists(), CLASSES, starts=20) for _ in range(2))
    assert more.log_likelihood == pytest.approx(-192.8909, abs=5e-5)
    assert (more.starts, more.highest) == (20, again.highest) and more.highest > more.log_likelihood
    assert dawid_skene(np.zeros((0, 2, 1)), (1,)) is None


def test_it_finds_who_errs_and_beats_the_majority_of_many_poor_assessors():
    truth, grades = simulated(2_000, 0.4, [0.95, 0.9, 0.55, 0.55, 0.55])
    classes, counts = counts_of(grades)
    found = dawid_skene(counts, classes)
    majority = counts.sum(axis=1).argmax(axis=1)
    assert not found.collapsed
    assert (found.labels == truth).mean() > (majority == truth).mean() + 0.05
    rates = np.einsum("acc->ac", found.confusion) @ found.priors
    assert rates == pytest.approx([0.95, 0.9, 0.55, 0.55, 0.55], abs=0.05)


def test_a_weight_is_as_good_as_so_many_equal_items():
    _, grades = simulated(50, 0.4, [0.9, 0.8, 0.7])
    classes, counts = counts_of(grades)
    twice = dawid_skene(np.concatenate([counts, counts]), classes, starts=1)
    weighted = dawid_skene(counts, classes, weights=np.full(50, 2.0), starts=1)
    assert weighted.log_likelihood == pytest.approx(twice.log_likelihood)


def test_assessors_who_guess_give_a_collapsed_solution():
    """A prevalence of 2% and three assessors who are right four times of five: two of the classes change places."""
    truth, grades = simulated(80, 0.02, [0.8, 0.8, 0.8], seed=2)
    classes, counts = counts_of(grades)
    found = dawid_skene(counts, classes)
    assert (found.labels == truth).mean() < 0.5
    assert re.findall(r"\d", found.collapsed) == ["0", "1"], "it takes 0 for 1"


def test_a_solution_that_ignores_a_grade_is_collapsed():
    """One assessor alone says 2 now and then: EM makes it an error of theirs."""
    _, grades = simulated(300, 0.5, [0.95, 0.95, 0.95, 0.95])
    grades[0][np.random.default_rng(3).random(300) < 0.12] = 2
    classes, counts = counts_of(grades)
    found = dawid_skene(counts, classes).collapsed
    assert "2" in re.findall(r"grade (\d)", found) or "gave grade" in found


# In the command and on the pages


@pytest.fixture
def books(db):
    """Three good judges and two that mostly say yes, on 40 pairs."""
    collection = make_collection("books")
    judges = [make_judge(f"judge-{n}") for n in range(5)]
    campaign = make_campaign(collection, judges)
    _, grades = simulated(40, 0.4, [0.95, 0.95, 0.9, 0.6, 0.55], seed=5)
    for column in grades.T:
        make_votes(campaign, make_pair(collection), judges, column.tolist())
    return collection


def test_the_command_gives_the_second_aggregate_or_says_why_there_is_none(books):
    found = call("agreement", "books", "--json").json["dawid_skene"]
    assert found["items"] == 40 and found["classes"] == [0, 1] and found["collapsed"] is False
    assert [one["name"] for one in found["assessors"]] == [f"judge-{n}" for n in range(5)]
    assert found["differs_from_majority"] > 0
    assert found["log_likelihood"] < 0 and sum(found["priors"]) == pytest.approx(1)
    found = call("agreement", "books", "--json", "--assessors", "judge-0,judge-1").json["dawid_skene"]
    assert found["log_likelihood"] is None and found["reason"] == TOO_FEW


def test_the_page_opens_the_pairs_where_it_differs_from_the_majority(client, books):
    client.force_login(make_member(books, "charlie", Role.ADMIN).user)
    page = client.get("/c/books/quality/")
    n = call("agreement", "books", "--json").json["dawid_skene"]["differs_from_majority"]
    assert "Dawid-Skene" in page.text and f"{n} of 40 pairs" in page.text
    assert len(page.context["differing"]) == n
    assert {"0 not relevant", "1 relevant"} <= set(re.findall(r"on grade ([\w ]+)", page.text))
    two = re.findall(r"<td class=\"nowrap\">(?:<strong>)?(\d[^<]*)<", page.text)
    assert len(two) == 2 * n and set(two) == {"0 not relevant", "1 relevant"}


RNG = np.random.default_rng(7)
Votes = NDArray[np.int64]


def flip(truth: Votes, wrong: NDArray[np.bool_]) -> Votes:
    return np.where(wrong, 1 - truth, truth)


def lexical_panel(pairs: int) -> tuple[Votes, Votes]:
    """The truth, and votes: three that mostly err together, a lenient one, one of yes alone, a good one."""
    truth = (RNG.random(pairs) < 0.3).astype(np.int64)
    shared = RNG.random(pairs) < 0.25
    alike = [flip(truth, np.where(RNG.random(pairs) < 0.9, shared, RNG.random(pairs) < 0.25)) for _ in range(3)]
    lenient = flip(truth, (truth == 0) & (RNG.random(pairs) < 0.6))
    good = flip(truth, RNG.random(pairs) < 0.1)
    return truth, np.array([*alike, lenient, np.ones(pairs, dtype=np.int64), good])


def test_judges_that_err_together_are_one_group_and_lenient_ones_are_not_in_it() -> None:
    truth, votes = lexical_panel(120)
    known = np.where(np.arange(120) < 60, truth, MISSING)
    assert find_shared_errors(votes, known) == [(0, 1, 2)]
    assert find_shared_errors(votes[3:], known) == []
    assert find_shared_errors(votes, np.where(np.arange(120) < 19, truth, MISSING)) == []


def test_independent_judges_are_named_in_one_of_a_hundred_collections_at_most() -> None:
    named = 0
    for _ in range(300):
        truth = (RNG.random(80) < 0.3).astype(np.int64)
        votes = np.array([flip(truth, RNG.random(80) < share) for share in (0.1, 0.2, 0.3, 0.4, 0.5)])
        named += bool(find_shared_errors(votes, truth))
    assert named <= 9


def test_the_grade_of_most_people_counts_and_a_tie_counts_for_none() -> None:
    people = np.array([[1, 1, 0, MISSING, 2], [1, 0, 0, MISSING, 2], [0, MISSING, 1, MISSING, MISSING]])
    assert majority_grades(people).tolist() == [1, MISSING, 0, MISSING, 2]
    assert majority_grades(people[:0]).tolist() == [MISSING] * 5


@pytest.mark.django_db
def test_command_document_and_page_name_judges_that_err_together(client, capsys):
    books = make_collection("books", grades=1)
    truth, votes = lexical_panel(60)
    kinds = {"alice": "person", **dict.fromkeys(("bm25", "tfidf", "coverage", "good"), "judge-import")}
    assessors = [make_assessor(books, name, kind) for name, kind in kinds.items()]
    for grades in np.vstack([truth, votes[[0, 1, 2, 5]]]).T:
        pair = make_pair(books)
        for assessor, grade in zip(assessors, grades, strict=True):
            make_judgment(pair, assessor, int(grade))
    call_command("agreement", "books", "--json")
    printed = capsys.readouterr()
    assert json.loads(printed.out)["err_together"] == [["bm25", "coverage", "tfidf"]]
    assert "bm25, coverage, tfidf err together by the grades of people or the reference" in printed.err
    client.force_login(make_member(books, "admin", Role.ADMIN).user)
    assert b"bm25, coverage, tfidf err together" in client.get("/c/books/quality/").content
    # Without people or reference nobody knows who is wrong.
    call_command("agreement", "books", "--judges", "--json")
    assert "err_together" not in json.loads(capsys.readouterr().out)
