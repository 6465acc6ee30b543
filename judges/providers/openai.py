"""Chat completions: OpenAI's, and those of everybody whose preset says so."""

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

# Whatever is not named here is no good end, and no vote. Words of DeepSeek, Zhipu, Mistral, TGI, vLLM and SGLang, too.
FINISH = {
    **dict.fromkeys(("stop", "tool_calls", "function_call", "eos", "eos_token", "stop_sequence", "end_turn"), "stop"),
    **dict.fromkeys(("length", "model_length", "max_tokens", "model_context_window_exceeded"), "length"),
    **dict.fromkeys(("content_filter", "content_filtered", "refusal", "safety", "sensitive"), "refusal"),
    **dict.fromkeys(("guardrail_intervened", "prohibited_content", "recitation"), "refusal"),
    **dict.fromkeys(("error", "abort", "aborted", "network_error", "insufficient_system_resource"), "failed"),
}
# What begins a stream of server-sent events: a field, or a comment.
STREAM = re.compile(r"\s*(data|event|id|retry)?:")
LINE_END = re.compile(r"\r\n|\n|\r")  # Of the wire: other separators of lines are text.
# Where OpenAI counts tokens; a preset says where others do.
USED = {
    "input": "prompt_tokens",
    "cached": "prompt_tokens_details.cached_tokens",
    "written": "prompt_tokens_details.cache_write_tokens",
    "output": "completion_tokens",
    "reasoning": "completion_tokens_details.reasoning_tokens",
    "total": "total_tokens",
}
# The same of the Responses and Decisions endpoints; `input_tokens` includes those of the cache,
# `output_tokens` the reasoning ones.
RESPONSES_USED = {
    "input": "input_tokens",
    "cached": "input_tokens_details.cached_tokens",
    "written": "input_tokens_details.cache_write_tokens",
    "output": "output_tokens",
    "reasoning": "output_tokens_details.reasoning_tokens",
    "total": "total_tokens",
}
SAID = ("input_tokens", "output_tokens")
HOME = ("openai", "openai-responses")  # Presets of OpenAI's own servers.


class OpenAIProvider(SdkProvider):
    """Provider for OpenAI's API and its likes: POST <base_url>/chat/completions."""

    own_headers = {"Authorization": Omit()}

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        self.client: AsyncOpenAI = self.open_client(judge)
        if self.preset.name not in HOME:
            # The SDK reads these from the environment; another company's server shall not see them.
            self.client.organization = self.client.project = None

    def open_client(self, judge: Judge) -> AsyncOpenAI:
        return AsyncOpenAI(api_key=PLACEHOLDER, base_url=self.base_url, **self.client_options(DefaultAioHttpClient))

    async def send(self, request: ModelRequest, received: Received) -> None:
        """Send one call. Preset fields that the SDK's types lack go as `extra_body`."""
        options = self.options(request, received)
        if request.judge.decides:
            call = self.client.decisions.with_streaming_response.create(**decision_body(request), **options)
            return await self.keep(call, received)
        body = self.body(request)
        model, messages = body.pop("model"), body.pop("messages")
        completions = self.client.chat.completions.with_streaming_response
        await self.keep(completions.create(model=model, messages=messages, extra_body=body, **options), received)

    def options(self, request: ModelRequest, received: Received) -> dict[str, Any]:
        """Return the headers of this call alone, its key among them."""
        return {"extra_headers": self.headers(request.judge, received)}

    def body(self, request: ModelRequest) -> dict[str, Any]:
        """Return the request as the wire format has it, under the preset's names."""
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
        """Return what binds the answer to its form, by the judge's schema mode."""
        schema = request.schema
        match request.judge.schema_mode:
            case "json_schema":
                if self.preset.schema_form == "json":
                    return {"response_format": {"type": "json", "value": schema}}
                named = {"name": "answer", "schema": schema}
                strict = {"strict": is_strict(schema)} if self.preset.strict else {}
                return {"response_format": {"type": "json_schema", "json_schema": named | strict}}
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
        """Return the body's JSON object; of a stream, the object of its parts."""
        raw = raw.removeprefix("\ufeff")
        found = join_stream(raw) if STREAM.match(raw) else parse_body(raw)
        # What failed while the model answered stands in the choice (OpenRouter): an error.
        failed = get_path(found, "choices", 0, "error")
        return found | {"error": failed} if failed else found

    def read(self, body: dict[str, Any], judge: Judge) -> Reply | None:
        """Read the first choice; a `refusal` in the message is one whatever the finish reason."""
        if isinstance(body.get("answers"), list):
            return read_decision(body, judge.grades)
        if not isinstance(body.get("choices"), list) and "usage" not in body:
            return None
        choice = get_path(body, "choices", 0)
        message = get_path(choice, "message")
        declined = storable_text(get_path(message, "refusal"))
        finish = storable_text(get_path(choice, "finish_reason"), 50)
        said = answer_in(message, judge)
        listed = get_list(choice, "logprobs", "content")
        return Reply(
            text=said or declined,
            reasoning=reasoning_in(message, judge.preset.reasoning),
            tokens=read_tokens(said, listed, "token", "logprob", [get_list(one, "top_logprobs") for one in listed]),
            finish_reason="refusal" if declined else finish_word(finish),
            usage=read_usage(body.get("usage"), judge.preset.usage, apart=judge.preset.reasoning_apart),
        )


class AzureProvider(OpenAIProvider):
    """POST <base_url>/openai/deployments/<model>/chat/completions?api-version=..., the model being the deployment."""

    key_header = "api-key"
    key_prefix = ""
    own_headers = {"Authorization": Omit(), "api-key": Omit()}

    def open_client(self, judge: Judge) -> AsyncAzureOpenAI:
        version, options = self.api_version(judge), self.client_options(DefaultAioHttpClient)
        return AsyncAzureOpenAI(azure_endpoint=self.base_url, api_version=version, api_key=PLACEHOLDER, **options)

    def options(self, request: ModelRequest, received: Received) -> dict[str, Any]:
        """Return the headers of this call alone, its key among them, and the version of the API."""
        version = {"api-version": self.api_version(request.judge)}
        return super().options(request, received) | {"extra_query": version}

    def api_version(self, judge: Judge) -> str:
        return str(judge.parameters.get("api_version", ""))


def answer_in(message: object, judge: Judge) -> str:
    """Return the text of a message, or in mode `tool` the arguments of the tool that it calls."""
    calls = get_list(message, "tool_calls") if judge.schema_mode == "tool" else []
    if calls:
        given = [get_path(call, "function", "arguments") for call in calls]
        # Some servers give a tool's arguments as an object.
        return "\n".join(storable_text(x) if isinstance(x, str) else json.dumps(x, ensure_ascii=False) for x in given)
    content = get_path(message, "content")
    if isinstance(content, list):
        return "".join(storable_text(get_path(block, "text")) for block in content if get_path(block, "type") == "text")
    return storable_text(content)


def reasoning_in(message: object, paths: tuple[str, ...]) -> str:
    """Return the model's thoughts: the first text at one of the paths, else blocks of the content that are thoughts."""
    for path in paths:
        if found := storable_text(get_path(message, *path.split("."))):
            return found
    blocks = [
        get_path(block, "thinking") for block in get_list(message, "content") if get_path(block, "type") == "thinking"
    ]
    parts = [part for block in blocks for part in (block if isinstance(block, list) else [{"text": block}])]
    return "".join(storable_text(get_path(part, "text")) for part in parts)


def finish_word(said: str) -> str:
    """Return the common word for a finish reason; an unknown one stays, and is no good end."""
    # Google's servers put their own reason behind it: "content_filter: SAFETY".
    return FINISH.get(said.lower().partition(":")[0], said)


def join_stream(raw: str) -> dict[str, Any]:
    """Return the answer that a stream's parts make together; {} where a part is no JSON object."""
    whole: dict[str, Any] = {}
    message: dict[str, Any] = {}
    choice: dict[str, Any] = {"message": message}
    ended, data = False, ""
    for line in LINE_END.split(raw):
        if not line.startswith("data:"):
            continue
        # An object may be spread over several lines of data, and its end is where it can be read.
        data += line.removeprefix("data:").strip()
        if data == "[DONE]" or not data:
            ended, data = ended or bool(data), ""
            continue
        part = parse_body(data)
        if not part:
            continue
        data = ""
        if part.get("error"):
            return part
        whole |= {name: part[name] for name in ("id", "model", "service_tier", "usage") if part.get(name)}
        given = get_path(part, "choices", 0)
        for name, value in (get_path(given, "delta") or {}).items():
            if isinstance(value, str) and name != "role":
                message[name] = message.get(name, "") + value
            elif name == "tool_calls":
                _add_calls(message.setdefault("tool_calls", []), get_list({"calls": value}, "calls"))
        if get_path(given, "finish_reason"):
            choice["finish_reason"] = get_path(given, "finish_reason")
        if found := get_list(given, "logprobs", "content"):
            choice.setdefault("logprobs", {"content": []})["content"] += found
    if data or not whole:
        return {}
    if not (ended or "finish_reason" in choice or "usage" in whole):
        return {"error": {"message": "the stream was cut before the answer's end"}}
    return {**whole, "choices": [choice]}


def _add_calls(calls: list[dict[str, Any]], parts: list[Any]) -> None:
    """The next pieces of a tool's arguments, each to the call that it names by its place."""
    for part in parts:
        place = get_path(part, "index") or 0
        while isinstance(place, int) and len(calls) <= place < 100:
            calls.append({"function": {"arguments": ""}})
        if isinstance(place, int) and 0 <= place < len(calls):
            calls[place]["function"]["arguments"] += storable_text(get_path(part, "function", "arguments"))


def decision_body(request: ModelRequest) -> dict[str, Any]:
    """Return the body of a question of the Decisions endpoint: which level of the judge's scale?"""
    meanings = render.grade_levels(request.judge.grades)
    levels = [{"label": str(grade), "description": meaning} for grade, meaning in enumerate(meanings)]
    question = {"type": "score", "name": "relevance", "instructions": request.prompt.system, "levels": levels}
    return {"model": request.judge.model, "input": request.prompt.user, "questions": [question]}


def read_decision(body: dict[str, Any], grades: int) -> Reply | None:
    """Return the probabilities of the first answer's levels, and the likeliest as the verdict."""
    answer, counts = get_path(body, "answers", 0), body.get("usage")
    declined = get_path(answer, "type") == "refusal"
    used = count_tokens(counts, RESPONSES_USED, SAID[:1] if declined else SAID)
    if declined:
        return Reply("", finish_reason="refusal", usage=used)
    listed = get_list(answer, "probabilities")
    found = likeliest_grade({get_path(one, "value"): get_path(one, "probability") for one in listed}, grades)
    return found and Reply(found[0], finish_reason="stop", usage=used, probabilities=found[1])


def read_usage(counts: object, names: Mapping[str, str] = {}, *, apart: bool = False) -> Usage:
    """Return an answer's tokens; `names`: where the provider counts, if not as OpenAI."""
    places = {**USED, **names}
    needed = [path for name in ("input", "output") for path in places[name].split(" + ")]
    if apart:  # the reasoning tokens are counted beside the output, and not in it
        places["output"] += f" + {places['reasoning']}"
    return count_tokens(counts, places, needed)


def is_strict(schema: dict[str, Any]) -> bool:
    """Strict schemas require every property and allow no other."""
    return schema.get("additionalProperties") is False and set(schema.get("required", ())) == set(schema["properties"])
