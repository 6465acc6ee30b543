"""evaluate_policies: every policy replayed on a scripted gold set, against figures worked out by hand (check 7)."""

import pytest

from judges.models import Work
from tests.annotation.quality.policies.policies_scene import Scripted, answers, end, scripted_campaign
from tests.called import call
from tests.evidence import make_assessor, make_campaign, make_judge, make_judgment
from tests.factories import make_collection, make_pair

pytestmark = pytest.mark.django_db


def evaluated(*options: object) -> dict:
    """The command's document, with its policies by name."""
    found = call("evaluate_policies", "books", "--json", *options).json
    found["policies"] = {one["name"]: one for one in found["policies"]}
    return found


@pytest.fixture
def campaign():
    return scripted_campaign()


# Pairs are numbered from 1 as in policies_scene.py beside this; relevant by the reference: 1, 2, 7, 8, 9.
BY_HAND = {
    # name: recall relevant, recall not relevant, escalated, calls, USD of calls
    "debate, 1 round": (2 / 3, 3 / 4, 3, 20, 0.040),  # labels 1 2 3 as yes, 4 5 9 10 as no; 6 7 8 open
    "debate, 2 rounds": (2 / 3, 4 / 5, 2, 26, 0.052),  # and 6 as no, in round 2
    "debate, 3 rounds": (3 / 4, 4 / 5, 1, 30, 0.060),  # and 7 as yes, in round 3; 8 stays open
    "ensemble, 3 of 5": (4 / 5, 3 / 5, 0, 51, 0.051),  # wrong on 3 6 8; 51: one vote needed two tries
    "ensemble, 4 of 5": (3 / 4, 2 / 2, 4, 51, 0.051),  # 3 6 9 and 10 (one refusal) have three equal votes
    "ensemble, 5 of 5": (2 / 2, 1 / 1, 7, 51, 0.051),  # 1 7 and 4
    "debate + ensemble, 1 round, 3 of 5": (2 / 2, 3 / 4, 4, 71, 0.091),  # 1 2 3 yes, 4 5 10 no; 9 is a conflict
    "debate + ensemble, 2 rounds, 3 of 5": (2 / 2, 3 / 4, 4, 77, 0.103),  # 6 agrees, against the panel
    "debate + ensemble, 3 rounds, 3 of 5": (3 / 3, 3 / 4, 3, 81, 0.111),  # and 7
    "debate + ensemble, 1 round, 4 of 5": (2 / 2, 2 / 2, 6, 71, 0.091),  # 1 2 and 4 5
    "debate + ensemble, 2 rounds, 4 of 5": (2 / 2, 2 / 2, 6, 77, 0.103),
    "debate + ensemble, 3 rounds, 4 of 5": (3 / 3, 2 / 2, 5, 81, 0.111),
    "debate + ensemble, 1 round, 5 of 5": (1 / 1, 1 / 1, 8, 71, 0.091),  # 1 and 4
    "debate + ensemble, 2 rounds, 5 of 5": (1 / 1, 1 / 1, 8, 77, 0.103),
    "debate + ensemble, 3 rounds, 5 of 5": (2 / 2, 1 / 1, 7, 81, 0.111),
    "single: judge-1": (4 / 5, 2 / 4, 0, 10, 0.010),  # wrong on 9, 3, 6; 10 refused: failed
    "single: judge-2": (4 / 5, 3 / 5, 0, 10, 0.010),  # wrong on 8, 3, 6
    "single: judge-3": (3 / 5, 3 / 5, 0, 11, 0.011),  # wrong on 8 9, 3 6
    "single: judge-4": (4 / 5, 5 / 5, 0, 10, 0.010),  # wrong on 8
    "single: judge-5": (3 / 5, 3 / 5, 0, 10, 0.010),  # wrong on 2 8, 5 10
}


def test_every_policy_has_the_figures_worked_out_by_hand(campaign):
    found = evaluated("--seconds", 20)["policies"]
    assert found.keys() >= BY_HAND.keys()
    for name, (relevant, other, escalated, calls, usd) in BY_HAND.items():
        one = found[name]
        own = one["own"]
        assert own["recall_relevant"]["value"] == pytest.approx(relevant), name
        assert own["recall_not_relevant"]["value"] == pytest.approx(other), name
        assert own["balanced_accuracy"]["value"] == pytest.approx((relevant + other) / 2), name
        assert (one["escalated"], one["calls"]) == (escalated, calls), name
        assert one["escalation"] == pytest.approx(escalated / 10), name
        assert one["machine"] == pytest.approx(usd), name
        assert one["judgments"] == escalated * 2, name  # two people judge a pair of this collection
        assert one["people"] == pytest.approx(escalated * 2 * 0.2), name  # 20 s at 36 USD an hour
        assert one["total"] == pytest.approx(usd + escalated * 0.4), name
    assert found["single: judge-1"]["failed"] == 1 and found["single: judge-1"]["labelled"] == 9
    # The second pair's third vote took 30 ms twice.
    latencies = {
        "debate, 1 round": (250, 150, 250, 150),
        # Seven debates of one round, one of two and two of three: 250 ms a round, or 150 in parallel.
        "debate, 3 rounds": (250, 150, 375, 225),
        "ensemble, 3 of 5": (150, 50, 153, 51),
        "debate + ensemble, 1 round, 3 of 5": (400, 150, 403, 150),
    }
    for name, by_hand in latencies.items():
        names = ("summed", "wall", "mean_summed", "mean_wall")
        assert found[name]["latency_ms"] == dict(zip(names, by_hand, strict=True)), name


def test_every_window_of_a_long_document_is_paid_and_one_decides():
    books = make_collection("books")
    judges = [make_judge(f"judge-{number}") for number in range(1, 6)]
    campaign = make_campaign(books, judges, policy="debate+ensemble", rounds=3)
    pair = make_pair(books)
    make_judgment(pair, make_assessor(books, "reference", "reference"), 1)
    # The first window agrees in the third round alone, the second, which decides, in the first.
    answers(campaign, pair, judges, Scripted(((1, 0), (1, 0), (0, 0)), "nnnnn", 1), window=1, retried=True)
    answers(campaign, pair, judges, Scripted(((1, 1),), "yyyyy", 1), window=2)
    Work.objects.filter(pk=end(campaign, pair, "1").pk).update(window=2)
    found = evaluated()["policies"]
    by_hand = {
        # name: calls, USD, milliseconds of all calls, and of the window that takes longest
        "debate, 1 round": (4, 0.008, 500, 150),
        "debate, 2 rounds": (6, 0.012, 750, 300),
        "debate, 3 rounds": (8, 0.016, 1000, 450),
        "ensemble, 3 of 5": (11, 0.011, 330, 60),
        "debate + ensemble, 3 rounds, 3 of 5": (19, 0.027, 1330, 450),
        "single: judge-3": (3, 0.003, 90, 60),
    }
    for name, (calls, usd, summed, wall) in by_hand.items():
        one = found[name]
        assert (one["labelled"], one["own"]["recall_relevant"]["value"]) == (1, 1.0), name
        assert (one["calls"], one["machine"]) == (calls, pytest.approx(usd)), name
        assert (one["latency_ms"]["summed"], one["latency_ms"]["wall"]) == (summed, wall), name


def test_people_as_good_as_the_reference_leave_only_automatic_errors_and_what_nobody_knows_stays_unknown(campaign):
    policies = evaluated()["policies"]
    found = policies["debate, 2 rounds"]["after"]
    # Automatic: 9 is wrongly no, 3 wrongly yes; 7 and 8 are found by people.
    assert found["gold"]["recall_relevant"]["value"] == pytest.approx(4 / 5)
    assert found["gold"]["recall_not_relevant"]["value"] == pytest.approx(4 / 5)
    assert found["gold"]["balanced_accuracy"]["n"] == 10
    assert found["people"]["balanced_accuracy"]["value"] is None
    assert "0 of 2" in found["people"]["balanced_accuracy"]["reason"]
    assert found["adjudicator"]["balanced_accuracy"]["value"] is None

    one = policies["debate, 1 round"]
    assert (one["hours"], one["people"], one["total"]) == (None, None, None)
    assert one["machine"] == pytest.approx(0.04)
    assert policies["ensemble, 3 of 5"]["people"] == 0.0, "nobody is asked, so it costs nothing"

    for options in (("--reference", "people"), ("--campaign", 999_999)):
        refused = call("evaluate_policies", "books", *options)
        assert refused.code == 2 and refused.err.startswith(f"{options[0]}: ")


def test_human_escalates_every_pair_to_three(campaign):
    one = evaluated("--seconds", 20)["policies"]["human"]
    assert (one["escalation"], one["judgments"], one["calls"], one["machine"]) == (1.0, 30, 0, 0.0)
    assert one["people"] == pytest.approx(30 * 0.2)
    assert one["own"]["balanced_accuracy"]["value"] is None and one["latency_ms"] is None
    assert one["after"]["gold"]["balanced_accuracy"]["value"] == 1.0


def test_what_was_not_stored_is_not_available():
    scripted_campaign(rounds=2)
    found = evaluated()["policies"]
    three = found["debate, 3 rounds"]
    assert not three["available"] and "own" not in three
    assert "2 of 10 pairs" in three["reason"]  # 7 and 8
    assert found["debate, 2 rounds"]["available"]
