"""Batch endpoints as a way to execute a campaign: each round one batch, half the price, resumed after a restart."""

from collections import Counter

import psycopg
import pytest
from django.db.models import Sum

from config.env import ROOT
from corpus.processes import spawn, stop
from judges import campaigns, configurations, fleet, wakeups
from judges.batching import store
from judges.batching.models import Batch, BatchCall
from judges.models import Attempt, Campaign, Reservation, Work
from judges.tasks import database
from tests.engine_parts import (
    FAST,
    _standing_worker,
    collection_of,
    judge,
    make_judge,
    make_panel,
    state_of,
    sums_up,
    worker,
)
from tests.instances import until
from tests.modelserver.fixtures import LocalModels, _model_server_process, model_server

__all__ = ["_model_server_process", "_standing_worker", "model_server", "worker"]

PAIRS = 5


@pytest.fixture(autouse=True)
def _at_once(model_server: LocalModels) -> None:
    model_server.batch_delay(0.0)


def asked(models: LocalModels) -> Counter[tuple[str, str, int, str]]:
    """How often each question reached the server: the same one twice would be paid twice."""
    return Counter((r["model"], r["side"], r["round"], r["sha256"]) for r in models.requests())


@pytest.mark.parametrize("provider", ["openai", "anthropic", "google"])
def test_each_round_is_a_batch_at_half_the_price(worker: object, model_server: LocalModels, provider: str) -> None:
    collection_of(PAIRS)
    make_panel(model_server, debate=("converge", "converge"), votes=("hash",) * 5, provider=provider)
    found = judge("--batch")
    assert found.code == 0, found.err
    status = found.json
    assert status["labelled"] == PAIRS and status["agreed_in_round"] == {"2": PAIRS} and sums_up(status)
    sent = model_server.requests()
    assert len(sent) == status["calls"] == PAIRS * (4 + 5) and all("batch" in request for request in sent)
    first, second = Batch.objects.filter(model="converge").order_by("id")
    assert (first.calls, second.calls) == (2 * PAIRS, 2 * PAIRS)
    assert {r["round"] for r in sent if r["batch"] == first.provider_id.rpartition("/")[2]} == {1}
    tokens = Attempt.objects.aggregate(taken=Sum("tokens_in"), given=Sum("tokens_out"))
    assert tokens["taken"] > 0
    assert status["cost"] == pytest.approx((tokens["taken"] * 1.0 + tokens["given"] * 2.0) / 1e6 / 2)
    assert not BatchCall.objects.exists() and not Batch.objects.filter(ended_at=None).exists()


def test_judges_without_a_batch_endpoint_are_asked_at_once(worker: object, model_server: LocalModels) -> None:
    collection_of(2)
    make_panel(model_server, provider="openai")
    make_judge(model_server, "own", "yes", provider="openai-compatible")
    status = judge("--batch", "--policy", "ensemble", "--judges", "v1,v2,own").json
    assert status["labels"] == {"1": 2}
    assert Counter("batch" in request for request in model_server.requests()) == {True: 4, False: 2}
    own = Attempt.objects.filter(judge__name="own").first()
    batched = Attempt.objects.filter(judge__name="v1").first()
    assert own is not None and batched is not None and own.cost is not None and batched.cost is not None
    assert own.cost == pytest.approx(2 * batched.cost, rel=0.2)


def test_a_panel_that_no_batch_endpoint_serves_is_refused(model_server: LocalModels, instance: dict[str, str]) -> None:
    collection_of(1)
    make_panel(model_server)
    refused = judge("--batch")
    assert refused.code == 2 and "no judge is of a provider with a batch endpoint" in refused.err


def test_a_restart_between_rounds_goes_on_and_pays_nothing_twice(
    instance: dict[str, str], instance_environment: dict[str, str], model_server: LocalModels
) -> None:
    """Every worker is killed while the first round's batch is out, and once more while the second is."""
    collection_of(PAIRS)
    make_panel(model_server, debate=("converge", "converge"), provider="openai")
    model_server.batch_delay(1.5)
    wanted = configurations.configuration(policy="debate", options=configurations.Options(batch=True))
    collection = Campaign._meta.get_field("collection").related_model.objects.get()
    campaign = campaigns.start_or_join(collection=collection, wanted=wanted).campaign
    assert campaign is not None
    environment = {**instance_environment, **FAST, "QUORUM_LOOPBACK_ONLY": "1"}
    for round in (1, 2):
        child = spawn(fleet.worker_command(1, f"batch{round}"), environment, cwd=ROOT)
        until(lambda round=round: Batch.objects.exclude(provider_id="").count() == round)  # type: ignore[misc]
        child.kill()
        child.wait()
        stop([child])
    child = spawn(fleet.worker_command(1, "batch3"), environment, cwd=ROOT)
    try:
        until(lambda: state_of(campaign) == "finished")
    finally:
        stop([child])
    assert Work.objects.filter(state="labelled", agreed_in_round=2).count() == PAIRS
    assert len(asked(model_server)) == PAIRS * 4 and set(asked(model_server).values()) == {1}
    assert Attempt.objects.filter(counts=True).count() == PAIRS * 4


def test_a_batch_that_was_sent_by_a_process_that_died_at_once_is_found_again(
    worker: object, model_server: LocalModels
) -> None:
    collection_of(2)
    make_panel(model_server, provider="openai")
    model_server.batch_delay(3600)
    judge_in_background("--policy", "debate")
    until(lambda: Batch.objects.exclude(provider_id="").exists())
    campaign = Campaign.objects.get()
    Batch.objects.update(provider_id="")  # as the kill left it
    model_server.batch_delay(0)
    wakeups.send(campaign.pk)
    until(lambda: state_of(campaign) == "finished")
    assert set(asked(model_server).values()) == {1} and len(asked(model_server)) == 4


def judge_in_background(*options: str) -> None:
    """Start it without waiting."""
    wanted = configurations.configuration(policy=options[1], options=configurations.Options(batch=True))
    collection = Campaign._meta.get_field("collection").related_model.objects.get()
    campaigns.start_or_join(collection=collection, wanted=wanted)


def test_failed_calls_of_a_batch_are_in_the_next_one(worker: object, model_server: LocalModels) -> None:
    collection_of(3)
    make_panel(model_server, debate=("a", "b"), provider="anthropic")
    model_server.script(
        a=[{"fault": "503", "times": 2}, {"fault": "garbage", "times": 1}, {"verdict": "yes"}], b={"verdict": "yes"}
    )
    status = judge("--batch", "--policy", "debate").json
    assert status["labels"] == {"1": 3} and status["calls_failed"] == 2
    assert sorted(Attempt.objects.filter(judge__name="a").values_list("outcome", flat=True)) == [
        *["error"] * 2,
        *["labelled"] * 3,
        "unparsed",
    ]
    repaired = Attempt.objects.get(prompt__name="debate-answers-repair")
    assert repaired.counts and repaired.number == 2


def test_paused_batches_come_home_and_a_resumed_campaign_asks_only_what_is_missing(
    worker: object, model_server: LocalModels
) -> None:
    collection_of(PAIRS)
    make_panel(model_server, debate=("converge", "converge"), provider="google")
    model_server.batch_delay(1.0)
    judge_in_background("--policy", "debate")
    until(lambda: Batch.objects.exclude(provider_id="").exists())
    campaign = campaigns.pause(campaign=Campaign.objects.get())
    until(lambda: not Batch.objects.filter(ended_at=None).exists())
    until(lambda: not Work.objects.filter(state="running").exists())
    assert Attempt.objects.filter(counts=True).count() == 2 * PAIRS and state_of(campaign) == "paused"
    model_server.batch_delay(0)
    campaigns.resume(campaign=campaign)
    until(lambda: state_of(campaign) == "finished")
    assert set(asked(model_server).values()) == {1} and len(asked(model_server)) == 4 * PAIRS


def test_a_cancelled_campaign_ends_its_batches(worker: object, model_server: LocalModels) -> None:
    collection_of(2)
    make_panel(model_server, provider="openai")
    model_server.batch_delay(3600)
    judge_in_background("--policy", "debate")
    until(lambda: Batch.objects.exclude(provider_id="").exists())
    campaigns.cancel(campaign=Campaign.objects.get())
    until(lambda: not Batch.objects.filter(ended_at=None).exists())
    assert not model_server.requests() and not Attempt.objects.filter(counts=True).exists()


def test_limits_hold_and_raised_ones_go_on(worker: object, model_server: LocalModels) -> None:
    collection_of(4)
    make_panel(model_server, provider="openai")
    options = ("--batch", "--policy", "single", "--judges", "v1")
    poor = judge(*options, "--budget", "0.000001")
    assert poor.code == 3 and poor.json["state"] == "budget" and poor.json["calls"] == 0
    some = judge(*options, "--max-calls", "2")
    assert some.code == 3 and some.json["state"] == "budget" and some.json["calls"] == 2 and sums_up(some.json)
    assert some.json["running"] == 0 and not Reservation.objects.filter(calls__gt=0).exists()
    rich = judge(*options, "--budget", "1").json
    assert rich["labelled"] == 4 and rich["campaign"] == poor.json["campaign"]
    assert set(asked(model_server).values()) == {1} and len(asked(model_server)) == 4


def test_only_one_process_works_on_it(instance: dict[str, str]) -> None:
    with psycopg.connect(**database()) as one, psycopg.connect(**database()) as two:
        assert one.execute(store.TAKE, [7]).fetchone() == (True,)
        assert two.execute(store.TAKE, [7]).fetchone() == (False,)
        one.execute(store.LEAVE, [7])
        assert two.execute(store.TAKE, [7]).fetchone() == (True,)
