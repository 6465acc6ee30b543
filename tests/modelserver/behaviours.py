"""What a scripted model does with a call: its latency, its verdict, and its fault."""

import re
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from typing import Any

STATUSES = {"400": 400, "401": 401, "403": 403, "404": 404, "408": 408, "429": 429, "500": 500, "503": 503, "529": 529}
FAULTS = {
    *STATUSES,
    "drop",  # the connection is cut without an answer
    "half",  # cut in the middle of the body
    "hang",  # no answer until the client goes
    "drip",  # a byte of the body every 50 ms
    "truncated",  # stopped at the output limit
    "refused",  # declined: in the message, and by the finish reason
    "filtered",  # stopped by the provider's filter, with no text
    "garbage",  # a good answer of the wire format whose text is no JSON
    "schema",  # JSON of another schema
    "range",  # the schema, with a response that is neither yes nor no
    "empty",  # a good answer of the wire format without text
    "no-logprobs",  # without log-probabilities, though they were asked for
    "other-model",  # answered by a model of another name
    "error-body",  # 200 with an error in the body
    "not-json",  # 200 with HTML
    "no-body",  # 200 with nothing
    "redirect",  # 307 to itself
    "huge",  # a body of 10 MB
    "echo-key",  # 401 that repeats the key
    "no-quota",  # 429 of an account whose money is spent
    "no-usage",  # a good answer that does not say what it used
}
VERDICTS = {"yes", "no", "hash", "stance", "converge", "swap"}


@dataclass
class Behaviour:
    """One entry of a model's script. The first one that applies to a call is taken."""

    verdict: str | dict[str, Any] = "hash"
    """A name of VERDICTS, or {"A": [by round], "B": [by round], "vote": "yes"}."""
    latency: float = 0.0
    fault: str = ""
    retry_after: str = ""
    times: int = 0  # How many calls it takes, then it is over; 0: any number.
    every: int = 1  # It takes only each n-th call that it applies to.
    contains: str = ""  # It takes only calls whose user message has this text.
    also: str = ""  # It takes only calls whose user message has this text, too.
    key: str = ""  # It takes only calls with this key.
    text: str = ""  # The answer's text, as it is.
    written: str = ""  # What a passage or a reasoning says; else the query itself.
    body: str = ""  # The whole body of the answer, as it is.
    status: int = 200  # The status that `body` comes with.
    score: int | None = None  # Of a graded answer; else the highest for yes, 0 for no.
    tokens: list[Any] = field(default_factory=list)
    """[[text, log-probability, [[alternative, log-probability], ...]], ...] of the answer's text;
    given where they were asked for, with as many alternatives as were asked for. Without them the
    server makes some up."""
    shares: list[float] = field(default_factory=list)
    """Probabilities that a Decisions endpoint or a reranker answers with."""
    reasoning: int = 0
    """Tokens that are thought before the answer. Of a look-alike they count towards the output
    limit: what is left of it goes to the answer, and may be nothing."""
    thought: str = ""  # Their text, where the API shows it; else the server makes one up.
    around: list[str] = field(default_factory=list)
    """[before, after]: what a look-alike's answer stands in, such as a Markdown fence; the verdict stays."""
    context: int = 0
    """Tokens that a look-alike's model takes, request and answer together; else its own number."""
    cached: int = 0
    written_tokens: int = 0  # Written to the prompt cache, by look-alikes that say so.
    usage: dict[str, Any] = field(default_factory=dict)
    """What the answer says of its tokens, as it is, in place of what was counted."""
    reads: int = 0
    """The most tokens of a prompt that are read, and counted: the rest is cut without a word."""
    more: dict[str, Any] = field(default_factory=dict)
    """Further fields of the answer's body, such as the service tier; those of a table are added to it."""
    headers: dict[str, str] = field(default_factory=dict)  # Further headers of the answer.
    seen: int = 0
    taken: int = 0

    def applies(self, user: str, key: str) -> bool:
        """Whether this call is one of its; counts it when it is."""
        wanted = self.contains in user and self.also in user
        if (self.times and self.taken >= self.times) or not wanted or self.key not in ("", key):
            return False
        self.seen += 1
        if self.seen % self.every:
            return False
        self.taken += 1
        return True


@dataclass
class Script:
    """Behaviours by model name; "*" is for models without their own. Else the model's name says it (`from_name`)."""

    models: dict[str, list[Behaviour]] = field(default_factory=dict)
    latency: float = 0.0

    @classmethod
    def load(cls, models: dict[str, Any], latency: float = 0.0) -> "Script":
        """From JSON: {model: behaviour or [behaviour, ...]}. Raises on unknown keys and faults."""
        script = cls(latency=latency)
        for name, entries in models.items():
            entries = entries if isinstance(entries, list) else [entries]
            script.models[name] = [Behaviour(**{"latency": latency, **entry}) for entry in entries]
            unknown = {entry.fault for entry in script.models[name]} - FAULTS - {""}
            if unknown:
                raise ValueError(f"unknown fault {unknown}")
        return script

    def behaviour(self, model: str, user: str, key: str) -> Behaviour:
        for entry in self.models.get(model) or self.models.get("*", []):
            if entry.applies(user, key):
                return entry
        return from_name(model, self.latency)


def from_name(model: str, latency: float) -> Behaviour:
    """`stance`, `gpt+yes`, `x+429`, `y+no+latency=0.2`, `z+reasoning=900`: parts of the name that
    are verdicts, faults, a latency or thoughts.
    """
    behaviour = Behaviour(latency=latency)
    for part in model.split("+"):
        if part in VERDICTS:
            behaviour.verdict = part
        elif part in FAULTS:
            behaviour.fault = part
        elif part.startswith("latency="):
            behaviour.latency = float(part.removeprefix("latency="))
        elif part.startswith("reasoning="):
            behaviour.reasoning = int(part.removeprefix("reasoning="))
    return behaviour


_PLACE = re.compile(r"This is round (\d+)\b.*?You are ([A-D])\b", re.DOTALL)


FENCE = re.compile(r"^<<<DATA ([0-9a-f]{24})$\n.*?\n^DATA \1>>>$", re.DOTALL | re.MULTILINE)


def place(user: str) -> tuple[str, int]:
    """Who is asked and in which round: ("A", 1), ("B", 2), ("vote", 0), from the end of the user message."""
    found = _PLACE.search(user, max(0, user.rfind(">>>")))
    return (found[2], int(found[1])) if found else ("vote", 0)


def response(verdict: str | dict[str, Any], user: str, side: str, round: int) -> str:
    """yes or no. `hash` depends on the material alone, so every model says the same of a pair."""
    if isinstance(verdict, dict):
        said = verdict[side]
        return str(said if isinstance(said, str) else said[min(round, len(said)) - 1])
    if verdict in ("yes", "no"):
        return verdict
    if side != "vote":
        stance = {"A": "yes", "B": "no", "C": "yes", "D": "no"}[side]
        if verdict == "stance" or (verdict == "converge" and round == 1):
            return stance
        if verdict == "swap":
            return stance if round % 2 else {"yes": "no", "no": "yes"}[stance]
    material = "".join(found[0] for found in islice(FENCE.finditer(user), 2))  # query and document
    return "yes" if sha256((material or user).encode()).digest()[0] % 2 else "no"
