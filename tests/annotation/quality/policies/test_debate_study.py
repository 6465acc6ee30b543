"""Tables of a debate study on scripted debates, against counts made by hand (check 10)."""

import pytest

from annotation.quality.policies.measures import NONE_LABELLED
from annotation.quality.policies.study import (
    agreed_verdict,
    debate_label,
    measure_configuration,
    measure_persistence,
    order_table,
)

# Verdicts of (for, against) by round; agreements of round 1 were played on.
DEBATES = {
    1: [(1, 1), (1, 1), (1, 1)],  # relevant: keeps, right
    2: [(1, 1), (1, 0), (0, 0)],  # not relevant: wrong in 1, open in 2, right in 3
    3: [(0, 0), (0, 0), (1, 0)],  # not relevant: right, right, open
    4: [(0, 0), (1, 1), (1, 1)],  # relevant: wrong, then right (agrees, and not on the label of round 1)
    5: [(1, 1), (0, 0), (0, 0)],  # relevant: right, then wrong twice
    6: [(1, 0), (1, 1), (1, 1)],  # did not agree in round 1: in no row
    7: [(1, 1)],  # ended with its agreement: in round 1 only; its truth is not known
    8: [(0, 0), (0, None)],  # a turn of round 2 was lost: no agreement there
}
GOLD = {1: 1, 2: 0, 3: 0, 4: 1, 5: 1, 6: 1, 8: 0}


def test_persistence_and_spurious_agreements_by_round_as_counted_by_hand():
    first, second, third = measure_persistence(DEBATES, GOLD)
    names = ("cases", "agreed", "kept", "spurious", "known")
    # Round 1: 1 2 3 4 5 7 8 agree; of the six with a known truth 2 and 4 are wrong.
    assert [first[name] for name in names] == [7, 7, 7, 2, 6]
    # Round 2: 7 was not played; 1 3 4 5 agree, 1 and 3 on the same label; wrong is 5.
    assert [second[name] for name in names] == [6, 4, 2, 1, 4]
    assert second["persistence"] == pytest.approx(4 / 6) and second["spurious_rate"] == pytest.approx(1 / 4)
    # Round 3: 8 was not played; 1 2 4 5 agree, 1 alone on the same label; wrong is 5.
    assert [third[name] for name in names] == [5, 4, 1, 1, 4]
    assert measure_persistence({}, {}) == []


def test_four_agents_agree_only_when_all_do():
    assert agreed_verdict((1, 1, 1, 1)) == 1 and agreed_verdict((1, 1, 1, 0)) is None
    assert agreed_verdict((None, None)) is None and agreed_verdict(()) is None
    assert debate_label([(1, 1, 0, 1), (0, 0, 0, 0)]) == 0
    assert debate_label([(1, 1, 0, 1), (0, 0, 0, 0)], rounds=1) is None


def test_the_order_of_the_stances_as_counted_by_hand():
    relevant_first = {1: 1, 2: 1, 3: 0, 4: 0, 5: 1, 6: None, 7: 0, 9: 1}
    irrelevant_first = {1: 1, 2: 0, 3: 0, 4: 1, 5: 1, 6: 1, 7: None, 8: 0}
    table = order_table(relevant_first, irrelevant_first)
    # Rows relevant first, columns irrelevant first: (0,0): 3; (0,1): 4; (1,0): 2; (1,1): 1 and 5.
    assert [list(row.values()) for row in table["counts"].values()] == [[1, 1], [1, 2]]
    assert (table["pairs"], table["left_out"]) == (5, 2), "6 and 7 are open in one; 8 and 9 were debated in one alone"
    assert table["same"] == pytest.approx(3 / 5)
    assert order_table({}, {})["same"] is None


def test_a_configurations_recalls_and_escalation_as_counted_by_hand():
    # 1 yes, 2 yes, 3 no, 4 no, 5 yes, 6 yes (round 2), 7 yes, 8 no: relevant 1 5 6 found of
    # 1 4 5 6; not: 3 8 of 2 3 8.
    row = measure_configuration({pair: debate_label(debate, 2) for pair, debate in DEBATES.items()}, GOLD)
    assert (row["pairs"], row["escalated"], row["escalation"]) == (8, 0, 0.0)
    recalls = (row["recall_relevant"]["value"], row["recall_not_relevant"]["value"])
    assert recalls == pytest.approx((3 / 4, 2 / 3))
    assert (
        row["balanced_accuracy"]["value"] == pytest.approx((3 / 4 + 2 / 3) / 2) and row["balanced_accuracy"]["n"] == 7
    )
    one_round = measure_configuration({pair: debate_label(debate, 1) for pair, debate in DEBATES.items()}, GOLD)
    assert (one_round["escalated"], one_round["escalation"]) == (1, pytest.approx(1 / 8))

    row = measure_configuration({1: 1, 5: 1}, GOLD)
    assert row["recall_relevant"]["value"] == 1.0
    assert row["recall_not_relevant"]["value"] is None
    assert (row["balanced_accuracy"]["value"], row["balanced_accuracy"]["reason"]) == (None, NONE_LABELLED[0])
