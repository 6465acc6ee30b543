"""An account that refuses what comes too fast (429): its rate is learned, and no question fails for it."""

from typing import Any

import pytest

from judges.models import Attempt
from tests.engine_parts import _standing_worker, collection_of, judge, make_panel, worker
from tests.modelserver.fixtures import LocalModels

__all__ = ["_standing_worker", "worker"]

# As findings/providers.md has them, twelve times as fast; seconds that a provider says are divided likewise.
SHAPES: dict[str, dict[str, Any]] = {
    "bucket, headers": {"rate": 24, "burst": 2, "says": "openai"},
    "bucket, silent": {"rate": 24, "burst": 2},
    "anthropic": {"rate": 36, "burst": 4, "says": "anthropic", "wait": 0.17},
    "anthropic, tier 1": {"rate": 10, "burst": 50, "says": "anthropic"},
    "google": {"rate": 36, "burst": 4, "says": "google", "wait": 0.17},
    "sliding minute": {"rate": 24, "burst": 120, "kind": "window"},
}


def ideal_seconds(requests: int, shape: dict[str, Any]) -> float:
    """The shortest time in which an account of this shape answers so many."""
    if shape.get("kind") == "window":
        return float((requests - 1) // shape["burst"] * shape["burst"] / shape["rate"])
    return float((requests - shape["burst"]) / shape["rate"])


@pytest.mark.parametrize("name", SHAPES)
def test_a_rate_that_no_file_names_is_learned(worker: object, model_server: LocalModels, name: str) -> None:
    shape = SHAPES[name]
    collection_of(200)
    make_panel(model_server, debate=(), votes=("yes",))
    model_server.script({"*": {"verdict": "yes", "latency": 0.05}})
    model_server.limit(**shape)
    done = judge("--policy", "single")
    requests = model_server.requests()
    arrived = [request["arrived"] for request in requests]
    seconds, ideal = max(arrived) - min(arrived), ideal_seconds(200, shape)
    refused = sum(request["status"] == 429 for request in requests)
    print(f"{name}: {len(requests)} requests, {refused} of them 429, {seconds:.1f} s of {ideal:.1f}")
    assert (done.json["labelled"], done.json["failed"]) == (200, 0)
    assert len(requests) <= 260
    assert Attempt.objects.filter(status=429).count() <= len(requests) - 200
