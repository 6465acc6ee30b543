"""What a price was for is what it pays for; bills that answers carry stand in providers/test_behaviours.py."""

import pytest

from judges.costs.prices import Price, answering_model, call_cost, price_for_judge, price_of_reply
from judges.records import Judge, Reply, Usage


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
