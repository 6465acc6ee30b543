"""The judges file (CONTRACT): read strictly, taken over whole or not at all."""

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TypeGuard
from urllib.parse import urlsplit

from corpus.errors import BadInput
from judges.offline import ASSESSORS
from judges.providers import HOMES, PROVIDERS
from judges.records import SCALES, Side

VOTERS = 5
NAME = re.compile(r"[^\s,]{1,100}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
SAMPLING = {"temperature", "top_p", "logprobs"}
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
)
WHOLE = (
    "max_concurrency",
    "requests_per_minute",
    "tokens_per_minute",
    "max_output_tokens",
    "relevant_from",
    "generations",
)
TEXTS = ("name", "provider", "model", "base_url", "api_key_env", "scale", "endpoint", "family")
ENDPOINTS = {"chat": ("openai", "openai-compatible", "anthropic", "google"), "decisions": ("openai", "google")}
"""Ways to ask a model, and the providers that have them."""
MOST_GENERATIONS = 10
RANGES = {
    "input_price": (0.0, 1e6),
    "output_price": (0.0, 1e6),
    "cached_input_price": (0.0, 1e6),
    "threshold": (0.0, 1.0),
    "temperature": (0.0, 2.0),
    "top_p": (0.0, 1.0),
    "timeout_s": (0.1, 3600.0),
}
JUDGE_KEYS = {*TEXTS, *WHOLE, *RANGES, "logprobs"}
PANEL_KEYS = {"name", "debate", "ensemble", "adjudicator", "majority", "early_stop"}
SCORER = {"threshold"}
GRADED = {"scale", "relevant_from"}
NOT_FOR = {
    "openai": SCORER,
    "openai-compatible": SCORER,
    "google": SCORER,
    "anthropic": SAMPLING | SCORER,
    "offline": JUDGE_KEYS - {"name", "provider", "model", "family"} - GRADED,
    "rerank-endpoint": SAMPLING | GRADED | {"generations", "endpoint", "max_output_tokens"},
    "embed-endpoint": SAMPLING | GRADED | SCORER | {"generations", "endpoint", "max_output_tokens"},
}
"""Keys that a provider does not take: set all the same, they would be a wish that nobody hears."""


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

    @property
    def decides(self) -> bool:
        """It is asked at a Decisions endpoint."""
        return bool(self.parameters.get("endpoint") == "decisions")


@dataclass(frozen=True, slots=True)
class PanelEntry:
    """The [panel]: the fields of a Panel."""

    debate: list[str]
    ensemble: list[str]
    name: str = "main"
    adjudicator: str = ""
    majority: int = 3
    early_stop: bool = False


@dataclass(frozen=True, slots=True)
class JudgesFile:
    """A file that holds together: every member of the panel is one of its judges."""

    judges: tuple[JudgeEntry, ...]
    panel: PanelEntry


def read(path: Path) -> JudgesFile:
    """Read and check the file. Raises BadInput with file, line where it is known, key, and what to do."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not UTF-8 at byte {error.start}") from error
    return parse(text, path.name)


def parse(text: str, name: str = "judges.toml") -> JudgesFile:
    """Check the text of a judges file; `name` stands in the errors. Raises BadInput."""
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadInput(f"{name}: {error}") from error
    return _Reader(text, name).file(tables)


class _Reader:
    """Checks the tables, and knows on which line each key stands."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self.silent: set[str] = set()
        """Judges that can only vote."""
        self.vectors: set[str] = set()
        """Judges that judge nothing: they make vectors for dense runs."""
        self.lines = _lines(text)

    def fail(self, place: str, key: str, what: str) -> NoReturn:
        """One line: file, line where it is known, table and key, what to do."""
        line = self.lines.get((place, key)) or self.lines.get((place, ""))
        where = f"{self.name}, line {line}" if line else self.name
        raise BadInput(f"{where}: {' '.join(word for word in (_title(place), key) if word)} {what}")

    def file(self, tables: dict[str, Any]) -> JudgesFile:
        """Both kinds of tables."""
        for key in tables.keys() - {"judge", "panel"}:
            self.fail("", key, "is unknown; a judges file has [[judge]] tables and one [panel]")
        entries = tables.get("judge", [])
        if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
            self.fail("", "judge", "is missing or no list of tables: write each judge as [[judge]]")
        judges = tuple(self.judge(f"judge {number}", entry) for number, entry in enumerate(entries, 1))
        names = [judge.name for judge in judges]
        for number, name in enumerate(names):
            if name in names[:number]:
                self.fail(f"judge {number + 1}", "name", f'"{name}" is taken by an earlier judge; names are unique')
        if not isinstance(tables.get("panel"), dict):
            self.fail("", "panel", "is missing: write one [panel] with debate and ensemble")
        self.silent = {one.name for one in judges if one.provider == "rerank-endpoint" or one.decides}
        self.vectors = {one.name for one in judges if one.provider == "embed-endpoint"}
        return JudgesFile(judges, self.panel(tables["panel"], names))

    def judge(self, place: str, entry: dict[str, Any]) -> JudgeEntry:
        """One judge."""
        self.known(place, entry, JUDGE_KEYS)
        for key in ("name", "provider", "model"):
            if key not in entry:
                self.fail(place, key, "is missing")
        for key, value in entry.items():
            self.value(place, key, value)
        provider = entry["provider"]
        for key in sorted(entry.keys() & NOT_FOR.get(provider, set())):
            self.fail(place, key, f"is nothing that provider {provider} takes: remove it")
        if ("input_price" in entry) != ("output_price" in entry):
            self.fail(place, "input_price", "and output_price go together; give both or none")
        if "cached_input_price" in entry and "input_price" not in entry:
            self.fail(place, "cached_input_price", "needs input_price and output_price beside it")
        self.grading(place, entry)
        if provider in ("openai-compatible", "rerank-endpoint", "embed-endpoint") and "base_url" not in entry:
            self.fail(place, "base_url", "is missing: where is the server? e.g. http://127.0.0.1:8001/v1")
        self.offline(place, entry)
        return _judge_entry(entry)

    def grading(self, place: str, entry: dict[str, Any]) -> None:
        """How it answers: scale, generations and endpoint go together, or the wish would be heard by nobody."""
        highest = SCALES[entry.get("scale", "binary")]
        if "relevant_from" in entry and (highest == 1 or entry["relevant_from"] > highest):
            self.fail(place, "relevant_from", f"must be a grade of the judge's scale, from 1 to {highest}")
        if entry.get("generations", 1) > MOST_GENERATIONS:
            self.fail(place, "generations", f"must be a whole number from 1 to {MOST_GENERATIONS}")
        if entry.get("generations", 1) > 1 and not (highest > 1 and entry.get("temperature", 0) > 0):
            self.fail(
                place, "generations", 'needs a scale ("0-3" or "0-10") and a temperature above 0: else all are alike'
            )
        provider, endpoint = entry["provider"], entry.get("endpoint", "chat")
        if "endpoint" in entry and provider not in ENDPOINTS[endpoint]:
            self.fail(place, "endpoint", f'"{endpoint}" is nothing that provider {provider} has')
        if endpoint == "decisions" and (found := sorted(entry.keys() & (SAMPLING | {"generations"}))):
            self.fail(place, found[0], "is nothing that a Decisions endpoint takes: remove it")

    def value(self, place: str, key: str, value: object) -> None:
        """The type and range of one value of a judge."""
        if key in TEXTS:
            self.text(place, key, value)
        elif key in WHOLE:
            if not _is_whole(value) or not 1 <= value <= 2**31 - 1:
                self.fail(place, key, "must be a whole number from 1")
        elif key == "logprobs":
            if not isinstance(value, bool) and not (_is_whole(value) and 1 <= value <= 20):
                self.fail(place, key, "must be true, false or a number of alternatives from 1 to 20")
        else:
            low, high = RANGES[key]
            if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
                self.fail(place, key, f"must be a number from {low:g} to {high:g}")

    def text(self, place: str, key: str, value: object) -> None:
        """The form of a text."""
        if not isinstance(value, str) or not value.strip() or value != value.strip() or not value.isprintable():
            self.fail(place, key, "must be text in one line, without space around it")
        if key == "name" and not NAME.fullmatch(value):
            self.fail(place, key, "must have no white space and no comma, and 100 characters at most")
        if key == "provider" and value not in PROVIDERS:
            self.fail(place, key, f'"{value}" is unknown; use one of {", ".join(PROVIDERS)}')
        if key == "model" and len(value) > 200:
            self.fail(place, key, "has more than 200 characters")
        if key == "api_key_env" and not VARIABLE.fullmatch(value):
            self.fail(place, key, "must be the name of an environment variable, never the key itself")
        if key == "base_url":
            problem = _url_problem(value)
            if problem:
                self.fail(place, key, problem)
        if key == "scale" and value not in SCALES:
            self.fail(place, key, f'"{value}" is unknown; use one of {", ".join(SCALES)}')
        if key == "endpoint" and value not in ENDPOINTS:
            self.fail(place, key, f'"{value}" is unknown; use one of {", ".join(ENDPOINTS)}')

    def offline(self, place: str, entry: dict[str, Any]) -> None:
        """Offline judges have fixed models, and the names of the built-in panel's judges are theirs."""
        models = {f"offline-{model}": model for model in (*ASSESSORS, *Side)}
        own = entry["provider"] == "offline"
        if own and entry["model"] not in models.values():
            self.fail(
                place, "model", f'"{entry["model"]}" is no offline model; use one of {", ".join(models.values())}'
            )
        if entry["name"] in models and (not own or models[entry["name"]] != entry["model"]):
            self.fail(place, "name", f'"{entry["name"]}" is a judge of the built-in panel; choose another name')

    def panel(self, entry: dict[str, Any], judges: list[str]) -> PanelEntry:
        """The panel; all members are judges of this file."""
        self.known("panel", entry, PANEL_KEYS)
        debate = self.members(entry, "debate", judges)
        ensemble = self.members(entry, "ensemble", judges)
        named = {*debate, *ensemble, str(entry.get("adjudicator", ""))}
        if makers := sorted(named & self.vectors):
            self.fail("panel", "", f'names "{makers[0]}", which makes vectors and judges nothing: leave it out')
        if silent := sorted(set(debate) & self.silent):
            self.fail(
                "panel", "debate", f'names "{silent[0]}", which only votes: its endpoint gives scores and no text'
            )
        if len(debate) != 2:
            self.fail("panel", "debate", "must name two judges: who holds relevant, who holds not relevant")
        if len(ensemble) != VOTERS or len(set(ensemble)) != VOTERS:
            self.fail("panel", "ensemble", f"must name {VOTERS} different judges")
        name = entry.get("name", "main")
        self.text("panel", "name", name)
        if name == "offline":
            self.fail("panel", "name", '"offline" is the built-in panel; choose another name')
        if "adjudicator" in entry and entry["adjudicator"] not in judges:
            self.fail("panel", "adjudicator", "is no judge of this file")
        majority = entry.get("majority", 3)
        if not _is_whole(majority) or not VOTERS // 2 < majority <= VOTERS:
            self.fail("panel", "majority", f"must be a whole number from {VOTERS // 2 + 1} to {VOTERS}")
        if not isinstance(entry.get("early_stop", False), bool):
            self.fail("panel", "early_stop", "must be true or false")
        return PanelEntry(**{**entry, "debate": debate, "ensemble": ensemble})

    def members(self, entry: dict[str, Any], key: str, judges: list[str]) -> list[str]:
        """A list of names of judges."""
        names = entry.get(key)
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            self.fail("panel", key, "is missing or no list of names of judges")
        for name in names:
            if name not in judges:
                self.fail("panel", key, f'names "{name}", which is no judge of this file')
        return names

    def known(self, place: str, entry: dict[str, Any], keys: set[str]) -> None:
        """No other keys: a misspelt one would be ignored in silence."""
        for key in entry:
            if key not in keys:
                self.fail(place, key, f"is unknown; known are {', '.join(sorted(keys))}")


def _judge_entry(entry: dict[str, Any]) -> JudgeEntry:
    home, key_env = HOMES.get(entry["provider"], ("", ""))
    base_url = entry.get("base_url", "").rstrip("/")
    fields = {key: value for key, value in entry.items() if key not in PARAMETERS}
    fields |= {
        key: float(fields[key]) for key in ("input_price", "output_price", "cached_input_price") if key in fields
    }
    return JudgeEntry(
        **{
            **fields,
            # One account has one spelling, or its limits would count twice.
            "base_url": "" if base_url == home else base_url,
            "api_key_env": entry.get("api_key_env", key_env),
            "parameters": {key: entry[key] for key in PARAMETERS if key in entry},
        }
    )


def _is_whole(value: object) -> TypeGuard[int]:
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


_TABLE = re.compile(r"\s*\[\[?\s*([A-Za-z_-]+)\s*\]\]?\s*(#.*)?")
_KEY = re.compile(r"""\s*["']?([^\s"'=\[#]+)["']?\s*=""")


def _lines(text: str) -> dict[tuple[str, str], int]:
    """{(place, key): line} of keys written one a line, which is how people write them; "" is the table's own line."""
    found: dict[tuple[str, str], int] = {}
    place, judges = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        table, key = _TABLE.fullmatch(line), _KEY.match(line)
        if table:
            judges += table[1] == "judge"
            place = f"judge {judges}" if table[1] == "judge" else table[1]
            found.setdefault((place, ""), number)
            found.setdefault(("", table[1]), number)
        elif key:
            found.setdefault((place, key[1]), number)
    return found


def _title(place: str) -> str:
    return {"": "", "panel": "[panel]"}.get(place, f"[[{place.partition(' ')[0]}]] {place.partition(' ')[2]}")
