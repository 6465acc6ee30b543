"""Presets of hosted models against their look-alikes: what each takes and refuses, thoughts, usage, limits."""

import json
from typing import Any

import pytest

from judges.domain.verdicts import unwrap_answer
from judges.errors import BadAnswer, Overloaded, RateLimited, Refused, Rejected
from judges.presets import PRESETS
from judges.providers.replies import refusal_error
from tests.judges.presets.asked import ask, judge_of, verdict, vote_of
from tests.modelserver.fixtures import KEY_ENV, LocalModels

HOSTED = ["deepseek", "qwen", "mistral", "xai", "groq", "together", "fireworks", "openrouter"]
LOCAL = ["litellm", "vllm", "sglang", "llama-cpp", "ollama", "tgi"]


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, {"code": "Client specified an invalid argument", "error": "Incorrect API key provided: x"}, Refused),
        (400, {"code": "Client specified an invalid argument", "error": "Model x does not support stop."}, Rejected),
        (400, {"error": {"code": "Arrearage", "message": "Access denied"}}, Refused),
        (402, {"error": {"message": "Insufficient Balance"}}, Refused),
        (412, {"error": {"message": "Account suspended"}}, Refused),
        (498, {"error": {"message": "no room", "code": "capacity_exceeded"}}, Overloaded),
        (400, {"error": {"message": "no JSON", "code": "json_validate_failed"}}, BadAnswer),
        (422, {"object": "error", "message": {"detail": [{"type": "extra_forbidden"}]}}, Rejected),
    ],
)
def test_refusals_of_hosts_are_told_apart(status: int, body: dict[str, Any], kind: type) -> None:
    error = refusal_error("host", status, json.dumps(body), None)
    assert type(error) is kind and str(error).startswith(f"host: {status} ")


# Through the judges file, the wire and the SDK


def sent(models: LocalModels) -> dict[str, Any]:
    """The body of the last request."""
    return dict(models.requests()[-1]["body"])


@pytest.mark.parametrize("preset", HOSTED)
def test_a_context_that_is_too_long_is_refused_for_good(model_server: LocalModels, preset: str) -> None:
    model_server.script(m={"context": 100})
    with pytest.raises(Rejected) as error:
        ask(vote_of(judge_of(model_server, preset, "m")))
    assert not isinstance(error.value, Refused)


THINKING = {
    "deepseek": ("deepseek-v4-flash", {}),
    "qwen": ("qwen-plus", {"thinking": True}),
    "mistral": ("magistral-medium-2509", {}),
    "xai": ("grok-3-mini", {}),
    "groq": ("openai/gpt-oss-120b", {}),
    "together": ("deepseek-ai/DeepSeek-R1", {}),
    "fireworks": ("accounts/fireworks/models/deepseek-r1-0528", {}),
    "openrouter": ("deepseek/deepseek-r1", {}),
}
COUNTED = {"deepseek", "qwen", "xai", "groq", "openrouter"}
"""Hosts that say how many tokens a thought took."""


@pytest.mark.parametrize("preset", HOSTED)
def test_thoughts_are_kept_beside_the_answer_and_tokens_are_read_right(model_server: LocalModels, preset: str) -> None:
    model, keys = THINKING[preset]
    model_server.script(
        {model: {"verdict": "yes", "reasoning": 700, "thought": "It says so.", "cached": 9, "written_tokens": 4}}
    )
    judge = judge_of(model_server, preset, model, **keys)
    (reply,) = ask(vote_of(judge))
    assert verdict(reply, judge) == 1 and reply.reasoning == "It says so."
    assert reply.raw.startswith("data: ") == (preset == "qwen")
    assert reply.usage.cached == 9 and reply.usage.written == (4 if preset == "openrouter" else 0)
    assert reply.usage.reasoning == (700 if preset in COUNTED else 0)
    assert 700 < reply.usage.output < 800 and reply.usage.said


@pytest.mark.parametrize(
    ("preset", "model", "keys", "choice"),
    [
        ("deepseek", "deepseek-v4-flash", {}, "auto"),
        ("deepseek", "deepseek-v4-flash", {"thinking": False}, {"type": "function", "function": {"name": "answer"}}),
        ("qwen", "qwen-plus", {"thinking": 900}, "auto"),
        ("qwen", "qwen-plus", {}, {"type": "function", "function": {"name": "answer"}}),
    ],
)
def test_a_tool_is_forced_only_where_the_model_does_not_think(model_server, preset, model, keys, choice):
    judge = judge_of(model_server, preset, model, schema_mode="tool", **keys)
    assert verdict(ask(vote_of(judge))[0], judge) == 1
    assert sent(model_server)["tool_choice"] == choice


def test_a_qwen_that_thinks_is_asked_in_words(model_server: LocalModels) -> None:
    judge = judge_of(model_server, "qwen", "qwen-plus", thinking=900)
    assert judge.schema_mode == "text" and verdict(ask(vote_of(judge))[0], judge) == 1
    with pytest.raises(Rejected, match="Json mode"):
        ask(vote_of(judge_of(model_server, "qwen", "qwen-plus", thinking=900, schema_mode="json_object")))


@pytest.mark.parametrize(
    ("preset", "model", "keys"),
    [
        ("groq", "qwen/qwen3-32b", {"schema_mode": "text"}),
        ("together", "deepseek-ai/DeepSeek-R1-Distill-Llama-70B", {}),
        ("fireworks", "accounts/fireworks/models/qwq-32b", {}),
        ("mistral", "magistral-small-2506", {"unwrap": "think"}),
    ],
)
def test_thoughts_within_the_answer_are_unwrapped(model_server, preset, model, keys):
    model_server.script({model: {"verdict": "no", "reasoning": 60, "thought": 'Not "yes".'}})
    judge = judge_of(model_server, preset, model, **keys)
    (reply,) = ask(vote_of(judge))
    assert reply.text.startswith("<think>") and verdict(reply, judge) == 0
    assert unwrap_answer(reply.text, judge.unwrap)[1].strip() == 'Not "yes".'


def test_a_model_that_hides_its_thoughts_is_read_all_the_same(model_server: LocalModels) -> None:
    model_server.script({"grok-4.3": {"verdict": "yes", "reasoning": 700}})
    judge = judge_of(model_server, "xai", "grok-4.3", reasoning_effort="low")
    (reply,) = ask(vote_of(judge))
    assert verdict(reply, judge) == 1 and reply.reasoning == ""
    assert reply.usage.reasoning == 700 and reply.usage.output > 700


@pytest.mark.parametrize("preset", HOSTED)
def test_none_of_a_hundred_answers_of_a_thinking_model_is_truncated(model_server: LocalModels, preset: str) -> None:
    model, keys = THINKING[preset]
    model_server.script({model: {"verdict": "yes", "reasoning": 3000, "thought": "Hm."}})
    judge = judge_of(model_server, preset, model, **keys)
    assert judge.parameters["max_output_tokens"] == 4096 and judge.parameters["temperature"] == "default"
    replies = ask(*[vote_of(judge)] * 100)
    assert [verdict(reply, judge) for reply in replies] == [1] * 100
    assert not any(reply.truncated for reply in replies)
    short = judge_of(model_server, preset, model, **keys, max_output_tokens=512)
    assert ask(vote_of(short))[0].truncated


@pytest.mark.parametrize(
    ("preset", "keys", "fields"),
    [
        ("deepseek", {"model": "deepseek-v4-flash"}, {"max_tokens": 4096, "temperature": None, "thinking": None}),
        (
            "deepseek",
            {"model": "deepseek-v4-flash", "thinking": False},
            {"max_tokens": 512, "temperature": 0, "thinking": {"type": "disabled"}},
        ),
        ("qwen", {"seed": 3}, {"enable_thinking": False, "stream": None, "seed": 3, "temperature": 0}),
        ("qwen", {"thinking": 900}, {"enable_thinking": True, "thinking_budget": 900, "stream": True}),
        ("qwen", {"model": "qwq-plus"}, {"enable_thinking": True, "stream_options": {"include_usage": True}}),
        ("mistral", {"seed": 3}, {"random_seed": 3, "seed": None, "max_tokens": 512}),
        ("mistral", {"reasoning_effort": "high"}, {"reasoning_effort": "high", "max_tokens": 4096}),
        ("xai", {"model": "grok-4.3", "reasoning_effort": "low"}, {"max_completion_tokens": 4096}),
        ("xai", {"model": "grok-4-fast-non-reasoning"}, {"max_completion_tokens": 512, "temperature": 0}),
        ("groq", {"service_tier": "flex"}, {"service_tier": "flex", "max_completion_tokens": 512}),
        ("together", {"thinking": False}, {"reasoning": {"enabled": False}}),
        ("fireworks", {"thinking": 1024}, {"thinking": {"type": "enabled", "budget_tokens": 1024}}),
        ("openrouter", {"thinking": 1024}, {"reasoning": {"max_tokens": 1024}, "max_completion_tokens": 4096}),
        ("openrouter", {"reasoning_effort": "low"}, {"reasoning": {"effort": "low"}}),
    ],
)
def test_requests_have_the_names_of_their_host(model_server, preset, keys, fields):
    judge = judge_of(model_server, preset, **keys)
    (reply,) = ask(vote_of(judge))
    assert reply.status == 200
    body = sent(model_server)
    assert {name: body.get(name) for name in fields} == fields


@pytest.mark.parametrize("preset", [name for name in (*HOSTED, *LOCAL) if PRESETS[name].logprobs])
def test_log_probabilities_come_with_as_many_alternatives_as_the_host_has(model_server, preset):
    keys = {"thinking": False} if preset == "deepseek" else {}
    judge = judge_of(model_server, preset, logprobs=PRESETS[preset].logprobs, **keys)
    (reply,) = ask(vote_of(judge))
    assert reply.tokens and sent(model_server)["top_logprobs"] == PRESETS[preset].logprobs


def test_a_missing_key_is_the_accounts_fault(model_server: LocalModels) -> None:
    model_server.script({"m": {"fault": "401"}})
    with pytest.raises(Refused, match=f"key: {KEY_ENV}"):
        ask(vote_of(judge_of(model_server, "deepseek", "m")))


@pytest.mark.parametrize(("code", "kind"), [(502, Overloaded), (429, RateLimited), (403, Rejected), ("x", BadAnswer)])
def test_an_error_within_a_choice_is_that_error(model_server: LocalModels, code: object, kind: type) -> None:
    choice = {"error": {"code": code, "message": "upstream"}, "finish_reason": "error", "message": {"content": ""}}
    model_server.script({"m": {"body": json.dumps({"choices": [choice]})}})
    with pytest.raises(kind):
        ask(vote_of(judge_of(model_server, "openrouter", "m")))
