"""A filling through real workers and SDKs against the scripted server: exactly its pairs, each step counted."""

import pytest

from benchmark.hole_filling import stages
from benchmark.hole_filling.funnel import compute_funnel
from benchmark.models import Filling
from benchmark.qrels import reading
from corpus.models import Collection, Item
from judges.campaigns import selectors
from judges.models import Attempt, Campaign
from tests.benchmark_scene import start_filling
from tests.engine_parts import _standing_worker, make_judge, make_panel, sums_up, worker
from tests.factories import make_collection, make_document, make_pair, make_query
from tests.instances import until
from tests.rankings import make_run

__all__ = ["_standing_worker", "worker"]


def shelves() -> Collection:
    """A query with documents d0 to d5 that a run returns, and a pair that no run returns."""
    collection = make_collection("books")
    make_query(collection, "What does a mapping map?", external_id="q")
    for n in range(6):
        make_document(collection, f"Mapping number {n} maps hashable values.", external_id=f"d{n}")
    make_pair(collection, make_query(collection, external_id="other"), make_document(collection, external_id="other"))
    make_run(collection, "run", {"q": [f"d{n}" for n in range(6)]})
    return collection


def on(number: int, verdict: object) -> dict[str, object]:
    return {"contains": f"Mapping number {number} ", "verdict": verdict}


@pytest.mark.slow
def test_judges_and_filter_are_asked_about_the_pool_alone(worker, model_server):
    """d0: dropped by the filter. d1, d2: agreed in round 1 (yes, no). d3: in round 2. d4: never.
    d5: the panel contradicts the debate. All votes say yes but where the debate says no.
    """
    collection = shelves()
    make_panel(model_server, debate=("a", "b"), votes=("v",) * 5)
    families = [make_judge(model_server, name, name).name for name in ("gemma", "mistral", "phi")]
    drops = [on(0, "no"), {"verdict": "yes"}]
    model_server.script(
        {
            "a": [on(2, "no"), on(3, {"A": ["yes", "yes"]}), on(4, {"A": ["yes", "yes"]}), {"verdict": "yes"}],
            "b": [on(2, "no"), on(3, {"B": ["no", "yes"]}), on(4, {"B": ["no", "no"]}), {"verdict": "yes"}],
            "v": [on(2, "no"), on(5, "no"), {"verdict": "yes"}],
            "gemma": drops, "mistral": drops, "phi": [on(0, "no"), on(1, "no"), {"verdict": "yes"}],
        }
    )  # fmt: skip
    runs = list(collection.runs.all())
    options = {"collection": collection, "runs": runs, "depth": 10, "panel": "main", "filter": families}
    begun = start_filling(**options, max_calls=500)
    until(lambda: Campaign.objects.get(pk=begun.campaign).state == "finished")
    until(lambda: stages.advance_filling(Filling.objects.get(pk=begun.pk)).state == "people")
    funnel = compute_funnel(begun)
    assert (funnel.pool, funnel.asked, funnel.filtered, funnel.after_filter) == (6, 6, 1, 5)
    assert [(one["round"], one["agreed"], one["open"]) for one in funnel.rounds] == [(1, 3, 2), (2, 1, 1)]
    assert (funnel.labelled, funnel.to_people, funnel.people_open, funnel.relevant) == (4, 2, 2, 2)
    assert dict(Item.objects.values_list("pair__document__external_id", "reason")) == {
        "d4": "disagreement", "d5": "conflict",
    }  # fmt: skip
    assert set(Attempt.objects.values_list("pair__query__external_id", flat=True)) == {"q"}, "exactly these pairs"
    calls = Attempt.objects.count()
    again = start_filling(**options, max_calls=500)
    assert again == begun and Attempt.objects.count() == calls, "the same start pays for nothing twice"
    after = stages.finish_filling(begun)
    assert reading.load_named(after) == {"q": {"d0": 0, "d1": 1, "d2": 0, "d3": 1}}
    assert after.counts["origins"] == {"debate+ensemble": 3, "filter": 1}
    assert sums_up(selectors.campaign_status(collection, Campaign.objects.get(pk=begun.campaign)))
