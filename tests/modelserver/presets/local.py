"""Look-alikes of servers and gateways that a team runs itself: vLLM, Ollama and others.

Each stands in the mind of its newest documentation (the facts of its preset). Variants have a plus
in their name: `vllm+key` was started with a key, `vllm+inline` without a reasoning parser,
`lm-studio+separate` with the setting that takes thoughts out of the text, `sglang+cache` with its
cache reports.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.modelserver.presets.asking import Asked
from tests.modelserver.presets.base import LookAlike, Refusal, when
from tests.modelserver.presets.claude import thinking_budget
from tests.modelserver.presets.writing import Counts, chat_usage

PROSE = "I would rather say it in words: it may be relevant."
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
CONTEXT = 32_768
MODEL = "served-model"


def short_usage(counts: Counts) -> dict[str, Any]:
    said = counts.output + counts.reasoning
    return {"prompt_tokens": counts.input, "completion_tokens": said, "total_tokens": counts.input + said}


def sglang_usage(counts: Counts) -> dict[str, Any]:
    """Reasoning tokens stand beside the others; the cache is told where the server is asked to."""
    return {**short_usage(counts), "prompt_tokens_details": None, "reasoning_tokens": counts.reasoning}


def no_tool(body: dict[str, Any], asked: Asked, counts: Counts) -> dict[str, Any]:
    """A server that takes a named tool for "auto": the model may answer in words, and here it does."""
    if asked.tool:
        body["choices"][0]["message"] = {"role": "assistant", "content": PROSE}
        body["choices"][0]["finish_reason"] = "stop"
    return body


def template_thinks(asked: Asked) -> bool:
    """Unless the chat template is told not to, in either of the two ways."""
    words = asked.body.get("chat_template_kwargs") or {}
    told = words.get("enable_thinking", words.get("thinking"))
    return bool(asked.body.get("reasoning_effort") != "none" if told is None else told)


def effort_thinks(asked: Asked) -> bool:
    return asked.body.get("reasoning_effort") != "none"


def known_effort(*efforts: str) -> Callable[[Asked], Refusal | None]:

    def rule(asked: Asked) -> Refusal | None:
        effort = asked.body.get("reasoning_effort")
        if effort is None or effort in efforts:
            return None
        return Refusal(400, f"invalid reasoning value: '{effort}' (must be one of {', '.join(efforts)})")

    return rule


def models(owner: str, name: str = MODEL, **more: object) -> dict[str, Any]:
    return {"object": "list", "data": [{"id": name, "object": "model", "owned_by": owner, **more}]}


# vLLM: {"error": {"message", "type", "param", "code": a number}}; its keys are checked by another layer.


def vllm_error(refusal: Refusal) -> dict[str, Any]:
    if refusal.status == 401:
        return {"error": "Unauthorized"}
    kind = refusal.kind or {404: "NotFoundError"}.get(refusal.status, "BadRequestError")
    found = {"message": refusal.message, "type": kind, "param": refusal.param or None, "code": refusal.status}
    return {"error": found}


def vllm_tools(asked: Asked) -> Refusal | None:
    """A list of tools is not empty, and a choice of them needs them."""
    if asked.body.get("tools") == []:
        return Refusal(400, "`tools` must not be an empty array.", param="tools")
    if asked.body.get("tool_choice") not in (None, "none") and not asked.body.get("tools"):
        return Refusal(400, "When using `tool_choice`, `tools` must be set.", param="tool_choice")
    return None


VLLM = LookAlike(
    name="vllm",
    key="",
    unknown="ignore",
    context=CONTEXT,
    thinks=template_thinks,
    reasoning="reasoning",
    usage=short_usage,
    rules=(vllm_tools, known_effort(*EFFORTS)),
    error=vllm_error,
    too_long=Refusal(
        400,
        "You passed {tokens} input tokens. However, the model's context length is only {most} tokens.",
        param="input_tokens",
    ),
    no_model=Refusal(404, "The model `{model}` does not exist.", param="model"),
    told={"/v1/models": models("vllm", root=MODEL, max_model_len=CONTEXT)},
)


# SGLang: errors without a frame.


def sglang_error(refusal: Refusal) -> dict[str, Any]:
    if refusal.status == 401:
        return {"error": "Unauthorized"}
    kind = refusal.kind or "BadRequestError"
    return {"object": "error", "message": refusal.message, "type": kind, "param": None, "code": refusal.status}


SGLANG = LookAlike(
    name="sglang",
    key="",
    unknown="ignore",
    context=CONTEXT,
    thinks=template_thinks,
    usage=sglang_usage,
    rules=(known_effort(*EFFORTS),),
    error=sglang_error,
    too_long=Refusal(400, "The input ({tokens} tokens) is longer than the model's context length ({most} tokens)."),
    no_model=None,
    told={"/v1/models": models("sglang", max_model_len=CONTEXT)},
)


# llama.cpp server: the code first.


LLAMA_CPP = LookAlike(
    name="llama-cpp",
    key="",
    unknown="ignore",
    context=8192,
    thinks=template_thinks,
    usage=lambda counts: {**short_usage(counts), "prompt_tokens_details": {"cached_tokens": counts.cached}},
    finish=no_tool,
    error=lambda refusal: {
        "error": {
            "code": refusal.status,
            "message": refusal.message,
            "type": refusal.kind or {401: "authentication_error"}.get(refusal.status, "invalid_request_error"),
        }
    },
    missing_key=Refusal(401, "Invalid API Key"),
    too_long=Refusal(
        400,
        "request ({tokens} tokens) exceeds the available context size ({most} tokens), try increasing it",
        kind="exceed_context_size_error",
    ),
    no_model=None,
    told={
        "/v1/models": models("llamacpp", "model.gguf"),
        "/props": {"default_generation_settings": {"n_ctx": 8192, "params": {}}, "total_slots": 1},
    },
)


# Ollama: no keys, no tool_choice, and too long a prompt is cut in silence.

OLLAMA_CONTEXT = 4096
OLLAMA = LookAlike(
    name="ollama",
    key="",
    unknown="ignore",
    context=OLLAMA_CONTEXT,
    limits=("max_tokens",),
    thinks=effort_thinks,
    reasoning="reasoning",
    usage=lambda counts: short_usage(replace(counts, input=min(counts.input, OLLAMA_CONTEXT))),
    finish=no_tool,
    rules=(known_effort("high", "medium", "low", "none"),),
    error=lambda refusal: {
        "error": {
            "message": refusal.message,
            "type": {400: "invalid_request_error", 404: "not_found_error"}.get(refusal.status, "api_error"),
            "param": None,
            "code": None,
        }
    },
    too_long=None,
    no_model=Refusal(404, "model '{model}' not found"),
    told={
        "/v1/models": models("library"),
        "/api/ps": {"models": [{"name": MODEL, "model": MODEL, "context_length": OLLAMA_CONTEXT, "size_vram": 5}]},
    },
)


# LM Studio: errors are a text.


LM_STUDIO = LookAlike(
    name="lm-studio",
    key="",
    unknown="ignore",
    modes=frozenset({"json_schema", "tool", "text"}),
    context=8192,
    inline=True,
    usage=short_usage,
    finish=lambda body, asked, counts: body | {"choices": [body["choices"][0] | {"logprobs": None}]},
    rules=(
        when(
            lambda asked: isinstance(asked.body.get("tool_choice"), dict),
            "Invalid tool_choice type: 'object'. Supported string values: none, auto, required",
        ),
    ),
    error=lambda refusal: {"error": refusal.message},
    no_mode=Refusal(400, "'response_format.type' must be 'json_schema' or 'text'"),
    told={
        "/v1/models": models("organization_owner"),
        "/api/v0/models": {
            "object": "list",
            "data": [
                {"id": "another", "object": "model", "state": "not-loaded", "max_context_length": 131_072},
                {"id": MODEL, "object": "model", "state": "loaded", "max_context_length": 8192},
            ],
        },
    },
)


# TGI: 422, and a schema in its own words.


def tgi_form(asked: Asked) -> Refusal | None:
    """A response format is a type with its value, and stands alone; four stop sequences are the most."""
    form = asked.body.get("response_format")
    if form and form.get("type") not in ("json", "regex"):
        return Refusal(422, f"Failed to deserialize the JSON body: response_format: unknown variant `{form['type']}`")
    if form and asked.tool:
        return Refusal(422, "Input validation error: Grammar and tools are mutually exclusive")
    if len(asked.body.get("stop") or []) > 4:
        return Refusal(422, "Input validation error: `stop` supports up to 4 stop sequences")
    return None


TGI = LookAlike(
    name="tgi",
    key="",
    unknown="ignore",
    limits=("max_tokens",),
    default_limit=100,
    context=8192,
    alternatives=5,
    inline=True,
    usage=short_usage,
    rules=(tgi_form,),
    error=lambda refusal: {"error": refusal.message, "error_type": refusal.kind or "validation"},
    too_long=Refusal(
        422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= {most}. Given: {tokens} `inputs`"
    ),
    no_model=None,
    told={
        "/v1/models": models(MODEL),
        "/info": {"model_id": MODEL, "max_input_tokens": 8191, "max_total_tokens": 8192},
    },
)


# LiteLLM: OpenAI's form for whatever stands behind it; codes are texts.


def litellm_unsupported(asked: Asked) -> Refusal | None:
    """The model behind it does not take a parameter: here models whose name begins with "plain" do not think."""
    if asked.model.startswith("plain"):
        for name in ("reasoning_effort", "thinking"):
            if name in asked.body:
                words = f"litellm.UnsupportedParamsError: openai does not support parameters: ['{name}'], for model="
                return Refusal(400, f"{words}{asked.model}. To drop these, set `litellm.drop_params=True`")
    return None


LITELLM = LookAlike(
    name="litellm",
    key="",
    unknown="ignore",
    context=CONTEXT,
    thinks=lambda asked: effort_thinks(asked) and asked.at("thinking.type") != "disabled",
    budget=thinking_budget,
    usage=chat_usage,
    rules=(litellm_unsupported,),
    error=lambda refusal: {
        "error": {"message": refusal.message, "type": refusal.kind or None, "param": None, "code": str(refusal.status)}
    },
    missing_key=Refusal(401, "Authentication Error, No api key passed in.", kind="auth_error"),
    too_long=Refusal(
        400, "litellm.ContextWindowExceededError: the maximum context length is {most} tokens, not {tokens}."
    ),
    no_model=Refusal(400, "/chat/completions: Invalid model name passed in model={model}."),
    told={
        "/v1/models": models("openai"),
        "/model/info": {
            "data": [
                {"model_name": "another", "model_info": {"max_input_tokens": 131_072}},
                {"model_name": MODEL, "model_info": {"max_input_tokens": CONTEXT}},
            ]
        },
    },
)


def cache_reports(counts: Counts) -> dict[str, Any]:
    """SGLang's with --enable-cache-report."""
    return {**sglang_usage(counts), "prompt_tokens_details": {"cached_tokens": counts.cached}}


PLAIN = (LITELLM, VLLM, SGLANG, LLAMA_CPP, OLLAMA, LM_STUDIO, TGI)
VARIANTS = (
    *(replace(one, name=f"{one.name}+key", key="authorization") for one in PLAIN if one.name not in ("ollama", "tgi")),
    replace(VLLM, name="vllm+inline", inline=True),
    replace(SGLANG, name="sglang+cache", usage=cache_reports),
    replace(LM_STUDIO, name="lm-studio+separate", inline=False),
)
LOCAL: tuple[LookAlike, ...] = (*PLAIN, *VARIANTS)
