"""Records that prompts, providers and the engine share. Pure: no Django."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from corpus.document_limit import SHOWN, Window, cut_windows
from corpus.evidence.measures import EvidenceTarget
from corpus.rubric import BY_QUERY, Definition
from judges.presets import PRESETS, Preset
from judges.presets.own_servers import HOSTED_S, OWN_S, is_own_server
from judges.rates import Rate

SCALES = {"binary": 1, "0-3": 3, "0-10": 10}  # Highest grade by the name of a scale.

# The most alternatives to each token of an answer that OpenAI, Google and compatible servers return.
ALTERNATIVES = 20

# Roles of calls that retrieval runs make, about no pair (judges.retrieval.model_requests).
RETRIEVAL = frozenset({"rewrite", "reason", "rank", "embed", "web"})
# Roles of steps in conversations (judges.conversations), by subject: answers from documents and their
# checks; agents that search, and their assessment; synthetic queries with their documents; forms of
# queries; two documents side by side.
CONVERSATIONS = frozenset(
    {
        *("answer", "correct"),
        *("search", "assess", "reference"),
        *("persona", "classify", "outline", "decompose", "blueprint", "negatives", "compose"),
        *("keywords", "ask"),
        "prefer",
    }
)
WITHOUT_PAIR = RETRIEVAL | CONVERSATIONS
# Roles whose answers are texts: their attempts have no verdict.
TEXT_ROLES = ("write", "entity", "measure")

# One turn, vote or text of a pair: its role; the round of a debate, or the number of one of several
# answers; the pair of agents in a debate, or the position on the panel.
Slot = tuple[str, int, int]
IN_ROUNDS = ("for", "against", "adjudicate")


def slot_columns(slot: Slot) -> dict[str, str | int]:
    """Return the columns of an Attempt in which a slot is stored."""
    role, nth, who = slot
    if role in IN_ROUNDS:
        return {"role": role, "round": nth, "agent_pair": who, "generation": 0, "place": 0}
    return {"role": role, "round": 0, "agent_pair": 0, "generation": nth, "place": who}


def limit_answer(parameters: Mapping[str, Any]) -> int:
    """Return the most tokens of an answer by a judge's parameters; with a chain of reasoning, ERank's number (3.2)."""
    return int(parameters.get("max_output_tokens", 2048 if parameters.get("prompt") == "score-chain" else 512))


class Side(StrEnum):
    """Side of a debater, by its opening stance: for relevance, or against."""

    FOR = "for"
    AGAINST = "against"


class DebateAgent(NamedTuple):
    """An agent of a debate: its opening stance, and the number of its pair of agents, from 0."""

    side: Side
    couple: int = 0


@dataclass(frozen=True, slots=True)
class Inputs:
    """The view of a pair that every judge gets, in a debate as in a vote."""

    query: str
    answers: tuple[str, ...]
    title: str
    document: str
    # The definition of relevance for the pair; None: that of the rubric "auto".
    definition: Definition | None = None
    # Id of the collection, for offline judges that search its BM25 index; never in a prompt.
    collection: int = 0
    document_id: int = 0  # Primary key of the document, for the same purpose.
    shown: int = SHOWN  # The most characters of the document that judges see.
    window: Window | None = None  # The part of a longer document that `document` is.

    @property
    def relevance(self) -> Definition:
        """The definition of relevance that applies to the pair."""
        return self.definition or BY_QUERY.definition(answers=bool(self.answers))

    @property
    def parts(self) -> list["Inputs"]:
        """The views of a long document's windows, in order; empty for a document that is shown whole."""
        windows = cut_windows(len(self.document))
        return [replace(self, document=self.document[window.start : window.end], window=window) for window in windows]

    @property
    def titled_document(self) -> str:
        """Title and text, as people, rerankers and training sets see the document."""
        return f"{self.title}\n{self.document}" if self.title else self.document


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence quoted from the document, at characters `start` to `end`; None: it is not in the document."""

    text: str
    start: int | None = None
    end: int | None = None

    def moved(self, offset: int) -> "Quote":
        """Return the quote moved by `offset` characters, from a part to the whole document."""
        if self.start is None or self.end is None:
            return self
        return Quote(self.text, self.start + offset, self.end + offset)


@dataclass(frozen=True, slots=True)
class Turn:
    """A parsed answer: an agent's message in a debate, a vote, or a text."""

    verdict: int  # 1 (relevant) or 0.
    reason: str
    quotes: tuple[Quote, ...] = ()
    score: int | None = None  # Grade on the judge's own scale, if that has more than two.
    # By answer: {"yes", "no"}, {the score: P(s)}, or by grade; None without any.
    probabilities: dict[str, float] | None = None


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """A model as a judges file configures it: the fields of a JudgeVersion, with readers of its parameters."""

    name: str
    provider: str
    model: str
    base_url: str = ""
    api_key_env: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    max_concurrency: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    input_price: float | None = None
    output_price: float | None = None
    cached_input_price: float | None = None
    written_input_price: float | None = None
    reasoning_price: float | None = None
    batch_input_price: float | None = None
    batch_output_price: float | None = None
    batch_cached_input_price: float | None = None

    @property
    def account(self) -> tuple[str, str, str]:
        """The provider, base URL and name of the API key, to which rate limits belong."""
        return (self.provider, self.base_url, self.api_key_env)

    @property
    def account_name(self) -> str:
        return " ".join(filter(None, self.account))

    @property
    def preset(self) -> Preset:
        return PRESETS[self.provider]

    @property
    def schema_mode(self) -> str:
        """How answers are bound to a schema: json_schema, json_object, tool or text."""
        return str(self.parameters.get("schema_mode", "json_schema"))

    @property
    def merges_system(self) -> bool:
        """True if the system text becomes part of the user's message, for chat templates without that role."""
        return self.parameters.get("system") == "user"

    @property
    def unwrap(self) -> str:
        """What may surround an answer and is removed: none, fence, think or both."""
        return str(self.parameters.get("unwrap", "none"))

    @property
    def ignore_case(self) -> bool:
        return bool(self.parameters.get("ignore_case", False))

    @property
    def extra_keys(self) -> str:
        """Treatment of keys that the schema does not have: refuse the answer, or ignore them."""
        return str(self.parameters.get("extra_keys", "refuse"))

    @property
    def max_output_tokens(self) -> int:
        """The most tokens of an answer."""
        return limit_answer(self.parameters)

    @property
    def timeout_s(self) -> float:
        """Seconds within which an answer must be complete."""
        default = OWN_S if is_own_server(self.provider, self.base_url) else HOSTED_S
        return float(self.parameters.get("timeout_s", default))

    @property
    def grades(self) -> int:
        """The highest grade of the judge's own scale: 1 (yes or no), 3 or 10."""
        return SCALES[self.parameters.get("scale", "binary")]

    @property
    def relevant_from(self) -> int:
        """The lowest grade of the judge's own scale that counts as relevant."""
        # The judges file sets it for every judge with a scale; other judges, and offline ones, have half of the scale.
        return int(self.parameters.get("relevant_from", (self.grades + 1) // 2))

    @property
    def ballot(self) -> str:
        """The prompt for the judge's vote: rubric, verdict-only (DREAM table 17) or score-chain (ERank figure 5)."""
        return str(self.parameters.get("prompt", "rubric"))

    @property
    def ballot_key(self) -> tuple[int, bool, str]:
        """Scale, endpoint and prompt: judges with the same key get the same question for their vote."""
        return self.grades, self.decides, self.ballot

    @property
    def decides(self) -> bool:
        """True if the judge has a Decisions endpoint, which returns a probability for each grade."""
        return bool(self.parameters.get("endpoint") == "decisions")

    @property
    def alternatives(self) -> int:
        """How many likeliest alternatives to each token are requested; 0: no log-probabilities."""
        requested = self.parameters.get("logprobs", False)
        return self.preset.logprobs if requested is True else min(int(requested), self.preset.logprobs)

    @property
    def generations(self) -> int:
        """How many answers are requested for each vote, of which one becomes the vote (ERank 3.2)."""
        return int(self.parameters.get("generations", 1))


@dataclass(frozen=True, slots=True)
class Judge(JudgeSettings):
    """A configured model as the engine uses it: a JudgeVersion without its row."""

    id: int = field(kw_only=True)
    # Source of the prices: file (the judge's keys), table ([[price]]) or page; "": none.
    priced_by: str = ""
    # The encrypted stored key that `api_key_env` names; "": none.
    encrypted_key: str = field(default="", repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt: its messages as they are sent, and the prompt version from which they were rendered."""

    name: str  # Of the prompt version: debate-answers, debate-plain, vote-answers, vote-plain, ...
    sha256: str  # Of the version's text: templates and definition of relevance, without the pair.
    system: str
    user: str
    text: str = field(default="", repr=False)  # Of the version.

    @property
    def messages(self) -> list[dict[str, str]]:
        system = [{"role": "system", "content": self.system}] if self.system else []
        return [*system, {"role": "user", "content": self.user}]


@dataclass(frozen=True, slots=True)
class Body:
    """A response's raw body, before it is parsed. An API key that the server repeats has been removed."""

    status: int
    text: str
    retry_after: float | None = None  # Seconds that the server asks us to wait.
    whole: bool = True  # False: longer than what is read and stored.
    bill: float | None = None  # The call's cost in USD, by a header.
    rate: Rate | None = None  # The account's limits, by the headers.


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call of a judge. `schema` is the JSON schema of the answer."""

    judge: Judge
    prompt: Prompt
    schema: dict[str, Any]
    inputs: Inputs
    role: str  # A role of an Attempt, or check.
    round: int = 0
    sample: int = 0
    # Turns of the previous round; None in round 1. Only offline judges read it; the prompt contains it for others.
    history: Mapping[DebateAgent, Turn] | None = None
    # The text to measure, for roles entity and measure. Only offline judges read it.
    written: EvidenceTarget | None = None
    # The texts to rank or embed, for roles rank and embed, which have no prompt.
    documents: tuple[str, ...] = ()
    # What the prompt of a conversation is rendered from. Only offline judges read it.
    material: Mapping[str, Any] = field(default_factory=dict)
    # Called once the answer is complete, before it is parsed.
    arrived: Callable[[Body], None] | None = None
    began: Callable[[int], None] | None = None  # Called with the status as soon as an answer begins.
    # Called just before the call is sent: returns whether it must not be sent after all.
    halted: Callable[[], bool] | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of a call as the provider counted them. `input` includes `cached` and `written`."""

    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0
    written: int = 0  # To the provider's prompt cache, if that is counted separately.
    said: bool = True  # False: the answer does not report its usage, so its cost is unknown.

    @property
    def is_known(self) -> bool:
        """True if the cost can be computed: a reported usage of no tokens at all cannot be right."""
        return self.said and self.input + self.output > 0


@dataclass(frozen=True, slots=True)
class Token:
    """A token of an answer, with its log-probability and those of the likeliest alternatives, itself included."""

    text: str
    logprob: float
    others: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reply:
    """A provider's answer, before its text is parsed. `raw` is the response body as it came."""

    text: str
    raw: str = ""
    # stop, length, refusal, failed (the server broke off, another try may succeed), limited (the
    # account may not use this model), or the provider's own word, which is not a good end; "": none.
    finish_reason: str = ""
    usage: Usage = Usage()
    model: str = ""  # The model that the provider reports.
    status: int | None = 200
    # The model's reasoning before its answer, if the API returns it separately.
    reasoning: str = ""
    tokens: tuple[Token, ...] = ()  # Of `text`, in order, if log-probabilities were requested and returned.
    probabilities: dict[str, float] | None = None  # By answer, from an endpoint that returns them itself.
    bill: float | None = None  # USD that the provider reports as charged for this call.
    tier: str = ""  # The service tier, or speed, that the provider reports.
    surcharge: float = 1.0  # Factor of the price for the region in which the answer was generated.
    prompt_cut: bool = False  # The count of tokens shows that the server did not read the whole prompt.

    @property
    def truncated(self) -> bool:
        return self.finish_reason == "length"

    @property
    def ended(self) -> bool:
        """True if the provider reports a complete answer, or nothing: any other end is no verdict."""
        return self.finish_reason in ("stop", "")

    @property
    def refused(self) -> bool:
        """True if the model, or the provider's filter, declined to answer."""
        return self.finish_reason == "refusal"


class Provider(Protocol):
    """A client of one account. `complete` sends exactly one request: the engine owns retries."""

    async def complete(self, request: ModelRequest) -> Reply:
        """Return the raw answer to a request. Raises ProviderError if there is none."""

    def meaning(self, body: Body, judge: Judge) -> Reply:
        """Return the reply that is read from a stored body. Raises ProviderError for a body that is an error."""

    async def close(self) -> None:
        """Close the connections."""
