"""Look-alikes of OpenAI (chat completions and Responses) and of Azure OpenAI."""

import re
from dataclasses import dataclass

from tests.modelserver.presets.asking import Asked
from tests.modelserver.presets.base import LookAlike, Refusal, when, words

REASONING = re.compile(r"o\d|gpt-[5-9](?!.*chat)")
"""Names of models that reason, which take no temperature, no log-probabilities and no max_tokens."""

CHAT_FIELDS = words(
    """model messages response_format temperature top_p max_tokens max_completion_tokens logprobs top_logprobs seed stop
    reasoning_effort service_tier tools tool_choice parallel_tool_calls metadata store user n presence_penalty
    frequency_penalty logit_bias verbosity prompt_cache_key safety_identifier stream stream_options"""
)
RESPONSES_FIELDS = words(
    """background context_management conversation include input instructions max_output_tokens max_tool_calls metadata
    model moderation parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options
    prompt_cache_retention reasoning.effort reasoning.summary safety_identifier service_tier store stream stream_options
    temperature text.format text.verbosity tool_choice tools top_logprobs top_p truncation user"""
)


def plain_schema(asked: Asked) -> Refusal | None:
    """A strict schema of OpenAI requires every property and allows no other."""
    form = asked.at("response_format.json_schema") or asked.at("text.format") or {}
    schema = form.get("schema") or {}
    if asked.mode != "json_schema":
        return None
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", form.get("name", "")):
        return Refusal(400, "Missing required parameter: 'response_format.json_schema.name'.")
    strict = schema.get("additionalProperties") is False and set(schema["properties"]) == set(schema["required"])
    return None if strict or not form.get("strict") else Refusal(400, "Invalid schema for response_format 'answer'.")


def reasoning_models(asked: Asked) -> Refusal | None:
    """A model that reasons, or is told to, takes no sampling parameters."""
    effort = asked.body.get("reasoning_effort") or asked.at("reasoning.effort")
    if effort == "none" or not (effort or REASONING.match(asked.model)):
        return None
    if asked.body.get("temperature", 1) != 1:
        return Refusal(400, "Unsupported value: 'temperature' does not support 0 with this model.", "unsupported_value")
    if asked.logprobs:
        return Refusal(400, "Unsupported parameter: 'logprobs' is not supported with this model.")
    if "max_tokens" in asked.body:
        message = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'."
        return Refusal(400, message, "unsupported_parameter")
    return None


def words_of(asked: Asked) -> str:
    """Where JSON mode needs its word: the messages; with Responses the input, where `instructions` do not stand."""
    return (str(asked.body["input"]) if asked.wire == "responses" else asked.system + asked.user).lower()


OPENAI_RULES = (
    when(
        lambda asked: asked.body.get("stream_options") is not None and not asked.body.get("stream"),
        "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
    ),
    plain_schema,
    when(
        lambda asked: asked.mode == "json_object" and "json" not in words_of(asked),
        "'messages' must contain the word 'json' in some form, to use 'response_format' of 'json_object'.",
    ),
    reasoning_models,
)
OPENAI = LookAlike(name="openai", fields=CHAT_FIELDS, reasoning="", rules=OPENAI_RULES, batches=True)
RESPONSES = LookAlike(
    name="openai-responses",
    wire="responses",
    fields=RESPONSES_FIELDS,
    rules=(
        *OPENAI_RULES,
        when(
            lambda asked: "json_schema" in (asked.at("text.format") or {}),
            "Missing required parameter: 'text.format.name'.",
            "missing_required_parameter",
        ),
    ),
)


# Azure OpenAI


@dataclass(frozen=True, kw_only=True)
class Azure(LookAlike):
    """A resource with deployments: the key in `api-key`, or an Entra token."""

    def given_key(self, headers: dict[str, str]) -> str:
        """Either of both."""
        return headers.get("api-key", "") or headers.get("authorization", "").removeprefix("Bearer ")


def api_version(asked: Asked) -> Refusal | None:
    """Azure answers 404 without one, and 400 to one that it does not know."""
    version = asked.query.get("api-version")
    if version is None:
        return Refusal(404, "Resource not found")
    if not re.fullmatch(r"\d{4}-\d\d-\d\d(-preview)?", version):
        return Refusal(400, "API version not supported", "BadRequest")
    return None


AZURE_SINCE = {"max_completion_tokens": "2024-09-01", "reasoning_effort": "2024-12-01", "service_tier": "2024-12-01"}
"""First version of Azure's API that knows a field."""


def later_fields(asked: Asked) -> Refusal | None:
    """A field that came with a later version is none that this one knows."""
    version = asked.query["api-version"]
    late = [name for name, since in AZURE_SINCE.items() if name in asked.body and version < since]
    return Refusal(400, f"Unrecognized request argument supplied: {late[0]}") if late else None


AZURE_OPENAI = Azure(
    name="azure",
    home="",
    path=r"/openai/deployments/(?P<model>[^/]+)/chat/completions",
    fields=CHAT_FIELDS,
    reasoning="",
    rules=(api_version, later_fields, *OPENAI_RULES),
    error=lambda refusal: {"error": {"code": refusal.code or str(refusal.status), "message": refusal.message}},
    missing_key=Refusal(401, "Access denied due to invalid subscription key or wrong API endpoint."),
    no_model=Refusal(
        404,
        "The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, "
        "please wait a moment and try again.",
        "DeploymentNotFound",
    ),
    judge={"api_version": "2024-10-21"},
)
