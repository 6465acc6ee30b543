"""Campaigns are paused, resumed, cancelled and retried at any moment, and judged by many at once (check 2)."""

import asyncio
import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import psycopg
import pytest
from django.db import connection

from corpus.errors import BadInput
from corpus.models import Label
from judges.campaigns import lifecycle
from judges.engine import leases
from judges.engine.writer import ResultWriter
from judges.models import Work
from store.sql import database_parameters
from tests.engine_parts import begin, collection_of, judge, plan_of, scene, state_of
from tests.fault_rig import CALLS, COUNTS, Outcome, left, note
from tests.instances import until
from tests.modelserver.fixtures import LocalModels
from tests.stages import first_slow

MODELS = {"debate": ("a", "b"), "votes": ("v1", "v2", "v3", "v4", "v5")}
PAIRS = 60


def outcome_of(models: LocalModels) -> Outcome:
    """What is left of the newest campaign of books; what was answered with an error is sent again with good reason."""
    answered = Counter(request["sha256"] for request in models.requests() if request["status"] == 200)
    repeated = sum(times - 1 for times in answered.values())
    with connection.cursor() as cursor:
        cursor.execute(COUNTS, {"name": "books"})
        (counts,) = cursor.fetchone()
    return left(counts, counts["pairs"] * CALLS, paid_twice=repeated, repeated=repeated)


@pytest.mark.parametrize("seed", first_slow(range(3)))
def test_a_storm_of_pauses_resumes_and_retries_changes_nothing(models: LocalModels, seed: int) -> None:
    """Some pairs fail at first (500 four times); all acts come at random, 10 to 150 ms apart, until all is judged."""
    collection = scene(models, PAIRS, **MODELS, max_concurrency=16)
    once = [{"contains": f"mapping number {n} ", "fault": "500", "times": 4} for n in range(0, PAIRS, 6)]
    models.script({"v2": [*once, {"verdict": "yes", "latency": 0.05}], "*": {"verdict": "yes", "latency": 0.05}})
    campaign, drawn = begin(collection), random.Random(seed)
    acts = [lifecycle.pause, lifecycle.resume, lifecycle.retry_failed]
    done = Counter()
    for _ in range(60):
        act = drawn.choice(acts)
        try:
            act(campaign=campaign)
            done[act.__name__] += 1
        except BadInput:
            done["refused"] += 1
        time.sleep(drawn.uniform(0.01, 0.15))
    while Work.objects.exclude(state="labelled").exists():
        if state_of(campaign) == "paused":
            lifecycle.resume(campaign=campaign)
        lifecycle.retry_failed(campaign=campaign)
        until(lambda: state_of(campaign) in ("finished", "paused"))
    if state_of(campaign) == "paused":  # All pairs were labelled while the last of the pauses held.
        lifecycle.resume(campaign=campaign)
    until(lambda: state_of(campaign) == "finished")
    assert min(done["pause"], done["resume"], done["retry_failed"]) > 0, done
    outcome = outcome_of(models)
    note(f"pause, resume and retry at random, seed {seed}", outcome)
    assert outcome.holds, outcome


@pytest.mark.parametrize("after", first_slow([60, 1, 250]))
def test_what_was_paid_before_a_cancel_is_not_paid_again(models: LocalModels, after: int) -> None:
    """Cancelled after so many calls: nothing more is sent, and a new campaign takes the answers from the cache."""
    collection = scene(models, PAIRS, **MODELS, max_concurrency=16)
    models.script({"*": {"verdict": "yes", "latency": 0.05}})
    campaign = begin(collection)
    until(lambda: len(models.requests()) >= after)
    lifecycle.cancel(campaign=campaign)
    until(lambda: not Work.objects.filter(campaign=campaign, state="running").exists())
    time.sleep(0.3)
    sent = len(models.requests())
    time.sleep(1.0)
    assert len(models.requests()) == sent, "nothing is sent after it"
    ended = Work.objects.filter(campaign=campaign, state="labelled").count()
    again = judge(check=True).json
    assert again["campaign"] != campaign.number and again["labelled"] == PAIRS - ended
    assert again["calls_cached"] == sent - ended * CALLS
    assert Label.objects.count() == PAIRS and len(models.requests()) == PAIRS * CALLS
    outcome = outcome_of(models)
    note(f"cancel after {after} calls", outcome)
    assert outcome.holds, outcome


def test_eight_claims_at_once_never_take_the_same_pair(unattended: None) -> None:
    """Two workers on one pair: the second finds it taken; what a first one writes too late is refused (fence)."""
    plan = plan_of(collection_of(200), panel="offline")

    def claim(_: int) -> list[int]:
        with psycopg.connect(**database_parameters()) as own:
            held = leases.claim(own, plan, lease=60)
            return [one.pair for one in held]

    with ThreadPoolExecutor(8) as pool:
        taken = [pair for held in pool.map(claim, range(8)) for pair in held]
    assert len(taken) == len(set(taken)) == 200
    assert list(Work.objects.values_list("fence", "claims").distinct()) == [(1, 0)], "nothing was sent"


def test_expired_leases_are_left_alone_while_postgresql_is_just_back(unattended, monkeypatch, tmp_path):
    """Nobody could renew a lease while it was away: whoever is back first must not take what others answered."""
    monkeypatch.setattr("judges.engine.writer.STALL_S", 1.0)
    plan = plan_of(collection_of(2), panel="offline")

    async def main() -> list[int]:
        writer = ResultWriter(database_parameters(), tmp_path)
        writer.start()
        claim = partial(leases.claim, plan=plan, lease=0.0, stalled=partial(writer.stalled, 60.0))
        try:
            await writer.ready()
            writer.back -= 60.0  # connecting may have taken a moment: a minute ago
            first = await writer.ask(claim)
            await writer.ask(lambda connection: connection.execute("SELECT pg_sleep(1.2)"))
            meanwhile = await writer.ask(claim)
            writer.back -= 60.0
            return [len(first), len(meanwhile), len(await writer.ask(claim))]
        finally:
            await asyncio.to_thread(writer.stop)

    assert asyncio.run(main()) == [2, 0, 2]
