"""The debate study against counts made by hand (check 10): on scripted debates, and on debates that were played."""

import pytest

from annotation.quality.policies.measures import NONE_LABELLED
from annotation.quality.policies.study import (
    agreed_verdict,
    debate_label,
    measure_configuration,
    measure_persistence,
    order_table,
)
from judges.models import Panel
from tests.called import call
from tests.engine_parts import _standing_worker, collection_of, judge, make_judge, make_panel, pairs_of, worker
from tests.evidence import make_assessor, make_judgment

__all__ = ["_standing_worker", "worker"]

Y, N = "yes", "no"
# Of each pair: (A, B) by round. A opens with relevant in the first campaign and with not relevant in the second.
RELEVANT_FIRST = [
    [(Y, Y), (Y, Y), (Y, Y)], [(Y, Y), (Y, N), (N, N)], [(N, N), (N, N), (Y, N)],
    [(N, N), (Y, Y), (Y, Y)], [(Y, N), (Y, Y), (Y, Y)], [(Y, N), (N, Y), (Y, N)],
]  # fmt: skip
IRRELEVANT_FIRST = [
    [(Y, Y), (Y, Y), (Y, Y)], [(N, N), (N, N), (N, N)], [(N, N), (N, N), (N, N)],
    [(Y, N), (Y, N), (Y, N)], [(N, N), (Y, Y), (Y, Y)], [(N, Y), (N, Y), (Y, Y)],
]  # fmt: skip
GOLD = [1, 0, 0, 1, 1, 0]


def script(debates: list[list[tuple[str, str]]]) -> dict[str, object]:
    """What models d1 (agent A) and d2 (agent B) say about each pair."""
    return {
        model: [
            {"contains": f"mapping number {pair} ", "verdict": {name: [turn[agent] for turn in rounds]}}
            for pair, rounds in enumerate(debates)
        ]
        for agent, (model, name) in enumerate((("d1", "A"), ("d2", "B")))
    }


def document(command: str, *options: object) -> dict:
    return call(command, "books", "--json", *options).json


@pytest.fixture
def books(worker, model_server):
    collection = collection_of(6)
    reference = make_assessor(collection, "reference", "reference")
    for pair, grade in zip(pairs_of(collection), GOLD, strict=True):
        make_judgment(pair, reference, grade)
    make_panel(model_server, debate=("d1", "d2"))
    return collection


@pytest.mark.slow
def test_order_persistence_and_spurious_agreements_of_played_debates_equal_hand_counts(books, model_server):
    model_server.script(script(RELEVANT_FIRST))
    first = judge("--policy", "debate", "--rounds", 3, "--play-on", check=True).json["campaign"]
    model_server.script(script(IRRELEVANT_FIRST))
    options = ("--policy", "debate", "--rounds", 3, "--play-on", "--stance-order", "irrelevant-first")
    second = judge(*options, check=True).json["campaign"]
    found = document("debate_study")
    one, two = found["campaigns"]
    assert (one["campaign"], two["campaign"]) == (first, second)
    assert ", relevant first" in one["name"] and "not relevant first" in two["name"]

    # Labels (first agreement) with relevant first: yes yes no no yes -; with the other order: yes no no - no yes.
    (table,) = found["orders"]
    assert (table["relevant_first"], table["irrelevant_first"]) == (first, second)
    assert table["counts"] == {
        "not_relevant": {"not_relevant": 1, "relevant": 0},  # the third
        "relevant": {"not_relevant": 2, "relevant": 1},  # the second and the fifth; the first
    }
    assert (table["pairs"], table["left_out"], table["same"]) == (4, 2, 0.5)

    # Agreements of round 1: the first four; wrong are the second (yes, gold no) and the fourth (no, gold yes).
    rows = [(r["cases"], r["agreed"], r["kept"], r["spurious"], r["known"]) for r in one["persistence"]]
    assert rows == [
        (4, 4, 4, 2, 4),
        (4, 3, 2, 0, 3),  # the second is open; the fourth now agrees on yes, rightly
        (4, 3, 1, 0, 3),  # the second agrees on no, rightly; the third is open
    ]
    assert one["persistence"][1]["persistence"] == 0.75 and one["persistence"][0]["spurious_rate"] == 0.5

    assert one["calls"] == 6 * 3 * 2, "every round was played"


def test_a_judge_that_settles_disagreements_is_measured_over_all_pairs_after_that_round_alone(books, model_server):
    make_judge(model_server, "senior")
    Panel.objects.filter(name="main").update(adjudicator="senior")
    model_server.script({**script(RELEVANT_FIRST), "senior": {"verdict": "yes"}})
    judge("--policy", "debate", "--rounds", 2, "--adjudicator", "panel", check=True)
    found = {one["name"]: one for one in document("evaluate_policies")["policies"]}
    two = found["debate, 2 rounds"]
    assert (two["escalated"], two["calls"]) == (1, 16)
    settled = two["after"]["adjudicator"]
    # The sixth is settled as yes, wrongly: relevant 1 4 5: yes no yes; not 2 3 6: yes no yes.
    assert settled["recall_relevant"]["value"] == pytest.approx(2 / 3)
    assert settled["recall_not_relevant"]["value"] == pytest.approx(1 / 3)
    assert two["adjudication"] > 0
    (studied,) = document("debate_study")["campaigns"]
    assert studied["after"]["adjudicator"] == settled
    one = found["debate, 1 round"]["after"]["adjudicator"]["balanced_accuracy"]
    assert one["value"] is None and "0 of 2" in one["reason"]


def test_of_four_agents_all_must_agree_in_the_replay_too(books, model_server):
    said = {"A": ["yes"], "B": ["yes"], "C": ["yes"], "D": ["no", "yes"]}
    model_server.script({"*": {"verdict": said}})
    status = judge("--policy", "debate", "--rounds", 2, "--agents", 4, check=True).json
    assert status["agreed_in_round"] == {"2": 6}
    found = {one["name"]: one for one in document("evaluate_policies")["policies"]}
    assert (found["debate, 1 round"]["escalated"], found["debate, 1 round"]["calls"]) == (6, 24)
    assert (found["debate, 2 rounds"]["escalated"], found["debate, 2 rounds"]["calls"]) == (0, 48)

    for options in (("--run", "colour"), ("--run", "families", "--debaters", "a"), ("--campaigns", "x")):
        refused = call("debate_study", "books", *options)
        assert refused.code == 2 and len(refused.err.strip().splitlines()) == 1


@pytest.mark.slow
def test_an_axis_is_run_and_then_compared(books, model_server):
    model_server.script({"d1": {"verdict": "yes"}, "d2": {"verdict": "no"}})
    found = document("debate_study", "--run", "families,order")
    # d1 against itself says yes, d2 against itself no, together they never agree; relevant are 3 of 6.
    shares = [
        (one["rounds"][1]["escalated"], one["rounds"][1]["recall_relevant"]["value"]) for one in found["campaigns"]
    ]
    assert shares == [(0, 1.0), (0, 0.0), (6, None), (6, None), (6, None)]
    assert [one["stance_order"] for one in found["campaigns"]][-1] == "irrelevant-first"
    assert len(found["campaigns"]) == 5, "relevant first is the campaign of d1 against d2, and is not run twice"
    assert found["orders"][0]["pairs"] == 0 and found["orders"][0]["same"] is None


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
TRUTH = {1: 1, 2: 0, 3: 0, 4: 1, 5: 1, 6: 1, 8: 0}


def test_persistence_and_spurious_agreements_by_round_as_counted_by_hand():
    first, second, third = measure_persistence(DEBATES, TRUTH)
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
    row = measure_configuration({pair: debate_label(debate, 2) for pair, debate in DEBATES.items()}, TRUTH)
    assert (row["pairs"], row["escalated"], row["escalation"]) == (8, 0, 0.0)
    recalls = (row["recall_relevant"]["value"], row["recall_not_relevant"]["value"])
    assert recalls == pytest.approx((3 / 4, 2 / 3))
    assert (
        row["balanced_accuracy"]["value"] == pytest.approx((3 / 4 + 2 / 3) / 2) and row["balanced_accuracy"]["n"] == 7
    )
    one_round = measure_configuration({pair: debate_label(debate, 1) for pair, debate in DEBATES.items()}, TRUTH)
    assert (one_round["escalated"], one_round["escalation"]) == (1, pytest.approx(1 / 8))

    row = measure_configuration({1: 1, 5: 1}, TRUTH)
    assert row["recall_relevant"]["value"] == 1.0
    assert row["recall_not_relevant"]["value"] is None
    assert (row["balanced_accuracy"]["value"], row["balanced_accuracy"]["reason"]) == (None, NONE_LABELLED[0])
