"""The three wire formats: what a request asks, and how an answer or an error looks."""

import json
from dataclasses import dataclass
from typing import Any

from tests.modelserver.behaviours import Behaviour, place, response

REFUSED = "I cannot help with this."


@dataclass
class Call:
    """One request for an answer, whatever its wire format."""

    format: str
    model: str
    system: str
    user: str
    schema: dict[str, Any]
    key: str


def read(path: str, headers: dict[str, str], body: dict[str, Any]) -> Call | None:
    """The call in a request; None for an address that is none of the three formats."""
    if path.endswith("/chat/completions"):
        system, user = (message["content"] for message in body["messages"])
        schema = body["response_format"]["json_schema"]["schema"]
        return Call("openai", body["model"], system, user, schema, headers.get("authorization", "").partition(" ")[2])
    if path.endswith("/v1/messages"):
        user = body["messages"][0]["content"]
        schema = body["output_config"]["format"]["schema"]
        return Call("anthropic", body["model"], body["system"], user, schema, headers.get("x-api-key", ""))
    if path.endswith(":generateContent"):
        model = path.rpartition("/")[2].removesuffix(":generateContent")
        system = body["systemInstruction"]["parts"][0]["text"]
        user = body["contents"][0]["parts"][0]["text"]
        schema = body["generationConfig"]["responseJsonSchema"]
        return Call("google", model, system, user, schema, headers.get("x-goog-api-key", ""))
    return None


def text(call: Call, behaviour: Behaviour) -> str:
    """The text of the answer: JSON of the schema that was asked for, unless the fault says otherwise."""
    if behaviour.text:
        return behaviour.text
    if behaviour.fault in ("empty", "filtered"):
        return ""
    if behaviour.fault == "garbage":
        return "Well, it depends. I would say yes and no."
    if behaviour.fault == "schema":
        return '{"relevance": 1}'
    side, round = place(call.user)
    said = "maybe" if behaviour.fault == "range" else response(behaviour.verdict, call.user, side, round)
    answer: dict[str, Any] = {"reason": f"Scripted {said} of {side} in round {round}.", "response": said}
    if "reference" in call.schema["properties"]:
        answer = {"reference": sentences(call.user), **answer}
    whole = json.dumps(answer)
    return whole[: len(whole) // 2] if behaviour.fault == "truncated" else whole


def sentences(user: str) -> list[str]:
    """The first sentence of the document in the prompt's first fence, so that quotes are found in it."""
    start = user.find('"document": ')
    if start < 0:
        return []
    document, _ = json.JSONDecoder().raw_decode(user, start + len('"document": '))
    return [document.partition(". ")[0]]


def answer(call: Call, behaviour: Behaviour, number: int) -> dict[str, Any]:
    """The body of an answer in the call's wire format."""
    said = text(call, behaviour)
    model = "another-model" if behaviour.fault == "other-model" else call.model
    tokens_in, tokens_out = (len(call.system) + len(call.user)) // 4, len(said) // 4 + 1
    form = {"openai": _openai, "anthropic": _anthropic, "google": _google}[call.format]
    return form(said, model, behaviour, tokens_in, tokens_out, number)


def _openai(
    said: str, model: str, behaviour: Behaviour, tokens_in: int, tokens_out: int, number: int
) -> dict[str, Any]:
    refused = behaviour.fault == "refused"
    finish = {"truncated": "length", "filtered": "content_filter"}.get(behaviour.fault, "stop")
    message = {"role": "assistant", "content": None if refused else said, "refusal": REFUSED if refused else None}
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": tokens_in,
            "completion_tokens": tokens_out + behaviour.reasoning,
            "total_tokens": tokens_in + tokens_out + behaviour.reasoning,
            "prompt_tokens_details": {"cached_tokens": behaviour.cached},
            "completion_tokens_details": {"reasoning_tokens": behaviour.reasoning},
        },
    }


def _anthropic(
    said: str, model: str, behaviour: Behaviour, tokens_in: int, tokens_out: int, number: int
) -> dict[str, Any]:
    finish = {"truncated": "max_tokens", "refused": "refusal", "filtered": "refusal"}.get(behaviour.fault, "end_turn")
    blocks = [{"type": "text", "text": REFUSED if behaviour.fault == "refused" else said}]
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [] if behaviour.fault in ("empty", "filtered") else blocks,
        "stop_reason": finish,
        "stop_sequence": None,
        "usage": {
            "input_tokens": tokens_in - behaviour.cached,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": behaviour.cached,
            "output_tokens": tokens_out,
        },
    }


def _google(
    said: str, model: str, behaviour: Behaviour, tokens_in: int, tokens_out: int, number: int
) -> dict[str, Any]:
    usage = {
        "promptTokenCount": tokens_in,
        "cachedContentTokenCount": behaviour.cached,
        "candidatesTokenCount": tokens_out,
        "thoughtsTokenCount": behaviour.reasoning,
        "totalTokenCount": tokens_in + tokens_out + behaviour.reasoning,
    }
    body: dict[str, Any] = {"usageMetadata": usage, "modelVersion": model, "responseId": str(number)}
    if behaviour.fault == "filtered":
        return {"promptFeedback": {"blockReason": "SAFETY"}, **body}
    finish = {"truncated": "MAX_TOKENS", "refused": "SAFETY"}.get(behaviour.fault, "STOP")
    parts = [] if behaviour.fault in ("empty", "refused") else [{"text": said}]
    return {"candidates": [{"content": {"parts": parts, "role": "model"}, "finishReason": finish, "index": 0}], **body}


def error(form: str, status: int, message: str) -> dict[str, Any]:
    """The body of an error in a wire format."""
    if form == "anthropic":
        kind = {429: "rate_limit_error", 401: "authentication_error", 404: "not_found_error", 529: "overloaded_error"}
        return {"type": "error", "error": {"type": kind.get(status, "api_error"), "message": message}}
    if form == "google":
        kinds = {429: "RESOURCE_EXHAUSTED", 401: "UNAUTHENTICATED", 404: "NOT_FOUND"}
        return {"error": {"code": status, "message": message, "status": kinds.get(status, "INTERNAL")}}
    return {"error": {"message": message, "type": "error", "param": None, "code": None}}
