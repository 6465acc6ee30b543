"""Plain records that prompts, providers and the engine hand to each other. No Django here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from corpus.document_limit import SHOWN, Window, cut_windows
from corpus.evidence.measures import EvidenceTarget
from corpus.rubric import BY_QUERY, Definition
from judges.presets import PRESETS, Preset
from judges.presets.own_servers import default_timeout
from judges.rates import Rate

SCALES = {"binary": 1, "0-3": 3, "0-10": 10}  # Highest grade by the name of a scale.

# To each token of an answer: what OpenAI, Google and compatible servers give at most.
ALTERNATIVES = 20

# Roles that are about no pair: what runs ask (judges.retrieval.model_requests).
RETRIEVAL = frozenset({"rewrite", "reason", "rank", "embed", "web"})
# Roles of steps that depend on each other (judges.conversations), by what they are about: answers
# from documents and their checks; agents that search, and who assesses them; synthetic queries with
# their documents; forms of queries.
CONVERSATIONS = frozenset(
    {
        *("answer", "correct"),
        *("search", "assess", "reference"),
        *("persona", "classify", "outline", "decompose", "blueprint", "negatives", "compose"),
        *("keywords", "ask"),
    }
)
WITHOUT_PAIR = RETRIEVAL | CONVERSATIONS
# Roles whose answers are texts: their attempts have no verdict.
TEXT_ROLES = ("write", "entity", "measure")

# One turn, vote or text of a pair: its role; the round of a debate, else which of several answers;
# the pair of agents in a debate, else the place on the panel.
Slot = tuple[str, int, int]
IN_ROUNDS = ("for", "against", "adjudicate")


def slot_columns(slot: Slot) -> dict[str, str | int]:
    """Return the columns of an Attempt that a slot is stored in."""
    role, nth, who = slot
    if role in IN_ROUNDS:
        return {"role": role, "round": nth, "agent_pair": who, "generation": 0, "place": 0}
    return {"role": role, "round": 0, "agent_pair": 0, "generation": nth, "place": who}


class Side(StrEnum):
    """Side of a debater: who began with "relevant", who with "not relevant"."""

    FOR = "for"
    AGAINST = "against"


class DebateAgent(NamedTuple):
    """An agent's place in a debate: its opening stance, and its pair, from 0."""

    side: Side
    couple: int = 0


@dataclass(frozen=True, slots=True)
class Inputs:
    """View of a pair that every judge gets: debate and vote see the same."""

    query: str
    answers: tuple[str, ...]
    title: str
    document: str
    # What relevant means for the pair; None: what "auto" says. `relevance` is what holds.
    definition: Definition | None = None
    # Id of the collection, for offline judges that ask its BM25 index; never in a prompt.
    collection: int = 0
    document_id: int = 0  # Primary key of the document, for the same purpose.
    shown: int = SHOWN  # Characters of the document that judges see at most.
    window: Window | None = None  # `document` is this part of a longer one.

    @property
    def relevance(self) -> Definition:
        """The definition of relevance that holds for the pair."""
        return self.definition or BY_QUERY.definition(answers=bool(self.answers))

    @property
    def parts(self) -> list["Inputs"]:
        """The views of a long document's windows, in order; none of one that is shown whole."""
        windows = cut_windows(len(self.document))
        return [replace(self, document=self.document[one.start : one.end], window=one) for one in windows]

    @property
    def titled_document(self) -> str:
        """Return title and text, as a reader, a reranker and a training set see the document."""
        return f"{self.title}\n{self.document}" if self.title else self.document


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence that a side took from the document. `start`, `end`: characters in the document; None: not in it."""

    text: str
    start: int | None = None
    end: int | None = None

    def moved(self, offset: int) -> "Quote":
        """Return a document's quote that begins so many characters before the found text."""
        if self.start is None or self.end is None:
            return self
        return Quote(self.text, self.start + offset, self.end + offset)


@dataclass(frozen=True, slots=True)
class Turn:
    """Message of an agent in a round, parsed. `verdict` is 1 (relevant) or 0."""

    verdict: int
    reason: str
    quotes: tuple[Quote, ...] = ()
    score: int | None = None  # Grade on the judge's own scale, where that has more than two.
    # By answer: {"yes", "no"}, {the score: P(s)}, or by grade; None without any.
    probabilities: dict[str, float] | None = None


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """A configured model as a judges file says it: the fields of a JudgeVersion, and what its parameters mean."""

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
        """The provider, base URL and name of the key that its limits belong to."""
        return (self.provider, self.base_url, self.api_key_env)

    @property
    def account_name(self) -> str:
        return " ".join(filter(None, self.account))

    @property
    def preset(self) -> Preset:
        return PRESETS[self.provider]

    @property
    def schema_mode(self) -> str:
        """Return how answers are bound to a schema: json_schema, json_object, tool or text."""
        return str(self.parameters.get("schema_mode", "json_schema"))

    @property
    def merges_system(self) -> bool:
        """True if system text goes into the user's message: templates without that role."""
        return self.parameters.get("system") == "user"

    @property
    def unwrap(self) -> str:
        """Name of what may stand around an answer: none, fence, think or both."""
        return str(self.parameters.get("unwrap", "none"))

    @property
    def ignore_case(self) -> bool:
        return bool(self.parameters.get("ignore_case", False))

    @property
    def extra_keys(self) -> str:
        """Treatment of keys that were not asked for: refuse the answer, or ignore them."""
        return str(self.parameters.get("extra_keys", "refuse"))

    @property
    def max_output_tokens(self) -> int:
        """Upper bound of an answer's tokens; a chain of reasoning gets ERank's number (3.2)."""
        return int(self.parameters.get("max_output_tokens", 2048 if self.ballot == "score-chain" else 512))

    @property
    def timeout_s(self) -> float:
        """Seconds within which the whole of an answer has to be here."""
        return float(self.parameters.get("timeout_s", default_timeout(self.provider, self.base_url)))

    @property
    def grades(self) -> int:
        """The highest grade of the judge's own scale: 1 (yes or no), 3 or 10."""
        return SCALES[self.parameters.get("scale", "binary")]

    @property
    def relevant_from(self) -> int:
        """The lowest grade of its own scale that counts as relevant."""
        # The judges file writes it into every judge with a scale; without one, or offline, it is half of the scale.
        return int(self.parameters.get("relevant_from", (self.grades + 1) // 2))

    @property
    def ballot(self) -> str:
        """The prompt that asks for its vote: rubric, verdict-only (DREAM table 17) or score-chain (ERank figure 5)."""
        return str(self.parameters.get("prompt", "rubric"))

    @property
    def decides(self) -> bool:
        """True if the judge has a Decisions endpoint: a probability for each grade."""
        return bool(self.parameters.get("endpoint") == "decisions")

    @property
    def alternatives(self) -> int:
        """Likeliest alternatives to each token that it is asked for; 0: no log-probabilities."""
        wanted = self.parameters.get("logprobs", False)
        return self.preset.logprobs if wanted is True else min(int(wanted), self.preset.logprobs)

    @property
    def generations(self) -> int:
        """Answers to each vote, of which one is kept (ERank 3.2)."""
        return int(self.parameters.get("generations", 1))


@dataclass(frozen=True, slots=True)
class Judge(JudgeSettings):
    """A configured model as the engine uses it: a JudgeVersion without its row."""

    id: int = field(kw_only=True)
    # Who says these prices: file (judge's keys), table ([[price]]) or page; "": nobody.
    priced_by: str = ""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt: its messages as they are sent, and the version that made them."""

    name: str  # Of the prompt version: debate-answers, debate-plain, vote-answers, vote-plain, ...
    sha256: str  # Of the version's text: templates and definition of relevance, without anything of the pair.
    system: str
    user: str
    text: str = field(default="", repr=False)  # Of the version.

    @property
    def messages(self) -> list[dict[str, str]]:
        system = [{"role": "system", "content": self.system}] if self.system else []
        return [*system, {"role": "user", "content": self.user}]


@dataclass(frozen=True, slots=True)
class Body:
    """A response's raw body, before it is parsed; a key that the server repeats is taken out."""

    status: int
    text: str
    retry_after: float | None = None  # Seconds that the server asks us to wait.
    whole: bool = True  # False: longer than what is read and kept.
    bill: float | None = None  # USD that a header says the call cost.
    rate: Rate | None = None  # What its headers say of the account's limits.


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Question to one judge. `schema` is the JSON schema of the answer."""

    judge: Judge
    prompt: Prompt
    schema: dict[str, Any]
    inputs: Inputs
    role: str  # A role of an Attempt, or check.
    round: int = 0
    sample: int = 0
    # Turns of the round before; None in round 1. Offline judges read it; others see the prompt.
    history: Mapping[DebateAgent, Turn] | None = None
    # What is to be measured, for roles entity and measure. Offline judges read it.
    written: EvidenceTarget | None = None
    # What is to be ranked or embedded, for roles rank and embed, which take no prompt.
    documents: tuple[str, ...] = ()
    # What the prompt of a conversation is made of. Offline judges read it; others see the prompt.
    material: Mapping[str, Any] = field(default_factory=dict)
    # Called as soon as the answer's last byte is here, before anybody makes something of it.
    arrived: Callable[[Body], None] | None = None
    began: Callable[[int], None] | None = None  # Called with the status as soon as an answer begins.
    # Asked once more just before the call leaves: whether it must not be sent after all.
    halted: Callable[[], bool] | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counted; 0 if silent. `input` has `cached` and `written`."""

    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0
    written: int = 0  # To the provider's prompt cache, where that is counted apart.
    said: bool = True  # False: the answer does not say what it used, so what it cost is unknown.

    @property
    def is_known(self) -> bool:
        """True if a cost can be worked out: no call takes no tokens at all."""
        return self.said and self.input + self.output > 0


@dataclass(frozen=True, slots=True)
class Token:
    """A token of an answer's text, its log-probability, and those of its likeliest alternatives, itself included."""

    text: str
    logprob: float
    others: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer of a provider, before any parsing. `raw` is the response body as it came."""

    text: str
    raw: str = ""
    # stop, length, refusal, failed (the server broke off, another try may not), limited (the
    # account may not ask this model), or the provider's own word, which is no good end; "": it says
    # none.
    finish_reason: str = ""
    usage: Usage = Usage()
    model: str = ""  # The model that the provider says it used.
    status: int | None = 200
    # What the model thought before it answered, where the API gives it apart from the answer.
    reasoning: str = ""
    tokens: tuple[Token, ...] = ()  # Of `text`, in order, where log-probabilities were asked for and given.
    probabilities: dict[str, float] | None = None  # By answer, from an endpoint that gives them itself.
    bill: float | None = None  # USD that the provider says it charges for this call; None: it does not say.
    tier: str = ""  # The service tier, or speed, that the provider says it used.
    surcharge: float = 1.0  # What the price is multiplied by for where the answer was made.
    prompt_cut: bool = False  # The tokens that were counted say that the server did not read the whole prompt.

    @property
    def truncated(self) -> bool:
        return self.finish_reason == "length"

    @property
    def ended(self) -> bool:
        """True if the provider says that the answer came to its end, or says nothing: any other end is no verdict."""
        return self.finish_reason in ("stop", "")

    @property
    def refused(self) -> bool:
        """True if the model, or the provider's filter, declined to answer."""
        return self.finish_reason == "refusal"


class Provider(Protocol):
    """A client of one account. `complete` sends exactly one request: the engine owns retries."""

    async def complete(self, request: ModelRequest) -> Reply:
        """Return the raw answer to a request. Raises ProviderError when there is none."""

    def meaning(self, body: Body, judge: Judge) -> Reply:
        """The reply that a kept body means. Raises the ProviderError that it means otherwise."""

    async def close(self) -> None:
        """Close the connections."""
