"""Answers in the four wire formats: text or a tool call, thoughts, usage, log-probabilities."""

import json
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tests.modelserver.behaviours import Behaviour
from tests.modelserver.formats import REFUSED, Call, Word, scored, text, words

if TYPE_CHECKING:
    from tests.modelserver.presets.asking import Asked
    from tests.modelserver.presets.base import LookAlike

CHARACTERS = 4  # Of a token, about.


@dataclass
class Counts:
    """Tokens of one answer. `output` is what was said; the thought stands in `reasoning` alone."""

    input: int
    cached: int
    written: int
    output: int
    reasoning: int


@dataclass
class Said:
    """What the model says, once its limits are reached: cut, refused, thought."""

    text: str
    thought: str
    finish: str  # stop, length, refused or filtered.
    counts: Counts
    words: list[Word]


OWN: dict[str, Any] = {
    form: SimpleNamespace(wire=wire, usage=None, reasoning="reasoning_content", finish=lambda body, asked, counts: body)
    for form, wire in {"openai": "chat", "anthropic": "messages", "google": "generate"}.items()
}
"""The server's own formats: they refuse next to nothing, and limit nothing."""
PLAIN: Any = SimpleNamespace(tool="", at=lambda path: None)


def answer(call: Call, behaviour: Behaviour, number: int) -> dict[str, Any]:
    """The body of an answer, as the look-alike writes it, or in one of the server's own formats."""
    if call.levels:
        return scored(call, behaviour)
    alike, asked = (call.alike, call.asked) if call.alike else (OWN[call.format], PLAIN)
    said = _said(alike, call, asked, behaviour) if call.alike else _own(call, behaviour)
    model = "another-model" if behaviour.fault == "other-model" else call.model
    write = {"chat": _chat, "responses": _responses, "messages": _messages, "generate": _generate}[alike.wire]
    body = write(alike, asked, said, model, number)
    used = behaviour.usage or (alike.usage or USAGES[alike.wire])(said.counts)
    body["usageMetadata" if alike.wire == "generate" else "usage"] = used
    body = alike.finish(body, asked, said.counts)
    if behaviour.fault == "no-usage":
        body.pop("usage", None)
        body.pop("usageMetadata", None)
    return body


FINISHES = {"truncated": "length", "refused": "refused", "filtered": "filtered"}


def _own(call: Call, behaviour: Behaviour) -> Said:
    """The scripted text, as long as it is; only OpenAI's own format shows a thought, and Anthropic's counts none."""
    whole = text(call, behaviour)
    tokens_in = (len(call.system) + len(call.user)) // CHARACTERS
    tokens_in = min(tokens_in, behaviour.reads or tokens_in)
    reasoning = 0 if call.format == "anthropic" else behaviour.reasoning
    counts = Counts(tokens_in, behaviour.cached, 0, len(whole) // CHARACTERS + 1, reasoning)
    thought = behaviour.thought if call.format == "openai" else ""
    return Said(whole, thought, FINISHES.get(behaviour.fault, "stop"), counts, words(call, whole, behaviour))


def _said(alike: "LookAlike", call: Call, asked: "Asked", behaviour: Behaviour) -> Said:
    """The scripted text within the limits: a model thinks first, and what is left of its tokens goes to the answer."""
    whole = text(call, behaviour)
    finish = FINISHES.get(behaviour.fault, "stop")
    if finish == "stop" and behaviour.around:
        whole = whole.join(behaviour.around)
    thinking = behaviour.reasoning if alike.thinks(asked) else 0
    budget = alike.budget(asked)
    thinking = thinking if budget is None else min(thinking, budget)
    limit, output = alike.output_limit(asked), len(whole) // CHARACTERS + 1
    if limit and thinking + output > limit:
        thinking, finish = min(thinking, limit), "length"
        output = limit - thinking
        whole = whole[: output * CHARACTERS]
    thought = ""
    if thinking:
        whole_thought = behaviour.thought or f"Scripted thought of {asked.model}. "
        thought = (whole_thought * (thinking * CHARACTERS // len(whole_thought) + 1))[: thinking * CHARACTERS]
        thought = behaviour.thought or thought
    if alike.inline and thought:
        whole = f"<think>\n{thought}" + (f"\n</think>\n\n{whole}" if output else "")
        output, thinking, thought = output + thinking, 0, ""
    read = (len(asked.system) + len(asked.user)) // CHARACTERS
    read = min(read, behaviour.reads or read)
    counts = Counts(read, behaviour.cached, behaviour.written_tokens, output, thinking)
    return Said(whole, thought, finish, counts, words(call, whole, behaviour))


def _chat(alike: "LookAlike", asked: "Asked", said: Said, model: str, number: int) -> dict[str, Any]:
    refused = said.finish == "refused"
    finish = {"filtered": "content_filter", "refused": "stop"}.get(said.finish, said.finish)
    message: dict[str, Any] = {"role": "assistant", "content": said.text}
    if refused:
        message |= {"content": None, "refusal": REFUSED}
    elif asked.tool:
        call = {"name": asked.tool, "arguments": said.text}
        calls = [{"id": f"call_{number}", "type": "function", "function": call}] if said.text else []
        message |= {"content": None, "tool_calls": calls}
        finish = alike.tool_finish if finish == "stop" else finish
    if said.thought and alike.reasoning:
        message[alike.reasoning] = said.thought
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
    if said.words and not asked.tool:
        choice["logprobs"] = {"content": _listed(said.words)}
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": model,
        "choices": [choice],
    }


def streamed(body: dict[str, Any]) -> bytes:
    """A chat answer as server-sent events: the thought in two pieces, then the text in two, then what it used."""
    choice, used = body["choices"][0], body.pop("usage", None)
    message: dict[str, Any] = choice["message"]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": None}]
    for name, value in message.items():
        if isinstance(value, str) and name != "role":
            half = len(value) // 2
            deltas += [{name: value[:half]}, {name: value[half:]}]
    if calls := message.get("tool_calls"):
        deltas += [{"tool_calls": [{"index": 0, **calls[0]}]}]
    # The answer follows the thought, whatever the order of the fields.
    deltas.sort(key=lambda delta: "content" in delta and delta["content"] is not None)
    head = {**{key: body[key] for key in ("id", "created", "model")}, "object": "chat.completion.chunk"}
    chunks: list[dict[str, Any]] = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None, "logprobs": None}]} for delta in deltas
    ]
    chunks[-1]["choices"][0] |= {"finish_reason": choice["finish_reason"], "logprobs": choice["logprobs"]}
    if used is not None:
        chunks.append({**head, "choices": [], "usage": used})
    events = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return "".join([*events, "data: [DONE]\n\n"]).encode()


def _responses(alike: "LookAlike", asked: "Asked", said: Said, model: str, number: int) -> dict[str, Any]:
    output: list[dict[str, Any]] = []
    if said.thought:
        shown = (asked.body.get("reasoning") or {}).get("summary")
        summary = [{"type": "summary_text", "text": said.thought}] if shown else []
        output.append({"id": f"rs_{number}", "type": "reasoning", "summary": summary})
    status = "incomplete" if said.finish in ("length", "filtered") else "completed"
    if asked.tool and said.finish != "refused":
        call = {"type": "function_call", "call_id": f"call_{number}", "name": asked.tool, "arguments": said.text}
        output.append({"id": f"fc_{number}", "status": status, **call})
    elif said.text or said.finish == "refused":
        part: dict[str, Any] = {"type": "output_text", "text": said.text, "annotations": []}
        part["logprobs"] = _listed(said.words)
        if said.finish == "refused":
            part = {"type": "refusal", "refusal": REFUSED}
        output.append(
            {"id": f"msg_{number}", "type": "message", "role": "assistant", "status": status, "content": [part]}
        )
    reason = {"length": "max_output_tokens", "filtered": "content_filter"}.get(said.finish)
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "model": model,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "store": bool(asked.body.get("store", True)),
    }


def _messages(alike: "LookAlike", asked: "Asked", said: Said, model: str, number: int) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if said.thought:
        content.append({"type": "thinking", "thinking": said.thought, "signature": "c2lnbmVk"})
    finish = {"length": "max_tokens", "refused": "refusal", "filtered": "refusal"}.get(said.finish, "end_turn")
    if said.finish == "refused":
        content.append({"type": "text", "text": REFUSED})
    elif asked.tool and said.text:
        content.append({"type": "tool_use", "id": f"toolu_{number}", "name": asked.tool, "input": _object(said.text)})
        finish = "tool_use" if finish == "end_turn" else finish
    elif said.text:
        content.append({"type": "text", "text": said.text})
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": finish,
        "stop_sequence": None,
    }


def _generate(alike: "LookAlike", asked: "Asked", said: Said, model: str, number: int) -> dict[str, Any]:
    body: dict[str, Any] = {"modelVersion": model, "responseId": str(number)}
    if said.finish == "filtered":
        return {"promptFeedback": {"blockReason": "SAFETY"}, **body}
    parts: list[dict[str, Any]] = []
    if said.thought and ((asked.at("generationConfig.thinkingConfig") or {}).get("includeThoughts")):
        parts.append({"text": said.thought, "thought": True})
    if asked.tool and said.text and said.finish != "refused":
        parts.append({"functionCall": {"name": asked.tool, "args": _object(said.text)}})
    elif said.text and said.finish != "refused":
        parts.append({"text": said.text})
    finish = {"length": "MAX_TOKENS", "refused": "SAFETY"}.get(said.finish, "STOP")
    candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "finishReason": finish, "index": 0}
    if said.words:
        candidate["logprobsResult"] = {
            "chosenCandidates": [{"token": word, "logProbability": p} for word, p, _ in said.words],
            "topCandidates": [
                {"candidates": [{"token": w, "logProbability": q} for w, q in others]} for _, _, others in said.words
            ],
        }
    return {"candidates": [candidate], **body}


def _listed(given: list[Word]) -> list[dict[str, Any]]:
    return [
        {"token": word, "logprob": p, "bytes": None, "top_logprobs": [{"token": w, "logprob": q} for w, q in others]}
        for word, p, others in given
    ]


def _object(written: str) -> Any:
    """Arguments of a tool as an object; a text that is none stays as it is, under a key of its own."""
    try:
        return json.loads(written)
    except ValueError:
        return {"text": written}


def chat_usage(counts: Counts) -> dict[str, Any]:
    """OpenAI's: reasoning tokens are part of the completion's."""
    return {
        "prompt_tokens": counts.input,
        "completion_tokens": counts.output + counts.reasoning,
        "total_tokens": counts.input + counts.output + counts.reasoning,
        "prompt_tokens_details": {"cached_tokens": counts.cached},
        "completion_tokens_details": {"reasoning_tokens": counts.reasoning},
    }


def responses_usage(counts: Counts) -> dict[str, Any]:
    return {
        "input_tokens": counts.input,
        "input_tokens_details": {"cached_tokens": counts.cached, "cache_write_tokens": counts.written},
        "output_tokens": counts.output + counts.reasoning,
        "output_tokens_details": {"reasoning_tokens": counts.reasoning},
        "total_tokens": counts.input + counts.output + counts.reasoning,
    }


def messages_usage(counts: Counts) -> dict[str, Any]:
    """Anthropic's: input is counted without what the cache gave or took, output with the thoughts."""
    return {
        "input_tokens": counts.input - counts.cached - counts.written,
        "cache_creation_input_tokens": counts.written,
        "cache_read_input_tokens": counts.cached,
        "output_tokens": counts.output + counts.reasoning,
    }


def generate_usage(counts: Counts) -> dict[str, Any]:
    """Google's: thoughts are counted beside the answer."""
    return {
        "promptTokenCount": counts.input,
        "cachedContentTokenCount": counts.cached,
        "candidatesTokenCount": counts.output,
        "thoughtsTokenCount": counts.reasoning,
        "totalTokenCount": counts.input + counts.output + counts.reasoning,
    }


USAGES = {"chat": chat_usage, "responses": responses_usage, "messages": messages_usage, "generate": generate_usage}
