"""The way to a panel through the engine: nine scripted candidates judge one sample over HTTP, then `panel` chooses."""

import json
from io import StringIO

import numpy as np
import pytest
from django.core.management import call_command

from annotation.models.self_checks import SelfCheck
from annotation.panels import self_checks
from corpus.models import Collection, Judgment
from jobs import background
from judges.models import Panel
from judges.probes.known_orders import built_in
from tests.engine_parts import _standing_worker, collection_of, judge, make_judge, pairs_of, worker
from tests.evidence import make_assessor
from tests.instances import until
from tests.modelserver.fixtures import LocalModels

__all__ = ["_standing_worker", "worker"]

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
PAIRS = 60
NAMES = [*(f"v{n}" for n in range(7)), "coin", "copy"]


def says(verdicts: np.ndarray) -> list[dict[str, object]]:
    """A model that says yes to the documents of these pairs, and no to the others."""
    yes = [{"contains": f"Mapping {n} maps", "verdict": "yes"} for n, verdict in enumerate(verdicts) if verdict]
    return [*yes, {"verdict": "no"}]


def refer(collection: Collection, truth: np.ndarray) -> None:
    reference = make_assessor(collection, "qrels", "reference")
    Judgment.objects.bulk_create(
        Judgment(pair=pair, assessor=reference, step="import", grade=int(true))
        for pair, true in zip(pairs_of(collection), truth, strict=True)
    )


def test_nine_candidates_judge_a_sample_and_the_coin_and_the_copy_are_found_out(
    worker: object, model_server: LocalModels
) -> None:
    random = np.random.default_rng(3)
    truth = random.random(PAIRS) < 0.5
    honest = [np.where(random.random(PAIRS) < 0.88, truth, ~truth) for _ in range(7)]
    votes = [*honest, random.random(PAIRS) < 0.5, honest[0]]
    model_server.script({name: says(mine) for name, mine in zip(NAMES, votes, strict=True)})
    collection = collection_of(PAIRS)
    for name in NAMES:
        make_judge(model_server, name)
    Panel.objects.update(is_default=False)
    Panel.objects.create(name="main", debate=NAMES[:2], ensemble=NAMES[:5], is_default=True)
    status = judge("--policy", "ensemble", "--judges", ",".join(NAMES), check=True).json
    assert status["pairs"] == PAIRS and status["failed"] == 0
    refer(collection, truth)
    out = StringIO()
    call_command("panel", "books", "--json", stdout=out, stderr=StringIO())
    found = json.loads(out.getvalue())
    assert found["pairs"] == PAIRS and found["copies"] == [["copy", "v0"]]
    sets = [set(one["judges"]) for one in (*found["by_mean"], *found["by_largest"])]
    assert sets and all("coin" not in one and not {"v0", "copy"} <= one for one in sets)
    prices = {one["name"]: one["cost_per_pair"] for one in found["candidates"]}
    assert all(price > 0 for price in prices.values())
    best = found["proposed"]
    assert best["cost_per_pair"] == pytest.approx(sum(prices[name] for name in best["judges"]))
    assert len(model_server.requests()) >= 9 * PAIRS


def test_a_real_worker_makes_a_self_check_that_a_page_asked_for(worker: object, model_server: LocalModels) -> None:
    collection = collection_of(1)
    firsts = [probe.documents[0][1].document for probe in built_in(answers=True)]
    model_server.script({"good": [*({"contains": text, "verdict": "yes"} for text in firsts), {"verdict": "no"}]})
    self_checks.ask_later(collection, [make_judge(model_server, "good")])
    until(SelfCheck.objects.exists)
    row = SelfCheck.objects.get()
    assert row.passes and row.findings["calls"] == 48 and row.findings["clear"]["right"] == 8
    until(lambda: not background.is_unfinished(self_checks.TASK, collection.pk))
