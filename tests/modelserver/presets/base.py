"""What a look-alike says of itself, and how a request is held against it.

A table's row is a `LookAlike`. What it leaves out is as OpenAI's chat completions have it. Whatever
the script of the server says (verdicts, faults, latency, thoughts, usage) holds for every
look-alike.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.modelserver.behaviours import Behaviour
from tests.modelserver.formats import Call
from tests.modelserver.presets import writing
from tests.modelserver.presets.asking import Asked, schema_in_words

WIRES = {
    "chat": r"/chat/completions",
    "responses": r"/responses",
    "messages": r"/v1/messages",
    "generate": r"/v1beta/models/(?P<model>[^/:]+):generateContent",
}
"""Address of a call behind `home`, by wire format."""
LIMITS = {
    "chat": ("max_completion_tokens", "max_tokens"),
    "responses": ("max_output_tokens",),
    "messages": ("max_tokens",),
    "generate": ("generationConfig.maxOutputTokens",),
}
"""Where a request says how many tokens its answer may have."""


@dataclass(frozen=True)
class Refusal:
    """A request that is not answered. `code`, `kind` and `param` stand in the error's body where it has such places."""

    status: int
    message: str
    code: str = ""
    kind: str = ""
    param: str = ""

    def of(self, **values: object) -> "Refusal":
        """With these values in its message."""
        return replace(self, message=self.message.format(**values), param=self.param.format(**values))


Rule = Callable[[Asked], Refusal | None]


def when(condition: Callable[[Asked], Any], words: str, code: str = "", param: str = "") -> Rule:
    """A rule: these words refuse what meets the condition."""
    return lambda asked: Refusal(400, words, code, param=param) if condition(asked) else None


def openai_error(refusal: Refusal) -> dict[str, Any]:
    kind = refusal.kind or {401: "authentication_error", 429: "rate_limit_error"}.get(
        refusal.status, "invalid_request_error" if refusal.status < 500 else "server_error"
    )
    return {
        "error": {
            "message": refusal.message,
            "type": kind,
            "param": refusal.param or None,
            "code": refusal.code or None,
        }
    }


@dataclass(frozen=True, kw_only=True)
class LookAlike:
    """One provider's API, as far as judges use it."""

    name: str  # Of the preset; the first part of the server's paths.
    wire: str = "chat"  # chat, responses, messages or generate.
    home: str = "/v1"
    """Path of the base URL: `http://127.0.0.1:PORT/<name><home>` is what a judges file has."""
    path: str = ""
    """Pattern of the call's address behind `home`, with a group "model" where that stands in it; "": the wire's."""
    key: str = "authorization"  # Header of the key; "": none is needed.
    fields: frozenset[str] = frozenset()
    """What the body may have, by name; "a.b" limits what stands in "a" too. Empty: anything."""
    unknown: str = "refuse"  # What happens to another field: refuse or ignore.
    modes: frozenset[str] = frozenset({"json_schema", "json_object", "tool", "text"})
    """Schema modes that the API has; another one is refused."""
    limits: tuple[str, ...] = ()  # Fields that say how long an answer may be; (): the wire's.
    default_limit: int = 0  # Tokens of an answer where the request says nothing; 0: no limit.
    context: int = 0
    """Tokens that a request and its answer may have; 0: 128,000. A behaviour's `context` goes before it."""
    alternatives: int = 20  # To each token, at most; 0: log-probabilities are refused.
    thinks: Callable[[Asked], bool] = lambda asked: True
    """Whether a scripted thought is thought at all, for APIs where the request says so."""
    budget: Callable[[Asked], int | None] = lambda asked: None
    """Tokens that a thought may have, where the request says so; a longer thought is cut there."""
    reasoning: str = "reasoning_content"
    """Field of the message with the thought (chat); "": it is not shown."""
    inline: bool = False
    """The thought stands in the text itself, as <think>...</think> (local servers without a reasoning parser)."""
    tool_finish: str = "stop"  # Finish reason of an answer by a forced tool (chat).
    usage: Callable[[writing.Counts], dict[str, Any]] | None = None
    """What an answer's usage says; None: as the wire's own provider writes it."""
    finish: Callable[[dict[str, Any], Asked, writing.Counts], dict[str, Any]] = lambda body, asked, counts: body
    """Last change of an answer's body."""
    rules: tuple[Rule, ...] = ()  # Whatever else is refused, in this order.
    error: Callable[[Refusal], dict[str, Any]] = openai_error
    missing_key: Refusal = Refusal(401, "You didn't provide an API key.", "invalid_api_key")
    unknown_field: Refusal = Refusal(
        400, "Unrecognized request argument supplied: {name}", "unknown_parameter", param="{name}"
    )
    no_mode: Refusal = Refusal(
        400,
        "Invalid parameter: 'response_format' of type '{mode}' is not supported with this model.",
        param="response_format",
    )
    too_long: Refusal | None = Refusal(
        400,
        "This model's maximum context length is {most} tokens. However, your messages resulted in {tokens}.",
        "context_length_exceeded",
        param="messages",
    )
    """How it refuses what does not fit into the context; None: it cuts instead, and says nothing."""
    no_model: Refusal | None = Refusal(
        404, "The model `{model}` does not exist or you do not have access to it.", "model_not_found"
    )
    """How it refuses a model that it has not: one whose name begins with "no-such"; None: it does not look."""
    told: Mapping[str, Any] = field(default_factory=dict)
    """What GET requests are answered with, by path behind the preset's name, e.g. "/v1/models"."""
    batches: bool = False  # The server's batch endpoints are answered too.
    judge: Mapping[str, Any] = field(default_factory=dict)
    """Judge keys that a judge of it needs in tests: region, project, api_version, token_command ..."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that a judge of it needs in tests, such as credentials that sign."""

    def call(self, path: str, headers: dict[str, str], body: bytes) -> Call | None:
        """The call in a request, with the refusal that it meets; None for another address."""
        where, _, query = path.partition("?")
        found = re.fullmatch(re.escape(self.home) + (self.path or WIRES[self.wire]), where)
        if found is None:
            return None
        asked = Asked.of(self.wire, where, query, headers, body, found.groupdict())
        refusal = self.refusal(asked)
        schema = asked.schema or schema_in_words(asked.system, asked.user)
        call = Call(self.name, asked.model, asked.system, asked.user, schema, self.given_key(headers))
        call.logprobs, call.alternatives = asked.logprobs, asked.alternatives
        call.alike, call.asked, call.refusal = self, asked, refusal
        return call

    def given_key(self, headers: dict[str, str]) -> str:
        return headers.get(self.key, "").removeprefix("Bearer ").strip() if self.key else ""

    def refusal(self, asked: Asked) -> Refusal | None:
        """Why the provider refuses the request, however its model would answer; None where it does not."""
        if self.key and not self.given_key(asked.headers):
            return self.missing_key
        if asked.model.startswith("no-such") and self.no_model:
            return self.no_model.of(model=asked.model)
        if self.unknown == "refuse" and (unknown := _unknown(asked.body, self.fields)):
            return self.unknown_field.of(name=unknown)
        if asked.mode not in self.modes:
            return self.no_mode.of(mode=asked.mode)
        if asked.logprobs and not self.alternatives:
            return self.unknown_field.of(name="logprobs")
        if asked.alternatives and not asked.logprobs:
            return Refusal(400, "top_logprobs needs logprobs to be true", param="top_logprobs")
        if not 0 <= asked.alternatives <= self.alternatives:
            return Refusal(400, f"top_logprobs must be from 0 to {self.alternatives}", param="top_logprobs")
        return next((refusal for rule in self.rules if (refusal := rule(asked))), None)

    def context_refusal(self, call: Call, behaviour: Behaviour) -> Refusal | None:
        """What a request meets that does not fit into the model's context; about four characters are a token."""
        asked: Asked = call.asked
        most = behaviour.context or self.context or 128_000
        tokens = (len(asked.system) + len(asked.user)) // 4
        fits = tokens + self.output_limit(asked) <= most
        return None if fits or self.too_long is None else self.too_long.of(tokens=tokens, most=most)

    def output_limit(self, asked: Asked) -> int:
        """Tokens that the answer may have; 0: the request does not say."""
        named = (asked.at(name) for name in self.limits or LIMITS[self.wire])
        return next((limit for limit in named if isinstance(limit, int)), self.default_limit)

    def refused(self, status: int, message: str, code: str = "", kind: str = "") -> dict[str, Any]:
        """The body of an error that the script asks for."""
        return self.error(Refusal(status, message, code, kind))

    def get(self, path: str, headers: dict[str, str]) -> tuple[int, bytes]:
        if self.key and not self.given_key(headers):
            return self.missing_key.status, json.dumps(self.error(self.missing_key)).encode()
        if path.partition("?")[0] not in self.told:
            return 404, json.dumps(self.refused(404, "no such address")).encode()
        return 200, json.dumps(self.told[path.partition("?")[0]]).encode()


def words(text: str) -> frozenset[str]:
    """The words of a text, such as the names of fields."""
    return frozenset(text.split())


def _unknown(body: dict[str, Any], fields: frozenset[str]) -> str:
    """The first field that is none of the known ones."""
    if not fields:
        return ""
    for name, value in body.items():
        inner = frozenset(each.partition(".")[2] for each in fields if each.startswith(f"{name}."))
        if name not in fields and not inner:
            return name
        if isinstance(value, dict) and (found := _unknown(value, inner)):
            return f"{name}.{found}"
    return ""
