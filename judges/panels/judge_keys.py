"""The keys of a [[judge]]: which there are, what each may say, which preset takes which, and what a preset decides."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeGuard
from urllib.parse import urlsplit

from judges.costs.price_keys import HIGHEST, PRICES, misfit
from judges.offline.judges import ASSESSORS
from judges.panels.file_lines import KeyLines
from judges.presets import PRESETS, SCHEMA_MODES, UNBOUND, UNWRAPS, Preset
from judges.presets.thinking import THINKING, thinks
from judges.prompts import relevant_grade
from judges.records import ALTERNATIVES, SCALES, Side

NAME = re.compile(r"[^\s,]{1,100}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
PLACE = re.compile(r"[A-Za-z0-9._:-]{1,100}")
HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
ROOM_TO_THINK = 4096
"""Tokens of an answer by a model that thinks, where the file does not say."""
GRADED = {"scale", "relevant_from"}
NO_DECISION = {
    "temperature",
    "top_p",
    "logprobs",
    "generations",
    "schema_mode",
    "unwrap",
    "ignore_case",
    "extra_keys",
    "reasoning_effort",
    "thinking",
    "seed",
    "stop",
    "safety_settings",
    "service_tier",
}
"""What a Decisions endpoint does not take."""
LIMITS = ("max_concurrency", "requests_per_minute", "tokens_per_minute")
WHOLE = (*LIMITS, "max_output_tokens", "relevant_from", "generations")
TEXTS = (
    "name",
    "provider",
    "model",
    "base_url",
    "api_key_env",
    "scale",
    "endpoint",
    "family",
    "prompt",
    "reasoning_effort",
    "service_tier",
    "api_version",
    "region",
    "project",
)
WORDS: dict[str, tuple[str, ...]] = {
    "scale": tuple(SCALES),
    "endpoint": ("chat", "decisions"),
    "schema_mode": SCHEMA_MODES,
    "unwrap": UNWRAPS,
    "extra_keys": ("refuse", "ignore"),
}
"""Keys that take one of a few words."""
BALLOTS: dict[str, tuple[str, ...]] = {"rubric": tuple(SCALES), "verdict-only": ("binary",), "score-chain": ("0-10",)}
"""Prompts that ask for a vote, and the scales that each has: ours, DREAM table 17, ERank figure 5."""
MOST_GENERATIONS = 10
RANGES = {
    **dict.fromkeys(PRICES, (0.0, HIGHEST)),
    "threshold": (0.0, 1.0),
    "temperature": (0.0, 2.0),
    "top_p": (0.0, 1.0),
    "timeout_s": (0.1, 3600.0),
}
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
"""Fields of a request that are put together here, also those within a table: `extra_body` must not change the question
or the form of answers."""
SPENDING = {
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "maxOutputTokens",
    "best_of",
    "candidate_count",
    "candidateCount",
}
"""Fields that change what a call can cost at most: budgets reckon with `max_output_tokens` and one answer."""
CREDENTIALS = {"authorization", "proxy-authorization", "cookie", "x-api-key", "api-key", "x-goog-api-key"}
COMMON = {"name", "provider", "model", "family"}
SERVER = {"base_url", "api_key_env", "timeout_s", *LIMITS, *PRICES}
ASKED = {
    *GRADED,
    "generations",
    "endpoint",
    "prompt",
    "schema_mode",
    "unwrap",
    "ignore_case",
    "extra_keys",
    "extra_body",
    "extra_headers",
}
"""Of whoever is asked with a prompt."""
PARAMETERS = (
    "temperature",
    "top_p",
    "max_output_tokens",
    "timeout_s",
    "logprobs",
    "scale",
    "relevant_from",
    "generations",
    "endpoint",
    "threshold",
    "family",
    "prompt",
    "schema_mode",
    "unwrap",
    "ignore_case",
    "extra_keys",
    "reasoning_effort",
    "thinking",
    "safety_settings",
    "service_tier",
    "extra_body",
    "extra_headers",
    "seed",
    "stop",
    "api_version",
    "region",
    "project",
    "token_command",
)
"""Keys that are kept as the version's `parameters`; the others are columns of it."""
JUDGE_KEYS = {*COMMON, *SERVER, *PARAMETERS}


@dataclass(frozen=True, slots=True)
class JudgeEntry:
    """One [[judge]]: the fields of a JudgeVersion."""

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
    def decides(self) -> bool:
        """It is asked at a Decisions endpoint."""
        return bool(self.parameters.get("endpoint") == "decisions")

    @property
    def preset(self) -> Preset:
        """What its provider stands for."""
        return PRESETS[self.provider]


def taken(preset: Preset) -> set[str]:
    """Keys that a judge of the preset may have; others would be a wish that nobody hears."""
    if preset.wire == "offline":
        return COMMON | GRADED
    if not preset.asks:
        return COMMON | SERVER | ({"threshold"} if preset.wire == "rerank" else set())
    own = {*preset.names, *preset.needs, *preset.takes}
    own |= {"logprobs"} if preset.logprobs else set()
    own |= {"thinking"} if preset.thinking else set()
    return COMMON | SERVER | ASKED | own


def decided(entry: dict[str, Any], preset: Preset) -> dict[str, Any]:
    """What the preset says where the file is silent, as far as it differs from what a silent version always meant.

    It is written into the version: a later change of the preset changes no judge that is stored.
    """
    if not preset.asks:
        return {}
    found: dict[str, Any] = {}
    unwrap, thinking = preset.unwrap, thinks(str(entry["model"]), entry, preset)
    usual = (preset.thinking_schema_mode if thinking else "") or preset.schema_mode
    mode = entry.get("schema_mode", usual)
    if mode != "json_schema":
        found["schema_mode"] = mode
    if mode in UNBOUND:
        found |= {"ignore_case": True, "extra_keys": "ignore"}
        unwrap = "both" if unwrap == "none" else unwrap
    if unwrap != "none":
        found["unwrap"] = unwrap
    if "temperature" in preset.names and (thinking or not preset.temperature):
        found["temperature"] = "default"
    if thinking:
        found["max_output_tokens"] = ROOM_TO_THINK
    if preset.says_thinking:
        found["thinking"] = thinking
    return found


def read_judge(lines: KeyLines, place: str, entry: dict[str, Any]) -> JudgeEntry:
    """Check one [[judge]]. Raises BadInput with its line, its key and what to do."""
    lines.known(place, entry, JUDGE_KEYS)
    for key in ("name", "provider", "model"):
        if key not in entry:
            lines.fail(place, key, "is missing")
    lines.text(place, "provider", entry["provider"])
    if entry["provider"] not in PRESETS:
        lines.fail(place, "provider", f'"{entry["provider"]}" is unknown; use one of {", ".join(PRESETS)}')
    preset = PRESETS[entry["provider"]]
    for key, value in entry.items():
        CHECKS.get(key, _number)(lines, place, key, value)
    for key in sorted(entry.keys() - taken(preset)):
        lines.fail(place, key, f"is nothing that provider {preset.name} takes: remove it")
    for key in preset.needs:
        if key not in entry:
            lines.fail(place, key, f"is missing: {NEEDED.get(key, f'provider {preset.name} needs it')}")
    if problem := misfit(entry):
        lines.fail(place, *problem)
    _check_grading(lines, place, entry, preset)
    _check_ballot(lines, place, entry)
    _check_asking(lines, place, entry, preset)
    _check_offline(lines, place, entry)
    return _judge_entry(entry, preset)


NEEDED = {"base_url": "where is the server? e.g. http://127.0.0.1:8001/v1"}


def _check_grading(lines: KeyLines, place: str, entry: dict[str, Any], preset: Preset) -> None:
    """How it answers: scale, generations and endpoint go together, or the wish would be heard by nobody."""
    highest = SCALES[entry.get("scale", "binary")]
    if "relevant_from" in entry and (highest == 1 or entry["relevant_from"] > highest):
        lines.fail(place, "relevant_from", f"must be a grade of the judge's scale, from 1 to {highest}")
    if entry.get("generations", 1) > MOST_GENERATIONS:
        lines.fail(place, "generations", f"must be a whole number from 1 to {MOST_GENERATIONS}")
    sent = 0 if "temperature" in preset.names or not preset.asks else "default"
    warm = {**decided(entry, preset), **entry}.get("temperature", sent)
    if entry.get("generations", 1) > 1 and not (highest > 1 and (warm == "default" or warm > 0)):
        lines.fail(
            place, "generations", 'needs a scale ("0-3" or "0-10") and a temperature above 0: else all are alike'
        )
    if entry.get("generations", 1) > 1 and "seed" in entry:
        lines.fail(place, "seed", "makes all generations alike: take it out")
    endpoint = entry.get("endpoint", "chat")
    if "endpoint" in entry and endpoint not in preset.endpoints:
        lines.fail(place, "endpoint", f'"{endpoint}" is nothing that provider {preset.name} has')
    if endpoint == "decisions" and (found := sorted(entry.keys() & NO_DECISION)):
        lines.fail(place, found[0], "is nothing that a Decisions endpoint takes: remove it")


def _check_ballot(lines: KeyLines, place: str, entry: dict[str, Any]) -> None:
    """The prompt of its votes fits its scale and its endpoint."""
    prompt, scale = entry.get("prompt", "rubric"), entry.get("scale", "binary")
    if scale not in BALLOTS[prompt]:
        lines.fail(place, "prompt", f'"{prompt}" needs scale = "{BALLOTS[prompt][0]}"')
    if "prompt" in entry and entry.get("endpoint") == "decisions":
        lines.fail(place, "prompt", "is nothing that a Decisions endpoint takes: remove it")
    if prompt == "score-chain" and "relevant_from" not in entry:
        lines.fail(place, "relevant_from", 'is missing: "score-chain" names no grade that counts as relevant')


def _check_asking(lines: KeyLines, place: str, entry: dict[str, Any], preset: Preset) -> None:
    """The mode is one of the API's, and so is the way to think."""
    mode = entry.get("schema_mode", preset.schema_mode)
    if mode not in preset.schema_modes:
        lines.fail(
            place, "schema_mode", f'"{mode}" is nothing that provider {preset.name} has; use one of '
            f"{', '.join(preset.schema_modes)}"
        )  # fmt: skip
    most = entry.get("logprobs", False)
    if not isinstance(most, bool) and most > preset.logprobs:
        lines.fail(place, "logprobs", f"must be at most {preset.logprobs}: provider {preset.name} gives no more")
    if "thinking" in entry:
        try:
            THINKING[preset.thinking](entry["thinking"])
        except ValueError as error:
            lines.fail(place, "thinking", str(error))
        if "reasoning_effort" in entry:
            lines.fail(place, "thinking", "and reasoning_effort say the same in two ways: keep one")
    room = {"max_output_tokens": ROOM_TO_THINK, **entry}["max_output_tokens"]
    budget = entry.get("thinking", False)
    if not isinstance(budget, bool) and budget >= room:
        lines.fail(place, "thinking", f"must leave room for the answer: fewer than max_output_tokens ({room})")


def _check_offline(lines: KeyLines, place: str, entry: dict[str, Any]) -> None:
    """Offline judges have fixed models, and the names of the built-in panel's judges are theirs."""
    models = {f"offline-{model}": model for model in (*ASSESSORS, *Side)}
    own = entry["provider"] == "offline"
    if own and entry["model"] not in models.values():
        lines.fail(place, "model", f'"{entry["model"]}" is no offline model; use one of {", ".join(models.values())}')
    if entry["name"] in models and (not own or models[entry["name"]] != entry["model"]):
        lines.fail(place, "name", f'"{entry["name"]}" is a judge of the built-in panel; choose another name')


def check_text(lines: KeyLines, place: str, key: str, value: object) -> None:
    """The form of a text."""
    text = lines.text(place, key, value)
    if key == "name" and not NAME.fullmatch(text):
        lines.fail(place, key, "must have no white space and no comma, and 100 characters at most")
    if key == "model" and len(text) > 200:
        lines.fail(place, key, "has more than 200 characters")
    if key == "api_key_env" and not VARIABLE.fullmatch(text):
        lines.fail(place, key, "must be the name of an environment variable, never the key itself")
    if key == "base_url" and (problem := _url_problem(text)):
        lines.fail(place, key, problem)
    if key in ("region", "project", "api_version") and not PLACE.fullmatch(text):
        lines.fail(place, key, "must be a name of letters, digits, points, colons and hyphens")
    if key == "prompt" and text not in BALLOTS:
        lines.fail(place, key, f'"{text}" is unknown; use one of {", ".join(BALLOTS)}')


def _word(lines: KeyLines, place: str, key: str, value: object) -> None:
    text = lines.text(place, key, value)
    if text not in WORDS[key]:
        lines.fail(place, key, f'"{text}" is unknown; use one of {", ".join(WORDS[key])}')


def _whole(lines: KeyLines, place: str, key: str, value: object) -> None:
    if not is_whole(value) or not 1 <= value <= 2**31 - 1:
        lines.fail(place, key, "must be a whole number from 1")


def _number(lines: KeyLines, place: str, key: str, value: object) -> None:
    low, high = RANGES[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        lines.fail(place, key, f"must be a number from {low:g} to {high:g}")


def _temperature(lines: KeyLines, place: str, key: str, value: object) -> None:
    if value != "default":
        low, high = RANGES[key]
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            lines.fail(place, key, f'must be a number from {low:g} to {high:g}, or "default": then none is sent')


def _logprobs(lines: KeyLines, place: str, key: str, value: object) -> None:
    if not isinstance(value, bool) and not (is_whole(value) and 1 <= value <= ALTERNATIVES):
        lines.fail(place, key, f"must be true, false or a number of alternatives from 1 to {ALTERNATIVES}")


def _switch(lines: KeyLines, place: str, key: str, value: object) -> None:
    if not isinstance(value, bool):
        lines.fail(place, key, "must be true or false")


def _thinking(lines: KeyLines, place: str, key: str, value: object) -> None:
    if not isinstance(value, bool) and not (is_whole(value) and 1 <= value <= 2**31 - 1):
        lines.fail(place, key, "must be true, false or the most tokens of its thoughts")


def _seed(lines: KeyLines, place: str, key: str, value: object) -> None:
    if not is_whole(value) or not 0 <= value <= 2**31 - 1:
        lines.fail(place, key, "must be a whole number from 0")


def _texts(lines: KeyLines, place: str, key: str, value: object) -> None:
    if not isinstance(value, list) or not value or not all(isinstance(one, str) and one for one in value):
        lines.fail(place, key, "must be a list of texts, none of them empty")


def _texts_by_name(lines: KeyLines, place: str, key: str, value: object) -> None:
    if not isinstance(value, dict) or not value or not all(isinstance(one, str) and one for one in value.values()):
        lines.fail(place, key, 'must be a table of texts, e.g. { name = "value" }')


def _headers(lines: KeyLines, place: str, key: str, value: object) -> None:
    _texts_by_name(lines, place, key, value)
    assert isinstance(value, dict)
    for name, text in value.items():
        if name.lower() in CREDENTIALS:
            lines.fail(place, key, f'names "{name}": a key stands in an environment variable (api_key_env)')
        if not HEADER.fullmatch(name) or not (text.isascii() and text.isprintable()):
            lines.fail(place, key, f'holds "{name}", which is no header of plain letters')


def _body(lines: KeyLines, place: str, key: str, value: object) -> None:
    if not isinstance(value, dict) or not value:
        lines.fail(place, key, "must be a table of fields that every request shall have")
    inner = {f"{name}.{within}" for name, table in value.items() if isinstance(table, dict) for within in table}
    if own := sorted(OURS & {*value, *inner}):
        lines.fail(place, key, f'names "{own[0]}", which Quorum writes itself: leave it out')
    if "service_tier" in value:
        lines.fail(place, key, 'names "service_tier", which changes what a call costs: it is a key of its own')
    within = value.get("generationConfig")
    if dear := sorted(SPENDING & {*value, *(within if isinstance(within, dict) else ())}):
        lines.fail(place, key, f'names "{dear[0]}", which changes what a call can cost: set max_output_tokens instead')
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        lines.fail(place, key, "holds something that JSON does not have (a date, a time, inf or nan)")


CHECKS: dict[str, Callable[[KeyLines, str, str, object], None]] = {
    **dict.fromkeys(TEXTS, check_text),
    **dict.fromkeys(WORDS, _word),
    **dict.fromkeys(WHOLE, _whole),
    "temperature": _temperature,
    "logprobs": _logprobs,
    "ignore_case": _switch,
    "thinking": _thinking,
    "seed": _seed,
    "stop": _texts,
    "token_command": _texts,
    "safety_settings": _texts_by_name,
    "extra_headers": _headers,
    "extra_body": _body,
}
"""By key; a key of RANGES alone is a number."""


def _judge_entry(entry: dict[str, Any], preset: Preset) -> JudgeEntry:
    fields = {key: value for key, value in entry.items() if key not in PARAMETERS}
    fields |= {key: float(fields[key]) for key in PRICES if key in fields}
    given = {key: entry[key] for key in PARAMETERS if key in entry}
    return JudgeEntry(
        **{
            **fields,
            "base_url": _base_url(entry, preset),
            "api_key_env": entry.get("api_key_env", preset.key_env),
            "parameters": decided(entry, preset) | given | _relevant_from(entry),
        }
    )


def _base_url(entry: dict[str, Any], preset: Preset) -> str:
    """ "" for the preset's own: one account has one spelling, or its limits would count twice. A home with places
    in it is an account for each region, and written out.
    """
    home = preset.homes.get(str(entry.get("region")), preset.base_url)
    if "{" in preset.base_url:
        home = home.format(region=entry.get("region"), project=entry.get("project"))
        return str(entry.get("base_url", home)).rstrip("/")
    base_url = str(entry.get("base_url", "")).rstrip("/")
    return "" if base_url == home else base_url


def _relevant_from(entry: dict[str, Any]) -> dict[str, int]:
    """The grade from which a vote is yes: as the file says, else the first one that the scale's text calls relevant."""
    highest = SCALES[entry.get("scale", "binary")]
    if highest == 1:
        return {}
    return {"relevant_from": entry.get("relevant_from", relevant_grade(highest))}


def is_whole(value: object) -> TypeGuard[int]:
    """A whole number, and no truth value."""
    return isinstance(value, int) and not isinstance(value, bool)


def _url_problem(value: str) -> str:
    try:
        parts = urlsplit(value)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "is no address"
    del port
    if len(value) > 500 or parts.scheme not in ("http", "https") or not host or " " in value:
        return "must be an address that begins with http:// or https://"
    if parts.username is not None or parts.password is not None:
        return "must not hold a name or password; keys stand in environment variables (api_key_env)"
    return "must have no ? and no #" if "?" in value or "#" in value else ""
