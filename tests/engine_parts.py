"""Parts of the engine's tests: a collection, a panel on the local model server, and what its log shows."""

from collections.abc import Sequence
from typing import Any

from corpus.models import Collection, Pair
from judges.models import JudgeVersion, Panel
from tests.factories import make_collection, make_document, make_pair, make_query
from tests.modelserver.fixtures import KEY, KEY_ENV, LocalModels

FAST = {"QUORUM_LEASE_S": "3", "QUORUM_RETRY_S": "0.02", KEY_ENV: KEY}


def collection_of(pairs: int, name: str = "books") -> Collection:
    """A collection of so many pairs, each with its own text."""
    collection = make_collection(name)
    for number in range(pairs):
        query = make_query(collection, f"What does mapping number {number} map?")
        make_pair(
            collection, query, make_document(collection, f"Mapping {number} maps hashable values. Part of {name}.")
        )
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


def sums_up(status: dict[str, Any]) -> bool:
    """The contract's two sums."""
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
    """In the order of their import."""
    return list(Pair.objects.filter(collection=collection).order_by("pk"))
