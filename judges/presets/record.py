"""`Preset`: what is known about a provider, and the values of its fields. Plain data."""

import re
from typing import Annotated, Literal, NamedTuple, get_args

from pydantic import BaseModel, ConfigDict, Field, Strict, ValidationInfo, field_validator

SchemaMode = Literal["json_schema", "json_object", "tool", "text"]
Unwrap = Literal["none", "fence", "think", "both"]
# How an answer gets its form: by a schema, as any JSON, as the arguments of a tool, or only by the prompt.
SCHEMA_MODES: tuple[SchemaMode, ...] = get_args(SchemaMode)
# Modes in which only the prompt determines the keys and values of an answer.
UNBOUND = ("json_object", "text")
# What may surround an answer: a Markdown fence, a <think> block, either, nothing.
UNWRAPS: tuple[str, ...] = get_args(Unwrap)

Texts = Annotated[tuple[str, ...], Strict(False)]  # TOML has lists and no tuples.


class Fact(NamedTuple):
    """Statement of a provider's documentation, or that it says nothing."""

    what: str
    source: str  # Address of the page.
    date: str  # When it was read: YYYY-MM-DD.


class Context(NamedTuple):
    """Where a server reports its context length: the tokens of a request and its answer together."""

    # Address of a GET request, relative to the base URL like a link: "models", "../props".
    path: str
    # Dotted paths in the response, of which the first number counts; "data[id]" is the entry of the list "data" whose
    # "id" is the judge's model, or the only entry.
    at: Texts


class Preset(BaseModel):
    """Value of `provider` in a judges file, read from the TOML file of its name beside this module."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    name: str
    title: str  # The provider's name for people.
    # The format of requests.
    wire: Literal["chat", "responses", "messages", "generate", "rerank", "embed", "search", "offline"]
    # The special client of the official SDK; "": the plain one.
    client: Literal["", "azure", "bedrock", "vertex", "tavily", "exa"] = ""
    base_url: str = ""  # If empty, the file must give it. {region} and {project} are replaced by judge keys.
    # Base URLs of regions whose address does not follow the pattern of the others.
    homes: dict[str, str] = Field(default_factory=dict)
    key_env: str = ""  # The environment variable of the key; "": none is sent unless the file names one.
    # Whether calls need the variable `key_env`; False: without it, they are sent without a key.
    key_required: bool = True
    needs: Texts = ()  # Judge keys that the file must have.
    # Further judge keys of place and identity: api_version, region, project, token_command.
    takes: Texts = ()
    schema_mode: SchemaMode = "json_schema"  # Default of the judge key.
    # Default of the judge key for models that think; "": the same as for others.
    thinking_schema_mode: SchemaMode | Literal[""] = ""
    schema_modes: Annotated[tuple[SchemaMode, ...], Strict(False)] = SCHEMA_MODES  # Modes that the API supports.
    strict: bool = True  # Whether mode json_schema sends `strict` with the schema.
    # How mode json_schema sends the schema in chat: as OpenAI does, or "json": {type: json, value: the schema}.
    schema_form: Literal["json_schema", "json"] = "json_schema"
    # The value that forces a call of the tool in mode `tool`; "": the tool is named, as with OpenAI.
    tool_choice: str = ""
    # Whether a model that thinks can be forced to call the tool of mode `tool`; False: the choice is left to the model,
    # unless the judge turns thinking off.
    forces_thinkers: bool = True
    unwrap: Unwrap = "none"  # Default of the judge key.
    # Judge keys with their dotted paths in the request. The file refuses any other parameter.
    names: dict[str, str] = Field(default_factory=dict)
    thinking: str = ""  # The request's format for thinking (judges.presets.thinking); "": none.
    # Regular expression of models that always think: they get longer answers, and no temperature.
    thinking_models: str = ""
    # The same without any effect on the defaults, because judges of this preset are stored: only check_judges uses it.
    known_thinkers: str = ""
    # Whether requests always say whether to think: by default yes to models that always do, no to others.
    says_thinking: bool = False
    # Whether a temperature of 0 is sent by default.
    temperature: bool = True
    logprobs: int = 0  # Most alternatives to each token; 0: no log-probabilities.
    # Dotted paths below the answer's usage that differ from those of the wire format: input, cached, written, output,
    # reasoning.
    usage: dict[str, str] = Field(default_factory=dict)
    # Dotted path below the answer's usage of the call's cost; "": none. `bill_units` of the cost make one USD.
    bill: str = ""
    bill_units: float = 1.0
    # Whether the server silently reads only the part of a long prompt that fits: always, or with some settings.
    cuts_prompts: Literal["", "always", "perhaps"] = ""
    reasoning_apart: bool = False  # Whether the count of output excludes reasoning, which is then added.
    # Dotted paths below a chat answer's message for its reasoning; the first text counts.
    reasoning: Texts = ("reasoning_content", "reasoning")
    endpoints: Texts = ("chat",)  # Values of the judge key `endpoint`.
    batch: bool = False  # Whether it has a batch endpoint that judges.batch supports.
    # Where it reports the context length; None: nowhere, according to its documentation.
    context: Context | None = None
    # Caching of repeated input: automatic, marked (by breakpoints that we set), none, or "": not documented.
    cache: Literal["automatic", "marked", "none", ""] = ""
    local: bool = False  # A server that people run themselves.
    facts: Annotated[tuple[Fact, ...], Strict(False)] = ()

    @field_validator("thinking_models", "known_thinkers")
    @classmethod
    def _expand_names(cls, pattern: str, info: ValidationInfo) -> str:
        """Return a regular expression in which names in braces are replaced by their values in index.toml."""
        return re.sub(r"\{([a-z]+)\}", lambda name: str((info.context or {})[name[1]]), pattern)

    @property
    def judges(self) -> bool:
        """Whether the provider's models judge pairs: embedding models and web searches do not."""
        return self.wire not in ("embed", "search")

    @property
    def asks(self) -> bool:
        """Whether the model takes a prompt and answers with text."""
        return self.wire in ("chat", "responses", "messages", "generate")
