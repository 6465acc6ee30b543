"""Models that think, through the judges file and the SDK at their look-alikes: known by name, with room, and read."""

from dataclasses import replace
from typing import Any

import pytest

from judges.domain.verdicts import unwrap_answer
from judges.errors import Rejected
from judges.panels.judge_keys import JudgeTable
from judges.presets.thinking import known_to_think
from tests.judges.presets.asked import ask, judge_of, verdict, vote_of
from tests.modelserver.fixtures import LocalModels
from tests.modelserver.presets.native import NATIVE
from tests.stages import crossed

pytestmark = pytest.mark.usefixtures("cloud")

ROOM = {"max_output_tokens": 4096}
KEPT: list[tuple[str, str, dict[str, Any], int, int]] = [
    ("openai-responses", "m", {"thinking": True}, 40, 900),
    ("anthropic", "m", {"thinking": 2000}, 40, 900),
    ("bedrock", "m", {"thinking": 2000}, 40, 0),
    ("vertex-anthropic", "m", {"thinking": 2000, "schema_mode": "tool"}, 40, 0),
    ("google", "m", {"thinking": 900}, 40, 900),
    ("vertex", "m", {"thinking": True}, 40, 900),
    ("deepseek", "deepseek-v4-flash", {}, 40, 900),
    ("qwen", "qwen-plus", {"thinking": True}, 40, 900),
    ("mistral", "magistral-medium-2509", {}, 40, 0),
    ("xai", "grok-3-mini", {}, 40, 900),
    ("groq", "openai/gpt-oss-120b", {}, 40, 900),
    ("together", "deepseek-ai/DeepSeek-R1", {}, 40, 0),
    ("fireworks", "accounts/fireworks/models/deepseek-r1-0528", {}, 40, 0),
    ("openrouter", "deepseek/deepseek-r1", {}, 40, 900),
    ("vllm", "m", ROOM, 0, 0),
    ("vllm+inline", "m", ROOM, 0, 0),
    ("sglang", "m", ROOM, 0, 900),
    ("sglang+cache", "m", ROOM, 40, 900),
    ("llama-cpp", "m", ROOM, 40, 0),
    ("ollama", "m", ROOM, 0, 0),
    ("lm-studio", "m", ROOM, 0, 0),
    ("tgi", "m", ROOM, 0, 0),
    ("litellm", "m", ROOM, 40, 900),
]
"""Preset or its variant, model, keys; tokens of the cache and of thoughts that the host tells of."""
CLAUDES = ["anthropic", "bedrock", "vertex-anthropic"]
NATIVE_NAMES = {alike.name for alike in NATIVE}
WRITING = ["openai-responses", *CLAUDES, "openrouter"]
"""They tell what was written to the cache."""


@pytest.mark.parametrize(("alike", "model", "keys", "cached", "reasoning"), KEPT)
def test_thoughts_are_kept_beside_the_answer_and_tokens_are_read_right(
    model_server: LocalModels, alike: str, model: str, keys: dict[str, Any], cached: int, reasoning: int
) -> None:
    thought = 'Hm. {"response": "no"}'
    script = {"verdict": "yes", "reasoning": 900, "thought": thought, "cached": 40, "written_tokens": 4}
    model_server.script({model: script})
    preset = alike.partition("+")[0]
    judge = judge_of(model_server, preset, model, alike, **keys)
    (reply,) = ask(vote_of(judge))
    assert verdict(reply, judge) == 1 and not reply.truncated
    assert (reply.reasoning or unwrap_answer(reply.text, judge.unwrap)[1]) == thought
    assert (reply.usage.cached, reply.usage.reasoning) == (cached, reasoning)
    assert reply.usage.written == (4 if preset in WRITING else 0)
    assert 900 < reply.usage.output < 1000 and reply.usage.is_known
    assert reply.raw.startswith("data: ") == (preset == "qwen")


THINKING: dict[str, tuple[str, dict[str, Any]]] = {
    "openai": ("gpt-5-mini", {"reasoning_effort": "low"}),
    "openai-responses": ("gpt-6-mini", {}),
    "azure": ("gpt-5", {"reasoning_effort": "low", "api_version": "2025-04-01-preview"}),
    "anthropic": ("claude-opus-5", {"thinking": True}),
    "bedrock": ("global.anthropic.claude-opus-5", {}),
    "google": ("gemini-2.5-pro", {"thinking": True}),
    "vertex": ("gemini-2.5-pro", {}),
    "vertex-anthropic": ("claude-sonnet-5", {}),
} | {preset: (model, keys) for preset, model, keys, *_ in KEPT if model != "m"}


@pytest.mark.parametrize("preset", THINKING)
def test_none_of_twenty_answers_of_a_thinking_model_is_truncated(model_server: LocalModels, preset: str) -> None:
    model, keys = THINKING[preset]
    model_server.script({model: {"verdict": "yes", "reasoning": 3000, "thought": "Hm."}})
    judge = judge_of(model_server, preset, model, **keys)
    assert judge.parameters["max_output_tokens"] == 4096
    assert preset in NATIVE_NAMES or judge.parameters["temperature"] == "default"
    short = judge_of(model_server, preset, model, **keys, max_output_tokens=512)
    *whole, cut = ask(*[vote_of(judge)] * 20, vote_of(short))
    assert [(verdict(reply, judge), reply.truncated) for reply in whole] == [(1, False)] * 20
    assert min(reply.usage.output for reply in whole) > 3000
    assert cut.truncated


THINKERS = {
    "bedrock": ["anthropic.claude-mythos-5"],
    "vertex-anthropic": ["claude-haiku-5-5"],
    "vertex": ["gemini-2.5-flash", "gemini-3-pro"],
    "openai": ["gpt-6"],
    "openrouter": ["anthropic/claude-opus-5", "x-ai/grok-4-fast"],
    "groq": ["moonshotai/kimi-k2-thinking"],
    "vllm": ["deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "deepseek-r1:8b", "Qwen/Qwen3-8B", "qwen3:8b", "Qwen/QwQ-32B"],
    "sglang": ["Qwen/Qwen3-235B-A22B-Thinking-2507", "openai/gpt-oss-20b"],
}
OTHERS = {
    "bedrock": ["eu.anthropic.claude-haiku-4-5-20251001-v1:0"],
    "vertex-anthropic": ["claude-opus-4-8"],
    "vertex": ["gemini-2.5-flash-lite", "gemini-2.0-flash"],
    "openai-responses": ["gpt-5-chat-latest"],
    "openrouter": ["anthropic/claude-opus-4.5", "openai/gpt-5-chat", "x-ai/grok-4-fast:non-reasoning"],
    "vllm": ["Qwen/Qwen3-30B-A3B-Instruct-2507", "Qwen/Qwen2.5-7B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"],
    "ollama": ["gemma3:4b"],
}
NAMED_MODELS = [(preset, model, True) for preset, models in THINKERS.items() for model in models]
NAMED_MODELS += [(preset, model, False) for preset, models in OTHERS.items() for model in models]


@pytest.mark.parametrize(("preset", "model", "thinks"), NAMED_MODELS)
def test_models_are_known_to_think_by_their_names(model_server, preset, model, thinks):
    judge = judge_of(model_server, preset, model)
    assert (judge.max_output_tokens, known_to_think(model, judge.parameters, judge.preset)) == (
        (4096, True) if thinks else (512, False)
    )
    assert preset in CLAUDES or (judge.parameters.get("temperature") == "default") is thinks


@pytest.mark.parametrize(("preset", "model"), [("anthropic", "claude-opus-5"), ("google", "gemini-2.5-pro")])
def test_old_providers_decide_nothing_by_a_name_and_know_it(model_server: LocalModels, preset: str, model: str) -> None:
    judge = judge_of(model_server, preset, model)
    assert judge.parameters == {} and known_to_think(model, {}, judge.preset)
    assert not known_to_think(model, {"thinking": False}, judge.preset)
    table = {"name": "j", "provider": "vllm", "model": "qwen3:8b", "thinking": False}
    assert JudgeTable.model_validate(table).entry().parameters == {"unwrap": "both", "thinking": False}


CLAUDE_MODELS = ["claude-opus-5", "claude-fable-5", "claude-opus-5-5", "claude-haiku-4-5"]


@pytest.mark.parametrize(("model", "preset"), crossed(CLAUDE_MODELS, CLAUDES))
def test_no_tool_is_forced_on_a_claude_that_thinks_by_itself(model_server, model, preset):
    judge = judge_of(model_server, preset, model, schema_mode="tool")
    assert verdict(ask(vote_of(judge))[0], judge) == 1
    choice = model_server.requests()[-1]["body"]["tool_choice"]["type"]
    assert choice == ("tool" if model == "claude-haiku-4-5" else "auto")


@pytest.mark.parametrize("preset", CLAUDES)
def test_thoughts_of_newer_claude_models_come_because_they_are_asked_for(model_server, preset):
    model_server.script({"claude-opus-4-7": {"verdict": "yes", "reasoning": 90, "thought": "Hm."}})
    asks = judge_of(model_server, preset, "claude-opus-4-7", thinking=True)
    plain = judge_of(model_server, preset, "claude-opus-4-7", extra_body={"thinking": {"type": "adaptive"}})
    plain = replace(plain, parameters={**plain.parameters, "schema_mode": "text"})
    shown, hidden = ask(vote_of(asks), vote_of(plain))
    assert shown.reasoning == "Hm." and hidden.reasoning == "" and hidden.usage.output > 90


NAMED = {"type": "function", "function": {"name": "answer"}}


@pytest.mark.parametrize(
    ("preset", "model", "keys", "choice"),
    [
        ("deepseek", "deepseek-v4-flash", {}, "auto"),
        ("deepseek", "deepseek-v4-flash", {"thinking": False}, NAMED),
        ("qwen", "qwen-plus", {"thinking": 900}, "auto"),
        ("qwen", "qwen-plus", {}, NAMED),
    ],
)
def test_a_tool_is_forced_only_where_the_model_does_not_think(model_server, preset, model, keys, choice):
    judge = judge_of(model_server, preset, model, schema_mode="tool", **keys)
    assert verdict(ask(vote_of(judge))[0], judge) == 1
    assert model_server.requests()[-1]["body"]["tool_choice"] == choice


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


TEMPLATE = {"chat_template_kwargs": {"enable_thinking": False, "thinking": False}}


@pytest.mark.parametrize(
    ("name", "off"),
    [
        ("vllm", TEMPLATE),
        ("sglang", TEMPLATE),
        ("llama-cpp", TEMPLATE),
        ("ollama", {"reasoning_effort": "none"}),
        ("litellm", {"thinking": {"type": "disabled"}}),
    ],
)
def test_thinking_is_turned_off_as_the_server_has_it(model_server: LocalModels, name: str, off: dict[str, Any]) -> None:
    model_server.script({"Qwen/Qwen3-8B": {"verdict": "yes", "reasoning": 2400}})
    (reply,) = ask(vote_of(judge_of(model_server, name, "Qwen/Qwen3-8B", thinking=False)))
    assert reply.finish_reason == "stop" and not reply.reasoning and reply.usage.output < 100
    body = model_server.requests()[0]["body"]
    assert {field: body[field] for field in off} == off and body["max_tokens"] == 512
