"""Look-alikes of providers that speak OpenAI's format: DeepSeek, Qwen, Mistral and others.

What a provider refuses, and in which words, is told in the facts of its preset (judges/presets).
Where the documentation is silent about parameters that it does not know, they are ignored; where it
is silent about an error's words, OpenAI's are used.
"""

import re
from typing import Any

from tests.modelserver.presets.asking import Asked
from tests.modelserver.presets.base import LookAlike, Refusal, Rule, openai_error, when, words
from tests.modelserver.presets.writing import Counts, chat_usage


def _message(body: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = body["choices"][0]["message"]
    return message


def _plain_usage(counts: Counts) -> dict[str, Any]:
    """Without what a thought took of the output."""
    found = chat_usage(counts)
    del found["completion_tokens_details"]
    return found


def _says_json(words: str) -> Rule:
    """A rule: json_object needs the word in the prompt, else these words refuse it."""
    return when(
        lambda asked: asked.mode == "json_object" and "json" not in (asked.system + asked.user).lower(),
        words,
        "invalid_request_error",
    )


def _put_into_text(body: dict[str, Any], field: str = "reasoning_content", gap: str = "\n\n") -> dict[str, Any]:
    """The thought stands in the text, in place of the message's field."""
    message = _message(body)
    if thought := message.pop(field, ""):
        message["content"] = f"<think>\n{thought}\n</think>{gap}{message['content']}"
    return body


def _effort(asked: Asked) -> str | None:
    effort: str | None = asked.body.get("reasoning_effort")
    return effort


def _forces(asked: Asked) -> bool:
    """The model must call a tool."""
    return asked.body.get("tool_choice") not in (None, "auto", "none")


# DeepSeek


def _deepseek_thinks(asked: Asked) -> bool:
    return asked.at("thinking.type") != "disabled" and not asked.model.startswith("deepseek-chat")


def _deepseek_usage(counts: Counts) -> dict[str, Any]:
    hit = {"prompt_cache_hit_tokens": counts.cached, "prompt_cache_miss_tokens": counts.input - counts.cached}
    found = chat_usage(counts) | hit
    del found["prompt_tokens_details"]  # Not all answers have it; the hits always stand there.
    return found


DEEPSEEK = LookAlike(
    name="deepseek",
    home="",
    unknown="ignore",
    modes=frozenset({"json_object", "tool", "text"}),
    limits=("max_tokens",),
    default_limit=4096,
    thinks=_deepseek_thinks,
    tool_finish="tool_calls",
    usage=_deepseek_usage,
    rules=(
        _says_json("Prompt must contain the word 'json' in some form to use 'response_format' of type 'json_object'."),
        when(
            lambda asked: asked.logprobs and _deepseek_thinks(asked),
            "logprobs is not supported in thinking mode",
            "invalid_request_error",
        ),
        when(
            lambda asked: _forces(asked) and _deepseek_thinks(asked),
            "Thinking mode does not support this tool_choice",
            "invalid_request_error",
        ),
    ),
    missing_key=Refusal(401, "Authentication Fails", "invalid_request_error", "authentication_error"),
    no_mode=Refusal(400, "This response_format type is unavailable now", "invalid_request_error"),
    too_long=Refusal(
        400,
        "This model's maximum context length is {most} tokens. However, you requested {tokens} tokens. "
        "Please reduce the length of the messages or completion.",
        "invalid_request_error",
    ),
)


# Qwen


QWEN_PLAIN = re.compile(r"qwen(-plus|-flash|-turbo|3-\d+b)")


def _qwen_thinks(asked: Asked) -> bool:
    """Open models think unless told otherwise, commercial ones only when told; some always do."""
    if re.search(r"(?i)^(qwq|qvq)|thinking", asked.model):
        return True
    told = asked.body.get("enable_thinking")
    return bool(told) if told is not None else bool(re.match(r"(?i)qwen3-\d+b", asked.model))


def _qwen_finish(body: dict[str, Any], asked: Asked, counts: Counts) -> dict[str, Any]:
    """A stream says what it used only where it is asked to."""
    if asked.body.get("stream") and not asked.at("stream_options.include_usage"):
        body.pop("usage")
    return body


QWEN = LookAlike(
    name="qwen",
    home="/compatible-mode/v1",
    unknown="ignore",
    limits=("max_tokens",),
    alternatives=5,
    thinks=_qwen_thinks,
    budget=lambda asked: asked.body.get("thinking_budget"),
    finish=_qwen_finish,
    rules=(
        when(
            lambda asked: _qwen_thinks(asked) and not asked.body.get("stream"),
            "parameter.enable_thinking must be set to false for non-streaming calls",
            "invalid_parameter_error",
        ),
        when(
            lambda asked: _forces(asked) and _qwen_thinks(asked),
            "The tool_choice parameter does not support being set to required or object in thinking mode",
            "invalid_parameter_error",
        ),
        when(
            lambda asked: asked.mode == "json_object" and _qwen_thinks(asked) and QWEN_PLAIN.match(asked.model),
            "Json mode response is not supported when enable_thinking is true",
            "invalid_parameter_error",
        ),
        _says_json(
            "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
        ),
    ),
    error=lambda refusal: openai_error(refusal) | {"request_id": "f5a1f1ee-dac6-9c1b-9bdb-2f0c22b8af45"},
    too_long=Refusal(400, "Range of input length should be [1, {most}]", "invalid_parameter_error"),
)


# Mistral

MISTRAL_FIELDS = words(
    """model messages temperature top_p max_tokens stream stop random_seed response_format tools
    tool_choice parallel_tool_calls presence_penalty frequency_penalty n prediction prompt_mode
    prompt_cache_key reasoning_effort safe_prompt metadata"""
)


def _mistral_error(refusal: Refusal) -> dict[str, Any]:
    message: Any = refusal.message
    if refusal.status == 422:
        where = {"type": "extra_forbidden", "loc": ["body", refusal.param], "msg": refusal.message, "input": None}
        message = {"detail": [where]}
    kind = refusal.kind or "invalid_request_error"
    return {"object": "error", "message": message, "type": kind, "param": None, "code": refusal.code or None}


def _mistral_finish(body: dict[str, Any], asked: Asked, counts: Counts) -> dict[str, Any]:
    """The thought is a chunk of its own before the text; models of 2506 wrote it into the text."""
    if asked.model.endswith("-2506"):
        return _put_into_text(body, gap="\n")
    message = _message(body)
    if thought := message.pop("reasoning_content", ""):
        chunk = {"type": "thinking", "thinking": [{"type": "text", "text": thought}], "closed": True}
        said = [{"type": "text", "text": message["content"]}] if message["content"] else []
        message["content"] = [chunk, *said]
    return body


MISTRAL = LookAlike(
    name="mistral",
    fields=MISTRAL_FIELDS,
    limits=("max_tokens",),
    alternatives=0,
    thinks=lambda asked: "magistral" in asked.model or _effort(asked) not in (None, "none"),
    tool_finish="tool_calls",
    usage=_plain_usage,
    finish=_mistral_finish,
    error=_mistral_error,
    missing_key=Refusal(401, "Unauthorized"),
    unknown_field=Refusal(422, "Extra inputs are not permitted", param="{name}"),
)


# xAI

XAI_EFFORT = re.compile(r"(?i)grok-(3-mini|4\.[3-9](?!.*non-reasoning))")
XAI_PLAIN = re.compile(r"(?i)grok-(2|3(?!-mini))|non-reasoning")


def _xai_parameters(asked: Asked) -> Refusal | None:
    """Models refuse what they do not have, by its name in their own code."""
    found = "reasoningEffort" if _effort(asked) is not None and not XAI_EFFORT.search(asked.model) else ""
    if not XAI_PLAIN.search(asked.model):
        names = {"stop": "stop", "presence_penalty": "presencePenalty", "frequency_penalty": "frequencyPenalty"}
        found = next((theirs for ours, theirs in names.items() if asked.body.get(ours) is not None), found)
    return Refusal(400, f"Model {asked.model} does not support parameter {found}.") if found else None


def _xai_finish(body: dict[str, Any], asked: Asked, counts: Counts) -> dict[str, Any]:
    """One model shows its thoughts."""
    if "grok-3-mini" not in asked.model:
        _message(body).pop("reasoning_content", None)
    return body


XAI = LookAlike(
    name="xai",
    unknown="ignore",
    alternatives=8,
    thinks=lambda asked: not XAI_PLAIN.search(asked.model) and _effort(asked) != "none",
    tool_finish="tool_calls",
    usage=lambda counts: chat_usage(counts) | {"completion_tokens": counts.output},
    finish=_xai_finish,
    rules=(_xai_parameters,),
    error=lambda refusal: {
        "code": "Client specified an invalid argument" if refusal.status == 400 else "The request failed",
        "error": refusal.message,
    },
    missing_key=Refusal(401, "No authorization header or an invalid authorization token is provided."),
)


# Groq

GROQ_FIELDS = words(
    """model messages temperature top_p max_completion_tokens max_tokens n stop seed stream
    stream_options response_format tools tool_choice parallel_tool_calls presence_penalty
    frequency_penalty reasoning_effort reasoning_format include_reasoning service_tier user metadata
    store"""
)


def _groq_finish(body: dict[str, Any], asked: Asked, counts: Counts) -> dict[str, Any]:
    """Raw is the default of plain text, with models that have formats."""
    form = asked.body.get("reasoning_format") or ("raw" if asked.mode == "text" and "qwen" in asked.model else "parsed")
    if form == "hidden":
        _message(body).pop("reasoning", None)
    return _put_into_text(body, "reasoning", "\n") if form == "raw" else body


GROQ = LookAlike(
    name="groq",
    home="/openai/v1",
    fields=GROQ_FIELDS,
    alternatives=0,
    thinks=lambda asked: _effort(asked) != "none",
    reasoning="reasoning",
    tool_finish="tool_calls",
    finish=_groq_finish,
    rules=(
        when(
            lambda asked: asked.mode == "json_schema" and asked.model.startswith("llama"),
            "This model does not support response format `json_schema`. See supported models in the documentation.",
            param="response_format",
        ),
        when(
            lambda asked: asked.body.get("reasoning_format") == "raw" and asked.mode != "text",
            "reasoning_format raw is not supported with JSON mode or tools",
            param="reasoning_format",
        ),
    ),
    unknown_field=Refusal(400, "property '{name}' is unsupported", param="{name}"),
    missing_key=Refusal(401, "Invalid API Key", "invalid_api_key", "invalid_request_error"),
    too_long=Refusal(
        400, "Please reduce the length of the messages or completion.", "context_length_exceeded", param="messages"
    ),
)


# Together


TOGETHER = LookAlike(
    name="together",
    unknown="ignore",
    limits=("max_tokens",),
    alternatives=0,
    thinks=lambda asked: asked.at("reasoning.enabled") is not False,
    reasoning="reasoning",
    tool_finish="tool_calls",
    usage=_plain_usage,
    # Most models have a field for the thought; the oldest wrote it into the text.
    finish=lambda body, asked, counts: _put_into_text(body, "reasoning") if "R1-Distill" in asked.model else body,
    missing_key=Refusal(401, "Missing API key", "missing_api_key", "invalid_request_error"),
    too_long=Refusal(
        400,
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= {most}. Given: {tokens} tokens",
        param="max_tokens",
    ),
)


# Fireworks

FIREWORKS_FIELDS = words(
    """model messages temperature top_p top_k min_p max_tokens max_completion_tokens n stop seed stream
    stream_options response_format tools tool_choice parallel_tool_calls presence_penalty
    frequency_penalty repetition_penalty logit_bias logprobs top_logprobs reasoning_effort thinking
    context_length_exceeded_behavior prompt_truncate_len prompt_cache_isolation_key
    prompt_cache_max_len perf_metrics_in_response raw_output metadata user"""
)


def _fireworks_budget(asked: Asked) -> int | None:
    effort = asked.body.get("reasoning_effort")
    budget: int | None = effort if isinstance(effort, int) else asked.at("thinking.budget_tokens")
    return budget


FIREWORKS = LookAlike(
    name="fireworks",
    home="/inference/v1",
    fields=FIREWORKS_FIELDS,
    limits=("max_tokens", "max_completion_tokens"),
    default_limit=4096,
    alternatives=5,
    thinks=lambda asked: _effort(asked) != "none" and asked.at("thinking.type") != "disabled",
    budget=_fireworks_budget,
    tool_finish="tool_calls",
    usage=_plain_usage,
    finish=lambda body, asked, counts: _put_into_text(body) if "qwq" in asked.model else body,  # some models do
    rules=(
        when(
            lambda asked: (asked.body.get("max_tokens") or 0) > 4096,
            "Requests with max_tokens > 4096 must have stream=true",
        ),
    ),
    unknown_field=Refusal(400, "Extra inputs are not permitted, field: '{name}'"),
    missing_key=Refusal(401, "Unauthorized"),
    too_long=Refusal(400, "The prompt is too long: {tokens}, model maximum context length: {most}"),
)


# OpenRouter


def _openrouter_usage(counts: Counts) -> dict[str, Any]:
    found = chat_usage(counts) | {"cost": 0.00042, "cost_details": {"upstream_inference_cost": None}}
    found["prompt_tokens_details"]["cache_write_tokens"] = counts.written
    return found


def _openrouter_finish(body: dict[str, Any], asked: Asked, counts: Counts) -> dict[str, Any]:
    message = _message(body)
    if message.get("reasoning"):
        message["reasoning_details"] = [{"type": "reasoning.text", "text": message["reasoning"], "index": 0}]
    body["choices"][0]["native_finish_reason"] = body["choices"][0]["finish_reason"]
    return body | {"id": f"gen-{body['id']}", "provider": "Scripted"}


OPENROUTER = LookAlike(
    name="openrouter",
    home="/api/v1",
    unknown="ignore",
    thinks=lambda asked: asked.at("reasoning.enabled") is not False and asked.at("reasoning.effort") != "none",
    budget=lambda asked: asked.at("reasoning.max_tokens"),
    reasoning="reasoning",
    tool_finish="tool_calls",
    usage=_openrouter_usage,
    finish=_openrouter_finish,
    error=lambda refusal: {
        "error": {"message": refusal.message, "code": refusal.status, "metadata": {"provider_name": None}}
    },
    missing_key=Refusal(401, "No auth credentials found"),
    too_long=Refusal(
        400,
        "This endpoint's maximum context length is {most} tokens. However, you requested about {tokens} tokens. "
        "Please reduce the length of either one.",
    ),
)

HOSTED: tuple[LookAlike, ...] = (DEEPSEEK, QWEN, MISTRAL, XAI, GROQ, TOGETHER, FIREWORKS, OPENROUTER)
