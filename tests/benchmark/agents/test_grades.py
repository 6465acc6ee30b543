"""Completeness, AER, orders, citations, cutting, and what traces say: by hand, and as BRIGHT-Pro prints it."""

from fractions import Fraction
from itertools import product
from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark.agents.cutting import count_tokens, cut_text
from benchmark.agents.grades import (
    EVEN,
    efficiency_quality,
    mean_of,
    mean_over_agents,
    order_by_mean,
    rate_completeness,
    weigh_coverage,
)
from benchmark.agents.traces import find_unreached_aspects, measure_ndcg, measure_searches
from benchmark.measures.aspects import QueryAspects, alpha_ndcg
from judges.prompts.answers.agents import find_citations


def test_aer_is_of_each_query_and_then_the_mean():
    """C4: the paper's four cases; the formula at the means (3.75 and 7) would say 2.7781."""
    cases = {(5, 3): 4.5242, (3, 12): 1.7308, (3, 7): 2.2225, (4, 6): 3.1152}
    found = [efficiency_quality(*case) for case in cases]
    assert found == pytest.approx(list(cases.values()), abs=5e-5)
    assert mean_of(found) == pytest.approx(2.8982, abs=5e-5)
    assert efficiency_quality(3.75, 7) == pytest.approx(2.7781, abs=5e-5)
    assert efficiency_quality(4, 0) == efficiency_quality(4, 1) == 4


def test_retrievers_stand_in_the_order_of_their_mean_aer():
    """C5: B table 4, from both agents' AER as their mean says."""
    printed = {"GTE": 3.31, "BM25": 3.42, "INSTRUCTOR": 3.15, "DIVER": 3.41, "RTriever": 3.445, "Qwen3": 3.32}
    printed |= {"DIVER-1020": 3.335, "ReasonIR": 3.195, "BGE": 3.545, "GritLM": 3.22}
    order = ["BGE", "RTriever", "BM25", "DIVER", "DIVER-1020", "Qwen3", "GTE", "GritLM", "ReasonIR", "INSTRUCTOR"]
    assert order_by_mean(printed) == order
    assert order_by_mean({"b": None, "a": None, "c": 1.0}) == ["c", "a", "b"]
    assert mean_over_agents([3.0, 4.0]) == 3.5
    assert mean_over_agents([3.0]) is None
    assert mean_over_agents([3.0, None]) is None
    assert mean_of([]) is None


@pytest.mark.parametrize(
    ("coverage", "rated"), [(Fraction(7, 8), 5), (1, 5), (0.59, 3), (0.5, 3), (0.95, 5), (0, 1), (Fraction(5, 8), 4)]
)
def test_completeness_goes_up_at_a_half(coverage, rated):
    """C6: 4 x .875 + 1 is 4.5, which Python's own rounding would make 4."""
    assert rate_completeness(coverage) == rated


def test_halves_go_to_the_even_number_where_that_is_chosen():
    """Held to Python's round over all weights and scores of three aspects."""
    cases = [
        weigh_coverage(dict(zip("abc", weights, strict=True)), dict(zip("abc", scores, strict=True)))
        for weights in product(range(1, 6), repeat=3)
        for scores in product((0.0, 0.5, 1.0), repeat=3)
    ]
    assert [rate_completeness(w, EVEN) for w in cases] == [round(4 * w + 1) for w in cases]
    assert [rate_completeness(Fraction(w), EVEN) for w in (0.375, 0.875)] == [2, 4]
    differ = sum(rate_completeness(w) != rate_completeness(w, EVEN) for w in cases)
    assert differ / len(cases) == pytest.approx(0.032, abs=5e-4)
    assert weigh_coverage({"a1": 3, "a2": 1}, {"a1": 1.0, "a2": 0.5}) == Fraction(7, 8)
    assert weigh_coverage({}, {}) is None


def test_a_repeated_document_takes_its_place_and_gains_nothing():
    """C7: one aspect each, weights 1/2, 1/4, 1/4; the list d1 d2 d1 d3 over two rounds."""
    sought = QueryAspects.of([(2, ["d1"]), (1, ["d2"]), (1, ["d3"])])
    rounds = [["d1", "d2"], ["d1", "d3"]]
    ideal = 0.5 / log2(2) + 0.25 / log2(3) + 0.25 / log2(4)
    with_repeats = (0.5 / log2(2) + 0.25 / log2(3) + 0.25 / log2(5)) / ideal
    assert measure_ndcg(rounds, sought) == pytest.approx((with_repeats, 1.0))
    assert alpha_ndcg(["d1", "d2", "d1", "d3"], sought, 10) == pytest.approx(with_repeats)
    assert alpha_ndcg(["d1", "d2", "d3"], sought, 3) == pytest.approx(1.0)


def test_a_trace_says_where_gold_came_and_what_was_bought_for_nothing():
    """C12."""
    rounds = [["d1", "x"], ["x", "y"], ["d2", "d1"], ["z", "w"]]
    found = measure_searches(rounds, {"d1", "d2"})
    assert found.gold_shares == (0.5, 0, 1, 0)
    assert (found.searches_without_gold, found.repeated_slots, found.slots, found.searches_after_last_gold) == (
        2,
        2,
        8,
        1,
    )
    assert find_unreached_aspects(rounds, {"a1": {"d1"}, "a2": {"d9"}, "a3": set()}) == ["a2", "a3"]
    nothing = measure_searches([["x"], []], {"d1"})
    assert (nothing.gold_shares, nothing.searches_without_gold, nothing.searches_after_last_gold) == ((0.0, 0.0), 2, 2)
    rounds = [[f"d{(at * 5 + place) % 28}" for place in range(5)] for at in range(12)]
    found = measure_searches(rounds, set())
    assert found.repeated_slots / found.slots == pytest.approx((60 - 28) / 60)


def test_citations_are_ids_in_brackets_each_once():
    """C9, the reading: unknown ones are named."""
    text = "One [d1]. Two [d2; x9], again [d1] and [doc, 3]."
    assert find_citations(text, {"d1", "d2", "doc, 3"}) == (["d1", "d2", "doc, 3"], ["x9"])


def test_a_long_document_is_cut_at_2048_tokens():
    """C2, the cut."""
    text = " ".join(f"word{number % 10}" for number in range(5000))
    cut, is_cut = cut_text(text)
    assert is_cut and count_tokens(cut) == 2048 and text.startswith(cut)
    assert cut_text("short") == ("short", False)
    assert count_tokens("hashable, 映射对象") == 2 + 1 + 4


@given(st.text(max_size=200), st.integers(min_value=0, max_value=30))
def test_a_cut_text_is_a_beginning_with_no_more_tokens(text, most):
    cut, is_cut = cut_text(text, most)
    assert text.startswith(cut) and count_tokens(cut) <= most
    assert is_cut == (count_tokens(text) > most)
