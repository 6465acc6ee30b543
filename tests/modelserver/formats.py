"""The three wire formats: what a request asks, and how an answer or an error looks."""

import json
from dataclasses import dataclass
from hashlib import sha256
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
    levels: int = 0
    """Of a Decisions endpoint's question, or 1 for a reranker and an embedder."""
    texts: tuple[str, ...] = ()
    """Documents of a reranker, or what an embedder gets."""


def read(path: str, headers: dict[str, str], body: dict[str, Any]) -> Call | None:
    """The call in a request; None for an address that is none of the three formats."""
    if path.endswith("/chat/completions"):
        system, user = (message["content"] for message in body["messages"])
        schema = body["response_format"]["json_schema"]["schema"]
        return Call("openai", body["model"], system, user, schema, headers.get("authorization", "").partition(" ")[2])
    if path.endswith("/v1/messages"):
        user = body["messages"][0]["content"]
        schema = body["output_config"]["format"]["schema"]
        system = body["system"] if isinstance(body["system"], str) else body["system"][0]["text"]
        return Call("anthropic", body["model"], system, user, schema, headers.get("x-api-key", ""))
    if path.endswith(":generateContent"):
        model = path.rpartition("/")[2].removesuffix(":generateContent")
        system = body["systemInstruction"]["parts"][0]["text"]
        user = body["contents"][0]["parts"][0]["text"]
        schema = body["generationConfig"]["responseJsonSchema"]
        return Call("google", model, system, user, schema, headers.get("x-goog-api-key", ""))
    if path.endswith("/decisions"):
        return _decision(body, headers)
    if path.endswith("/rerank"):
        user = f"{body['query']}\n{body['documents'][0]}"
        key = headers.get("authorization", "").partition(" ")[2]
        return Call("rerank", body["model"], body.get("instruction", ""), user, {}, key, 1, tuple(body["documents"]))
    if path.endswith("/embeddings"):
        key = headers.get("authorization", "").partition(" ")[2]
        return Call("embed", body["model"], "", "\n".join(body["input"]), {}, key, 1, tuple(body["input"]))
    return None


def _decision(body: dict[str, Any], headers: dict[str, str]) -> Call:
    if isinstance(body["questions"], dict):
        question = body["questions"]["relevance"]
        key, levels = headers.get("x-goog-api-key", ""), question["criteria"]
        model = body["model"].removeprefix("models/")
        return Call("google-decision", model, question["instructions"], body["input"], {}, key, len(levels))
    question = body["questions"][0]
    key = headers.get("authorization", "").partition(" ")[2]
    levels = question["levels"]
    return Call("openai-decision", body["model"], question["instructions"], body["input"], {}, key, len(levels))


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
    for name in ("passage", "reasoning"):
        if name in call.schema["properties"]:
            whole = json.dumps({name: f"Scripted {name} of {call.model}: {behaviour.written or query(call.user)}"})
            return whole[: len(whole) // 2] if behaviour.fault == "truncated" else whole
    side, round = place(call.user)
    said = "maybe" if behaviour.fault == "range" else response(behaviour.verdict, call.user, side, round)
    answer: dict[str, Any] = {"reason": f"Scripted {said} of {side} in round {round}.", "response": said}
    if "score" in call.schema["properties"]:
        highest = max(call.schema["properties"]["score"]["enum"])
        score = {"yes": highest, "no": 0, "maybe": highest + 1}[said] if behaviour.score is None else behaviour.score
        answer = {"reason": f"Scripted {score}.", "score": score}
    if "reference" in call.schema["properties"]:
        answer = {"reference": sentences(call.user), **answer}
    whole = json.dumps(answer)
    return whole[: len(whole) // 2] if behaviour.fault == "truncated" else whole


def query(user: str) -> str:
    """The query in the prompt's first fence."""
    return str(json.JSONDecoder().raw_decode(user, user.find('"query": ') + len('"query": '))[0])


def sentences(user: str) -> list[str]:
    """The first sentence of the document in the prompt's first fence, so that quotes are found in it."""
    start = user.find('"document": ')
    if start < 0:
        return []
    document, _ = json.JSONDecoder().raw_decode(user, start + len('"document": '))
    return [document.partition(". ")[0]]


def answer(call: Call, behaviour: Behaviour, number: int) -> dict[str, Any]:
    """The body of an answer in the call's wire format."""
    if call.levels:
        return scored(call, behaviour, number)
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
    listed = [
        {"token": word, "logprob": p, "bytes": None, "top_logprobs": [{"token": w, "logprob": q} for w, q in others]}
        for word, p, others in behaviour.tokens
    ]
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": {"content": listed} if listed else None,
                "finish_reason": finish,
            }
        ],
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
    candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "finishReason": finish, "index": 0}
    if behaviour.tokens:
        candidate["logprobsResult"] = {
            "chosenCandidates": [{"token": word, "logProbability": p} for word, p, _ in behaviour.tokens],
            "topCandidates": [
                {"candidates": [{"token": w, "logProbability": q} for w, q in others]}
                for _, _, others in behaviour.tokens
            ],
        }
    return {"candidates": [candidate], **body}


def scored(call: Call, behaviour: Behaviour, number: int) -> dict[str, Any]:
    """The body of a Decisions endpoint or of a reranker: probabilities instead of text."""
    yes = response(behaviour.verdict, call.user, "vote", 0) == "yes"
    used = len(call.user) // 4
    if call.format == "embed":
        data = [{"object": "embedding", "index": at, "embedding": vector(one)} for at, one in enumerate(call.texts)]
        data.reverse()  # the place decides, not the order
        return {"object": "list", "model": call.model, "data": data, "usage": {"prompt_tokens": used}}
    if call.format == "rerank" and len(call.texts) > 1:
        shares = behaviour.shares or [overlap(call.user.partition("\n")[0], one) for one in call.texts]
        results = [{"index": at, "relevance_score": score} for at, score in enumerate(shares)]
        results.sort(key=lambda one: -float(one["relevance_score"]))
        return {"model": call.model, "results": results, "usage": {"total_tokens": used}}
    if call.format == "rerank":
        score = behaviour.shares[0] if behaviour.shares else 0.9 if yes else 0.1
        return {
            "model": call.model,
            "results": [{"index": 0, "relevance_score": score}],
            "usage": {"total_tokens": used},
        }
    rest = 0.1 / (call.levels - 1)
    shares = behaviour.shares or [0.9 if place == (call.levels - 1) * yes else rest for place in range(call.levels)]
    mean = sum(place * share for place, share in enumerate(shares))
    if call.format == "google-decision":
        answer = {
            "type": "score",
            "confidence": max(shares),
            "score": mean,
            "legend": {},
            "probabilities": {str(place): share for place, share in enumerate(shares)},
        }
        return {"answers": {"relevance": answer}, "usage": {"total_input_tokens": used, "total_output_tokens": 1}}
    listed = [{"label": str(place), "value": place, "probability": share} for place, share in enumerate(shares)]
    said = {"type": "score", "name": "relevance", "confidence": max(shares), "score": mean, "probabilities": listed}
    refusal = {"type": "refusal", "name": "relevance"}
    return {
        "model": call.model,
        "answers": [refusal if behaviour.fault == "refused" else said],
        "usage": {
            "input_tokens": used,
            "input_tokens_details": {"cached_tokens": behaviour.cached, "cache_write_tokens": 0},
            "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": used + 1,
        },
    }


DIMENSIONS = 64


def vector(text: str) -> list[float]:
    """Counts of words, each at a place that its hash says: texts with the same words are near each other."""
    found = [0.0] * DIMENSIONS
    for word in text.lower().split():
        found[sha256(word.strip(".,?!").encode()).digest()[0] % DIMENSIONS] += 1.0
    return found


def overlap(asked: str, document: str) -> float:
    """Share of the query's words that the document has."""
    wanted = set(asked.lower().split())
    return len(wanted & set(document.lower().split())) / len(wanted)


def error(form: str, status: int, message: str) -> dict[str, Any]:
    """The body of an error in a wire format."""
    if form == "anthropic":
        kind = {429: "rate_limit_error", 401: "authentication_error", 404: "not_found_error", 529: "overloaded_error"}
        return {"type": "error", "error": {"type": kind.get(status, "api_error"), "message": message}}
    if form == "google":
        kinds = {429: "RESOURCE_EXHAUSTED", 401: "UNAUTHENTICATED", 404: "NOT_FOUND"}
        return {"error": {"code": status, "message": message, "status": kinds.get(status, "INTERNAL")}}
    return {"error": {"message": message, "type": "error", "param": None, "code": None}}
