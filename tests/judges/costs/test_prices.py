"""Prices and estimates: known, free, or said to be unknown."""

from dataclasses import replace

import pytest

from judges.campaigns.estimates import CampaignSize, Range, estimate_campaign
from judges.costs.prices import (
    Price,
    answering_model,
    call_cost,
    cost_bound,
    input_bound,
    price_for_judge,
    price_of_reply,
)
from judges.domain.debate import FOR
from judges.prompts.render import TURN_SCHEMA, VOTE_SCHEMA, turn_prompt, vote_prompt
from judges.records import Inputs, Judge, Prompt, Reply, Usage

INPUTS = Inputs("What does a mapping map?", ("Hashable values.",), "", "A mapping maps hashable values. " * 20)
PROMPTS = [turn_prompt(INPUTS, FOR, 1), vote_prompt(INPUTS)]
OWN = Judge("own", "openai-compatible", "m", "http://127.0.0.1:1/v1", id=1, input_price=1.0, output_price=4.0)
LISTED = Judge("listed", "openai", "gpt-4o-mini", id=2)
UNKNOWN = Judge("new", "openai", "a-model-of-tomorrow", id=3)
OFFLINE = Judge("offline-bm25", "offline", "bm25", id=4)


def test_listed_models_and_addresses_have_the_price_of_the_table() -> None:
    assert price_for_judge(LISTED) == Price(0.15, 0.075, 0.6)
    known = price_for_judge(Judge("d", "openai-compatible", "deepseek-chat", "https://api.deepseek.com/v1", id=7))
    assert known is not None
    assert known.input > known.cached > 0 and known.output > 0


@pytest.mark.parametrize(
    "judge",
    [
        UNKNOWN,
        replace(LISTED, model="gpt-4o-minimal"),
        replace(LISTED, base_url="http://127.0.0.1:1/v1"),
        replace(OWN, input_price=None, output_price=None),
        replace(OWN, base_url="", input_price=None, output_price=None),
        replace(UNKNOWN, input_price=1.0),
        Judge("a", "anthropic", "gpt-4o-mini", id=5),
        Judge("g", "google", "", id=6),
    ],
)
def test_an_unknown_price_stays_unknown(judge: Judge) -> None:
    assert price_for_judge(judge) is None


def test_the_cost_counts_cached_input_once_at_its_own_price() -> None:
    known = Price(input=10.0, cached=1.0, output=100.0)
    dear = Price(input=10.0, cached=1.0, output=100.0, written=12.5)
    assert dear.cost(Usage(input=1000, cached=200, written=300)) == pytest.approx((500 * 10 + 200 + 300 * 12.5) / 1e6)
    assert dear.most(1000, 10) == pytest.approx((1000 * 12.5 + 10 * 100) / 1e6)
    haiku = price_for_judge(replace(LISTED, provider="anthropic", model="claude-haiku-4-5"))
    assert haiku is not None and haiku.written == pytest.approx(1.25 * haiku.input)
    assert known.cost(Usage(input=1000, cached=400, output=10, reasoning=5)) == pytest.approx(
        (600 * 10 + 400 * 1 + 10 * 100) / 1e6
    )
    assert known.cost(Usage(input=100, cached=400)) == pytest.approx(100 * 1 / 1e6)
    assert known.cost(Usage()) == 0


@pytest.mark.parametrize("document", ["plain", "文档里的汉字" * 50, "مرحبا " * 50, "🙂" * 50, "\0\x01" * 50])
def test_the_upper_bound_is_at_least_the_bytes_that_are_sent(document: str) -> None:
    inputs = replace(INPUTS, document=document)
    prompt = vote_prompt(inputs)
    most = input_bound(OWN, prompt, VOTE_SCHEMA)
    assert most >= len((prompt.system + prompt.user).encode())
    assert cost_bound(OWN, prompt, VOTE_SCHEMA, Price(1.0, 1.0, 4.0)) == pytest.approx((most * 1 + 512 * 4) / 1e6)


def options(policy: str, judge: Judge = OWN, **values: object) -> CampaignSize:
    judges = [replace(judge, name=f"j{number}") for number in range(5)]
    return CampaignSize(100, policy, judges[:2], judges, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("policy", "low", "upper"),
    [("debate", 200, 400), ("ensemble", 500, 900), ("debate+ensemble", 700, 900), ("single", 100, 100)],
)
def test_calls_follow_the_policy(policy: str, low: int, upper: int) -> None:
    calls = estimate_campaign(options(policy), PROMPTS).calls
    assert (calls.low, calls.upper) == (low, upper)
    assert low <= calls.expected <= upper


def test_one_round_and_an_early_stop_need_fewer_calls_and_writing_one_call_or_two() -> None:
    assert estimate_campaign(options("debate", rounds=1), PROMPTS).calls.upper == 200
    early = estimate_campaign(options("ensemble", early_stop=True), PROMPTS).calls
    assert early.low == pytest.approx(300)
    assert early.expected < estimate_campaign(options("ensemble"), PROMPTS).calls.expected
    # 10 pairs: 10 to 20 texts, and for each of them its entities and its scores. Prompts of 100 and 200 bytes.
    prompts = [Prompt(name, "", "", "x" * size) for name, size in (("write", 100), ("entity", 100), ("measure", 200))]
    writing = CampaignSize(10, "evidence", voters=[OWN])
    assert estimate_campaign(writing, prompts).calls == Range(10, 13, 20)
    both = estimate_campaign(replace(writing, voters=[OWN, replace(OWN, name="measurer")]), prompts)
    assert both.calls == Range(30, 39, 60)
    low_tokens = 10 * (100 + 100 + 200) / 5
    assert both.tokens_in.low == low_tokens and both.tokens_out.expected == 13 * (250 + 40 + 120)


def test_the_cost_lies_between_its_bounds_grows_with_the_pairs_and_is_free_offline_and_for_nothing() -> None:
    once = estimate_campaign(options("debate+ensemble"), PROMPTS)
    assert once.cost is not None and 0 < once.cost.low < once.cost.expected < once.cost.upper
    twice = estimate_campaign(replace(options("debate+ensemble"), pairs=200), PROMPTS)
    assert twice.cost is not None and twice.cost.expected == pytest.approx(2 * once.cost.expected, rel=1e-5)
    assert "about $" in once.line() and not once.free
    whole = estimate_campaign(options("debate+ensemble", judge=OFFLINE), PROMPTS)
    assert whole.free and whole.line().endswith("free")
    whole = estimate_campaign(replace(options("debate"), pairs=0), [])
    assert whole.cost is not None and (whole.calls.upper, whole.cost.upper) == (0, 0)


def test_the_upper_cost_holds_every_bound_of_the_calls() -> None:
    """What the engine may reserve for all calls of the sample's pair, round 2 with the longest history included."""
    turn, vote = PROMPTS
    longer = Prompt(turn.name, turn.sha256, turn.system, turn.user + "x" * 8 * 512)
    known = Price(1.0, 1.0, 4.0)
    bounds = [(turn, TURN_SCHEMA, 2), (longer, TURN_SCHEMA, 2), (vote, VOTE_SCHEMA, 5)]
    reserved = sum(number * cost_bound(OWN, prompt, schema, known) for prompt, schema, number in bounds)
    whole = estimate_campaign(replace(options("debate+ensemble"), pairs=1), PROMPTS)
    assert whole.cost is not None
    assert whole.cost.upper >= reserved * (1 - 1e-12)


def test_an_unknown_price_is_named_and_there_is_no_total_but_what_it_costs_at_least() -> None:
    whole = estimate_campaign(CampaignSize(1000, "debate", [OWN, UNKNOWN]), PROMPTS)
    assert whole.unknown == ("new (a-model-of-tomorrow)",) and whole.calls.upper == 4000
    alone = estimate_campaign(CampaignSize(1000, "debate", [OWN]), PROMPTS)
    assert alone.cost is not None and whole.known == alone.cost and whole.cost is None
    assert f"at least about ${alone.cost.expected:,.2f}, " in whole.line() and "price of new" in whole.line()


def test_the_tier_that_served_the_call_is_the_tier_that_is_paid() -> None:
    listed = Judge("j", "openai", "gpt-5.4", id=1)
    usual, priority = price_for_judge(listed), Reply("", tier="priority", usage=Usage(1000, 0, 100))
    served = price_of_reply(listed, priority, usual, {})
    assert usual is not None and served is not None and served.input > usual.input
    assert price_of_reply(listed, Reply("", tier="default"), usual, {}) == usual
    own = Judge("j", "openai", "gpt-5.4", id=1, input_price=2.0, output_price=8.0)
    assert price_of_reply(own, priority, price_for_judge(own), {}) is None, "the team said nothing of that tier"


def test_another_model_is_priced_as_itself_and_never_as_what_was_asked_for() -> None:
    asked = Judge("g", "google", "gemini-2.5-pro", id=1)
    reply = Reply("", model="gemini-2.5-flash", usage=Usage(2000, 0, 600))
    assert answering_model(asked, reply) == "gemini-2.5-flash"
    assert price_of_reply(asked, reply, price_for_judge(asked), {}) == price_for_judge(
        Judge("g", "google", "gemini-2.5-flash", id=1)
    )
    unknown = Reply("", model="a-model-of-tomorrow", usage=Usage(2000, 0, 600))
    price = price_of_reply(asked, unknown, price_for_judge(asked), {})
    assert call_cost(price, unknown.usage) is None
    team = {"a-model-*": Price(1, 1, 2), "a-model-of-tomorrow": Price(3, 3, 4)}
    assert price_of_reply(asked, unknown, price_for_judge(asked), team) == Price(3, 3, 4)


@pytest.mark.parametrize("preset", ["vllm", "ollama", "lm-studio", "llama-cpp", "tgi", "litellm"])
def test_a_server_of_ones_own_may_call_its_model_what_it_likes(preset: str) -> None:
    judge = Judge("s", preset, "judge", id=1, input_price=1.0, output_price=2.0)
    reply = Reply("", model="/models/qwen3-8b-q4.gguf", usage=Usage(10, 0, 5))
    assert price_of_reply(judge, reply, price_for_judge(judge), {}) == price_for_judge(judge)
    free = Judge("s", "openai-compatible", "judge", id=1, input_price=0.0, output_price=0.0)
    assert call_cost(price_of_reply(free, reply, price_for_judge(free), {}), reply.usage) == 0.0
