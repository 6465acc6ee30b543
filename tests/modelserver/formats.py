"""The three wire formats: what a request asks, and how an answer or an error looks."""

import json
import math
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from tests.modelserver.behaviours import Behaviour, place, response

REFUSED = "I cannot help with this."
MOST_ALTERNATIVES = 20
MOST_BREAKPOINTS = 4
SURE = 0.9  # Of every word that the server makes log-probabilities up for.


@dataclass
class Call:
    """One request for an answer, whatever its wire format."""

    format: str
    model: str
    system: str
    user: str
    schema: dict[str, Any]
    key: str
    levels: int = 0  # Of a Decisions endpoint's question, or 1 for a reranker and an embedder.
    texts: tuple[str, ...] = ()  # Documents of a reranker, or what an embedder gets.
    logprobs: bool = False
    alternatives: int = 0  # To each token, of those that were asked for.
    problem: str = ""  # Why the provider refuses the request.
    alike: Any = None
    """The look-alike that answers (presets.base.LookAlike), `asked`, what it read, and the `refusal` that it meets."""
    asked: Any = None
    refusal: Any = None


def read(path: str, headers: dict[str, str], body: dict[str, Any]) -> Call | None:
    """The call in a request; None for an address that is none of the three formats."""
    key = headers.get("authorization", "").partition(" ")[2]
    if path.endswith("/chat/completions"):
        system, user = (message["content"] for message in body["messages"])
        schema = body["response_format"]["json_schema"]["schema"]
        return Call("openai", body["model"], system, user, schema, key, **_logprobs(body, "logprobs", "top_logprobs"))
    if path.endswith("/v1/messages"):
        content = body["messages"][0]["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        user = "".join(block["text"] for block in blocks)
        marks = sum("cache_control" in block for block in [*blocks, *body["system"]])
        problem = "A maximum of 4 blocks with cache_control may be provided." if marks > MOST_BREAKPOINTS else ""
        if any(not block["text"] for block in blocks):
            problem = "messages: text content blocks must be non-empty"
        schema = body["output_config"]["format"]["schema"]
        system = body["system"] if isinstance(body["system"], str) else body["system"][0]["text"]
        return Call("anthropic", body["model"], system, user, schema, headers.get("x-api-key", ""), problem=problem)
    if path.endswith(":generateContent"):
        model = path.rpartition("/")[2].removesuffix(":generateContent")
        system = body["systemInstruction"]["parts"][0]["text"]
        user = body["contents"][0]["parts"][0]["text"]
        config = body["generationConfig"]
        more = _logprobs(config, "responseLogprobs", "logprobs")
        key = headers.get("x-goog-api-key", "")
        return Call("google", model, system, user, config["responseJsonSchema"], key, **more)
    if path.endswith("/decisions"):
        return _decision(body, headers)
    if path.endswith("/rerank"):
        user = f"{body['query']}\n{body['documents'][0]}"
        return Call("rerank", body["model"], body.get("instruction", ""), user, {}, key, 1, tuple(body["documents"]))
    if path.endswith("/embeddings"):
        return Call("embed", body["model"], "", "\n".join(body["input"]), {}, key, 1, tuple(body["input"]))
    return None


def _logprobs(body: dict[str, Any], switch: str, number: str) -> dict[str, Any]:
    asked, most = bool(body.get(switch)), body.get(number)
    problem = ""
    if most is not None and not asked:
        problem = f"{number} needs {switch} to be true"
    elif not 0 <= (most or 0) <= MOST_ALTERNATIVES:
        problem = f"{number} must be from 0 to {MOST_ALTERNATIVES}"
    return {"logprobs": asked, "alternatives": most or 0, "problem": problem}


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
    if "reason" not in call.schema["properties"]:
        del answer["reason"]
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


Word = tuple[str, float, list[tuple[str, float]]]


def words(call: Call, said: str, behaviour: Behaviour) -> list[Word]:
    """Tokens with their log-probabilities and the likeliest alternatives, themselves included: as many as asked."""
    if not call.logprobs or behaviour.fault == "no-logprobs":
        return []
    if behaviour.tokens:
        found = [(word, p, [(w, q) for w, q in others]) for word, p, others in behaviour.tokens]
    else:
        found = [(word, math.log(SURE), _others(word)) for word in re.findall(r"\w+|\W+", said)]
    return [(word, p, sorted(others, key=lambda one: -one[1])[: call.alternatives]) for word, p, others in found]


def _others(word: str) -> list[tuple[str, float]]:
    other = {"yes": "no", "no": "yes"}.get(word, "other")
    return [(word, math.log(SURE)), (other, math.log((1 - SURE) / 2)), ("maybe", math.log((1 - SURE) / 4))]


def scored(call: Call, behaviour: Behaviour) -> dict[str, Any]:
    """The body of a Decisions endpoint or of a reranker: probabilities instead of text."""
    yes = response(behaviour.verdict, call.user, "vote", 0) == "yes"
    used = (len(call.system) + len(call.user)) // 4
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
        results = [{"index": 0, "relevance_score": score}]
        return {"model": call.model, "results": results, "usage": {"total_tokens": used}}
    rest = 0.1 / (call.levels - 1)
    shares = behaviour.shares or [0.9 if place == (call.levels - 1) * yes else rest for place in range(call.levels)]
    mean = sum(place * share for place, share in enumerate(shares))
    if call.format == "google-decision":
        named = {str(place): share for place, share in enumerate(shares)}
        answer = {"type": "score", "confidence": max(shares), "score": mean, "legend": {}, "probabilities": named}
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
    wanted = set(asked.lower().split())
    return len(wanted & set(document.lower().split())) / len(wanted)


def error(form: str, status: int, message: str) -> dict[str, Any]:
    if form == "anthropic":
        kind = {
            413: "request_too_large",
            429: "rate_limit_error",
            401: "authentication_error",
            404: "not_found_error",
            529: "overloaded_error",
        }
        return {"type": "error", "error": {"type": kind.get(status, "api_error"), "message": message}}
    if form == "google":
        kinds = {429: "RESOURCE_EXHAUSTED", 401: "UNAUTHENTICATED", 404: "NOT_FOUND"}
        return {"error": {"code": status, "message": message, "status": kinds.get(status, "INTERNAL")}}
    return {"error": {"message": message, "type": "error", "param": None, "code": None}}


def no_quota(form: str) -> dict[str, Any]:
    """The body of a 429 that no waiting ends."""
    body = error(form, 429, "You exceeded your current quota, please check your plan and billing details.")
    body["error"] |= {"code": "insufficient_quota", "type": "insufficient_quota"}
    return body
