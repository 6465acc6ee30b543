"""Caps of a collection and of a day hold for all its campaigns, workers and kills (issue 4, Money; docs/adr/0025)."""

import os
import random
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from django.db import connection
from django.db.models import Sum

from config.env import ROOT
from corpus.collections.configure import configure_collection
from corpus.errors import BadInput
from corpus.models import Collection
from jobs.processes import spawn_child
from judges.campaigns.selectors import campaign_status
from judges.costs.collection_budgets import CollectionBudget, collection_budget
from judges.engine import budget
from judges.evidence import measuring
from judges.evidence.outputs import OutputRow
from judges.models import Attempt, Campaign, Panel, Reservation
from judges.models.costs import Ledger
from judges.workers import worker_pool
from store.sql import database_parameters
from tests.engine_parts import (
    FAST,
    begin,
    collection_of,
    held,
    judge,
    make_judge,
    make_panel,
    pairs_of,
    scene,
    state_of,
)
from tests.instances import until
from tests.modelserver.fixtures import LocalModels
from tests.settings_files import read_settings


def make_dear_panel(models: LocalModels) -> Panel:
    """A call costs six cents, and 36 at most."""
    return make_panel(models, input_price=100.0, output_price=200.0)


def spent() -> float:
    """USD of every attempt that is stored."""
    return float(Attempt.objects.aggregate(total=Sum("cost"))["total"] or 0.0)


def booked() -> CollectionBudget:
    """The sums of the only collection; they agree with the attempts, and so does the ledger."""
    account = collection_budget(Collection.objects.get())
    assert account.spent == pytest.approx(spent())
    assert float(Ledger.objects.aggregate(total=Sum("cost"))["total"] or 0.0) == pytest.approx(spent())
    assert (
        int(Ledger.objects.aggregate(total=Sum("calls"))["total"] or 0) == Attempt.objects.filter(cached=False).count()
    )
    return account


def test_a_collections_budget_holds_for_two_campaigns_at_once_and_more_goes_on(models: LocalModels) -> None:
    collection = collection_of(12)
    configure_collection(collection, {"budget": 1.5})
    make_dear_panel(models)
    both = [begin(collection, policy="ensemble"), begin(collection, policy="debate")]
    until(lambda: [state_of(one) for one in both] == ["budget", "budget"])
    account = booked()
    assert 0 < account.spent <= 1.5
    assert (account.reserved, held()) == (0.0, (0.0, 0))
    assert {one.stopped_by for one in Campaign.objects.all()} == {"collection"}
    told = judge("--policy", "debate")
    assert (told.code, told.json["state"], told.json["stopped_by"]) == (3, "budget", "collection")
    assert "of $1.50" in told.err and "settings" in told.err
    configure_collection(collection, {"budget": 100.0})
    assert judge("--policy", "debate", check=True).json["labelled"] == 12
    done = judge("--policy", "ensemble", check=True).json
    assert done["labelled"] == 12 and "stopped_by" not in done
    assert len(models.requests()) == 12 * 2 + 12 * 5


def test_a_days_budget_stops_today_and_not_tomorrow(models: LocalModels) -> None:
    collection = collection_of(6)
    configure_collection(collection, {"daily_budget": 1.0})
    make_dear_panel(models)
    stopped = judge("--policy", "ensemble")
    assert (stopped.code, stopped.json["stopped_by"]) == (3, "day")
    assert "a day" in stopped.err and "midnight UTC" in stopped.err
    account = booked()
    assert 0 < account.today == pytest.approx(account.spent) and account.spent <= 1.0
    with connection.cursor() as cursor:  # a night passes
        cursor.execute("UPDATE judges_collectiontally SET day = day - 1")
    assert collection_budget(collection).today == 0.0
    before = account.spent
    again = judge("--policy", "ensemble")
    assert again.json["stopped_by"] == "day"
    account = booked()
    assert before < account.spent <= before + 1.0 and account.today == pytest.approx(account.spent - before)


def test_what_was_spent_before_there_was_a_cap_counts(models: LocalModels) -> None:
    """And a cap that is reached lets offline judges go on: they cost nothing."""
    collection = collection_of(3)
    make_dear_panel(models)
    judge("--policy", "ensemble", check=True)
    configure_collection(collection, {"budget": booked().spent})
    before = len(models.requests())
    assert judge("--policy", "debate").json["stopped_by"] == "collection"
    assert len(models.requests()) == before
    assert judge("--panel", "offline", check=True).json["state"] == "finished"


def test_a_judge_without_a_price_is_refused_where_the_collection_has_a_budget(models: LocalModels) -> None:
    """A cap that is set while such a campaign runs stops it: nobody could say what its calls cost.

    256 of the 320 calls can be out when it is set; those that only waited for a place are not sent.
    """
    collection = scene(models, 64, input_price=None, output_price=None)
    models.script({"*": {"verdict": "yes", "latency": 3.0}})
    running = begin(collection, policy="ensemble")
    until(lambda: models.stats()["in_flight"] > 10)
    configure_collection(collection, {"daily_budget": 100.0})
    until(lambda: state_of(running) == "budget")
    until(lambda: campaign_status(collection, running)["running"] == 0)
    found = campaign_status(collection, running)
    assert found["stopped_by"] == "price" and 0 < found["calls_without_price"] == found["calls"] <= 256
    assert found["cost"] is None
    refused = judge("--policy", "ensemble")
    assert (refused.code, refused.out) == (2, "") and "needs a price" in refused.err
    configure_collection(collection, {"daily_budget": None})
    models.script({"*": {"verdict": "yes"}})
    assert judge("--policy", "ensemble", check=True).json["labelled"] == 64


@pytest.mark.slow
def test_a_killed_workers_reservation_comes_back_to_another_campaign(worker, model_server, instance):
    """What it held is the collection's: the next campaign waits for its lease and then has the money."""
    collection = collection_of(10)
    configure_collection(collection, {"budget": 20.0})
    make_dear_panel(model_server)
    first = begin(collection, policy="debate")
    until(lambda: state_of(first) == "finished")
    Reservation.objects.create(  # a worker dies with nearly all that is left in its hands
        campaign=first, holder="dead", usd=20 - collection_budget(collection).spent - 0.4, calls=30, until=_in(2.0)
    )
    began = time.monotonic()
    assert judge("--policy", "ensemble", check=True).json["labelled"] == 10
    assert time.monotonic() - began > 1.5, "it waited for the lease"
    account = booked()
    assert (account.reserved, held()) == (0.0, (0.0, 0)) and account.spent <= 20.0
    assert Reservation.objects.filter(calls__gt=0).count() == 0


def test_eight_clients_that_reserve_at_once_never_hold_more_than_the_cap(transactional_db: None) -> None:
    """Three campaigns of one collection, each client its own connection; no order of them deadlocks or overbooks."""
    collection = collection_of(1)
    configure_collection(collection, {"budget": 10.0})
    rows = [Campaign.objects.create(collection=collection, policy="single", panel="main") for _ in range(3)]

    def client(number: int) -> tuple[int, float]:
        chance, held, most = random.Random(number), 0, 0.0
        with psycopg.connect(**database_parameters(), autocommit=True) as raw:
            for _ in range(40):
                usd, campaign = chance.uniform(0.05, 1.0), chance.choice(rows).pk
                values = {"campaign": campaign, "holder": f"client {number}", "lease": 60.0, "after": None}
                values |= {"usd": usd, "calls": 1}
                with raw.transaction():
                    raw.execute(budget.LOCK, values)
                    raw.execute(budget.RECLAIM, values)
                    cap, _held = raw.execute(budget.RESERVE, values | budget.KEYS).fetchone() or ("", 0)
                (booked,) = raw.execute("SELECT sum(usd) FROM judges_reservation").fetchone() or (0.0,)
                most = max(most, booked)
                held += cap == ""
                if cap == "" and chance.random() < 0.8:
                    raw.execute(budget.GIVE_BACK, values)
        return held, most

    with ThreadPoolExecutor(8) as clients:
        found = list(clients.map(client, range(8)))
    assert sum(held for held, _ in found) > 50, "they did hold money"
    assert 5.0 < max(most for _, most in found) <= 10.0 + 1e-9
    assert collection_budget(collection).reserved == pytest.approx(held()[0])


def test_measuring_by_a_command_stays_within_the_cap_too(instance: object, model_server: LocalModels) -> None:
    """It has no worker and no state to stop in: what there is no money for gets no answer, and nothing is held on."""
    collection = collection_of(3)
    configure_collection(collection, {"budget": 0.0})
    make_judge(model_server, "measurer", input_price=100.0, output_price=200.0)
    said = "yes\n<contribution>It helps a little.</contribution>\n<evidence>Mapping values.</evidence>"
    rows = [OutputRow(pair.pk, "q", "d", 1, said, True) for pair in pairs_of(collection)]
    assert measuring.measure_rows(collection, "measurer", rows).lost == 3
    assert not model_server.requests()
    configure_collection(collection, {"budget": 50.0})
    model_server.script({"*": {"text": '{"entities": []}'}})
    found = measuring.measure_rows(collection, "measurer", rows)
    assert 0 < found.cost <= 50.0 and found.cost == pytest.approx(spent())
    account = booked()
    assert (account.reserved, held()) == (0.0, (0.0, 0))


def _in(seconds: float) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT (now() + make_interval(secs => %s))::text", [seconds])
        return str(cursor.fetchone()[0])


@pytest.mark.slow
def test_workers_that_are_killed_do_not_carry_the_collection_beyond_its_budget(model_server, instance):
    """128 calls in flight in two workers, one of which dies: what the attempts cost stays within the cap."""
    collection = collection_of(200)
    make_dear_panel(model_server)
    configure_collection(collection, {"budget": 40.0})
    model_server.script({"*": {"verdict": "yes", "latency": 0.2}})
    environment = {**instance, **FAST, "QUORUM_CALLS_IN_FLIGHT": "64"}
    workers = [
        spawn_child(worker_pool.worker_command(1, f"capped{number}"), environment, cwd=ROOT, stderr=subprocess.DEVNULL)
        for number in range(2)
    ]
    try:
        both = [begin(collection, policy="ensemble"), begin(collection, policy="debate")]
        until(lambda: len(model_server.requests()) >= 60)
        os.killpg(workers[0].pid, signal.SIGKILL)
        # The ensemble's thousand calls would cost 60; the debate's four hundred may all be made before the end.
        until(lambda: "running" not in map(state_of, both))
        assert state_of(both[0]) == "budget"
    finally:
        for one in workers:
            os.killpg(one.pid, signal.SIGKILL) if one.poll() is None else None
            one.wait()
    account = booked()
    assert 30 < account.spent <= 40
    assert (account.reserved, held()) == (0.0, (0.0, 0))


def test_the_settings_file_takes_caps_and_takes_them_away(db: object, tmp_path: Path) -> None:
    collection = collection_of(1)
    file = tmp_path / "settings.toml"
    file.write_text("budget = 100\ndaily_budget = 2.5\nhourly_rate = 30\n")
    assert configure_collection(collection, read_settings(file)) == ["hourly_rate", "budget", "daily_budget"]
    collection.refresh_from_db()
    assert (collection.budget, collection.daily_budget) == (100.0, 2.5)
    file.write_text('budget = "none"\nhourly_rate = "none"\n')
    assert configure_collection(collection, read_settings(file)) == ["hourly_rate", "budget"]
    collection.refresh_from_db()
    assert (collection.budget, collection.daily_budget, collection.hourly_rate) == (None, 2.5, None)
    for bad in ("budget = -1", 'daily_budget = "much"', "hourly_rate = nan"):
        file.write_text(bad)
        with pytest.raises(BadInput):
            read_settings(file)
