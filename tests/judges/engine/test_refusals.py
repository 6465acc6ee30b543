"""A refusal is of a call until several documents show that it is of the account; then the campaign pauses.

Which refusals there are stands in tests/judges/providers/test_behaviours.py, without the database.
"""

import json
from typing import Any

import pytest

from judges.models import Attempt, Campaign, JudgeVersion
from tests.engine_parts import judge, scene, sums_up
from tests.modelserver.fixtures import LocalModels
from tests.stages import first_slow

FLAGGED = {"code": "The caller does not have permission", "error": "Content violates usage guidelines. Team: 7"}


def refusal(status: int, body: Any, **more: Any) -> dict[str, Any]:
    return {"status": status, "body": body if isinstance(body, str) else json.dumps(body), **more}


def after_the_first(models: LocalModels, status: int) -> int:
    """Calls that left after the first refusal had arrived."""
    requests = models.requests()
    first = min(one["answered"] for one in requests if one["status"] == status)
    return sum(one["arrived"] > first for one in requests)


@pytest.mark.slow
def test_one_document_of_forty_that_is_refused_costs_one_vote(models: LocalModels) -> None:
    scene(models, 40, debate=())
    yes = {"verdict": "yes", "latency": 0.02}
    models.script({"*": yes})
    JudgeVersion.objects.filter(name="v3").update(model="v3")
    models.script({"v3": [refusal(403, FLAGGED, contains="mapping number 7 "), yes], "*": yes})
    done = judge("--policy", "ensemble", check=True)
    assert (done.json["labelled"], done.json["failed"]) == (40, 0) and sums_up(done.json)
    (attempt,) = Attempt.objects.filter(outcome="refused")
    assert (attempt.judge.name, attempt.status, attempt.counts, attempt.cost) == ("v3", 403, True, 0.0)
    assert len(models.requests()) == 200, "nothing was sent twice"


def said(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


# Refusals of everything, by an account or for what is in all documents: status, body, and words of the pause.
OF_ALL = {
    "spend limit": (400, said("You have reached your specified API usage limits."), "raise the limit"),
    "moderation": (403, FLAGGED, "take another judge"),
}


@pytest.mark.parametrize("case", first_slow(OF_ALL))
def test_a_judge_that_is_refused_whatever_it_asks_pauses_after_at_most_twenty_calls(models, case):
    status, body, words = OF_ALL[case]
    scene(models, 100, debate=())
    own = {"provider": "anthropic", "base_url": models.anthropic, "model": "v3"}
    JudgeVersion.objects.filter(name="v3").update(**own)
    yes = {"verdict": "yes", "latency": 0.05}
    models.script({"v3": refusal(status, body, latency=0.05), "*": yes})
    done = judge("--policy", "ensemble")
    assert (done.code, done.json["state"], done.json["failed"]) == (3, "paused", 0), done.err
    assert after_the_first(models, status) <= 20
    because = done.json["paused_because"]
    assert because.startswith(f"v3, account anthropic {models.anthropic}") and words in because, because
    # Once it is mended everything is judged, by all five.
    models.script({"*": yes})
    Campaign.objects.update(state="running", paused_because="", starts=5)
    assert judge("--policy", "ensemble", check=True).json["labelled"] == 100
    assert Attempt.objects.filter(judge__name="v3", counts=True, outcome="labelled").count() == 100


@pytest.mark.slow
def test_an_account_that_reaches_its_limit_in_the_middle_pauses_within_twenty_calls(models: LocalModels) -> None:
    """With more than a hundred calls out: those that left before are no evidence that it answers."""
    scene(models, 300, debate=())
    limit = refusal(400, said("Your workspace may not ask more."), latency=0.05)
    models.script({"*": [{"verdict": "yes", "latency": 0.2, "times": 400}, limit]})
    done = judge("--policy", "ensemble")
    assert (done.code, done.json["state"], done.json["failed"]) == (3, "paused", 0)
    assert after_the_first(models, 400) <= 20
    assert "workspace" in done.json["paused_because"]
    assert not Attempt.objects.filter(counts=True).exclude(outcome="labelled").exists(), "nobody's vote is missing"


@pytest.mark.slow
def test_a_judge_that_fails_now_and_then_does_not_pause(models: LocalModels) -> None:
    scene(models, 100, debate=(), votes=("yes", "yes", "yes", "yes", "w3"))
    odd = [refusal(403, FLAGGED, every=7), {"fault": "garbage", "every": 3}, {"verdict": "yes", "latency": 0.02}]
    models.script({"w3": odd, "*": {"verdict": "yes", "latency": 0.02}})
    done = judge("--policy", "ensemble", check=True)
    assert (done.json["labelled"], done.json["failed"]) == (100, 0)
