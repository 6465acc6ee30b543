"""Limits of accounts and money under load hold in any minute and across processes (checks 4 and 5).

An account in trouble slows or stops its own calls alone.
"""

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from judges.campaigns.selectors import campaign_status
from judges.engine.account_states import AccountState, read_account_states
from judges.engine.limits import SCRIPT, AccountLimits, Denied, LimitNews, RateLimits, limit_keys
from judges.models import JudgeVersion
from tests.engine_parts import begin, collection_of, judge, make_panel, most_at_once, state_of
from tests.fault_rig import Rig, kill, rig
from tests.instances import PATIENCE, Instance, until
from tests.modelserver.fixtures import LocalModels

BUCKET_MS, HOUR_MS = 250, 3_600_000


class Script:
    """`limits.lua` as one process calls it: five requests a minute."""

    def __init__(self, client: "Redis[bytes]") -> None:
        self.account = ("openai", "", uuid4().hex)
        self.keys = limit_keys(settings.PREFIX, self.account)
        self.client, self.script = client, client.register_script(SCRIPT)
        self.held: dict[str, int] = {}

    def ask(
        self, calls: int, concurrency: int = 0, process: str = "p", per_minute: int = 5, **news: int | str
    ) -> tuple[int, int]:
        """(granted, milliseconds to wait). `news`: what the process tells of its calls."""
        told = asdict(LimitNews()) | {
            **{"process": process, "lease": 15_000, "held": self.held.get(process, 0), "most": concurrency},
            **{"per_minute": per_minute, "tokens_per_minute": 0, "fits": 0, "first": 512, "epoch": 0},
            **{"backoff": 500, "circuit": 2000, "keep_ms": 600_000, "asked": [1] * calls, "left": -1, **news},
        }
        granted, wait, *_ = self.script(keys=self.keys, args=[json.dumps(told)])
        self.held[process] = self.held.get(process, 0) + granted
        return granted, wait

    def ahead(self, milliseconds: int) -> None:
        """As if all that is kept came from a clock that was so far ahead: the clock was set back since."""
        state, processes, _, window = self.keys
        self.client.hincrby(state, "seen", milliseconds)
        self.client.hincrbyfloat(state, "next_at", milliseconds)
        for name, lease in self.client.zrange(processes, 0, -1, withscores=True):
            self.client.zadd(processes, {name: lease + milliseconds})
        fields = self.client.hgetall(window)
        self.client.delete(window)
        for field, value in fields.items():
            place = int(field[1:]) + milliseconds // BUCKET_MS
            self.client.hset(window, f"{field[:1].decode()}{place}", value)

    def fill(self) -> None:
        """As if five requests had just left, one long after the other."""
        assert self.ask(1)[0] == 1
        (field,) = [name for name in self.client.hkeys(self.keys[3]) if name.startswith(b"r")]
        self.client.hset(self.keys[3], field, 5)
        self.client.hdel(self.keys[0], "next_at")


@pytest.fixture
def script(instance: dict[str, str]) -> Iterator[Script]:
    with Redis.from_url(settings.REDIS_URL) as client:
        yield Script(client)


def test_requests_leave_one_after_the_other_for_all_processes_together(script: Script) -> None:
    """Five a minute: one now, the next in a fifth of the minute and its two seconds, whoever asks."""
    granted, wait = script.ask(5)
    assert granted == 1 and 12_000 < wait <= 12_400
    granted, wait = script.ask(5, process="other")
    assert granted == 0 and 11_000 < wait <= 12_400


@pytest.mark.slow
def test_a_fast_account_is_paced_too_and_not_held_up(instance: dict[str, str]) -> None:
    """6,000 a minute: a quarter of a second's worth at once, and about a hundred in each second."""
    with Redis.from_url(settings.REDIS_URL) as client:
        script, granted, began = Script(client), [], time.monotonic()
        while (now := time.monotonic() - began) < 2.0:
            granted.append((now, script.ask(64, per_minute=6000)[0]))
    assert granted[0][1] <= 25
    assert all(sum(n for at, n in granted if at < end) <= 97 * end + 26 for end in (0.1, 0.5, 1.0, 2.0))
    assert sum(n for _, n in granted) >= 0.9 * 2.0 * 6000 / 62


def test_the_clock_that_is_set_back_moves_the_next_request_with_it(script: Script) -> None:
    _, before = script.ask(5)
    script.ahead(HOUR_MS)
    granted, wait = script.ask(1)
    assert granted == 0 and before - 10_000 < wait <= before + 500, "as long as before, not an hour"


def test_a_window_that_was_full_when_the_clock_was_set_back_is_free_a_minute_later(script: Script) -> None:
    script.fill()
    granted, before = script.ask(1)
    assert granted == 0 and 30_000 < before <= 62_250
    script.ahead(HOUR_MS)
    granted, wait = script.ask(1)
    assert granted == 0 and before - 30_000 < wait <= before + 500, "as long as before, not an hour"
    assert script.ask(1)[0] == 0, "and nothing is granted above the limit meanwhile"


def test_slots_of_a_process_that_died_before_the_clock_was_set_back_come_back(script: Script) -> None:
    assert script.ask(2, concurrency=2, process="dead", per_minute=0)[0] == 2
    assert script.ask(1, concurrency=2, per_minute=0)[0] == 0
    script.ahead(HOUR_MS)
    assert script.ask(1, concurrency=2, per_minute=0)[0] == 0
    (lease,) = [
        score for name, score in script.client.zrange(script.keys[1], 0, -1, withscores=True) if name == b"dead"
    ]
    assert lease <= (time.time() + 60) * 1000, "not an hour"


def test_what_is_out_is_known_at_once_when_redis_has_forgotten_everything(script: Script) -> None:
    assert script.ask(3, concurrency=4, per_minute=0)[0] == 3
    script.client.delete(*script.keys)
    assert script.ask(4, concurrency=4, per_minute=0)[0] == 1


def seen(script: Script) -> AccountState:
    """What others read of the account."""
    return read_account_states([script.account])[script.account]


def test_the_first_of_its_errors_in_a_row_is_remembered_until_it_answers(script: Script) -> None:
    script.ask(1, per_minute=0, errors=1, said="ConnectError: refused")
    first = seen(script).failing_since
    assert first > 0
    script.ask(1, per_minute=0, errors=3)
    assert seen(script).failing_since == first
    script.ask(1, per_minute=0, succeeded=1)
    assert seen(script).failing_since == 0
    script.ask(1, per_minute=0, succeeded=1, errors=1)
    assert seen(script).failing_since >= first, "it answered, and failed again"


def test_an_account_that_has_long_been_silent_is_tried_every_eight_seconds(script: Script) -> None:
    waits = []
    script.ask(1, per_minute=0, errors=20)
    for _ in range(6):
        waits.append(seen(script).open_seconds)
        script.client.hset(script.keys[0], "open_until", 0)
        script.ask(1, per_minute=0, errors=1)
    assert waits == [2, 4, 8, 8, 8, 8]


LIMITS = {"requests_per_minute": 300, "tokens_per_minute": 200_000}
USED = """
SELECT json_agg(json_build_array(extract(epoch FROM started_at), tokens_in + tokens_out))
FROM judges_attempt WHERE NOT cached
"""


def most_in_a_minute(events: list[tuple[float, float]]) -> float:
    """The largest sum of amounts over any 60 s, from (when, amount)."""
    events = sorted(events)
    most = held = 0.0
    start = 0
    for when, amount in events:
        held += amount
        while events[start][0] <= when - 60:
            held -= events[start][1]
            start += 1
        most = max(most, held)
    return most


@pytest.mark.weekly
@pytest.mark.parametrize("name", LIMITS)
def test_four_workers_never_use_more_in_any_minute_than_the_account_has(tmp_path: Path, name: str) -> None:
    """One call a pair; more than a minute's worth, so that the window turns over (check 4)."""
    limit = LIMITS[name]
    with rig(Instance(tmp_path / "var"), tmp_path, processes=4, more=f"{name} = {limit}", latency=0.1) as site:
        site.begin("limits", 360, "--policy", "single", calls=1)
        assert [len(children) for children in site.workers().values()] == [4]
        outcome = site.outcome("limits", time.time(), time.time(), calls=1)
        assert outcome.holds, outcome
        arrived = [(request["arrived"], 1.0) for request in site.models.requests()]
        used = [(float(when), float(amount)) for when, amount in site.ask(USED)]
    found = most_in_a_minute(arrived if name == "requests_per_minute" else used)
    print(
        f"{name}: {found:g} of {limit:g} in the fullest minute, {len(arrived)} calls, {sum(n for _, n in used):g} used"
    )
    assert 0.8 * limit < found <= limit


BUDGET = 0.7
MONEY = """
SELECT json_build_object('state', c.state,
    'spent', (SELECT COALESCE(sum(value), 0) FROM judges_tally t WHERE t.campaign_id = c.id
              AND key IN ('cost', 'cost_assumed', 'cost_possible')),
    'reserved', (SELECT COALESCE(sum(usd), 0) FROM judges_reservation v WHERE v.campaign_id = c.id),
    'calls', (SELECT COALESCE(sum(calls), 0) FROM judges_reservation v WHERE v.campaign_id = c.id),
    'stored', (SELECT count(*) FROM judges_attempt a WHERE a.campaign_id = c.id AND NOT a.cached),
    'cost', (SELECT sum(cost) FROM judges_attempt a WHERE a.campaign_id = c.id),
    'dearest', (SELECT max(cost) FROM judges_attempt a WHERE a.campaign_id = c.id))
FROM judges_campaign c ORDER BY c.id DESC LIMIT 1
"""


@pytest.mark.weekly
@pytest.mark.parametrize("killed", [True, False], ids=["workers killed", "calm"])
def test_a_budget_is_never_overshot_by_more_than_what_is_reserved(tmp_path: Path, killed: bool) -> None:
    """128 calls in flight when the money ends (check 5). Calls lost with a killed worker are paid on top: in flight."""
    many = {"QUORUM_CALLS_IN_FLIGHT": "128", "QUORUM_PAIRS_IN_FLIGHT": "128"}
    with rig(Instance(tmp_path / "var"), tmp_path, processes=1, latency=2.0, **many) as site:
        site.begin("money", 1600, "--policy", "single", "--budget", str(BUDGET), calls=200)
        if killed:
            _, dead = kill(*[pid for main, children in site.workers().items() for pid in (main, *children)])
            left = site.ask(MONEY)
        seen = watch(site)
        requests = site.models.requests()
    lost = 0
    if killed:
        lost = sum(request["arrived"] < dead + 0.5 for request in requests) - left["stored"]
        assert 0 < lost <= left["calls"], "what is lost was reserved"
    last = seen[-1]
    most = max(one["spent"] + one["reserved"] for one in seen)
    at_once = most_at_once(requests)
    print(f"spent {last['spent']:.4f} of {BUDGET}, most spent and reserved {most:.4f}, {at_once} at once, {lost} lost")
    assert last["state"] == "budget" and last["calls"] == 0
    assert last["cost"] == pytest.approx(last["spent"], abs=1e-9)
    assert 0.9 * BUDGET < last["spent"] <= BUDGET
    assert most <= BUDGET + 1e-9, "what is out is inside it at every moment"
    assert at_once >= 120
    assert len(requests) * last["dearest"] <= BUDGET + lost * last["dearest"]


def watch(site: Rig) -> list[dict[str, Any]]:
    """The money, ten times a second, until the campaign stops."""
    seen: list[dict[str, Any]] = []
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and (not seen or seen[-1]["state"] == "running" or seen[-1]["calls"]):
        if found := site.ask(MONEY):
            seen.append(found)
        time.sleep(0.1)
    return seen


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


def test_a_refused_key_is_said_even_where_the_account_failed_before(instance: object) -> None:
    """Redis repeats the account's last error with every answer; it is not why the key is refused."""

    async def refusal() -> str:
        limits = RateLimits(lambda: AsyncRedis.from_url(settings.REDIS_URL), settings.PREFIX, "denied")
        account = limits.account(("openai-compatible", "http://127.0.0.1:9", "DENIED"))
        permit = await account.acquire(10, lambda: False)
        account.failed("503")
        account.release(permit, 10)
        permit = await account.acquire(10, lambda: False)
        account.deny("401: the key in DENIED", time.monotonic())
        account.release(permit, 10)
        account.last_error = ""
        while not account.last_error:  # until Redis has answered again
            await asyncio.sleep(0.01)
        with pytest.raises(Denied) as denied:
            await account.acquire(10, lambda: False)
        await limits.close()
        return str(denied.value)

    assert asyncio.run(asyncio.wait_for(refusal(), 20)) == "401: the key in DENIED"


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
