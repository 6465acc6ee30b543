"""Servers that a team runs itself, by preset: vLLM, SGLang, llama.cpp, Ollama, LM Studio, TGI, LiteLLM."""

import asyncio
import json
import urllib.request
from pathlib import Path
from urllib.parse import urljoin

import pytest
from django.core.management import call_command

from corpus.errors import BadInput
from judges.errors import Refused, Rejected
from judges.models import Attempt
from judges.panels.judges_file import parse
from judges.presets import PRESETS
from judges.presets.record import Context
from judges.probes.catalogues import context_length
from judges.probes.checks import run_checks
from judges.prompts.render import VOTE_SCHEMA
from tests.engine_parts import collection_of, judge, sums_up
from tests.judges.presets.asked import ask, judge_of, vote_of
from tests.modelserver.fixtures import KEY, LocalModels
from tests.modelserver.presets.local import CONTEXT, LOCAL, MODEL, OLLAMA_CONTEXT, PLAIN
from tests.stages import first_slow

NAMES = [one.name for one in PLAIN]
QWEN = "Qwen/Qwen3-8B"
OPENAI_FORM = {"type": "json_schema", "json_schema": {"name": "answer", "schema": VOTE_SCHEMA, "strict": True}}


def test_presets_of_local_servers_have_look_alikes_and_need_no_key_but_an_address() -> None:
    local = [one for one in PRESETS.values() if one.local]
    assert [one.name for one in local] == NAMES
    assert not any(one.key_env or one.batch for one in local)
    for name in ("llama-cpp", "tgi"):
        given = f'[[judge]]\nname = "j"\nprovider = "{name}"\nmodel = "m"'
        with pytest.raises(BadInput, match="base_url is missing"):
            parse(given)


@pytest.mark.parametrize(
    ("name", "model", "length"),
    [
        ("litellm", MODEL, CONTEXT),
        ("litellm", "unknown", None),
        ("vllm", MODEL, CONTEXT),
        ("vllm", "a-lora-of-it", CONTEXT),
        ("sglang", MODEL, CONTEXT),
        ("llama-cpp", "any", 8192),
        ("ollama", MODEL, OLLAMA_CONTEXT),
        ("lm-studio", MODEL, 8192),
        ("lm-studio", "unknown", None),
        ("tgi", "any", 8192),
    ],
)
def test_a_server_tells_how_long_its_context_is(model_server, name, model, length):
    context = PRESETS[name].context
    assert context is not None
    with urllib.request.urlopen(urljoin(f"{model_server.google}/{name}/v1/", context.path)) as answer:
        assert context_length(context, json.load(answer), model) == length


@pytest.mark.parametrize(
    "told", [None, [], {}, {"data": []}, {"data": [1]}, {"data": [{"id": "m", "n": True}]}, {"data": {"id": "m"}}]
)
def test_a_context_length_is_a_number_or_not_told(told: object) -> None:
    assert context_length(Context("models", ("data[id].n", "n")), told, "m") is None


@pytest.mark.parametrize("name", [one.name for one in LOCAL if one.name.endswith("+key")])
def test_a_key_is_sent_where_the_file_names_one(model_server: LocalModels, name: str) -> None:
    preset = name.removesuffix("+key")
    with pytest.raises(Refused, match=r"401 .*none is set"):
        ask(vote_of(judge_of(model_server, preset, alike=name, api_key_env=None)))
    ask(vote_of(judge_of(model_server, preset, alike=name)))
    assert [sent["key"] for sent in model_server.requests()] == ["", KEY]


def test_a_gateway_takes_a_budget_of_thoughts_for_the_models_that_have_it(model_server: LocalModels) -> None:
    model_server.script(m={"verdict": "yes", "reasoning": 4000})
    (reply,) = ask(vote_of(judge_of(model_server, "litellm", "m", thinking=1024)))
    assert reply.finish_reason == "stop" and reply.usage.reasoning == 1024
    with pytest.raises(Rejected, match="UnsupportedParamsError"):
        ask(vote_of(judge_of(model_server, "litellm", "plain+yes", reasoning_effort="low")))
    with pytest.raises(Refused, match="Invalid model name"):
        ask(vote_of(judge_of(model_server, "litellm", "no-such")))


def test_parameters_stand_under_the_names_of_the_server(model_server: LocalModels) -> None:
    keys = {"seed": 7, "stop": ["###"], "top_p": 0.5, "temperature": 0.3}
    for name in NAMES:
        ask(vote_of(judge_of(model_server, name, max_output_tokens=300, **keys)))
    wanted = {**keys, "max_tokens": 300}
    assert all(sent["body"].items() >= wanted.items() for sent in model_server.requests())


def test_openai_compatible_sends_and_parses_what_it_always_did(model_server: LocalModels) -> None:
    one = judge_of(model_server, "openai-compatible", alike="vllm")
    assert one.parameters == {} and one.unwrap == "none"
    ask(vote_of(one))
    body = model_server.requests()[0]["body"]
    assert set(body) == {"model", "messages", "response_format", "temperature", "max_tokens"}
    assert (body["response_format"], body["temperature"], body["max_tokens"]) == (OPENAI_FORM, 0, 512)


LENGTHS = {"litellm": CONTEXT, "vllm": CONTEXT, "sglang": CONTEXT, "ollama": OLLAMA_CONTEXT}


@pytest.mark.parametrize("name", NAMES)
def test_check_judges_finds_what_a_server_gives(model_server: LocalModels, name: str) -> None:
    (found,) = asyncio.run(run_checks([(judge_of(model_server, name, MODEL), "vote")]))
    assert len(model_server.requests()) <= 2
    assert found.found["context"] == LENGTHS.get(name, 8192)
    assert bool(found.found["logprobs"]) is bool(PRESETS[name].logprobs)
    # Ollama cuts what does not fit, without a word; the others refuse it, and its script decides how much fits.
    assert "cuts long prompts" in found.problem if name == "ollama" else found.problem == ""
    too_short = any("Chinese" in warning for warning in found.warnings)
    assert too_short is (found.found["context"] < CONTEXT and name != "ollama")


MEMBERS = ["a", "b", "v1", "v2", "v3", "v4", "v5"]
FREE = "input_price = 0\noutput_price = 0"
# The first two have thoughts in the text.
ALIKES = ["vllm+inline", "tgi", "litellm", "vllm", "sglang", "llama-cpp", "ollama", "lm-studio", "lm-studio+separate"]


def configure(models: LocalModels, path: Path, alike: str, lines: str) -> None:
    """A panel of seven judges of one model that thinks, taken over from a file without keys."""
    own = f'provider = "{alike.partition("+")[0]}"\nbase_url = "{models.google}/{alike}/v1"\nmodel = "Qwen/Qwen3-8B"'
    tables = [f'[[judge]]\nname = "{name}"\n{own}\n{lines}' for name in MEMBERS]
    panel = f"[panel]\ndebate = {json.dumps(MEMBERS[:2])}\nensemble = {json.dumps(MEMBERS[2:])}"
    (path / "judges.toml").write_text("\n\n".join([*tables, panel]))
    call_command("configure_judges", str(path / "judges.toml"))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("alike", first_slow(ALIKES, 2))
def test_a_thinking_model_judges_a_campaign_without_a_key_and_for_nothing(worker, model_server, tmp_path, alike):
    configure(model_server, tmp_path, alike, FREE)
    thought = 'Somebody would say {"response": "no"} here. '
    model_server.script({"*": {"verdict": "yes", "reasoning": 1800, "thought": thought}})
    collection_of(2)
    status = judge(check=True).json
    assert (status["labelled"], status["failed"], status["escalated"]) == (2, 0, 0) and sums_up(status)
    assert status["calls"] == len(MEMBERS) * 2, "no answer needed a repair or another try"
    assert status["cost"] == 0 and status["calls_without_price"] == 0
    attempts = Attempt.objects.all()
    assert {(one.outcome, one.verdict, one.reasoning.strip()) for one in attempts} == {("labelled", 1, thought.strip())}
    assert {sent["key"] for sent in model_server.requests()} == {""}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("alike", ["vllm", "ollama"])
def test_a_local_model_costs_nothing_only_where_the_file_says_so(worker, model_server, tmp_path, alike):
    assert PRESETS[alike].local
    configure(model_server, tmp_path, alike, "thinking = false")
    collection_of(1)
    status = judge("--policy", "debate", check=True).json
    assert status["calls_without_price"] == status["calls"] > 0
    assert set(Attempt.objects.values_list("cost", flat=True)) == {None}
