"""TOML files written by people, read strictly into pydantic models; errors have file, line, key and advice."""

import re
import tomllib
from collections import Counter
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from corpus.errors import BadInput, BadOption

if TYPE_CHECKING:
    from actions.options import Options

# Keys from the top of the file; tables in a list are numbered from 0.
KeyPath = tuple[int | str, ...]
PROBLEM = "problem"


def problem(words: str, *key_path: int | str) -> PydanticCustomError:
    """Return an error with this message; `key_path` names another key, relative to its table."""
    return PydanticCustomError(PROBLEM, "{words}", {"words": words, "place": key_path})


def otherwise(words: str | Promise) -> WrapValidator:
    """Return a validator that replaces pydantic's error by a message, except for errors of `problem`."""

    def check(value: object, handler: ValidatorFunctionWrapHandler) -> object:
        try:
            return handler(value)
        except ValidationError as error:
            if error.errors()[0]["type"] == PROBLEM:
                raise
            raise problem(str(words)) from None

    return WrapValidator(check)


def one_of(*choices: str) -> AfterValidator:

    def check(text: str) -> str:
        if text not in choices:
            words = _('"%(text)s" is unknown; use one of %(known)s')
            raise problem(words % {"text": text, "known": ", ".join(choices)})
        return text

    return AfterValidator(check)


def _in_one_line(text: str) -> str:
    if not text.strip() or text != text.strip() or not text.isprintable():
        raise ValueError
    return text


# Text such as names and addresses.
Line = Annotated[
    str, AfterValidator(_in_one_line), otherwise(gettext_lazy("must be text in one line, without space around it"))
]
Switch = Annotated[bool, otherwise(gettext_lazy("must be true or false"))]


class TomlTable(BaseModel):
    """The keys of a table; others are rejected, since misspelt ones would otherwise be ignored."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _known(cls, keys: Any) -> Any:
        for key in keys if isinstance(keys, dict) else ():
            if key not in cls.model_fields:
                words = _("is unknown; known are %(known)s")
                raise problem(words % {"known": ", ".join(sorted(cls.model_fields))}, key)
        return keys


Model = TypeVar("Model", bound=TomlTable)
Record = TypeVar("Record", bound="Options")


LONGEST = 1_000_000
# The parser needs time with the square of a dotted key's parts.
PARTS = 20
_PART = r"""(?:[\w-]+|"[^"\n]{0,99}"|'[^'\n]{0,99}')[ \t]*\.[ \t]*"""
_LONG_KEY = re.compile(rf"(?<![\w-])(?:{_PART}){{{PARTS}}}")


def read_tables(text: str, name: str) -> dict[str, Any]:
    """Parse TOML. Raises BadInput with `name` and, if known, the line."""
    if len(text) > LONGEST:
        raise BadInput(
            _("%(name)s: %(count)d characters are too many for settings") % {"name": name, "count": len(text)}
        )
    if key := _LONG_KEY.search(text):
        words = _("%(name)s, line %(line)s: a key of more than %(count)s parts")
        raise BadInput(words % {"name": name, "line": text.count("\n", 0, key.start()) + 1, "count": PARTS})
    try:
        return tomllib.loads(text)
    # ValueError includes numbers with too many digits.
    except (ValueError, RecursionError) as error:
        raise BadInput(_("%(name)s: %(what)s") % {"name": name, "what": _describe_syntax(error)}) from error


def read_toml(model: type[Model], text: str, name: str) -> Model:
    """Parse TOML as a model. Raises BadInput with `name`, line, key and advice."""
    tables = read_tables(text, name)
    try:
        return model.model_validate(tables)
    except ValidationError as error:
        lines = find_lines(text)
        # A default factory is not called because of another mistake.
        errors = [details for details in error.errors() if details["type"] != "default_factory_not_called"]
        mistakes = [_locate_mistake(details, tables, lines) for details in errors]
    # The first mistake in the file, since later ones may follow from it.
    number, description = min(mistakes, key=itemgetter(0))
    words = _("%(name)s, line %(line)s: %(what)s") if number else _("%(name)s: %(what)s")
    raise BadInput(words % {"name": name, "line": number, "what": description})


def read_options(record: type[Record], text: str, name: str) -> Record:
    """Parse TOML as the options of an action. Raises BadInput with `name`, line if known, option and advice."""
    try:
        return record.read(read_tables(text, name), strict=True)
    except BadOption as error:
        lines = find_lines(text)
        number, description = min(
            (lines.get((option,), 0), f"{option}: {problem_text}") for option, problem_text in error.problems
        )
        raise BadInput((f"{name}, line {number}: " if number else f"{name}: ") + description) from None


def _describe_syntax(error: Exception) -> str:
    """Return a message about a syntax error, which quotes the parser's English one."""
    match = re.fullmatch(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", str(error))
    if match is None:
        return _("this is not TOML (“%(said)s”): check quotes and brackets") % {"said": error}
    values = {"said": match[1], "line": match[2], "column": match[3]}
    if match[2] is None:
        return _("this is not TOML at its end (“%(said)s”): check quotes and brackets") % values
    return _("this is not TOML in line %(line)s, column %(column)s (“%(said)s”): check quotes and brackets") % values


def _locate_mistake(error: ErrorDetails, tables: dict[str, Any], lines: dict[KeyPath, int]) -> tuple[int, str]:
    """Return the line of a mistake, or 0 if it is unknown, and its description."""
    key_path: KeyPath = (*error["loc"], *error.get("ctx", {}).get("place", ()))
    listed = len(key_path) > 1 and isinstance(key_path[1], int)
    inside = len(key_path) > 1 or (error["type"] == PROBLEM and error["loc"])
    depth = 3 if listed else 2 if inside and isinstance(tables.get(str(key_path[0])), dict) else 1
    table, keys = key_path[0], key_path[depth - 1 : depth] if len(key_path) >= depth > 1 else ()
    title = f"[[{table}]] {int(key_path[1]) + 1}" if listed else f"[{table}]" if depth == 2 else str(table)
    numbers = (lines[key_path[:end]] for end in range(depth, 0, -1) if key_path[:end] in lines)
    return next(numbers, 0), " ".join([title, *map(str, keys), _describe_error(error, key_path)])


def _describe_error(error: ErrorDetails, key_path: KeyPath) -> str:
    table = {"table": key_path[0]}
    match error["type"]:
        case "missing":
            return _("is missing")
        case "too_short":
            return _("is missing: write each %(table)s as [[%(table)s]]") % table
        case "model_type" if len(key_path) == 1:
            return _("must be one table: write [%(table)s]") % table
        case "list_type" | "model_type":
            return _("is not a list of tables: write each %(table)s as [[%(table)s]]") % table
    return error["msg"]


_HEADER = re.compile(r"\s*(\[\[?)\s*([A-Za-z_-]+)\s*\]\]?\s*(#.*)?")
_KEY = re.compile(r"""\s*["']?([^\s"'=\[#]+)["']?\s*=""")


def find_lines(text: str) -> dict[KeyPath, int]:
    """Return the lines of tables, and of keys that are written on separate lines."""
    lines: dict[KeyPath, int] = {}
    table: KeyPath = ()
    seen: Counter[str] = Counter()
    for number, line in enumerate(text.splitlines(), 1):
        header, key = _HEADER.fullmatch(line), _KEY.match(line)
        if header:
            table = (header[2], seen[header[2]]) if header[1] == "[[" else (header[2],)
            seen[header[2]] += 1
            lines.setdefault((header[2],), number)
            lines.setdefault(table, number)
        elif key:
            lines.setdefault((*table, key[1]), number)
    return lines
