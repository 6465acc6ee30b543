"""An answer that does not say what it used has an unknown cost: booked at its upper bound, counted, and shown."""

import json
from functools import partial
from typing import Any

import pytest
from django.db.models import Sum
from django.test import Client
from django.urls import reverse

from annotation.models import Role
from judges.costs import ledger, prices
from judges.costs.accounting import of_calls, of_status
from judges.costs.collection_budgets import collection_budget
from judges.models import Attempt, Campaign
from judges.probes import checks
from judges.providers import anthropic, google, openai
from judges.providers.replies import count_tokens
from judges.records import Judge, Usage
from tests.called import call
from tests.engine_parts import judge, make_judge, scene, spent_by
from tests.factories import make_member
from tests.modelserver.fixtures import LocalModels

SILENT = {"*": {"fault": "no-usage", "verdict": "yes"}}


def _decided(read: Any, answer: object) -> Any:
    """What the reader of a decision says of its usage."""
    return lambda counts: read({"answers": answer, "usage": counts}, 1).usage


DECIDED = {
    "openai": _decided(
        openai.read_decision, [{"probabilities": [{"value": 0, "probability": 0.2}, {"value": 1, "probability": 0.8}]}]
    ),
    "google": _decided(google.read_decision, {"relevance": {"probabilities": {"0": 0.2, "1": 0.8}}}),
}


def test_what_is_not_counted_has_no_known_cost_and_is_said_in_words() -> None:
    judge, used = Judge("j", "google", "m", id=1), {"usageMetadata": {"promptTokenCount": 10}}
    read: Any = google.GoogleProvider.read
    assert read(None, {"promptFeedback": {"blockReason": "SAFETY"}, **used}, judge).usage.is_known
    text = {"candidates": [{"content": {"parts": [{"text": "yes"}]}, "finishReason": "STOP"}]}
    assert not read(None, {**text, **used}, judge).usage.is_known
    checked = checks.CheckedJudge(
        Judge("j", "openai", "m", id=1), "vote", "", prices.Price(1.0, 1.0, 2.0), usage=Usage()
    )
    assert checked.cost is None
    assert of_calls(1.5, 10, 3, 2, 0.25).text == (
        "at least $1.50 (1 call without a price, 2 calls of unknown cost, counted as $0.25)"
    )
    assert of_calls(0.0, 1, 1, 1, 0.25).text == "unknown (1 call of unknown cost, counted as $0.25)"


def _counted(paths: Any, needed: Any) -> Any:
    return partial(count_tokens, paths_by_count=paths, needed=needed)


MESSAGES = {"input_tokens": 10, "output_tokens": 5}


@pytest.mark.parametrize(
    ("read", "counts"),
    [
        (openai.read_usage, {"prompt_tokens": 10, "completion_tokens": 5}),
        (_counted(anthropic.USED, anthropic.REQUIRED_COUNTS), MESSAGES),
        (_counted(google.USED, google.REQUIRED_COUNTS), {"promptTokenCount": 10, "candidatesTokenCount": 5}),
        (_counted(openai.RESPONSES_USED, openai.REQUIRED_COUNTS), MESSAGES),
        (DECIDED["openai"], MESSAGES),
        (DECIDED["google"], {"total_input_tokens": 10, "total_output_tokens": 5}),
    ],
)
def test_tokens_are_known_only_where_the_provider_counts_them(read: Any, counts: dict[str, int]) -> None:
    assert read(counts).is_known and prices.call_cost(prices.Price(1.0, 1.0, 2.0), read(counts)) == pytest.approx(2e-5)
    each = [{name: number for name, number in counts.items() if name != missing} for missing in counts]
    for silent in (None, {}, dict.fromkeys(counts, 0), dict.fromkeys(counts), *each):
        assert not read(silent).is_known
        assert prices.call_cost(prices.Price(1.0, 1.0, 2.0), read(silent)) is None
    assert prices.call_cost(prices.FREE, read(None)) == 0.0, "what is free is free, whatever it used"


def test_tokens_that_openai_wrote_to_its_cache_are_read_and_cost_their_price() -> None:
    details = {"cached_tokens": 100, "cache_write_tokens": 300}
    found = openai.read_usage({"prompt_tokens": 1000, "completion_tokens": 10, "prompt_tokens_details": details})
    assert found == Usage(input=1000, cached=100, written=300, output=10)
    price = prices.Price(1.0, 0.1, 2.0, written=1.25)
    assert price.cost(found) == pytest.approx((600 * 1.0 + 100 * 0.1 + 300 * 1.25 + 10 * 2.0) / 1e6)


def test_answers_without_usage_fill_the_budget_and_the_stop_explains_itself(models: LocalModels) -> None:
    books = scene(models, 12)
    models.script(SILENT)
    done = judge("--budget", "0.05")
    assert (done.code, done.json["state"]) == (3, "budget"), done.err
    found = done.json
    assert found["cost"] is None and found["calls_without_price"] == found["calls_assumed"] == found["calls"] > 0
    assert 0.03 < found["cost_assumed"] <= 0.05
    campaign = Campaign.objects.get()
    assert spent_by(campaign) == pytest.approx(found["cost_assumed"]) == pytest.approx(collection_budget(books).spent)
    assert "including an estimated" in done.err and "unknown cost" in done.err
    assert Attempt.objects.aggregate(all=Sum("assumed"))["all"] == pytest.approx(found["cost_assumed"])
    assert not Attempt.objects.exclude(cost=None).exists()
    words = f"{found['calls']} calls of unknown cost, counted as $0.0"
    assert words in of_status(found).text
    entries = ledger.ledger_rows(campaign)
    assert sum(entry.cost_assumed for entry in entries) == pytest.approx(found["cost_assumed"])
    assert sum(one["paid"].usd is None for one in ledger.daily_costs(campaign)) == 1
    told = json.loads(call("ledger", "books", "--json").out)
    assert told["cost_assumed"] == pytest.approx(found["cost_assumed"])
    browser = Client()
    browser.force_login(make_member(books, "olga", Role.ADMIN).user)
    for name, more in (("campaigns", ()), ("ledger", (campaign.number,))):
        assert "counted as $" in browser.get(reverse(name, args=["books", *more])).text


def test_the_upper_bound_covers_what_the_call_can_cost(models: LocalModels) -> None:
    """Without a budget too: a cap set later knows what was spent before."""
    books = scene(models, 2)
    make_judge(models, "quiet")
    known = judge("--policy", "single", check=True).json
    models.script(quiet={"fault": "no-usage", "verdict": "yes"})
    silent = judge("--policy", "single", "--judges", "quiet", check=True).json
    assert (silent["cost"], silent["calls_assumed"]) == (None, 2)
    assert known["cost_assumed"] == 0 < known["cost"] < silent["cost_assumed"]
    assert collection_budget(books).spent == pytest.approx(known["cost"] + silent["cost_assumed"])
