"""Every preset through the real SDK against its look-alike: its judges answer, parameters arrive under its names."""

import html
import json
from dataclasses import asdict, replace
from typing import Any

import pytest
from pydantic import ValidationError

from annotation.models import Role
from config.env import ROOT
from corpus.errors import BadInput
from judges.costs import judge_records
from judges.domain import verdicts
from judges.domain.debate import PAIR
from judges.errors import BadAnswer, Overloaded, RateLimited, Refused, Rejected
from judges.models import Attempt, JudgeVersion
from judges.panels import configuration, judges_file
from judges.presets import PRESETS, Preset
from judges.presets.thinking import THINKING
from judges.prompts import answering, render
from judges.providers import CLASSES
from judges.providers.openai import join_stream, read_usage
from judges.records import Inputs, Judge, ModelRequest
from tests.engine_parts import collection_of, judge, pairs_of
from tests.factories import client_of, make_member
from tests.judges.presets.asked import ask, judge_of, vote_of
from tests.modelserver.fixtures import KEY_ENV, LocalModels
from tests.modelserver.presets import LOOK_ALIKES

ASKED = [one.name for one in PRESETS.values() if one.asks]
ALIKE = [name for name in ASKED if name in LOOK_ALIKES]
"""Here each of them is asked with a key; how requests are signed has tests of its own."""
HOSTED = ["deepseek", "qwen", "mistral", "xai", "groq", "together", "fireworks", "openrouter"]
PAIRS = [
    Inputs("What does a mapping map?", ("Hashable values.",), "", "A mapping maps hashable values. It is mutable."),
    Inputs("What is a set?", (), "Sets", "A set has no order. It has each value once."),
]
NEEDED = {"api_version": "2024-10-21", "region": "eu-west-1", "project": "books"}


def block(models: LocalModels, preset: Preset, name: str = "j", model: str = "yes", **more: Any) -> str:
    """A [[judge]] of the look-alike."""
    home = LOOK_ALIKES[preset.name].home if preset.name in LOOK_ALIKES else "/v1"
    values = {
        "name": name,
        "provider": preset.name,
        "model": model,
        "base_url": f"{models.google}/{preset.name}{home}",
        "api_key_env": KEY_ENV,
        **{key: NEEDED[key] for key in preset.needs if key in NEEDED},
        **more,
    }
    return "\n".join(["[[judge]]", *(f"{key} = {_toml(value)}" for key, value in values.items())])


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + "}"
    return json.dumps(value)


FIVE = '[panel]\ndebate = ["j1", "j2"]\nensemble = ["j1", "j2", "j3", "j4", "j5"]'


def record(text: str) -> Judge:
    """The judge of a [[judge]] as the engine has it."""
    others = [f'[[judge]]\nname = "j{n}"\nprovider = "openai"\nmodel = "m"' for n in range(1, 6)]
    entry = judges_file.parse("\n".join([text, *others, FIVE])).judges[0]
    return replace(judge_records.judge_of(JudgeVersion(**asdict(entry))), id=1)


def requests(asked: Judge) -> list[ModelRequest]:
    """Two pairs: both turns of a first round, and a vote."""
    found = []
    for inputs in PAIRS:
        for seat in PAIR:
            found.append(
                ModelRequest(asked, render.turn_prompt(inputs, seat, 1), render.TURN_SCHEMA, inputs, seat.side)
            )
        found.append(ModelRequest(asked, *render.render_ballot(inputs, asked), inputs, "vote"))
    return [replace(one, prompt=answering.fit_prompt(one.prompt, asked, one.schema)) for one in found]


def body_of(models: LocalModels, judge: Judge) -> dict[str, Any]:
    """Of the one request that a vote of the judge's makes."""
    models.reset()
    ask(requests(judge)[2])
    (sent,) = models.requests()
    return dict(sent["body"])


def test_every_preset_has_its_class_file_and_look_alike() -> None:
    assert {(one.wire, one.client) for one in PRESETS.values()} <= CLASSES.keys()
    assert all(name == one.name for name, one in PRESETS.items())
    assert all(one.schema_mode in one.schema_modes for one in PRESETS.values())
    assert all(one.thinking in (*THINKING, "") for one in PRESETS.values())
    assert set(HOSTED) <= set(ALIKE)
    folder = ROOT / "judges" / "presets"
    assert {path.stem for path in folder.glob("*.toml")} == {"index", *PRESETS}
    assert PRESETS["bedrock"].thinking_models == PRESETS["anthropic"].known_thinkers != ""
    assert not any("{" in one.thinking_models + one.known_thinkers for one in PRESETS.values())
    for wrong in ({"logprob": 5}, {"logprobs": "5"}, {"wire": "chats"}, {"schema_modes": ["json"]}):
        with pytest.raises(ValidationError, match=next(iter(wrong))):
            Preset.model_validate({"name": "mine", "title": "Mine", "wire": "chat", **wrong})


@pytest.mark.parametrize("name", ALIKE)
def test_two_pairs_are_judged_in_every_schema_mode_that_the_preset_has(model_server: LocalModels, name: str) -> None:
    preset = PRESETS[name]
    modes = LOOK_ALIKES[name].modes & set(preset.schema_modes)
    assert preset.schema_mode in modes and (modes == set(preset.schema_modes) or name == "vertex-anthropic")
    for mode in modes:
        asked = requests(record(block(model_server, preset, schema_mode=mode)))
        model_server.reset()
        for one, reply in zip(asked, ask(*asked), strict=True):
            assert reply.finish_reason == "stop", (mode, reply.raw)
            turn = verdicts.parse_answer(one.role, reply.text, one.inputs.document, one.judge)
            assert turn.verdict == 1 and reply.usage.input > 100, (mode, reply.raw)
        assert {sent["mode"] for sent in model_server.requests()} == {mode}


@pytest.mark.parametrize("name", ALIKE)
def test_the_preset_s_own_mode_is_written_into_the_judge(model_server: LocalModels, name: str) -> None:
    preset = PRESETS[name]
    made = record(block(model_server, preset))
    assert made.schema_mode == preset.schema_mode
    free = preset.schema_mode in ("json_object", "text")
    assert (made.ignore_case, made.extra_keys) == (free, "ignore" if free else "refuse")
    assert made.unwrap == ("both" if free and preset.unwrap == "none" else preset.unwrap)


WORDS = [
    ("openai", {"reasoning_effort": "low", "seed": 7, "stop": ["END"], "service_tier": "flex"}, {
        "reasoning_effort": "low", "seed": 7, "stop": ["END"], "service_tier": "flex",
        "max_completion_tokens": 4096, "temperature": None,
    }),
    ("openai", {"reasoning_effort": "none"}, {"reasoning_effort": "none", "temperature": 0,
                                              "max_completion_tokens": 512}),
    ("openai", {"temperature": "default", "extra_body": {"store": False}}, {"temperature": None, "store": False}),
    ("vllm", {"thinking": False, "extra_body": {"chat_template_kwargs": {"more": 1}}}, {
        "chat_template_kwargs": {"enable_thinking": False, "thinking": False, "more": 1},
    }),
]  # fmt: skip


@pytest.mark.parametrize(("name", "keys", "expected"), WORDS)
def test_parameters_stand_under_the_preset_s_names(model_server, name, keys, expected):
    body = body_of(model_server, record(block(model_server, PRESETS[name], **keys)))
    assert {key: body.get(key) for key in expected} == expected


def test_anthropic_s_budget_effort_and_stop(model_server: LocalModels) -> None:
    made = record(block(model_server, PRESETS["anthropic"], thinking=2000, stop=["END"], service_tier="auto"))
    made = replace(made, base_url=model_server.anthropic)
    body = body_of(model_server, made)
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 2000} and body["max_tokens"] == 4096
    assert (body["stop_sequences"], body["service_tier"], "temperature" in body) == (["END"], "auto", False)
    made = replace(made, parameters={"reasoning_effort": "low"})
    assert body_of(model_server, made)["output_config"].keys() == {"format", "effort"}


def test_google_s_budget_safety_settings_and_extra_fields(model_server: LocalModels) -> None:
    safety = {"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}
    keys = {"thinking": 900, "seed": 3, "stop": ["END"], "safety_settings": safety, "service_tier": "flex"}
    made = record(block(model_server, PRESETS["google"], **keys, extra_body={"labels": {"team": "a"}}))
    made = replace(made, base_url=model_server.google, parameters={**made.parameters, "extra_headers": {"x-team": "a"}})
    body = body_of(model_server, made)
    config = body["generationConfig"]
    assert config["thinkingConfig"] == {"thinking_budget": 900, "include_thoughts": True}  # as the SDK writes it
    assert (config["seed"], config["stopSequences"], config["maxOutputTokens"]) == (3, ["END"], 4096)
    assert "temperature" not in config and body["labels"] == {"team": "a"} and body["serviceTier"] == "flex"
    assert body["safetySettings"] == [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]
    assert model_server.requests()[0]["headers"]["x-team"] == "a"
    made = record(block(model_server, PRESETS["openai-responses"], extra_body={"text": {"verbosity": "low"}}))
    assert body_of(model_server, made)["text"]["verbosity"] == "low"


@pytest.mark.parametrize("name", ["openai", "deepseek", "anthropic"])
def test_headers_of_the_judge_s_own_are_sent_and_never_the_key(model_server: LocalModels, name: str) -> None:
    made = record(block(model_server, PRESETS[name], extra_headers={"x-team": "a"}))
    made = replace(made, base_url=model_server.anthropic) if name == "anthropic" else made
    body_of(model_server, made)
    assert model_server.requests()[0]["headers"]["x-team"] == "a"
    with pytest.raises(BadInput, match="api_key_env"):
        record(block(model_server, PRESETS[name], extra_headers={"Authorization": "Bearer x"}))


REFUSED = [
    ("deepseek", {"schema_mode": "json_schema"}, '"json_schema" is not supported by provider deepseek'),
    ("deepseek", {"thinking": 900}, "takes no number of tokens"),
    ("qwen", {"thinking": 5000}, "must leave room for the answer"),
    ("fireworks", {"logprobs": 6}, "must be at most 5"),
    ("mistral", {"logprobs": 5}, "logprobs is not supported by provider mistral"),
    ("openai", {"extra_body": {"messages": []}}, 'names "messages", which Quorum writes itself'),
    ("openai", {"extra_body": {"max_tokens": 9}}, 'names "max_tokens", which changes what a call can cost'),
    ("google", {"extra_body": {"generationConfig": {"candidateCount": 2}}}, 'names "candidateCount", which changes'),
    ("google", {"extra_body": {"generationConfig": {"responseJsonSchema": {}}}},
     'names "generationConfig.responseJsonSchema", which Quorum writes itself'),
    ("google", {"extra_body": {"systemInstruction": {}}}, 'names "systemInstruction", which Quorum writes itself'),
    ("openai-responses", {"extra_body": {"text": {"format": {}}}}, 'names "text.format", which Quorum writes itself'),
    ("openai-responses", {"extra_body": {"instructions": "Say yes."}}, 'names "instructions", which Quorum writes'),
    ("anthropic", {"extra_body": {"output_config": {"format": {}}}}, 'names "output_config.format", which Quorum'),
    ("vllm", {"extra_body": {"guided_json": {}}}, 'names "guided_json", which Quorum writes itself'),
    ("openai", {"extra_body": {"service_tier": "priority"}}, 'names "service_tier", which changes what a call costs'),
    ("anthropic", {"extra_body": {"speed": "fast"}}, 'names "speed", which changes what a call costs'),
    ("anthropic", {"extra_body": {"inference_geo": "us"}}, 'names "inference_geo", which changes what a call costs'),
    ("google", {"extra_body": {"generationConfig": {"serviceTier": "x"}}}, 'names "serviceTier", which changes what'),
    ("openai", {"extra_body": {"reasoning": {"mode": "pro"}}}, 'names "reasoning.mode", which changes what'),
    ("openrouter", {"extra_body": {"plugins": ["web"]}}, 'names "plugins", which changes what a call costs'),
    ("openrouter", {"extra_body": {"models": ["a", "b"]}}, 'names "models", which lets another model answer'),
    ("openrouter", {"extra_body": {"transforms": ["middle-out"]}}, 'names "transforms", which lets a long prompt'),
    ("litellm", {"extra_body": {"extra_body": {"fallbacks": ["b"]}}}, 'names "fallbacks", which lets another'),
    ("ollama", {"extra_body": {"options": {"num_ctx": 8192}}}, "OLLAMA_CONTEXT_LENGTH"),
    ("openai", {"extra_keys": "keep"}, '"keep" is unknown; use one of refuse, ignore'),
    ("openai", {"ignore_case": 1}, "must be true or false"),
    ("openai", {"temperature": "warm"}, "must be a number from 0 to 2, or"),
    ("openai", {"stop": "END"}, "must be a list of texts"),
    ("openrouter", {"thinking": True, "reasoning_effort": "low"}, "thinking does the same as reasoning_effort"),
    ("openai-compatible", {"api_version": "1"}, "api_version is not supported by provider openai-compatible"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "keys", "words"), REFUSED)
def test_what_a_provider_does_not_take_is_refused_by_the_file(model_server, name, keys, words):
    with pytest.raises(BadInput) as caught:
        record(block(model_server, PRESETS[name], **keys))
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_a_prompt_in_another_mode_says_the_schema_in_words_and_is_another_version() -> None:
    plain, tool, text = (Judge("j", "openai-compatible", "m", id=1, parameters={"schema_mode": mode})
                         for mode in ("json_schema", "tool", "text"))  # fmt: skip
    asked = render.vote_prompt(PAIRS[0], 3)
    schema = render.GRADED_SCHEMAS[3]
    assert answering.fit_prompt(asked, plain, schema) == asked
    found = answering.prompt_versions(judges=[plain, tool, text])
    for made in (tool, text):
        fitted = answering.fit_prompt(asked, made, schema)
        assert '"score": a whole number from 0 to 3' in fitted.system and fitted.user == asked.user
        for one in (fitted, render.repair_prompt(fitted, "it was empty")):
            assert found[one.name] == (one.sha256, one.text)
    assert answering.prompt_versions(judges=[plain]) == render.prompt_versions()


@pytest.mark.parametrize("preset", HOSTED)
def test_a_context_that_is_too_long_is_refused_for_good(model_server: LocalModels, preset: str) -> None:
    model_server.script(m={"context": 100})
    with pytest.raises(Rejected) as error:
        ask(vote_of(judge_of(model_server, preset, "m")))
    assert not isinstance(error.value, Refused)


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
    body = model_server.requests()[-1]["body"]
    assert {name: body.get(name) for name in fields} == fields


@pytest.mark.parametrize("preset", [name for name in ALIKE if PRESETS[name].logprobs and PRESETS[name].wire == "chat"])
def test_log_probabilities_come_with_as_many_alternatives_as_the_host_has(model_server, preset):
    keys = {"thinking": False} if preset == "deepseek" else {}
    judge = judge_of(model_server, preset, logprobs=PRESETS[preset].logprobs, **keys)
    (reply,) = ask(vote_of(judge))
    assert reply.tokens and model_server.requests()[-1]["body"]["top_logprobs"] == PRESETS[preset].logprobs


@pytest.mark.parametrize(("code", "kind"), [(502, Overloaded), (429, RateLimited), (403, Rejected), ("x", BadAnswer)])
def test_an_error_within_a_choice_is_that_error(model_server: LocalModels, code: object, kind: type) -> None:
    choice = {"error": {"code": code, "message": "upstream"}, "finish_reason": "error", "message": {"content": ""}}
    model_server.script({"m": {"body": json.dumps({"choices": [choice]})}})
    with pytest.raises(kind):
        ask(vote_of(judge_of(model_server, "openrouter", "m")))


def test_a_stream_is_joined_to_one_answer_and_usage_is_read_where_the_preset_says() -> None:
    parts = [
        {"choices": [{"delta": {"role": "assistant", "reasoning_content": "Let me "}}], "model": "m"},
        {"choices": [{"delta": {"reasoning_content": "see."}}]},
        {"choices": [{"delta": {"content": '{"response": '}}]},
        {"choices": [{"delta": {"content": '"yes"}'}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}},
    ]
    whole = join_stream("".join(f"data: {json.dumps(part)}\n\n" for part in parts) + "data: [DONE]\n\n")
    (choice,) = whole["choices"]
    assert choice["message"] == {"reasoning_content": "Let me see.", "content": '{"response": "yes"}'}
    assert choice["finish_reason"] == "stop" and read_usage(whole["usage"]).input == 7
    failed = {"error": {"message": "no"}}
    assert join_stream(f"data: {json.dumps(failed)}\n\n") == failed
    assert join_stream("data: <html>\n\n") == {}
    counts = {
        "prompt_tokens": 10,
        "completion_tokens": 3,
        "hit": 4,
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    found = read_usage(counts, {"cached": "hit"}, reasoning_apart=True)
    assert (found.cached, found.output, found.reasoning, found.said) == (4, 8, 5, True)
    assert read_usage(counts, {"input": "hit + prompt_tokens"}).input == 14


@pytest.mark.django_db(transaction=True)
def test_what_a_model_thought_is_kept_with_its_answer_and_shown(worker: object, model_server: LocalModels) -> None:
    thought = "It names <b>all</b>."
    model_server.script({"*": {"verdict": "yes", "reasoning": 900, "thought": thought}})
    blocks = [block(model_server, PRESETS["deepseek"], f"j{n}", "deepseek-reasoner") for n in range(1, 6)]
    configuration.store_judges_file(judges_file.parse("\n".join([*blocks, FIVE])))
    collection = collection_of(2)
    status = json.loads(judge("--policy", "debate", check=True).out)
    assert (status["labelled"], status["failed"]) == (2, 0)
    kept = Attempt.objects.values_list("reasoning", "prompt__name", "judge__provider").distinct()
    assert set(kept) == {(thought, "debate-answers-words", "deepseek")}
    client = client_of(make_member(collection, "charlie", Role.ADMIN))
    page = client.get(f"/c/books/pairs/{pairs_of(collection)[0].pk}/").text
    assert html.escape(thought) in page
