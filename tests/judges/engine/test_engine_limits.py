"""Limits of accounts hold across worker processes; an account in trouble slows or stops its own calls alone."""

import asyncio
import time
from typing import Any

import pytest
from django.conf import settings
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from judges.campaigns.selectors import campaign_status
from judges.engine.limits import AccountLimits, RateLimits
from judges.models import JudgeVersion
from tests.engine_parts import begin, collection_of, judge, make_panel, most_at_once, state_of
from tests.instances import until
from tests.modelserver.fixtures import LocalModels


def panel_of_two_accounts(models: LocalModels, **debaters: Any) -> None:
    """Debaters d1 and d2 on one account; the only voter, v1, on another: Anthropic's wire format."""
    panel = make_panel(models, debate=("d1", "d2"), votes=("v1",), **debaters)
    panel.majority = 1
    panel.save()
    own = {"provider": "anthropic", "base_url": models.anthropic, "max_concurrency": None}
    JudgeVersion.objects.filter(name="v1").update(**own)


@pytest.mark.slow
def test_concurrency_holds_and_a_429_slows_only_its_account(models: LocalModels) -> None:
    collection_of(10)
    panel_of_two_accounts(models, max_concurrency=3)
    models.script(
        {
            "v1": [{"fault": "429", "retry_after": "4", "times": 1}, {"verdict": "yes"}],
            "*": {"verdict": "yes", "latency": 0.15},
        }
    )
    done = judge()
    assert done.json["labelled"] == 10 and done.json["calls_failed"] == 1
    requests = models.requests()
    debate = [r for r in requests if r["model"] in ("d1", "d2")]
    assert most_at_once(debate) <= 3
    votes = [r for r in requests if r["model"] == "v1"]
    refused = next(r for r in votes if r["status"] == 429)
    # What had been granted before the 429 was known may still arrive within a moment of it.
    after = [r for r in votes if r["arrived"] > refused["answered"] + 2]
    assert min(r["arrived"] for r in after) >= refused["answered"] + 3.95
    assert any(refused["answered"] < r["arrived"] < refused["answered"] + 3.9 for r in debate)


@pytest.mark.slow
def test_twenty_errors_in_a_row_pause_only_their_account(models: LocalModels) -> None:
    collection = collection_of(40)
    panel_of_two_accounts(models, max_concurrency=4)
    models.script({"d1": {"fault": "500"}, "d2": {"fault": "500"}, "v1": {"verdict": "yes", "latency": 0.05}})
    campaign = begin(collection)
    until(lambda: count(models, "d1", "d2") >= 20)
    time.sleep(0.5)
    failed = [request for request in models.requests() if request["model"] in ("d1", "d2")]
    open_until = failed[19]["answered"] + 1.9  # two seconds; then one at a time tries
    assert sum(request["arrived"] < open_until for request in failed) <= 20 + 4, "the circuit is open"
    models.script({"*": {"verdict": "yes"}})
    until(lambda: state_of(campaign) == "finished")
    found = campaign_status(collection)
    assert (found["labelled"], found["failed"]) == (40, 0)
    assert count(models, "v1") == 40, "what the other account answered is not bought again"


def count(models: LocalModels, *names: str) -> int:
    return sum(request["model"] in names for request in models.requests())


def test_what_ended_last_is_told_before_the_connection_is_released(instance: object) -> None:
    """Else its place would be held until the lease of a process that is gone has run out."""
    account = ("openai-compatible", "http://127.0.0.1:9", "KEY")

    async def call() -> AccountLimits:
        limits = RateLimits(lambda: AsyncRedis.from_url(settings.REDIS_URL), settings.PREFIX, "one")
        permit = await limits.account(account).acquire(10, lambda: False)
        limits.account(account).release(permit, 10)
        await limits.close()
        return limits.account(account)

    closed = asyncio.run(call())
    with Redis.from_url(settings.REDIS_URL) as client:
        assert client.hvals(closed.keys[2]) in ([], [b"0"])


def test_a_key_that_is_not_accepted_pauses_the_campaign_at_once(models: LocalModels) -> None:
    """Each of two processes has four calls out until the account has answered one; a few are just let go meanwhile."""
    collection_of(250)
    panel_of_two_accounts(models)
    models.script({"v1": {"fault": "401"}, "*": {"verdict": "yes"}})
    done = judge("--policy", "single")
    assert (done.code, done.json["state"], done.json["failed"]) == (3, "paused", 0)
    assert 1 <= len(models.requests()) <= 20
    for word in ("v1", "401", "QUORUM_TEST_KEY"):
        assert word in done.json["paused_because"]
