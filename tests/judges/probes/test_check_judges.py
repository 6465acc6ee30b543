"""What check_judges finds out about a judge at look-alikes that refuse what their providers refuse, and advises."""

import asyncio
import io
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from django.core.management import call_command

from corpus.errors import BadInput
from judges.errors import ProviderError, Rejected
from judges.management.commands.presets import EXAMPLES
from judges.models import JudgeVersion
from judges.models.probes import JudgeProbe
from judges.panels import judges_file
from judges.panels.judge_checks import preset_defaults
from judges.presets import PRESETS, SCHEMA_MODES
from judges.probes import remedies
from judges.probes.catalogues import Catalogue, parse_day
from judges.probes.checks import CheckedJudge, _list_warnings, probe_request, run_checks
from judges.providers import close_providers, open_provider
from judges.providers.replies import refusal_error
from judges.records import Judge, Reply, Usage
from tests.judges.panels.test_configure_judges import file_of, run
from tests.judges.presets.asked import ask
from tests.modelserver.fixtures import LocalModels
from tests.modelserver.presets import LOOK_ALIKES
from tests.stages import crossed

ASKED = [name for name, preset in PRESETS.items() if preset.asks and name in LOOK_ALIKES]
WRONG = [(name, mode) for name in ASKED for mode in SCHEMA_MODES if mode not in PRESETS[name].schema_modes]
SENT = [(name, mode) for name, mode in WRONG if (PRESETS[name].wire, mode) != ("messages", "json_object")]
"""Messages have no way to say json_object: a request in that mode is one of mode text."""


def probe(*judges: Judge, role: str = "vote") -> list[CheckedJudge]:
    """What a check of them shows."""
    return asyncio.run(run_checks([(judge, role) for judge in judges]))


@pytest.fixture
def alike(model_server: LocalModels, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Judges of look-alikes as a judges file makes them; keywords are parameters."""

    def judge(name: str, model: str = "yes", **parameters: Any) -> Judge:
        for variable, value in LOOK_ALIKES[name].environment.items():
            monkeypatch.setenv(variable, value)
        found = model_server.alike(name, model)
        decides = preset_defaults({"provider": name, "model": model, **parameters}, PRESETS[name])
        return replace(found, parameters={**found.parameters, **decides, **parameters})

    return judge


@pytest.mark.parametrize("name", [name for name in ASKED if name != "ollama"])
def test_every_preset_works_as_its_file_makes_it(name: str, alike: Any, model_server: LocalModels) -> None:
    (found,) = probe(alike(name))
    assert found.problem == "" and 1 <= found.calls <= 2
    assert found.found["schema_modes"][PRESETS[name].schema_mode] == "works"
    assert len(model_server.requests()) == found.calls


@pytest.mark.parametrize(("name", "mode"), WRONG)
def test_a_mode_that_the_api_has_not_is_refused_by_the_judges_file(name: str, mode: str) -> None:
    preset = PRESETS[name]
    lines = ["[[judge]]", 'name = "j"', f'provider = "{name}"', 'model = "m"', f'schema_mode = "{mode}"']
    lines += [f'{key} = "{EXAMPLES[key]}"' for key in preset.needs]
    with pytest.raises(BadInput, match=f'schema_mode "{mode}" .*{name}'):
        judges_file.parse("\n".join(lines))


@pytest.mark.parametrize(("name", "mode"), SENT)
def test_a_mode_that_the_api_has_not_is_found_with_the_mode_to_set(name, mode, alike, model_server):
    (found,) = probe(alike(name, schema_mode=mode))
    assert mode in found.problem and "set schema_mode = " in found.problem
    wanted = found.problem.split('set schema_mode = "')[1].split('"')[0]
    assert wanted in PRESETS[name].schema_modes and found.found["schema_modes"][wanted] == "works"
    assert found.calls == 2 and len(model_server.requests()) == 2
    (mended,) = probe(alike(name, schema_mode=wanted))
    assert mended.problem == "" or (name == "ollama" and "cuts long prompts" in mended.problem)


READ = [
    ({"around": ["```json\n", "\n```"]}, 'set unwrap = "fence"'),
    ({"around": ["<think>\nBoils?\n</think>\n", ""]}, 'set unwrap = "think"'),
    ({"around": ["<think>\nBoils?\n</think>\n```\n", "\n```"]}, 'set unwrap = "both"'),
    ({"text": '{"reason": "It does.", "response": "Yes"}'}, "set ignore_case = true"),
    ({"text": '{"reason": "", "response": "no", "sure": 1}'}, 'set extra_keys = "ignore"'),
    (
        {"text": '```\n{"reason": "", "response": "YES", "sure": 1}\n```'},
        'set unwrap = "fence", ignore_case = true, extra_keys = "ignore"',
    ),
]


@pytest.mark.parametrize(("behaviour", "line"), READ)
def test_an_answer_that_looser_reading_would_take_says_which_key_to_set(behaviour, line, alike, model_server):
    model_server.script({"m": {"verdict": "yes", **behaviour}})
    (found,) = probe(alike("openai", "m"))
    assert found.problem.endswith(line) and found.calls == 1
    keys = dict(part.split(" = ") for part in line.removeprefix("set ").split(", "))
    (mended,) = probe(alike("openai", "m", **{key: json.loads(value) for key, value in keys.items()}))
    assert mended.problem == ""


def test_a_judge_that_does_not_answer_in_time_is_told_the_key(alike: Any, model_server: LocalModels) -> None:
    model_server.script({"m": {"verdict": "yes", "latency": 2.0}})
    (slow,) = probe(alike("llama-cpp", "m", timeout_s=0.5))
    assert "no whole answer within 0.5 s: set timeout_s = 30" in slow.problem
    (patient,) = probe(alike("llama-cpp", "m", timeout_s=30))
    assert patient.problem == ""


def test_prose_thoughts_that_take_all_room_and_missing_counts_are_said(alike: Any, model_server: LocalModels) -> None:
    model_server.script({"m": {"text": 'Sure! {"reason": "", "response": "yes"}'}})
    (found,) = probe(alike("openai", "m"))
    assert "follow the schema" in found.problem and "set" not in found.problem
    model_server.script({"m": {"verdict": "yes", "reasoning": 600}})
    (found,) = probe(alike("openai", "m"))
    assert "512 of them thinking" in found.problem and "max_output_tokens" in found.problem
    model_server.script({"m": {"verdict": "yes", "fault": "no-usage"}})
    (found,) = probe(alike("openai", "m"))
    assert found.problem == "" and found.cost is None
    assert any("how many tokens" in line for line in found.warnings)


def test_a_thinking_model_with_512_tokens_is_warned_about(alike: Any, model_server: LocalModels) -> None:
    model_server.script({"m": {"verdict": "yes", "reasoning": 200}})
    (found,) = probe(alike("openai", "m"))
    assert found.problem == ""
    (warning,) = found.warnings
    assert "max_output_tokens = 512" in warning and "max_output_tokens = 4096" in warning
    assert found.found["thinks"] and found.found["reasoning_tokens"] == 200
    (roomy,) = probe(alike("openai", "m", max_output_tokens=4096))
    assert roomy.warnings == ()


def test_no_judge_of_a_decisions_endpoint_is_told_of_max_output_tokens(model_server: LocalModels) -> None:
    # In a chat this model is known to think, by its name.
    decider = replace(model_server.judge("o4-mini", "openai"), parameters={"endpoint": "decisions"})
    assert remedies.known_to_think(replace(decider, parameters={})) and not remedies.known_to_think(decider)
    counted = Reply(text='{"response": "yes"}', usage=Usage(input=900, output=508, reasoning=500))
    for usage in (counted.usage, Usage(input=900, output=1)):
        first = remedies.ProbeCall(decider, "vote", "", reply=replace(counted, usage=usage))
        assert not first.thinks and _list_warnings(first, None, Catalogue()) == []


@pytest.mark.parametrize("name", ASKED)
def test_another_mode_is_tried_as_a_file_with_that_mode_would_make_it(name: str, alike: Any) -> None:
    """Every mode is left once and taken once."""
    modes = PRESETS[name].schema_modes
    for mode, other in zip(modes, (*modes[1:], modes[0]), strict=True):
        made = remedies.change_parameters(alike(name, schema_mode=mode), schema_mode=other)
        assert made.parameters == alike(name, schema_mode=other).parameters, (mode, other)


def test_a_second_mode_is_read_as_its_file_would_read_it(alike: Any) -> None:
    judge = alike("groq", "m")
    refused = Rejected("host: 400 response_format", status=400)
    first = remedies.ProbeCall(judge, "vote", "", error=refused)
    other = remedies.next_try(first)
    assert other is not None and other.schema_mode == "json_schema"
    fenced = Reply(raw="", text='```json\n{"reason": "It does.", "response": "Yes"}\n```')
    said = remedies.describe_problem(first, remedies.ProbeCall(other, "vote", "", reply=fenced))
    assert all(line in said for line in ('schema_mode = "json_schema"', 'unwrap = "fence"', "ignore_case = true"))
    made = remedies.change_parameters(alike("groq", extra_keys="refuse", unwrap="fence"), schema_mode="json_schema")
    assert (made.extra_keys, made.unwrap, made.ignore_case) == ("refuse", "fence", False)


def test_a_refused_summary_of_reasoning_is_thinking_s(alike: Any) -> None:
    judge = alike("openai-responses", "gpt-5-mini", thinking=True)
    message = "Your organization must be verified to generate reasoning summaries."
    raw = json.dumps({"error": {"message": message, "param": "reasoning.summary", "code": "unsupported_value"}})
    for error in (Rejected(f"host: 400 {message}", status=400, raw=raw), Rejected(f"host: 400 {message}", status=400)):
        first = remedies.ProbeCall(judge, "vote", "", error=error)
        other = remedies.next_try(first)
        assert other is not None and other.schema_mode == judge.schema_mode and "thinking" not in other.parameters
        second = remedies.ProbeCall(other, "vote", "", reply=ask(probe_request(other, "vote"))[0])
        assert remedies.describe_problem(first, second).endswith("thinking: remove it")


def test_a_temperature_that_is_not_sent_is_not_known_to_be_taken(alike: Any) -> None:
    (silent, told) = probe(alike("anthropic"), alike("openai"))
    assert silent.problem == "" and silent.found["temperature"] is silent.found["temperature_taken"] is None
    assert told.found["temperature_taken"] is True


REFUSALS = [
    ("Unsupported value: 'temperature' does not support 0 with this model.", {}, "temperature"),
    ("logprobs is not supported", {"logprobs": True}, "logprobs"),
    ("logprobs is not supported", {}, ""),
    ("Invalid parameter: 'response_format' of type 'json_schema'", {}, "schema_mode"),
    ("This model's maximum context length is 4096 tokens", {}, "max_output_tokens"),
    ("max_tokens is too large", {}, "max_output_tokens"),
    ("Unrecognized request argument supplied: seed", {"seed": 1}, "seed"),
    ("field top_k not permitted", {"extra_body": {"top_k": 1}}, "extra_body"),
    ("reasoning_effort is not supported by this model", {"reasoning_effort": "low"}, "reasoning_effort"),
    ("Model Not Exist", {}, "model"),
    ("something went wrong", {}, ""),
]


@pytest.mark.parametrize(("said", "parameters", "key"), REFUSALS)
def test_a_refusal_is_understood_as_what_the_judge_sends(said: str, parameters: dict[str, Any], key: str) -> None:
    judge = Judge("j", "openai", "m", id=1, parameters=parameters)
    assert remedies.suspect_key(judge, Rejected(f"host: 400 {said}", status=400)) == key


def test_a_refused_temperature_is_tried_without_and_named(alike: Any, model_server: LocalModels) -> None:
    judge = alike("openai", "m")
    body = {"error": {"message": "Unsupported value", "param": "temperature", "code": "unsupported_value"}}
    error = Rejected("host: 400 Unsupported value", status=400, raw=json.dumps(body))
    first = remedies.ProbeCall(judge, "vote", "", error=error)
    other = remedies.next_try(first)
    assert other is not None and other.parameters["temperature"] == "default"
    second = remedies.ProbeCall(other, "vote", "", reply=ask(probe_request(other, "vote"))[0])
    assert 'set temperature = "default"' in remedies.describe_problem(first, second)


def test_an_unknown_model_is_answered_with_the_nearest_names(alike: Any) -> None:
    judge = alike("vllm", "no-such-model")
    (found,) = probe(judge)
    (told,) = [one["id"] for one in LOOK_ALIKES["vllm"].told["/v1/models"]["data"]]
    assert '"no-such-model"' in found.problem and found.problem.endswith(told)
    assert found.calls == 1


CONTEXTS = [name for name in ASKED if PRESETS[name].context]


def test_a_server_that_cuts_long_prompts_fails_and_says_the_context_that_is_needed(alike: Any) -> None:
    model = LOOK_ALIKES["ollama"].told["/api/ps"]["models"][0]["name"]
    (told,) = probe(alike("ollama", model))
    # 24,000 characters of Chinese are as many tokens, beside the prompt and the answer.
    numbers = re.findall(r"\d+,\d{3} (?:tokens|for)", told.problem)
    assert (told.found["context"], numbers) == (4096, ["4,096 tokens", "9,216 tokens", "26,624 for"])


CUTTERS = [("openai-compatible", 2050), ("openai-compatible", 4096), ("ollama", 2050)]


@pytest.mark.parametrize(("provider", "reads"), CUTTERS)
def test_a_server_that_tells_no_context_and_cuts_is_found_by_a_long_question(provider, reads, model_server):
    judge = model_server.judge("m", provider)
    model_server.script({"m": {"verdict": "yes", "reads": reads}})
    (found,) = probe(judge)
    assert f" {reads:,} tokens" in found.problem and "26,624 for Chinese" in found.problem
    assert found.calls == 2
    model_server.script({"m": {"verdict": "yes"}})
    (whole,) = probe(judge)
    assert whole.problem == "" and whole.calls == 2


def test_a_context_that_is_too_short_for_chinese_alone_is_said(alike: Any) -> None:
    name = next(name for name in CONTEXTS if name != "ollama")
    (model,) = {entry["id"] for entry in LOOK_ALIKES[name].told["/v1/models"]["data"]}
    (found,) = probe(alike(name, model))
    assert found.problem == ""
    assert any("26,624" in line for line in found.warnings) is (found.found["context"] < 26_512)


def test_log_probabilities_are_counted_and_missing_ones_are_a_failure(alike: Any, model_server: LocalModels) -> None:
    (without, wanted) = probe(alike("openai"), alike("openai", logprobs=2))
    assert without.found["logprobs"] == 3 and without.calls == 2, "the server makes up three"
    assert wanted.found["logprobs"] == 2 and wanted.calls == 1
    model_server.script({"m": {"verdict": "yes", "fault": "no-logprobs"}})
    (none,) = probe(alike("openai", "m", logprobs=2))
    assert "returned no log-probabilities" in none.problem


@pytest.mark.parametrize(
    ("fault", "name"), crossed(["400", "401", "403", "404", "429", "500", "drop", "garbage", "empty", "huge"], ASKED)
)
def test_no_judge_is_ever_asked_more_than_twice(name: str, fault: str, alike: Any, model_server: LocalModels) -> None:
    model_server.script({"m": {"fault": fault}})
    (found,) = probe(alike(name, "m"))
    assert found.problem and found.calls <= 2
    assert len(model_server.requests()) == found.calls


@pytest.mark.django_db
def test_what_will_be_sent_is_said_before_and_a_no_sends_nothing(tmp_path, model_server, monkeypatch):
    run("configure_judges", str(file_of(tmp_path, model_server.openai)))

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    monkeypatch.setattr(sys, "stderr", Terminal())
    err = Terminal()
    with pytest.raises(SystemExit) as end:
        call_command("check_judges", stderr=err)
    assert end.value.code == 2
    assert re.search(r"judge-1: 2 calls .*\$0\.0", err.getvalue()) and re.search(r" 14 calls.*\$", err.getvalue())
    assert "Nothing was sent" in err.getvalue() and model_server.requests() == []
    monkeypatch.setattr(sys, "stdin", Terminal(""))
    call_command("check_judges", "--yes", "--judge", "judge-1", stderr=err, stdout=io.StringIO())
    assert len(model_server.requests()) == 2


@pytest.mark.django_db
def test_an_unknown_price_is_said_before(tmp_path, model_server):
    path = file_of(tmp_path, model_server.openai)
    lines = [line for line in path.read_text().splitlines() if "_price" not in line]
    path.write_text("\n".join(lines))
    run("configure_judges", str(path))
    _, document, err = run("check_judges", "--judge", "judge-1")
    assert "judge-1: 2 calls" in err and "price unknown" in err
    assert document["most_cost"] is None and document["most_calls"] == 2 and document["panel"] is None


@pytest.mark.django_db
def test_every_check_is_kept_with_the_version_that_was_asked(tmp_path, model_server):
    run("configure_judges", str(file_of(tmp_path, model_server.openai, judge_2="401")))
    run("check_judges")
    run("check_judges", "--judge", "judge-2")
    bad, good = (JudgeVersion.objects.get(name=name) for name in ("judge-2", "judge-1"))
    assert JudgeProbe.objects.filter(judge=bad).count() == 2 and JudgeProbe.objects.count() == 8
    (kept,) = JudgeProbe.objects.filter(judge=good)
    assert kept.passes and kept.calls == 2 and kept.found["schema_modes"] == {"json_schema": "works"}
    assert kept.cost and kept.found["price"] == {"input": 0.5, "output": 2.0}
    newest = JudgeProbe.objects.filter(judge=bad).latest("id")
    assert not newest.passes and "is not accepted" in newest.problem


@pytest.mark.django_db
def test_an_embedder_and_an_unknown_judge_by_name(tmp_path, model_server):
    path = file_of(tmp_path, model_server.openai)
    vectors = (
        f'[[judge]]\nname = "vectors"\nprovider = "embed-endpoint"\nmodel = "e"\nbase_url = "{model_server.openai}"\n'
    )
    path.write_text(vectors + path.read_text())
    run("configure_judges", str(path))
    code, document, _ = run("check_judges", "--judge", "vectors")
    assert code == 0 and document["judges"][0]["role"] == "embed" and document["most_calls"] == 1
    code, document, err = run("check_judges", "--judge", "nobody")
    assert (code, document) == (2, None) and "No judge nobody" in err


GOOD = '{"reason": "It does.", "response": "yes"}'


def refused(number: int, message: str, **error: Any) -> ProviderError:
    return refusal_error("host", number, json.dumps({"error": {"message": message, **error}}), None)


# Provider, parameters, its error.
SETTLED: list[tuple[str, dict[str, Any], ProviderError]] = [
    ("google", {}, refused(400, "API key not valid. Please pass a valid API key.")),
    ("xai", {}, refused(400, "Incorrect API key provided: xa***.")),
    ("google", {}, refused(400, "User location is not supported for the API use.", status="FAILED_PRECONDITION")),
    ("bedrock", {}, refused(400, "Invocation of model ID m with on-demand throughput isn't supported. Retry your "
                            "request with the ID or ARN of an inference profile that contains this model.")),
    ("azure", {"api_version": "2024-06-01"},
     refused(400, "response_format value as json_schema is enabled only for api versions 2024-08-01-preview")),
    ("openrouter", {"logprobs": True},
     refused(404, "No endpoints found that can handle the requested parameters.")),
    ("groq", {"service_tier": "flex"}, refused(498, "Flex tier capacity exceeded, please try again later.")),
    ("openai", {"service_tier": "flex"},
     refused(429, "Resource Unavailable: flex processing has no capacity", code="resource_unavailable")),
    ("openai-compatible", {}, refused(
        400, "Unsupported parameter: 'max_tokens' is not supported here. Use 'max_completion_tokens' instead.",
        param="max_tokens")),
    ("anthropic", {},
     refused(400, "You have reached your specified API usage limits. You will regain access on 2026-12-01.")),
]  # fmt: skip


def answered(judge: Judge | None) -> remedies.ProbeCall | None:
    """The changed request, which is answered."""
    reply = Reply(GOOD, finish_reason="stop", usage=Usage(100, 0, 9))
    return remedies.ProbeCall(judge, "vote", "", reply=reply) if judge else None


@pytest.mark.parametrize(("provider", "parameters", "error"), SETTLED)
def test_what_no_other_request_would_change_is_said_in_the_provider_s_words(provider, parameters, error):
    first = remedies.ProbeCall(Judge("j", provider, "some-model", id=1, parameters=parameters), "vote", "", error=error)
    assert remedies.next_try(first) is None
    for names in ((), ("some-model", "another")):
        assert remedies.describe_problem(first, None, names) == str(error)


def test_a_parameter_that_is_refused_is_named_once_a_call_without_it_came_through() -> None:
    error = refused(403, "You are not allowed to request logprobs from this model")
    first = remedies.ProbeCall(Judge("j", "openai", "m", id=1, parameters={"logprobs": True}), "vote", "", error=error)
    other = remedies.next_try(first)
    assert other is not None
    advice = remedies.describe_problem(first, answered(other)).removeprefix(str(error))
    assert "logprobs: remove it" in advice
    again = remedies.ProbeCall(other, "vote", "", error=error)
    assert remedies.describe_problem(first, again) == str(error), "what was not tried with success is not advised"


SYSTEM = [
    "System role not supported",
    "Conversation roles must alternate user/assistant/user/assistant/...",
    "Developer instruction is not enabled for models/gemma-3-27b-it",
    "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
    "Only user and assistant roles are supported!",
]


@pytest.mark.parametrize("message", SYSTEM)
@pytest.mark.parametrize("status", [400, 500])
def test_a_template_without_a_system_role_is_named_with_the_option(message: str, status: int) -> None:
    judge = Judge("j", "vllm", "gemma", id=1)
    first = remedies.ProbeCall(judge, "vote", "", error=refused(status, message))
    other = remedies.next_try(first)
    assert other is not None and other.merges_system
    said = remedies.describe_problem(first, answered(other))
    assert 'set system = "user"' in said and "temperature" not in said


@pytest.mark.parametrize("provider", ["openai-compatible", "google"])
def test_the_system_text_goes_into_the_message_of_the_user(model_server: LocalModels, provider: str) -> None:
    plain = probe_request(model_server.judge("yes", provider), "vote")
    merged = probe_request(model_server.judge("yes", provider, system="user"), "vote")
    assert merged.prompt.user == f"{plain.prompt.system}\n\n{plain.prompt.user}" and not merged.prompt.system
    assert [message["role"] for message in merged.prompt.messages] == ["user"]
    assert merged.prompt.sha256 == plain.prompt.sha256, "the same version of the prompt"

    async def body() -> Any:
        opened: Any = open_provider(merged.judge)
        try:
            return opened.config(merged) if provider == "google" else opened.body(merged)
        finally:
            await close_providers()

    sent = asyncio.run(body())
    if provider == "google":
        assert sent.system_instruction is None
    else:
        assert [message["role"] for message in sent["messages"]] == ["user"]


def test_an_answer_in_the_field_of_thoughts_is_found_there() -> None:
    judge = Judge("j", "vllm", "qwen3", id=1)
    reply = Reply("", finish_reason="stop", usage=Usage(100, 0, 20), reasoning=GOOD)
    said = remedies.describe_problem(remedies.ProbeCall(judge, "vote", "", reply=reply), None)
    assert "reasoning field" in said and "4096" not in said
    empty = Reply("", finish_reason="stop", usage=Usage(100, 0, 512, 512), reasoning="Let me see.")
    assert "gave no answer" in remedies.describe_problem(remedies.ProbeCall(judge, "vote", "", reply=empty), None)


@pytest.mark.parametrize(
    ("told", "day"),
    [
        ("2026-12-11", date(2026, 12, 11)),
        ("2026-12-11T00:00:00Z", date(2026, 12, 11)),
        (1_796_947_200, date(2026, 12, 11)),
        (None, None),
        ("soon", None),
    ],
)
def test_the_last_day_of_a_model_is_read_as_lists_write_it(told: object, day: date | None) -> None:
    assert parse_day(told) == day
