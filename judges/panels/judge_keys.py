"""The keys of a [[judge]]: their types, their limits, and the judge that they make."""

import json
import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from pydantic import AfterValidator, Field, model_validator

from charts.translation import gettext_noop
from corpus.importing.toml_files import Line, Switch, TomlTable, one_of, otherwise, problem
from judges.costs.price_entries import PriceKeys
from judges.panels.judge_checks import BALLOTS, check, preset_defaults
from judges.presets import PRESETS, SCHEMA_MODES, UNWRAPS
from judges.presets.own_servers import LONGEST_S
from judges.prompts.render import relevant_grade
from judges.records import ALTERNATIVES, SCALES, JudgeSettings
from judges.stored_keys import STORED

HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
MOST = 2**31 - 1
# Fields of a request that Quorum writes itself, including those within a table: `extra_body` must not change the
# question or the form of answers.
OURS = {
    "model", "messages", "system", "instructions", "systemInstruction", "system_instruction", "input", "contents",
    "stream", "n", "tools", "tool_choice", "toolConfig", "tool_config", "response_format",
    "text.format", "output_config.format", "output_format",
    *(f"{table}.{name}"
      for table in ("generationConfig", "generation_config")
      for name in ("responseMimeType", "response_mime_type", "responseSchema", "response_schema",
                   "responseJsonSchema", "response_json_schema")),
    "guided_json", "guided_regex", "guided_choice", "guided_grammar", "structured_outputs",  # vLLM
    "json_schema", "regex", "ebnf", "grammar",  # SGLang and llama.cpp
}  # fmt: skip
# Fields that change the maximum cost of a call, which budgets rely on.
SPENDING = {
    *("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens"),
    *("best_of", "candidate_count", "candidateCount"),
}
# Tables whose fields belong to the request, or to another request that a gateway makes from it.
TABLES = ("generationConfig", "generation_config", "extra_body")
# Fields that change what a call costs, which model answers it, or how much of the prompt it reads, with the remedy.
SERVED = {
    **dict.fromkeys(
        ("service_tier", "serviceTier"),
        gettext_noop("changes what a call costs: it is a key of its own"),
    ),
    **dict.fromkeys(
        (
            *("speed", "inference_geo", "performanceConfig", "performance_config", "reasoning.mode"),
            *("plugins", "web_search_options", "search_parameters", "enable_search", "search_options"),
            *("mcp_servers", "container", "prediction", "modalities", "audio", "cachedContent", "cached_content"),
        ),
        gettext_noop("changes what a call costs, which its price does not know: leave it out"),
    ),
    **dict.fromkeys(
        ("models", "route", "fallbacks", "model_fallbacks", "context_window_fallbacks", "preset"),
        gettext_noop("lets another model answer: make a judge of each model"),
    ),
    **dict.fromkeys(
        ("truncation", "transforms", "truncate_prompt_tokens", "context_length_exceeded_behavior"),
        gettext_noop("lets a long prompt be cut, so that something else is judged: leave it out"),
    ),
}
CREDENTIALS = {"authorization", "proxy-authorization", "cookie", "x-api-key", "api-key", "x-goog-api-key"}


def _check_headers(headers: dict[str, str]) -> dict[str, str]:
    for name, text in headers.items():
        if name.lower() in CREDENTIALS:
            raise problem(_('names "%(name)s": keys belong in an environment variable (api_key_env)') % {"name": name})
        if not HEADER.fullmatch(name) or not (text.isascii() and text.isprintable()):
            raise problem(_('contains "%(name)s", which is not a header of plain letters') % {"name": name})
    return headers


def _check_body(fields: dict[str, Any]) -> dict[str, Any]:
    nested_names = {
        f"{name}.{inner_name}" for name, table in fields.items() if isinstance(table, dict) for inner_name in table
    }
    if written_by_quorum := sorted(OURS & {*fields, *nested_names}):
        raise problem(_('names "%(name)s", which Quorum writes itself: leave it out') % {"name": written_by_quorum[0]})
    tables = [fields[table] for table in TABLES if isinstance(fields.get(table), dict)]
    table_fields = {name for table in tables for name in table}
    if serving_fields := sorted(SERVED.keys() & {*fields, *nested_names, *table_fields}):
        raise problem(
            _('names "%(name)s", which %(why)s') % {"name": serving_fields[0], "why": _(SERVED[serving_fields[0]])}
        )
    inner_name = fields.get("generationConfig")
    if cost_fields := sorted(SPENDING & {*fields, *(inner_name if isinstance(inner_name, dict) else ())}):
        words = _('names "%(name)s", which changes what a call can cost: set max_output_tokens instead')
        raise problem(words % {"name": cost_fields[0]})
    try:
        json.dumps(fields, allow_nan=False)
    except (TypeError, ValueError):
        raise problem(_("contains something that JSON does not have (a date, a time, inf or nan)")) from None
    return fields


def _check_address(address: str) -> str:
    try:
        parts = urlsplit(address)
        host, _port = parts.hostname, parts.port  # Reading the port is what checks it.
    except ValueError:
        raise problem(_("is not an address")) from None
    if len(address) > 500 or parts.scheme not in ("http", "https") or not host or " " in address:
        raise problem(_("must be an address that begins with http:// or https://"))
    if parts.username is not None or parts.password is not None:
        raise problem(_("must not contain a name or password; keys belong in environment variables (api_key_env)"))
    if "?" in address or "#" in address:
        raise problem(_("must have no ? and no #"))
    return address


# The name of a judge or a panel.
Name = Annotated[
    Line,
    Field(pattern=r"^[^\s,]{1,100}$"),
    otherwise(gettext_lazy("must have no white space and no comma, and 100 characters at most")),
]
Place = Annotated[
    Line,
    Field(pattern=r"^[A-Za-z0-9._:-]{1,100}$"),
    otherwise(gettext_lazy("must be a name of letters, digits, points, colons and hyphens")),
]
Whole = Annotated[int, Field(ge=1, le=MOST), otherwise(gettext_lazy("must be a whole number from 1"))]
# Numbers are stored as they are written: 1 is sent as 1.
Share = Annotated[int | float, Field(ge=0, le=1), otherwise(gettext_lazy("must be a number from 0 to 1"))]
Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[
    list[Text], Field(min_length=1), otherwise(gettext_lazy("must be a list of texts, none of them empty"))
]
TextsByName = Annotated[
    dict[str, Text], Field(min_length=1), otherwise(gettext_lazy('must be a table of texts, e.g. { name = "value" }'))
]
Temperature = Annotated[
    Literal["default"] | Annotated[int | float, Field(ge=0, le=2)],
    otherwise(gettext_lazy('must be a number from 0 to 2, or "default": then none is sent')),
]
Seconds = Annotated[
    int | float, Field(ge=0.1, le=LONGEST_S), otherwise(gettext_lazy("must be a number from 0.1 to 3600"))
]
Alternatives = Annotated[
    bool | Annotated[int, Field(ge=1, le=ALTERNATIVES)],
    otherwise(
        format_lazy(gettext_lazy("must be true, false or a number of alternatives from 1 to {most}"), most=ALTERNATIVES)
    ),
]
Thoughts = Annotated[
    bool | Annotated[int, Field(ge=1, le=MOST)],
    otherwise(gettext_lazy("must be true, false or the most tokens of its thoughts")),
]
Fields = Annotated[
    dict[str, Any],
    Field(min_length=1),
    otherwise(gettext_lazy("must be a table of fields for every request")),
    AfterValidator(_check_body),
]
Variable = Annotated[
    Line,
    Field(pattern=rf"^([A-Za-z_][A-Za-z0-9_]{{0,199}}|{STORED}[^\s,]{{1,100}})$"),
    otherwise(gettext_lazy("must be the name of an environment variable, never the key itself")),
]


class Parameters(TomlTable):
    """Keys that are stored in the version's `parameters`; the others are columns."""

    temperature: Temperature | None = None
    top_p: Share | None = None
    max_output_tokens: Whole | None = None
    timeout_s: Seconds | None = None
    logprobs: Alternatives | None = None
    scale: Annotated[Line, one_of(*SCALES)] | None = None
    relevant_from: Whole | None = None
    generations: (
        Annotated[int, Field(ge=1, le=10), otherwise(gettext_lazy("must be a whole number from 1 to 10"))] | None
    ) = None
    endpoint: Annotated[Line, one_of("chat", "decisions")] | None = None
    threshold: Share | None = None
    evidence: Switch | None = None
    results: (
        Annotated[int, Field(ge=1, le=20), otherwise(gettext_lazy("must be a whole number from 1 to 20"))] | None
    ) = None
    call_price: (
        Annotated[int | float, Field(ge=0, le=100), otherwise(gettext_lazy("must be a number from 0 to 100"))] | None
    ) = None
    family: Line | None = None
    prompt: Annotated[Line, one_of(*BALLOTS)] | None = None
    schema_mode: Annotated[Line, one_of(*SCHEMA_MODES)] | None = None
    system: Annotated[Line, one_of("system", "user")] | None = None
    unwrap: Annotated[Line, one_of(*UNWRAPS)] | None = None
    ignore_case: Switch | None = None
    extra_keys: Annotated[Line, one_of("refuse", "ignore")] | None = None
    reasoning_effort: Line | None = None
    thinking: Thoughts | None = None
    safety_settings: TextsByName | None = None
    service_tier: Line | None = None
    extra_body: Fields | None = None
    extra_headers: Annotated[TextsByName, AfterValidator(_check_headers)] | None = None
    seed: Annotated[int, Field(ge=0, le=MOST), otherwise(gettext_lazy("must be a whole number from 0"))] | None = None
    stop: Texts | None = None
    api_version: Place | None = None
    region: Place | None = None
    project: Place | None = None
    token_command: Texts | None = None


class JudgeTable(Parameters, PriceKeys):
    """A [[judge]] table of the file."""

    name: Name
    provider: Annotated[Line, one_of(*PRESETS)]
    model: Annotated[Line, Field(max_length=200), otherwise(gettext_lazy("has more than 200 characters"))]
    base_url: Annotated[Line, AfterValidator(_check_address)] | None = None
    api_key_env: Variable | None = None
    max_concurrency: Whole | None = None
    requests_per_minute: Whole | None = None
    tokens_per_minute: Whole | None = None

    @model_validator(mode="after")
    def _check_keys(self) -> "JudgeTable":
        check(self.explicit_keys)
        variable = self.api_key_env or ""
        if variable.startswith(STORED) and variable != STORED + self.name:
            raise problem(_("names the stored key of another judge"), "api_key_env")
        return self

    @property
    def explicit_keys(self) -> dict[str, Any]:
        """The keys that the file has, in a fixed order."""
        return self.model_dump(exclude_unset=True)

    def entry(self) -> JudgeSettings:
        """Return the judge's settings, with the preset's values for keys that the table omits."""
        preset, keys = PRESETS[self.provider], self.explicit_keys
        parameters = {key: keys.pop(key) for key in Parameters.model_fields if key in keys}
        decisions = preset_defaults(self.explicit_keys, preset)
        highest = SCALES[self.scale or "binary"]
        # The grade from which a vote means yes: the file's, else the first that the scale calls relevant.
        threshold = {"relevant_from": self.relevant_from or relevant_grade(highest)} if highest > 1 else {}
        keys["parameters"] = decisions | parameters | threshold
        # An account has only one spelling of its address, or its limits would count twice: "" for the preset's own.
        # An address with placeholders belongs to one account per region, so it is written out.
        address = (self.base_url or "").rstrip("/")
        home = preset.homes.get(str(self.region), preset.base_url)
        if "{" in preset.base_url:
            address = address or home.format(region=self.region, project=self.project).rstrip("/")
        elif address == home:
            address = ""
        keys["base_url"] = address
        return JudgeSettings(**{"api_key_env": preset.key_env, **keys})


JUDGE_KEYS = set(JudgeTable.model_fields)
