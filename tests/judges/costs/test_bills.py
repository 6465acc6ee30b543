"""The bill that comes with an answer is the bill; what a price was for is what it pays for."""

import asyncio
from typing import Any

import pytest

from judges.costs.prices import Price, answering_model, call_cost, price_for_judge, price_of_reply
from judges.engine.answers import Sent
from judges.engine.rows import NO_ANSWER
from judges.errors import ProviderError
from judges.prompts.answering import build_request
from judges.providers import close_providers, open_provider
from judges.records import Inputs, Judge, Reply, Usage
from tests.modelserver.fixtures import LocalModels

INPUTS = Inputs("What does a mapping map?", ("Hashable values.",), "", "A mapping maps hashable values.")
OWN = {"input_price": 2.0, "output_price": 8.0}
COUNTS = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}


def answer(judge: Judge) -> Reply | ProviderError:
    async def main() -> Reply | ProviderError:
        try:
            return await open_provider(judge).complete(build_request(judge, INPUTS, "vote"))
        except ProviderError as error:
            return error
        finally:
            await close_providers()

    return asyncio.run(main())


def booked(judge: Judge, table: dict[str, Price] | None = None) -> dict[str, Any]:
    """The row that one call becomes."""
    row = NO_ANSWER | {"role": "vote", "cost": None}
    Sent(row, judge, INPUTS.document, price_for_judge(judge), False, False, "", table=table or {}).ended(answer(judge))
    return row


@pytest.mark.parametrize(
    ("preset", "behaviour", "usd"),
    [
        ("openrouter", {"more": {"usage": {**COUNTS, "cost": 0.01}}}, 0.01),
        ("openrouter", {"more": {"usage": {**COUNTS, "cost": 0}}}, 0.0),
        (
            "openrouter",
            {
                "more": {
                    "usage": {
                        **COUNTS,
                        "cost": 0.001,
                        "is_byok": True,
                        "cost_details": {"upstream_inference_cost": 0.02},
                    }
                }
            },
            0.021,
        ),
        ("xai", {"more": {"usage": {**COUNTS, "cost_in_usd_ticks": 37_756_000}}}, 0.0037756),
        ("litellm", {"more": {"usage": COUNTS}, "headers": {"x-litellm-response-cost": "0.0123"}}, 0.0123),
        # A gateway that cannot price a model says 0, or a word: the team's own price holds.
        ("litellm", {"more": {"usage": COUNTS}, "headers": {"x-litellm-response-cost": "0.0"}}, 0.0028),
        ("litellm", {"more": {"usage": COUNTS}, "headers": {"x-litellm-response-cost": "None"}}, 0.0028),
        # Another's field of that name is nobody's bill.
        ("openai-compatible", {"more": {"usage": {**COUNTS, "cost": 0.01}}}, 0.0028),
        # Thoughts that are counted in the total alone are output.
        ("openai-compatible", {"more": {"usage": {**COUNTS, "total_tokens": 2100}}}, 0.0108),
    ],
)
def test_what_the_answer_says_it_cost_is_booked(
    model_server: LocalModels, preset: str, behaviour: dict[str, Any], usd: float
) -> None:
    model_server.script({"yes": {"verdict": "yes", **behaviour}})
    judge = (
        model_server.judge("yes", **OWN) if preset == "openai-compatible" else model_server.alike(preset, "yes", **OWN)
    )
    row = booked(judge)
    assert row["outcome"] == "labelled", row
    assert row["cost"] == pytest.approx(usd)


def test_an_error_that_comes_with_what_was_used_is_paid_and_says_what_it_is(model_server: LocalModels) -> None:
    body = (
        '{"choices": [{"error": {"code": 502, "message": "the model crashed"}, "message": {"content": "{"}}],'
        ' "model": "yes", "usage": {"prompt_tokens": 1000, "completion_tokens": 400, "total_tokens": 1400}}'
    )
    for status, cost in ((200, 0.0052), (500, 0.0052)):
        model_server.script({"yes": {"body": body, "status": status}})
        row = booked(model_server.judge("yes", **OWN))
        assert (row["outcome"], row["tokens_in"], row["tokens_out"]) == ("error", 1000, 400)
        assert row["cost"] == pytest.approx(cost)
    model_server.script({"yes": {"body": body}})
    assert booked(model_server.judge("yes", **OWN))["error"].endswith("502 the model crashed")


def test_the_tier_that_served_the_call_is_the_tier_that_is_paid(model_server: LocalModels) -> None:
    listed = Judge("j", "openai", "gpt-5.4", id=1)
    usual, priority = price_for_judge(listed), Reply("", tier="priority", usage=Usage(1000, 0, 100))
    served = price_of_reply(listed, priority, usual, {})
    assert usual is not None and served is not None and served.input > usual.input
    assert price_of_reply(listed, Reply("", tier="default"), usual, {}) == usual
    own = Judge("j", "openai", "gpt-5.4", id=1, input_price=2.0, output_price=8.0)
    assert price_of_reply(own, priority, price_for_judge(own), {}) is None, "the team said nothing of that tier"
    model_server.script({"yes": {"verdict": "yes", "more": {"service_tier": "priority"}}})
    assert booked(model_server.judge("yes", **OWN))["cost"] is None
    model_server.script({"yes": {"verdict": "yes", "more": {"service_tier": "default"}}})
    assert booked(model_server.judge("yes", **OWN))["cost"] is not None


def test_speed_and_place_of_anthropic_change_the_price(model_server: LocalModels) -> None:
    judge = model_server.judge("yes", "anthropic", **OWN)
    usage = {"input_tokens": 1000, "output_tokens": 100}
    for more, cost in (({}, 0.0028), ({"inference_geo": "us"}, 0.00308), ({"speed": "fast"}, None)):
        model_server.script({"yes": {"verdict": "yes", "more": {"usage": usage | more}}})
        assert booked(judge)["cost"] == (None if cost is None else pytest.approx(cost)), more


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
