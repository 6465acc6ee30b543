"""A judge's answers about both orders of two documents, and its agreement with people. Pure.

L. Zheng et al.: Judging LLM-as-a-judge with MT-bench and Chatbot Arena. NeurIPS 2023, sections 3.3 and 3.4: a document
is preferred only if it is in both orders; answers that change with the order count as equal.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from annotation.agreement.measures import Statistic
from annotation.agreement.proportions import share_statistic
from charts.translation import gettext_noop

NO_ANSWERS = gettext_noop("no comparison has answers to both orders")
NO_MAJORITY = gettext_noop("no comparison has both a majority of people and an answer of the judge")
FIRST, SECOND, EQUAL, BOTH_BAD = "first", "second", "equal", "both_bad"
# What an answer says of the documents in the order in which they were shown, and the same with the order reversed.
FORWARD = {"A": FIRST, "B": SECOND, "equal": EQUAL, "both bad": BOTH_BAD}
BACKWARD = {**FORWARD, "A": SECOND, "B": FIRST}


class OrderAnswers(NamedTuple):
    """A judge's outcomes for a comparison: with its first document shown first, and with its second."""

    forward: str
    backward: str

    @property
    def is_flipped(self) -> bool:
        return self.forward != self.backward

    @property
    def outcome(self) -> str:
        """The outcome that both orders have; equal if they differ."""
        return EQUAL if self.is_flipped else self.forward


def flip_rate(answers: Iterable[OrderAnswers]) -> Statistic:
    """Return the share of comparisons whose outcome changed with the order, with its exact interval."""
    return share_statistic([pair.is_flipped for pair in answers], NO_ANSWERS)


def majority_outcome(outcomes: Iterable[str]) -> str | None:
    """Return the outcome with the most votes; None without any, or if several have as many."""
    counts = Counter(outcomes).most_common(2)
    if not counts or (len(counts) == 2 and counts[0][1] == counts[1][1]):
        return None
    return counts[0][0]


def agreement_with_majority(outcomes: Mapping[int, str], majorities: Mapping[int, str]) -> Statistic:
    """Return the share of comparisons for which a judge has the outcome of most people, with its exact interval.

    Both are by comparison; only comparisons with both count.
    """
    hits = [outcomes[comparison] == outcome for comparison, outcome in majorities.items() if comparison in outcomes]
    return share_statistic(hits, NO_MAJORITY)
