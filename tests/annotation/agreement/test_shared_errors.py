"""Judges that are wrong on the same pairs are named, where people or the reference tell what is right."""

import json

import numpy as np
import pytest
from django.core.management import call_command
from numpy.typing import NDArray

from annotation.agreement.dawid_skene import dawid_skene, sparse_counts
from annotation.agreement.resampling import MISSING
from annotation.agreement.shared_errors import find_shared_errors, majority_grades
from annotation.models import Role
from tests.evidence import make_assessor, make_judgment
from tests.factories import make_collection, make_member, make_pair

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


def test_such_judges_mislead_dawid_skene_and_one_of_them_does_not() -> None:
    truth, votes = lexical_panel(400)

    def accuracies(judges: list[int]) -> list[float]:
        classes, counts = sparse_counts(np.vstack([votes[judges], np.where(np.arange(400) < 80, truth, MISSING)]))
        solution = dawid_skene(counts, classes)
        assert solution is not None
        return [float(share) for share in solution.accuracies[0][:-1]]

    *alike, _lenient, _yes, good = accuracies([0, 1, 2, 3, 4, 5])
    assert min(alike) > good + 0.05
    alone, _lenient, _yes, good = accuracies([0, 3, 4, 5])
    assert good > alone + 0.05


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
