"""What a check advises is true of what the provider said."""

import asyncio
import json
from datetime import date
from typing import Any

import pytest

from judges.errors import ProviderError
from judges.probes import remedies
from judges.probes.catalogues import parse_day
from judges.probes.checks import probe_request
from judges.providers import close_providers, open_provider
from judges.providers.replies import refusal_error
from judges.records import Judge, Reply, Usage
from tests.modelserver.fixtures import LocalModels

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
