"""Which documents are compared: every query's graph is connected, and nobody has fewer opponents than was said."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.work.comparing.drawing import count_couples, draw_couples

documents = st.lists(st.integers(0, 10**6), min_size=2, max_size=30, unique=True)


def reached_from(start: int, couples: list[tuple[int, int]]) -> set[int]:
    reached, size = {start}, 0
    while len(reached) > size:
        size = len(reached)
        reached |= {document for couple in couples if reached & set(couple) for document in couple}
    return reached


@given(documents, st.integers(1, 40), st.integers(0, 99))
def test_couples_connect_all_documents_with_at_least_so_many_opponents(documents, opponents, seed):
    couples = draw_couples(documents, opponents, seed)
    assert len({frozenset(couple) for couple in couples}) == len(couples) == count_couples(len(documents), opponents)
    assert reached_from(documents[0], couples) == set(documents)
    degrees = Counter(document for couple in couples for document in couple)
    assert min(degrees.values()) >= min(opponents, len(documents) - 1)
    assert max(degrees.values()) - min(degrees.values()) <= 1, "no document is asked about much more often"


def test_the_order_of_the_documents_does_not_matter_but_the_seed_does() -> None:
    couples = draw_couples(range(20), 3, seed=1)
    assert draw_couples(list(reversed(range(20))), 3, seed=1) == couples != draw_couples(range(20), 3, seed=2)


def test_either_document_of_a_couple_may_be_the_first() -> None:
    couples = draw_couples(range(200), 2, seed=0)
    assert 60 < sum(first < second for first, second in couples) < 140


@pytest.mark.parametrize("count", [0, 1])
def test_a_query_with_fewer_than_two_documents_has_no_comparison(count: int) -> None:
    assert draw_couples(range(count), 3, seed=0) == []
    assert count_couples(count, 3) == 0
