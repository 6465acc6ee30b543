"""Known facts of a way to reach models: `Preset`, and the words that its rows are written in. Plain data."""

import re
from typing import Annotated, Literal, NamedTuple, get_args

from pydantic import BaseModel, ConfigDict, Field, Strict, ValidationInfo, field_validator

SchemaMode = Literal["json_schema", "json_object", "tool", "text"]
Unwrap = Literal["none", "fence", "think", "both"]
# Ways to bind an answer to a form: to a schema, to JSON of any kind, to the arguments of a tool, or by words alone.
SCHEMA_MODES: tuple[SchemaMode, ...] = get_args(SchemaMode)
# Modes in which nothing but the prompt says which keys and words an answer has.
UNBOUND = ("json_object", "text")
# What may stand around an answer: a Markdown fence, a <think> block, either, nothing.
UNWRAPS: tuple[str, ...] = get_args(Unwrap)

Texts = Annotated[tuple[str, ...], Strict(False)]  # TOML has lists and no tuples.


class Fact(NamedTuple):
    """Statement of a provider's documentation, or that it says nothing."""

    what: str
    source: str  # Address of the page.
    date: str  # When it was read: YYYY-MM-DD.


class Context(NamedTuple):
    """Place where a server tells its context length: the tokens of request and answer together."""

    # Of a GET request, relative to the base URL as a link would be: "models", "../props".
    path: str
    # Dotted paths in its answer, the first number counts; "data[id]" is the entry of the list
    # "data" whose "id" is the judge's model, or its only one.
    at: Texts


class Preset(BaseModel):
    """Value of `provider` in a judges file: a file of its name beside this module."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    name: str
    title: str  # As people know it.
    # The format of requests.
    wire: Literal["chat", "responses", "messages", "generate", "rerank", "embed", "search", "offline"]
    # The official SDK's client of its own; "" is the plain one.
    client: Literal["", "azure", "bedrock", "vertex", "tavily", "exa"] = ""
    base_url: str = ""  # Without one the file must give it. {region} and {project} stand for judge keys.
    # Base URLs of regions whose address is none like the others'.
    homes: dict[str, str] = Field(default_factory=dict)
    key_env: str = ""  # The environment variable of the key; "": none is sent unless the file names one.
    # Without the variable `key_env` nothing is sent; False: then the call leaves without a key.
    key_required: bool = True
    needs: Texts = ()  # Judge keys that the file must have.
    # Further judge keys of place and identity: api_version, region, project, token_command.
    takes: Texts = ()
    schema_mode: SchemaMode = "json_schema"  # Where the file says none.
    # Where the file says none and the model thinks; "": the same.
    thinking_schema_mode: SchemaMode | Literal[""] = ""
    schema_modes: Annotated[tuple[SchemaMode, ...], Strict(False)] = SCHEMA_MODES  # Those that the API has.
    strict: bool = True  # Mode json_schema says `strict` beside the schema.
    # How mode json_schema binds an answer of chat: as OpenAI writes it, or "json": {type: json, value: the schema}.
    schema_form: Literal["json_schema", "json"] = "json_schema"
    # The word that makes a model call mode `tool`'s tool; "": it is named, as OpenAI has it.
    tool_choice: str = ""
    # A model that thinks can be made to call the tool of mode `tool`; False: it is left free to,
    # unless the judge says that it shall not think.
    forces_thinkers: bool = True
    unwrap: Unwrap = "none"  # Where the file says none.
    # Judge key to its dotted path in the request. The file refuses any other parameter.
    names: dict[str, str] = Field(default_factory=dict)
    thinking: str = ""  # How thinking is asked for (judges.presets.thinking); "": not at all.
    # Regular expression of models that always think: more room, and no temperature.
    thinking_models: str = ""
    # The same of a preset that decides nothing for them, because judges of it are stored: check_judges says it.
    known_thinkers: str = ""
    # A request says whether to think even where the judge does not: yes to the models that always do, no to others.
    says_thinking: bool = False
    # A temperature of 0 is sent where neither the judge nor its thinking says otherwise.
    temperature: bool = True
    logprobs: int = 0  # Most alternatives to each token; 0: it gives no log-probabilities.
    # Dotted paths below the answer's usage where they differ from the wire's: input, cached,
    # written, output, reasoning.
    usage: dict[str, str] = Field(default_factory=dict)
    # Dotted path below the answer's usage where stands what the call cost; "": nowhere. So many of its units are a USD.
    bill: str = ""
    bill_units: float = 1.0
    # The server reads the part of a long prompt that fits, and says nothing: always, or with some settings of its own.
    cuts_prompts: Literal["", "always", "perhaps"] = ""
    reasoning_apart: bool = False  # The count of output leaves the reasoning out: it is added.
    # Dotted paths below a chat answer's message for its reasoning; the first text counts.
    reasoning: Texts = ("reasoning_content", "reasoning")
    endpoints: Texts = ("chat",)  # Values of the judge key `endpoint`.
    batch: bool = False  # It has a batch endpoint that judges.batch knows.
    # Where it tells the context length; None: nowhere that the documentation names.
    context: Context | None = None
    # Of repeated input: automatic, marked (we say where it may begin), none, or "": the documentation is silent.
    cache: Literal["automatic", "marked", "none", ""] = ""
    local: bool = False  # A server that people run themselves.
    facts: Annotated[tuple[Fact, ...], Strict(False)] = ()

    @field_validator("thinking_models", "known_thinkers")
    @classmethod
    def _named(cls, pattern: str, info: ValidationInfo) -> str:
        """Return an expression with the names of index.toml in braces replaced by what they stand for."""
        return re.sub(r"\{([a-z]+)\}", lambda name: str((info.context or {})[name[1]]), pattern)

    @property
    def judges(self) -> bool:
        """Return whether the provider's models judge pairs: embedders and web searches do not."""
        return self.wire not in ("embed", "search")

    @property
    def own_names(self) -> bool:
        """True if names of models are the team's own (a route, a file): another one in an answer changes no price."""
        return self.local

    @property
    def asks(self) -> bool:
        """True if the model is asked with a prompt and answers with text."""
        return self.wire in ("chat", "responses", "messages", "generate")
