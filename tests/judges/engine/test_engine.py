"""The engine with real PostgreSQL, Redis, Celery workers and SDKs against the local model server."""

import json
import zlib
from collections import Counter

import pytest

from corpus.models import Item, Judgment, Label
from judges.models import Attempt, AttemptBody, Campaign, Panel, Work
from tests.engine_parts import held, judge, scene, spent_by, sums_up
from tests.modelserver.fixtures import LocalModels


def test_the_protocol_is_as_the_papers_have_it(models: LocalModels) -> None:
    """Round 1 carries the stances, round 2 both turns of round 1; both sides are asked before either answers."""
    scene(models, 3, debate=("d1", "d2"))
    models.script(
        {
            "d1": {"verdict": {"A": ["yes", "yes"]}, "latency": 1.0},
            "d2": {"verdict": {"B": ["no", "yes"]}, "latency": 1.0},
            "*": {"verdict": "yes"},
        }
    )
    status = judge(check=True).json
    assert status["agreed_in_round"] == {"2": 3}
    assert status["labelled"] == 3
    assert status["calls"] == 3 * (4 + 5)
    assert sums_up(status)
    requests = models.requests()
    assert Counter(r["side"] for r in requests) == {"A": 6, "B": 6, "vote": 15}
    first = min(requests, key=lambda request: request["arrived"])
    for number in range(3):
        own = [r for r in requests if f"mapping number {number} " in r["user"]]
        by_place = {(r["side"], r["round"]): r for r in own if r["side"] != "vote"}
        for round in (1, 2):
            a, b = by_place["A", round], by_place["B", round]
            # Both agents speak at the same time. Only the very first call leaves alone: the account may not take more.
            if first not in own:
                assert max(a["arrived"], b["arrived"]) < min(a["answered"], b["answered"])
        assert by_place["A", 2]["arrived"] > by_place["B", 1]["answered"]
        votes = [r for r in own if r["side"] == "vote"]
        assert len({r["user"] for r in votes}) == 1
        if first not in own:
            assert min(r["arrived"] for r in votes) < by_place["A", 1]["answered"], "votes do not wait for the debate"
    said = json.loads(json.loads(zlib.decompress(AttemptBody.objects.all()[0].raw))["choices"][0]["message"]["content"])
    assert "response" in said


def test_outcomes_become_judgments_labels_and_items(models: LocalModels) -> None:
    collection = scene(models, 7, debate=("d1", "d2"), votes=("v1", "v2", "v3", "v4", "v5"))

    def on(number: int, **behaviour: object) -> dict[str, object]:
        return {"contains": f"mapping number {number} ", **behaviour}

    models.script(
        {
            "d1": [on(1, verdict="yes"), on(3, fault="refused"), on(4, fault="garbage"), {"verdict": "yes"}],
            "d2": [on(1, verdict="no"), on(6, fault="500"), {"verdict": "yes"}],
            "v1": [on(2, verdict="no"), on(5, fault="refused"), {"verdict": "yes"}],
            "v2": [on(2, verdict="no"), on(5, fault="truncated"), {"verdict": "yes"}],
            "v3": [on(2, verdict="no"), on(5, fault="garbage"), {"verdict": "yes"}],
            "*": {"verdict": "yes"},
        }
    )
    done = judge()
    assert done.code == 3
    assert "500" in done.err
    status = done.json
    assert status["escalations"] == {"conflict": 1, "disagreement": 1, "refused": 1, "split": 1, "unparsed": 1}
    assert (status["labelled"], status["failed"], status["open"]) == (1, 1, 5)
    assert sums_up(status)
    pairs = list(collection.pair_set.order_by("pk"))
    assert Label.objects.get().pair == pairs[0]
    assert Judgment.objects.get().assessor.name == "debate+ensemble"
    reasons = {item.pair_id: item.reason for item in Item.objects.all()}
    expected = ["", "disagreement", "conflict", "refused", "unparsed", "split", ""]
    assert [reasons.get(pair.pk, "") for pair in pairs] == expected
    failed = Work.objects.get(state="failed")
    assert "500" in failed.error and "\n" not in failed.error
    errors = Attempt.objects.filter(pair=pairs[6], role="against")
    assert errors.count() == 4 and not errors.filter(counts=True).exists()
    repaired = Attempt.objects.filter(pair=pairs[4], role="for").order_by("number")
    assert [one.counts for one in repaired] == [False, True]
    assert repaired[1].prompt.name.endswith("-repair")
    for attempt in Attempt.objects.exclude(outcome="error"):
        body = AttemptBody.objects.get(attempt_id=attempt.pk)
        assert zlib.decompress(body.raw), "raw text is kept whatever the parser made of it"
        assert attempt.finish_reason and attempt.tokens_in and attempt.cost

    # The failed pair alone is asked again, and only what has no answer yet.
    models.reset()
    models.script({"*": {"verdict": "yes"}})
    again = judge("--retry-failed")
    assert again.code == 0, again.err
    assert again.json["labelled"] == 2 and again.json["failed"] == 0
    assert [r["side"] for r in models.requests()] == ["B"]


def test_the_same_command_joins_and_again_takes_answers_from_the_cache(models: LocalModels) -> None:
    scene(models, 4)
    first = judge("--limit", 2, check=True).json
    assert first["pairs"] == 2
    second = judge(check=True).json
    assert (second["campaign"], second["pairs"], second["labelled"]) == (first["campaign"], 4, 4)
    assert "nothing to do" in judge(check=True).err
    calls = len(models.requests())
    third = judge("--again", check=True).json
    assert third["campaign"] != first["campaign"]
    assert (third["calls"], third["calls_cached"], third["cost"]) == (0, 28, 0)
    assert len(models.requests()) == calls
    assert Judgment.objects.filter(superseded_by=None).count() == 4
    single = judge("--policy", "single", check=True).json
    assert single["campaign"] != third["campaign"] and single["calls_cached"] == 4


def test_an_ensemble_that_splits_gets_a_debate_for_people(models: LocalModels) -> None:
    scene(models, 2, debate=("stance", "stance"), votes=("yes", "yes", "no", "no", "no"))
    Panel.objects.filter(name="main").update(majority=4)
    status = judge("--policy", "ensemble", check=True).json
    assert status["escalations"] == {"split": 2}
    assert status["calls"] == 2 * (5 + 4)
    assert Attempt.objects.filter(role="for", counts=True).count() == 4


def test_single_leaves_a_refusal_failed_and_never_labelled(models: LocalModels) -> None:
    scene(models, 2, votes=("refused", "yes", "yes", "yes", "yes"))
    done = judge("--policy", "single")
    assert (done.code, done.json["failed"], done.json["labelled"]) == (3, 2, 0)
    assert not Label.objects.exists()
    work = Work.objects.first()
    assert work.reason == "refused" and "v1: " in work.error
    to_people = judge("--policy", "single", "--failed-to-people")
    assert to_people.json["escalations"] == {"error": 2}, to_people.err
    assert Item.objects.filter(reason="error").count() == 2


def test_money_stops_the_campaign_and_more_money_goes_on(models: LocalModels) -> None:
    """Nothing is asked twice, but what a worker had asked that the machine then left waiting beyond its lease of 3 s.

    Its pair is another worker's by then, who asks anew; the answer that comes late is paid for and does not count.
    """
    scene(models, 12)
    done = judge("--budget", "0.05")
    assert done.code == 3, done.err
    assert (done.json["state"], done.json["stopped_by"]) == ("budget", "budget")
    assert 0 < done.json["cost"] <= 0.05
    campaign = Campaign.objects.get()
    assert held() == (0.0, 0) and spent_by(campaign) == pytest.approx(done.json["cost"])
    more = judge("--budget", "5")
    assert more.code == 0, more.err
    assert more.json["campaign"] == campaign.number and more.json["labelled"] == 12
    late = Attempt.objects.filter(counts=False, error="came after the lease was lost").count()
    assert Attempt.objects.filter(counts=True).count() == 12 * 7
    assert more.json["calls"] == 12 * 7 + late == len(models.requests())


def test_max_calls_is_a_limit_on_calls(models: LocalModels) -> None:
    scene(models, 6, input_price=None, output_price=None)
    refused = judge("--budget", "1")
    assert (refused.code, refused.out) == (2, "")
    assert "price" in refused.err
    done = judge("--max-calls", 10)
    assert (done.code, done.json["stopped_by"]) == (3, "max-calls")
    assert done.json["calls"] == 10 == len(models.requests())
    assert done.json["cost"] is None and done.json["calls_without_price"] == 10
