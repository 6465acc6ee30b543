"""What is known of a way to reach models: `Preset`, and the words that its rows are written in. Plain data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

SCHEMA_MODES = ("json_schema", "json_object", "tool", "text")
"""Ways to bind an answer to a form: to a schema, to JSON of any kind, to the arguments of a tool, or by words alone."""
UNBOUND = ("json_object", "text")
"""Modes in which nothing but the prompt says which keys and words an answer has."""
UNWRAPS = ("none", "fence", "think", "both")
"""What may stand around an answer and is taken away: a Markdown fence, a <think> block, either, or nothing."""

CHAT = {
    "temperature": "temperature",
    "top_p": "top_p",
    "max_output_tokens": "max_tokens",
    "seed": "seed",
    "stop": "stop",
}
"""Judge keys as OpenAI's chat completions named them first, and as most other servers know them."""


class Fact(NamedTuple):
    """One thing that a provider's documentation says, or says nothing about."""

    what: str
    source: str
    """Address of the page."""
    date: str
    """When it was read: YYYY-MM-DD."""


class Context(NamedTuple):
    """Where a server tells how many tokens a request and its answer may have together."""

    path: str
    """Of a GET request, beside the base URL as a link on a page below it would be: "models", "../props"."""
    at: tuple[str, ...]
    """Dotted paths in its answer, the first number counts; "data[id]" is the entry of the list "data" whose "id" is
    the judge's model, or its only one.
    """


@dataclass(frozen=True, slots=True)
class Preset:
    """One value of `provider` in a judges file."""

    name: str
    title: str
    """As people know it."""
    wire: str
    """The format of requests: chat, responses, messages, generate, rerank, embed or offline."""
    client: str = ""
    """The official SDK's client of its own: azure, bedrock or vertex; "" is the plain one."""
    base_url: str = ""
    """Without one the file must give it. {region} and {project} stand for judge keys."""
    homes: Mapping[str, str] = field(default_factory=dict)
    """Base URLs of regions whose address is none like the others'."""
    key_env: str = ""
    """The environment variable of the key; "": none is sent unless the file names one."""
    key_required: bool = True
    """Without the variable `key_env` nothing is sent; False: then the call leaves without a key."""
    needs: tuple[str, ...] = ()
    """Judge keys that the file must have."""
    takes: tuple[str, ...] = ()
    """Further judge keys that say where and as whom it is asked: api_version, region, project, token_command."""
    schema_mode: str = "json_schema"
    """Where the file says none."""
    thinking_schema_mode: str = ""
    """Where the file says none and the model thinks; "": the same."""
    schema_modes: tuple[str, ...] = SCHEMA_MODES
    """Those that the API has."""
    strict: bool = True
    """Mode json_schema says `strict` beside the schema."""
    schema_form: str = "json_schema"
    """How mode json_schema binds an answer of chat: as OpenAI writes it, or "json": {type: json, value: the schema}."""
    tool_choice: str = ""
    """The word that makes a model call the one tool of mode `tool`; "": the tool is named, as OpenAI has it."""
    forces_thinkers: bool = True
    """A model that thinks can be made to call the tool of mode `tool`; False: it is left free to, unless the judge says
    that it shall not think.
    """
    unwrap: str = "none"
    """Where the file says none."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Judge key to its dotted path in the request. A parameter that is not among them is refused by the file."""
    thinking: str = ""
    """How thinking is asked for (judges.presets.thinking); "": not at all."""
    thinking_models: str = ""
    """Regular expression of the models that always think: their answers get more room and no temperature."""
    known_thinkers: str = ""
    """The same of a preset that decides nothing for them, because judges of it are stored: check_judges says it."""
    says_thinking: bool = False
    """A request says whether to think even where the judge does not: yes to the models that always do, no to others."""
    temperature: bool = True
    """A temperature of 0 is sent where neither the judge nor its thinking says otherwise."""
    logprobs: int = 0
    """Most alternatives to each token; 0: it gives no log-probabilities."""
    usage: Mapping[str, str] = field(default_factory=dict)
    """Dotted paths below the answer's usage where they differ from the wire's: input, cached, written, output,
    reasoning."""
    reasoning_apart: bool = False
    """The count of output leaves the reasoning out: it is added."""
    reasoning: tuple[str, ...] = ("reasoning_content", "reasoning")
    """Dotted paths below the message of a chat answer where its reasoning may stand; the first text counts."""
    endpoints: tuple[str, ...] = ("chat",)
    """Values of the judge key `endpoint`."""
    batch: bool = False
    """It has a batch endpoint that judges.batch knows."""
    context: Context | None = None
    """Where it tells the context length; None: nowhere that the documentation names."""
    cache: str = ""
    """Of repeated input: automatic, marked (we say where it may begin), none, or "": the documentation is silent."""
    local: bool = False
    """A server that people run themselves."""
    facts: tuple[Fact, ...] = ()

    @property
    def asks(self) -> bool:
        """It is asked with a prompt, and answers with text."""
        return self.wire in ("chat", "responses", "messages", "generate")
