"""Answers that are about something else than was asked: a cut prompt, another model under the name."""

import threading
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection

from corpus.models import Collection
from judges.campaigns.configurations import build_configuration
from judges.campaigns.forecasts import forecast_judging
from judges.costs.price_rows import enter_price
from judges.models import Attempt, Campaign
from judges.models.prices import PriceRow
from tests.engine_parts import judge, make_panel, scene
from tests.factories import make_collection, make_document, make_pair, make_query
from tests.instances import until
from tests.modelserver.fixtures import LocalModels

ENGLISH = "The tides of the sea are caused by the pull of the moon and by that of the sun. "
CHINESE = "潮汐主要是由月球的引力引起的，太阳的引力也有较小的作用。"


def long_collection(text: str, pairs: int = 6) -> None:
    collection = make_collection("books")
    for number in range(pairs):
        query = make_query(collection, f"What causes tide number {number}?")
        long = (f"Tide {number}. " + text * 2_000)[: 22_000 + 1_500 * number]
        make_pair(collection, query, make_document(collection, long))


@pytest.mark.parametrize("text", [ENGLISH, CHINESE])
def test_a_server_that_cuts_the_prompt_gives_no_label(models: LocalModels, text: str) -> None:
    long_collection(text)
    make_panel(models, debate=(), votes=("cutter",))
    models.script({"cutter": {"verdict": "no", "reads": 2050}})
    done = judge("--policy", "single")
    assert done.json["labelled"] == 0, done.err
    attempts = Attempt.objects.filter(role="vote")
    assert attempts and set(attempts.values_list("outcome", flat=True)) == {"prompt_cut"}
    assert "2,050 tokens" in attempts[0].error and "context length" in attempts[0].error


def test_another_model_under_the_name_is_kept_said_and_priced_as_what_it_is(models: LocalModels) -> None:
    scene(models, 4, debate=(), votes=("v-model",))
    models.script({"v-model": {"verdict": "yes", "more": {"model": "v-model-2026-04-14"}}})
    done = judge("--policy", "single", check=True)
    assert done.json["cost"] and "answered_by" not in done.json, "a dated alias is the same model"
    models.script({"v-model": {"verdict": "yes", "more": {"model": "other-model"}}})
    done = judge("--policy", "single", "--again", "--fresh", check=True)
    assert done.json["cost"] is None and done.json["calls_without_price"] == 4
    assert done.json["answered_by"] == [{"judge": "v1", "model": "v-model", "answered": "other-model", "calls": 4}]
    campaign = Campaign.objects.latest("pk")
    assert set(Attempt.objects.filter(campaign=campaign).values_list("answered_by", flat=True)) == {"other-model"}
    out = StringIO()
    call_command("status", "books", stdout=out)
    assert "v1 (v-model): 4 calls" in out.getvalue() and "other-model" in out.getvalue()
    enter_price(
        provider="openai-compatible", model="other-model", prices={"input_price": 7, "output_price": 9}, source="page"
    )
    done = judge("--policy", "single", "--again", "--fresh", check=True)
    last = Attempt.objects.filter(campaign=Campaign.objects.latest("pk"))
    assert done.json["cost"] == pytest.approx(sum(one.tokens_in * 7 + one.tokens_out * 9 for one in last) / 1e6)


def test_what_was_answered_before_costs_nothing_again_and_is_asked_anew_on_demand(models: LocalModels) -> None:
    scene(models, 5, debate=(), votes=("yes",) * 3)
    judge(check=True)
    wanted = build_configuration(panel="main")
    estimate = forecast_judging(Collection.objects.get(), wanted, again=True)
    assert estimate is not None and estimate.free and "100% of the answers" in estimate.line()
    kept = judge("--again", check=True)
    assert kept.json["calls"] == 0 and kept.json["calls_cached"] == 15
    models.script({"yes": {"verdict": "no"}})
    fresh = judge("--again", "--fresh", check=True)
    assert "about 15 calls" in fresh.err and fresh.json["calls"] == 15 and fresh.json["labels"] == {"0": 5}
    latest = judge("--again", check=True)
    assert latest.json["calls"] == 0 and latest.json["labels"] == {"0": 5}, (
        "the newest answers are kept, not the oldest"
    )
    assert judge("--fresh").code == 2


@pytest.mark.slow
def test_a_corrected_price_holds_for_calls_that_wait_already(models: LocalModels) -> None:
    scene(models, 60, debate=(), votes=("slow",), max_concurrency=2)
    models.script({"slow": {"verdict": "yes", "latency": 0.15}})
    corrected = threading.Event()

    def correct() -> None:
        try:
            until(lambda: len(models.requests()) >= 10)
            enter_price(
                provider="openai-compatible",
                model="slow",
                prices={"input_price": 10, "output_price": 20},
                source="page",
            )
            corrected.set()
        finally:
            connection.close()

    thread = threading.Thread(target=correct)
    thread.start()
    judge("--policy", "single", check=True)
    thread.join()
    assert corrected.is_set()
    changed = PriceRow.objects.get().created_at
    late = [one for one in Attempt.objects.all() if one.started_at > changed + timedelta(seconds=1.5)]
    assert len(late) > 20
    assert {round(one.cost / ((one.tokens_in + 2 * one.tokens_out) / 1e6)) for one in late} == {10}
