"""What a check advises is true of what the provider said."""

import asyncio
import json
from datetime import date
from typing import Any

import pytest

from judges.errors import Overloaded, ProviderError, RateLimited
from judges.probes import remedies
from judges.probes.catalogues import _last_day
from judges.probes.checks import probe_request, run_checks
from judges.providers import close_providers, open_provider
from judges.providers.replies import refusal_error
from judges.records import Judge, Reply, Usage
from tests.modelserver.fixtures import LocalModels

TEMPERATURE = "accept temperature 0"
GOOD = '{"reason": "It does.", "response": "yes"}'


def refused(number: int, message: str, **error: Any) -> ProviderError:
    return refusal_error("host", number, json.dumps({"error": {"message": message, **error}}), None)


# Provider, parameters, its error, what the advice has, and what it must not have.
REFUSED: list[tuple[str, dict[str, Any], ProviderError, str, str]] = [
    (
        "openai",
        {"logprobs": True},
        refused(403, "You are not allowed to request logprobs from this model"),
        "it does not take logprobs: remove it",
        "may not use this model",
    ),
    (
        "google",
        {},
        refused(400, "API key not valid. Please pass a valid API key.", details=[{"reason": "API_KEY_INVALID"}]),
        "is not accepted",
        TEMPERATURE,
    ),
    ("xai", {}, refused(400, "Incorrect API key provided: xa***."), "XAI_API_KEY is not accepted", TEMPERATURE),
    (
        "google",
        {},
        refused(400, "User location is not supported for the API use.", status="FAILED_PRECONDITION"),
        "does not answer from where this machine is",
        TEMPERATURE,
    ),
    (
        "bedrock",
        {},
        refused(
            400,
            "Invocation of model ID anthropic.claude-sonnet-4-5 with on-demand throughput isn't supported. Retry your "
            "request with the ID or ARN of an inference profile that contains this model.",
        ),
        'such as "us.some-model"',
        TEMPERATURE,
    ),
    (
        "azure",
        {"api_version": "2024-06-01"},
        refused(400, "response_format value as json_schema is enabled only for api versions 2024-08-01-preview"),
        "set a later api_version",
        "schema_mode",
    ),
    (
        "openrouter",
        {"logprobs": True},
        refused(404, "No endpoints found that can handle the requested parameters."),
        "remove logprobs or schema_mode",
        "does not know the model",
    ),
    (
        "groq",
        {"service_tier": "flex"},
        refused(498, "Flex tier capacity exceeded, please try again later."),
        'the service tier "flex" has no room',
        "quota",
    ),
    (
        "openai",
        {"service_tier": "flex"},
        refused(429, "Resource Unavailable: flex processing has no capacity", code="resource_unavailable"),
        'the service tier "flex" has no room',
        "quota",
    ),
    (
        "openai-compatible",
        {},
        refused(
            400,
            "Unsupported parameter: 'max_tokens' is not supported here. Use 'max_completion_tokens' instead.",
            param="max_tokens",
        ),
        'by another name: set provider = "openai"',
        "lower max_output_tokens",
    ),
    (
        "anthropic",
        {},
        refused(400, "You have reached your specified API usage limits. You will regain access on 2026-12-01."),
        "a spending limit or the credit is used up",
        TEMPERATURE,
    ),
]


def answered(judge: Judge | None) -> remedies.ProbeCall | None:
    """The changed request, which is answered."""
    reply = Reply(GOOD, finish_reason="stop", usage=Usage(100, 0, 9))
    return remedies.ProbeCall(judge, "vote", "", reply=reply) if judge else None


@pytest.mark.parametrize(("provider", "parameters", "error", "advice", "never"), REFUSED)
def test_the_advice_is_about_what_was_refused(
    provider: str, parameters: dict[str, Any], error: ProviderError, advice: str, never: str
) -> None:
    judge = Judge("j", provider, "some-model", id=1, parameters=parameters)
    first = remedies.ProbeCall(judge, "vote", "", error=error)
    for names in ((), ("some-model", "another")):
        said = remedies.describe_problem(first, answered(remedies.next_try(first)), names)
        assert advice in said and never not in said, said


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
    assert "its answer stands in its reasoning field" in said and "4096" not in said
    empty = Reply("", finish_reason="stop", usage=Usage(100, 0, 512, 512), reasoning="Let me see.")
    assert "gave no answer" in remedies.describe_problem(remedies.ProbeCall(judge, "vote", "", reply=empty), None)


@pytest.mark.parametrize(
    ("entry", "day"),
    [
        ({"shutdown_date": "2026-12-11"}, date(2026, 12, 11)),
        ({"shutdown_date": "2026-12-11T00:00:00Z"}, date(2026, 12, 11)),
        ({"shutdown_date": 1_796_947_200}, date(2026, 12, 11)),
        ({"expiration_date": "2027-01-14"}, date(2027, 1, 14)),
        ({"deprecation": None}, None),
        ({"shutdown_date": "soon"}, None),
        ({}, None),
    ],
)
def test_the_last_day_of_a_model_is_read_where_the_list_says_it(entry: dict[str, Any], day: date | None) -> None:
    assert _last_day("m", [{"id": "other", "shutdown_date": "2020-01-01"}, {"id": "m", **entry}]) == day


def test_a_refusal_without_a_word_may_be_about_the_temperature(model_server: LocalModels) -> None:
    assert isinstance(refused(429, "slow down"), RateLimited) and isinstance(refused(498, "full"), Overloaded)
    (found,) = asyncio.run(run_checks([(model_server.judge("400"), "vote")]))
    assert TEMPERATURE in found.problem
