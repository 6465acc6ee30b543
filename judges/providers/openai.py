"""Chat completions of OpenAI, and of all providers whose preset uses this wire format."""

import json
import re
from collections.abc import Mapping
from typing import Any

from openai import AsyncAzureOpenAI, AsyncOpenAI, DefaultAioHttpClient, Omit

from judges.prompts import render
from judges.providers.base import DESCRIPTION, PLACEHOLDER, TOOL, SdkProvider, add_extra_body, add_parameters
from judges.providers.received import Received
from judges.providers.replies import (
    count_tokens,
    get_list,
    get_path,
    likeliest_grade,
    parse_body,
    read_tokens,
    storable_text,
)
from judges.records import Judge, ModelRequest, Reply, Usage

# Any other reason means an incomplete answer, which is not a vote. With those of DeepSeek, Zhipu, Mistral, TGI, vLLM
# and SGLang.
FINISH = {
    **dict.fromkeys(("stop", "tool_calls", "function_call", "eos", "eos_token", "stop_sequence", "end_turn"), "stop"),
    **dict.fromkeys(("length", "model_length", "max_tokens", "model_context_window_exceeded"), "length"),
    **dict.fromkeys(("content_filter", "content_filtered", "refusal", "safety", "sensitive"), "refusal"),
    **dict.fromkeys(("guardrail_intervened", "prohibited_content", "recitation"), "refusal"),
    **dict.fromkeys(("error", "abort", "aborted", "network_error", "insufficient_system_resource"), "failed"),
}
# The beginning of a stream of server-sent events: a field or a comment.
STREAM = re.compile(r"\s*(data|event|id|retry)?:")
LINE_END = re.compile(r"\r\n|\n|\r")  # Other line separators are part of the text.
# Paths of OpenAI's token counts; presets have those of other providers.
USED = {
    "input": "prompt_tokens",
    "cached": "prompt_tokens_details.cached_tokens",
    "written": "prompt_tokens_details.cache_write_tokens",
    "output": "completion_tokens",
    "reasoning": "completion_tokens_details.reasoning_tokens",
    "total": "total_tokens",
}
# The same for the Responses and Decisions endpoints; `input_tokens` includes cached tokens, `output_tokens` reasoning.
RESPONSES_USED = {
    "input": "input_tokens",
    "cached": "input_tokens_details.cached_tokens",
    "written": "input_tokens_details.cache_write_tokens",
    "output": "output_tokens",
    "reasoning": "output_tokens_details.reasoning_tokens",
    "total": "total_tokens",
}
REQUIRED_COUNTS = ("input_tokens", "output_tokens")
HOME = ("openai", "openai-responses")  # Presets of OpenAI's own servers.


class OpenAIProvider(SdkProvider):
    """Provider for OpenAI's API and compatible ones: POST <base_url>/chat/completions."""

    own_headers = {"Authorization": Omit()}

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        self.client: AsyncOpenAI = self.open_client(judge)
        if self.preset.name not in HOME:
            # The SDK reads these from the environment; another company's server must not see them.
            self.client.organization = self.client.project = None

    def open_client(self, judge: Judge) -> AsyncOpenAI:
        return AsyncOpenAI(api_key=PLACEHOLDER, base_url=self.base_url, **self.client_options(DefaultAioHttpClient))

    async def send(self, request: ModelRequest, received: Received) -> None:
        """Send one call. Fields that the SDK's types lack go into `extra_body`."""
        options = self.options(request, received)
        if request.judge.decides:
            call = self.client.decisions.with_streaming_response.create(**decision_body(request), **options)
            return await self.keep(call, received)
        body = self.body(request)
        model, messages = body.pop("model"), body.pop("messages")
        completions = self.client.chat.completions.with_streaming_response
        await self.keep(completions.create(model=model, messages=messages, extra_body=body, **options), received)

    def options(self, request: ModelRequest, received: Received) -> dict[str, Any]:
        """Return the options of a single call: its headers, with the key."""
        return {"extra_headers": self.headers(request.judge, received)}

    def body(self, request: ModelRequest) -> dict[str, Any]:
        """Return the body of the request, with fields under the preset's names."""
        body: dict[str, Any] = {
            "model": request.judge.model,
            "messages": request.prompt.messages,
            **self.form(request),
        }
        add_parameters(body, request.judge)
        if request.judge.alternatives:
            body |= {"logprobs": True, "top_logprobs": request.judge.alternatives}
        return add_extra_body(body, request.judge)

    def form(self, request: ModelRequest) -> dict[str, Any]:
        """Return the fields that make the answer follow the schema, by the judge's schema mode."""
        schema = request.schema
        match request.judge.schema_mode:
            case "json_schema":
                if self.preset.schema_form == "json":
                    return {"response_format": {"type": "json", "value": schema}}
                named_schema = {"name": "answer", "schema": schema}
                strict = {"strict": is_strict(schema)} if self.preset.strict else {}
                return {"response_format": {"type": "json_schema", "json_schema": named_schema | strict}}
            case "json_object":
                return {"response_format": {"type": "json_object"}}
            case "tool":
                function = {"name": TOOL, "description": DESCRIPTION, "parameters": schema}
                choice: object = self.preset.tool_choice or {"type": "function", "function": {"name": TOOL}}
                if not self.preset.forces_thinkers and request.judge.parameters.get("thinking") is not False:
                    choice = "auto"
                return {"tools": [{"type": "function", "function": function}], "tool_choice": choice}
        return {}

    def parsed(self, raw: str) -> dict[str, Any]:
        """Return the body's JSON object; for a stream, the object that its parts make together."""
        raw = raw.removeprefix("\ufeff")
        body = join_stream(raw) if STREAM.match(raw) else parse_body(raw)
        # OpenRouter puts a failure during the answer into the choice: it is an error.
        failure = get_path(body, "choices", 0, "error")
        return body | {"error": failure} if failure else body

    def read(self, body: dict[str, Any], judge: Judge) -> Reply | None:
        """Return the first choice; a `refusal` in the message is a refusal, whatever the finish reason."""
        if isinstance(body.get("answers"), list):
            return read_decision(body, judge.grades)
        if not isinstance(body.get("choices"), list) and "usage" not in body:
            return None
        choice = get_path(body, "choices", 0)
        message = get_path(choice, "message")
        refusal = storable_text(get_path(message, "refusal"))
        finish = storable_text(get_path(choice, "finish_reason"), 50)
        text = answer_in(message, judge)
        token_entries = get_list(choice, "logprobs", "content")
        return Reply(
            text=text or refusal,
            reasoning=reasoning_in(message, judge.preset.reasoning),
            tokens=read_tokens(
                text, token_entries, "token", "logprob", [get_list(entry, "top_logprobs") for entry in token_entries]
            ),
            # Google's servers append their own reason: "content_filter: SAFETY". An unknown reason stays as it is.
            finish_reason="refusal" if refusal else FINISH.get(finish.lower().partition(":")[0], finish),
            usage=read_usage(body.get("usage"), judge.preset.usage, reasoning_apart=judge.preset.reasoning_apart),
        )


class AzureProvider(OpenAIProvider):
    """Provider for Azure OpenAI, where the model is the name of a deployment.

    POST <base_url>/openai/deployments/<model>/chat/completions?api-version=...
    """

    key_header = "api-key"
    key_prefix = ""
    own_headers = {"Authorization": Omit(), "api-key": Omit()}

    def open_client(self, judge: Judge) -> AsyncAzureOpenAI:
        version, options = self.api_version(judge), self.client_options(DefaultAioHttpClient)
        return AsyncAzureOpenAI(azure_endpoint=self.base_url, api_version=version, api_key=PLACEHOLDER, **options)

    def options(self, request: ModelRequest, received: Received) -> dict[str, Any]:
        """Return the options of a single call: its headers, with the key, and the version of the API."""
        version = {"api-version": self.api_version(request.judge)}
        return super().options(request, received) | {"extra_query": version}

    def api_version(self, judge: Judge) -> str:
        return str(judge.parameters.get("api_version", ""))


def answer_in(message: object, judge: Judge) -> str:
    """Return the text of a message, or in mode `tool` the arguments of the tool that it calls."""
    calls = get_list(message, "tool_calls") if judge.schema_mode == "tool" else []
    if calls:
        arguments = [get_path(call, "function", "arguments") for call in calls]
        # Some servers return a tool's arguments as an object.
        return "\n".join(
            storable_text(argument) if isinstance(argument, str) else json.dumps(argument, ensure_ascii=False)
            for argument in arguments
        )
    content = get_path(message, "content")
    if isinstance(content, list):
        return "".join(storable_text(get_path(block, "text")) for block in content if get_path(block, "type") == "text")
    return storable_text(content)


def reasoning_in(message: object, paths: tuple[str, ...]) -> str:
    """Return the model's thoughts: the first text at one of the paths, else blocks of the content that are thoughts."""
    for path in paths:
        if text := storable_text(get_path(message, *path.split("."))):
            return text
    blocks = [
        get_path(block, "thinking") for block in get_list(message, "content") if get_path(block, "type") == "thinking"
    ]
    parts = [part for block in blocks for part in (block if isinstance(block, list) else [{"text": block}])]
    return "".join(storable_text(get_path(part, "text")) for part in parts)


def join_stream(raw: str) -> dict[str, Any]:
    """Return the answer that a stream's parts make together; {} if a part is no JSON object."""
    answer: dict[str, Any] = {}
    message: dict[str, Any] = {}
    choice: dict[str, Any] = {"message": message}
    is_ended, data = False, ""
    for line in LINE_END.split(raw):
        if not line.startswith("data:"):
            continue
        # An object may be spread over several lines of data: it is complete once it can be parsed.
        data += line.removeprefix("data:").strip()
        if data == "[DONE]" or not data:
            is_ended, data = is_ended or bool(data), ""
            continue
        part = parse_body(data)
        if not part:
            continue
        data = ""
        if part.get("error"):
            return part
        answer |= {name: part[name] for name in ("id", "model", "service_tier", "usage") if part.get(name)}
        delta_choice = get_path(part, "choices", 0)
        for name, value in (get_path(delta_choice, "delta") or {}).items():
            if isinstance(value, str) and name != "role":
                message[name] = message.get(name, "") + value
            elif name == "tool_calls":
                calls = message.setdefault("tool_calls", [])
                # Each piece of a tool's arguments belongs to the call at its index.
                for piece in value if isinstance(value, list) else []:
                    index = get_path(piece, "index") or 0
                    while isinstance(index, int) and len(calls) <= index < 100:
                        calls.append({"function": {"arguments": ""}})
                    if isinstance(index, int) and 0 <= index < len(calls):
                        calls[index]["function"]["arguments"] += storable_text(get_path(piece, "function", "arguments"))
        if get_path(delta_choice, "finish_reason"):
            choice["finish_reason"] = get_path(delta_choice, "finish_reason")
        if token_entries := get_list(delta_choice, "logprobs", "content"):
            choice.setdefault("logprobs", {"content": []})["content"] += token_entries
    if data or not answer:
        return {}
    if not (is_ended or "finish_reason" in choice or "usage" in answer):
        return {"error": {"message": "the stream was cut before the answer's end"}}
    return {**answer, "choices": [choice]}


def decision_body(request: ModelRequest) -> dict[str, Any]:
    """Return the body of a question to the Decisions endpoint: which level of the judge's scale?"""
    meanings = render.grade_levels(request.judge.grades)
    levels = [{"label": str(grade), "description": meaning} for grade, meaning in enumerate(meanings)]
    question = {"type": "score", "name": "relevance", "instructions": request.prompt.system, "levels": levels}
    return {"model": request.judge.model, "input": request.prompt.user, "questions": [question]}


def read_decision(body: dict[str, Any], grades: int) -> Reply | None:
    """Return the probabilities of the first answer's levels, and the likeliest level as the verdict."""
    answer, counts = get_path(body, "answers", 0), body.get("usage")
    is_refusal = get_path(answer, "type") == "refusal"
    usage = count_tokens(counts, RESPONSES_USED, REQUIRED_COUNTS[:1] if is_refusal else REQUIRED_COUNTS)
    if is_refusal:
        return Reply("", finish_reason="refusal", usage=usage)
    probabilities = get_list(answer, "probabilities")
    verdict = likeliest_grade(
        {get_path(entry, "value"): get_path(entry, "probability") for entry in probabilities}, grades
    )
    return verdict and Reply(verdict[0], finish_reason="stop", usage=usage, probabilities=verdict[1])


def read_usage(counts: object, names: Mapping[str, str] = {}, *, reasoning_apart: bool = False) -> Usage:
    """Return the token counts of an answer.

    `names`: paths of the provider's counts that differ from OpenAI's. `reasoning_apart`: reasoning tokens are counted
    separately from the output.
    """
    paths_by_count = {**USED, **names}
    needed_paths = [path for name in ("input", "output") for path in paths_by_count[name].split(" + ")]
    if reasoning_apart:
        paths_by_count["output"] += f" + {paths_by_count['reasoning']}"
    return count_tokens(counts, paths_by_count, needed_paths)


def is_strict(schema: dict[str, Any]) -> bool:
    """Return whether a schema requires every property and allows no other."""
    return schema.get("additionalProperties") is False and set(schema.get("required", ())) == set(schema["properties"])
