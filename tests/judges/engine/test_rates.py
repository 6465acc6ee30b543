"""An account that refuses what comes too fast (429): its rate is learned, and no question fails for it."""

import asyncio
import json
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from redis.asyncio import Redis as AsyncRedis

from corpus.models import Collection
from judges.campaigns import lifecycle
from judges.campaigns.selectors import campaign_status
from judges.engine.limits import Permit, RateLimits
from judges.models import Attempt
from judges.providers.received import retry_after
from judges.providers.replies import PACIFIC, refusal_error, seconds_of_day
from judges.rates import Rate, read_duration, read_rate
from judges.records import Judge
from tests.engine_parts import begin, judge, scene, state_of
from tests.instances import until
from tests.modelserver.fixtures import LocalModels
from tests.stages import first_slow

# As findings/providers.md has them, twelve times as fast; seconds that a provider says are divided likewise.
SHAPES: dict[str, dict[str, Any]] = {
    "bucket, headers": {"rate": 24, "burst": 2, "says": "openai"},
    "bucket, silent": {"rate": 24, "burst": 2},
    "anthropic": {"rate": 36, "burst": 4, "says": "anthropic", "wait": 0.17},
    "anthropic, tier 1": {"rate": 10, "burst": 50, "says": "anthropic"},
    "google": {"rate": 36, "burst": 4, "says": "google", "wait": 0.17},
    "sliding minute": {"rate": 24, "burst": 120, "kind": "window"},
}
REAL: dict[str, dict[str, Any]] = {
    "bucket, silent": {"rate": 2, "burst": 2},
    "google": {"rate": 3, "burst": 4, "says": "google", "wait": 2},
}


def ideal_seconds(requests: int, shape: dict[str, Any]) -> float:
    """The shortest time in which an account of this shape answers so many."""
    if shape.get("kind") == "window":
        return float((requests - 1) // shape["burst"] * shape["burst"] / shape["rate"])
    return float((requests - shape["burst"]) / shape["rate"])


def run(models: LocalModels, shape: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The requests of 200 pairs at such an account, with nothing of rates in the judges file, and the status."""
    scene(models, 200, debate=(), votes=("yes",))
    models.script({"*": {"verdict": "yes", "latency": 0.2}})
    models.limit(**shape)
    done = judge("--policy", "single")
    return models.requests(), done.json


@pytest.mark.parametrize("name", first_slow(SHAPES, 2))
def test_a_rate_that_no_file_names_is_learned(models: LocalModels, name: str) -> None:
    requests, done = run(models, SHAPES[name])
    refused = sum(request["status"] == 429 for request in requests)
    print(f"{name}: {len(requests)} requests, {refused} of them 429, {done['failed']} failed")
    assert (done["labelled"], done["failed"]) == (200, 0)
    assert len(requests) <= 260
    assert Attempt.objects.filter(status=429).count() <= refused


@pytest.mark.weekly
@pytest.mark.parametrize("name", ["bucket, silent", "google"])
def test_at_its_real_rate_an_account_is_used_well(models: LocalModels, name: str) -> None:
    """200 pairs at 120 (180) requests a minute: at most a quarter longer than the shortest time."""
    shape = REAL[name]
    requests, done = run(models, shape)
    arrived = [request["arrived"] for request in requests]
    seconds, ideal = max(arrived) - min(arrived), ideal_seconds(200, shape)
    print(f"{name}: {len(requests)} requests, {seconds:.1f} s of {ideal:.1f}")
    assert (done["labelled"], done["failed"]) == (200, 0)
    assert len(requests) <= 260 and seconds <= 1.25 * ideal


def test_what_is_refused_for_now_is_one_row_that_counts(models: LocalModels) -> None:
    """More refusals than a question has tries, and then its answer: no try is used up."""
    scene(models, 1, debate=(), votes=("m",))
    models.script(m=[{"fault": "429", "times": 7}, {"verdict": "yes"}])
    done = judge("--policy", "single").json
    assert (done["labelled"], done["failed"], done["calls"]) == (1, 0, 2)
    refused, answered = Attempt.objects.order_by("outcome")
    assert (refused.status, refused.error.partition(":")[0]) == (429, "7 times")
    assert (answered.outcome, answered.number) == ("labelled", 1)


def used_up(quota: str, message: str = "You exceeded your current quota.") -> dict[str, Any]:
    """Google's refusal, as its API writes it; the wait is the minute's, whichever quota is used up."""
    details = [
        {
            "@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [
                {"quotaMetric": "generativelanguage.googleapis.com/requests", "quotaId": quota, "quotaValue": "250"}
            ],
        },
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.1s"},
    ]
    return {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": message, "details": details}}


A_DAY, A_MINUTE = (f"GenerateRequestsPer{span}PerProjectPerModel-FreeTier" for span in ("Day", "Minute"))


def test_a_day_that_is_used_up_is_waited_for_and_ends_when_somebody_resumes(models: LocalModels) -> None:
    scene(models, 20, debate=(), votes=("m",))
    refusal = {"status": 429, "body": json.dumps(used_up(A_DAY))}
    models.script(m=[{"verdict": "yes", "times": 2}, refusal])
    campaign = begin(Collection.objects.get(), panel="main", policy="single")
    until(lambda: campaign_status(campaign.collection)["paused_because"])
    midnight = datetime.now(UTC) + timedelta(seconds=seconds_of_day(datetime.now(PACIFIC)))
    time.sleep(2)
    said = campaign_status(campaign.collection)
    assert (said["state"], said["failed"]) == ("running", 0) and len(models.requests()) <= 8
    assert f"({A_DAY})" in said["paused_because"]
    times = [f"{midnight + timedelta(seconds=more):until %Y-%m-%d %H:%M}" for more in (-30, 30)]
    assert any(one in said["paused_because"] for one in times)
    models.script(m={"verdict": "yes"})  # a quota was bought
    lifecycle.pause(campaign=campaign)
    lifecycle.resume(campaign=campaign)
    until(lambda: state_of(campaign) == "finished")
    assert campaign_status(campaign.collection)["labelled"] == 20


def test_the_minute_of_a_quota_is_waited_for_as_it_says_and_a_day_until_midnight_in_california() -> None:
    def wait(body: object) -> float | None:
        return refusal_error("host", 429, json.dumps(body), None).retry_after

    assert wait(used_up(A_MINUTE)) == 0.1
    left = seconds_of_day(datetime.now(PACIFIC))
    assert wait(used_up(A_DAY)) == pytest.approx(left, abs=5) == wait([used_up(A_DAY)])
    behind = {"error": {"message": "Provider returned error", "metadata": {"raw": json.dumps(used_up(A_DAY))}}}
    assert wait(behind) == pytest.approx(left, abs=5), "also where a gateway shows it"


@pytest.mark.parametrize(
    ("moment", "seconds"),
    [
        ((2026, 11, 29, 16, 30), 7.5 * 3600),
        ((2026, 3, 7, 12, 0), 12 * 3600),
        ((2026, 3, 8, 0, 30), 22.5 * 3600),  # The clocks go forward at 2.
        ((2026, 11, 29, 0, 4), 60.0),  # By our clock; Google's may be a little behind.
    ],
)
def test_a_day_ends_at_midnight_in_california(moment: tuple[int, int, int, int, int], seconds: float) -> None:
    assert seconds_of_day(datetime(*moment, tzinfo=PACIFIC)) == seconds


def test_headers_of_rates_and_of_waits_are_read() -> None:
    openai = {"limit-requests": "60", "remaining-requests": "0", "reset-requests": "6m0s"}
    rate = read_rate({f"x-ratelimit-{name}": value for name, value in openai.items()})
    assert rate == Rate(left=0, hold=6.0, per_minute=60, reset=360.0)
    soon = datetime.fromtimestamp(time.time() + 30, UTC).isoformat().replace("+00:00", "Z")
    anthropic = {"limit": "50", "remaining": "49", "reset": soon}
    rate = read_rate({f"anthropic-ratelimit-requests-{name}": value for name, value in anthropic.items()})
    assert rate == Rate(left=49, per_minute=50)
    assert read_rate({"content-type": "text/html"}) is None
    assert read_rate({"x-ratelimit-remaining-requests": "many"}) is None
    assert retry_after({"retry-after-ms": "soon", "retry-after": "5"}) == 5.0
    assert retry_after({"retry-after-ms": "1500", "retry-after": "2"}) == 1.5


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1s", 1.0), ("20ms", 0.02), ("2m59.56s", 179.56), ("1h2m", 3720.0), ("3", 3.0), ("soon", None)],
)
def test_durations_are_read_as_providers_write_them(text: str, seconds: float | None) -> None:
    assert read_duration(text) == seconds


@pytest.mark.parametrize(
    ("provider", "base_url", "own"),
    [
        ("ollama", "", True),
        ("vllm", "https://models.example.org/v1", True),
        ("openai-compatible", "http://192.168.1.7:8000/v1", True),
        ("openai-compatible", "http://vllm:8000/v1", True),
        ("embed-endpoint", "http://[::1]:9000", True),
        ("openai", "", False),
        ("openai-compatible", "https://api.example.com/v1", False),
        ("openai-compatible", "http://8.8.8.8/v1", False),
    ],
)
def test_a_server_of_ones_own_has_more_time(provider: str, base_url: str, own: bool) -> None:
    judge = Judge(name="j", provider=provider, model="m", base_url=base_url, id=1)
    assert judge.timeout_s == (300.0 if own else 60.0)
    assert replace(judge, parameters={"timeout_s": 7}).timeout_s == 7.0


def test_a_server_that_works_off_one_call_after_another_gets_what_it_can_answer(instance: object) -> None:
    """A call takes 0.1 s of a limit of 1 s: never so many at once that the last of them is late."""
    late, most = asyncio.run(serial(documents=60, each=0.1, limit_s=1.0))
    assert (late, most) == (0, most) and 2 <= most <= 9


async def serial(documents: int, each: float, limit_s: float) -> tuple[int, int]:
    """Calls that found no answer in time, and the most that were out at once."""
    limits = RateLimits(lambda: AsyncRedis.from_url(settings.REDIS_URL), settings.PREFIX, "serial")
    account = limits.account(("ollama", f"http://127.0.0.1/{uuid4().hex}", ""))
    server, late, most = asyncio.Lock(), 0, 0

    async def call() -> None:
        nonlocal late, most
        permit = await account.acquire(10, lambda: False, limit_s=limit_s)
        began, most = time.monotonic(), max(most, account.held)
        async with server:
            await asyncio.sleep(each)
        seconds = time.monotonic() - began
        account.release(permit, 10)
        if seconds > limit_s:
            late += 1
            account.timed_out(permit, limit_s)
        else:
            account.responded(permit, seconds)
            account.accepted = True

    await asyncio.gather(*(call() for _ in range(documents)))
    await limits.close()
    return late, most


def test_a_call_that_is_late_names_values_that_would_have_served(instance: object) -> None:
    async def advice() -> list[str]:
        limits = RateLimits(lambda: AsyncRedis.from_url(settings.REDIS_URL), settings.PREFIX, "late")
        account = limits.account(("ollama", f"http://127.0.0.1/{uuid4().hex}", ""))
        first = account.timed_out(Permit(0, 1, out=32), 60.0)
        account.responded(Permit(0, 1, out=1), 2.0)
        longest = account.timed_out(Permit(0, 1, out=32), 300.0)
        assert "timeout_s = 3600:" in longest, "the most that a judges file takes"
        return [first, account.timed_out(Permit(0, 1, out=64), 60.0), account.timed_out(Permit(0, 1, out=1), 60.0)]

    unknown, measured, alone = asyncio.run(advice())
    assert unknown.startswith("set max_concurrency = 1 and timeout_s = 1920: 32 calls")
    assert measured.startswith("set max_concurrency = 22, or timeout_s = 180: 64 calls")
    assert alone == "set timeout_s = 300"


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        ('{"error": {"message": "Rate limit reached. Please try again in 1m3.5s."}}', 63.5),
        ('{"error": {"code": "429", "message": "Please retry after 20 seconds."}}', 20.0),
        ('[{"error": {"code": 429, "message": "quota", "details": [{"retryDelay": "34s"}]}}]', 34.0),
        ('{"error": {"message": "Try again in a while."}}', None),
    ],
    ids=["openai", "azure", "google in openai's form", "none"],
)
def test_a_wait_is_read_wherever_it_is_said(body: str, seconds: float | None) -> None:
    assert refusal_error("host", 429, body, None).retry_after == seconds
    assert refusal_error("host", 429, body, 2.0).retry_after == 2.0
