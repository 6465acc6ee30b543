"""Parts of the engine's tests: a collection, a panel on the local model server, and what its log shows."""

import subprocess
from collections.abc import Sequence
from typing import Any

import pytest
from django.db import connection
from django.db.models import Sum

from corpus.models import Collection, Pair
from jobs import workers
from judges.campaigns import lifecycle
from judges.campaigns.configurations import build_configuration
from judges.costs import counters
from judges.engine.plan import Plan, load_plan
from judges.models import Campaign, JudgeVersion, Panel, Reservation
from tests.called import call
from tests.conftest import Finished
from tests.factories import make_collection, make_document, make_pair, make_query
from tests.instances import until
from tests.modelserver.fixtures import KEY, KEY_ENV, LocalModels
from tests.standing import standing_worker

FAST = {"QUORUM_LEASE_S": "3", "QUORUM_RETRY_S": "0.02", "QUORUM_BATCH_POLL_S": "0.1", KEY_ENV: KEY}


def collection_of(pairs: int, name: str = "books") -> Collection:
    """A collection of so many pairs, each with its own text."""
    collection = make_collection(name)
    for number in range(pairs):
        query = make_query(collection, f"What does mapping number {number} map?")
        document = make_document(collection, f"Mapping {number} maps hashable values. Part of {name}.")
        make_pair(collection, query, document)
    return collection


def make_judge(models: LocalModels, name: str, model: str = "", **values: Any) -> JudgeVersion:
    """A judge of the local server with a known price."""
    values = {"input_price": 1.0, "output_price": 2.0, "api_key_env": KEY_ENV, **values}
    provider = values.pop("provider", "openai-compatible")
    return JudgeVersion.objects.create(
        name=name, model=model or name, provider=provider, base_url=models.base_url(provider), **values
    )


def make_panel(
    models: LocalModels, debate: Sequence[str] = ("yes", "yes"), votes: Sequence[str] = ("yes",) * 5, **values: Any
) -> Panel:
    """A default panel whose members' models are given: debaters a and b, voters v1 to v5. `values`: of every judge."""
    debaters = [make_judge(models, name, model, **values).name for name, model in zip("ab", debate, strict=False)]
    voters = [make_judge(models, f"v{place}", model, **values).name for place, model in enumerate(votes, 1)]
    Panel.objects.update(is_default=False)
    return Panel.objects.create(name="main", debate=debaters, ensemble=voters, is_default=True)


def scene(models: LocalModels, pairs: int, **panel: Any) -> Collection:
    """A collection of so many pairs, and a default panel (make_panel)."""
    make_panel(models, **panel)
    return collection_of(pairs)


def begin(collection: Collection, *, budget: float | None = None, **options: Any) -> Campaign:
    """A campaign with these options (CampaignOptions), which workers take up."""
    wanted = build_configuration(**options)
    campaign = lifecycle.start_campaign(collection=collection, configuration=wanted, budget=budget).campaign
    assert campaign is not None
    return campaign


def plan_of(collection: Collection, **options: Any) -> Plan:
    plan = load_plan(begin(collection, **options).pk)
    assert plan is not None
    return plan


@pytest.fixture
def unattended(instance: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker hears of a campaign that begins."""
    monkeypatch.setattr("judges.engine.notifications.notify_workers", lambda campaign: None)


def spent_by(campaign: Campaign) -> float:
    """USD that count against the campaign's budget."""
    return counters.total_cost(counters.read(campaign.pk))


def held() -> tuple[float, int]:
    """USD and calls that workers hold of all budgets together."""
    sums = Reservation.objects.aggregate(usd=Sum("usd", default=0.0), calls=Sum("calls", default=0))
    return float(sums["usd"]), int(sums["calls"])


def sums_up(status: dict[str, Any]) -> bool:
    ended = status["labelled"] + status["escalated"] + status["failed"]
    return bool(
        status["pairs"] == status["pending"] + status["running"] + ended
        and status["escalated"] == status["open"] + status["settled"]
    )


def most_at_once(requests: Sequence[dict[str, Any]]) -> int:
    """The largest number of calls that were out at the same time."""
    moments = sorted([(r["arrived"], 1) for r in requests] + [(r["answered"], -1) for r in requests])
    out = most = 0
    for _, change in moments:
        out += change
        most = max(most, out)
    return most


def pairs_of(collection: Collection) -> list[Pair]:
    return list(Pair.objects.filter(collection=collection).order_by("pk"))


@pytest.fixture
def _standing_worker(instance_environment: dict[str, str]) -> "subprocess.Popen[str]":
    return standing_worker({**instance_environment, **FAST, "QUORUM_LOOPBACK_ONLY": "1"})


@pytest.fixture
def worker(_standing_worker: "subprocess.Popen[str]", instance: dict[str, str]) -> "subprocess.Popen[str]":
    """A live worker with two processes, the same for all tests."""
    until(lambda: bool(workers.live_workers()))
    return _standing_worker


def judge(*options: object, check: bool = False) -> Finished:
    """`judge books --wait --json` in this process, served by the standing worker."""
    finished = call("judge", "books", "--wait", "--json", *options)
    assert not (check and finished.code), finished.err
    return finished


def state_of(campaign: Campaign) -> str:
    """The campaign's state now; also after PostgreSQL was away."""
    connection.close_if_unusable_or_obsolete()
    return Campaign.objects.get(pk=campaign.pk).state
