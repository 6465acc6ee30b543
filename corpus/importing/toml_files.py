"""TOML files that people write, read strictly into pydantic models. A mistake is one line: file, line, key, advice."""

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

# Keys from the file's top on; the number of a table in its list, from 0.
Place = tuple[int | str, ...]
PROBLEM = "problem"


def problem(words: str, *place: int | str) -> PydanticCustomError:
    """Return an error in words; `place`: of another key, from its table on."""
    return PydanticCustomError(PROBLEM, "{words}", {"words": words, "place": place})


def otherwise(words: str | Promise) -> WrapValidator:
    """Return what replaces the error of the type before it, unless that has words of its own."""

    def check(value: object, handler: ValidatorFunctionWrapHandler) -> object:
        try:
            return handler(value)
        except ValidationError as error:
            if error.errors()[0]["type"] == PROBLEM:
                raise
            raise problem(str(words)) from None

    return WrapValidator(check)


def one_of(*known: str) -> AfterValidator:

    def check(text: str) -> str:
        if text not in known:
            words = _('"%(text)s" is unknown; use one of %(known)s')
            raise problem(words % {"text": text, "known": ", ".join(known)})
        return text

    return AfterValidator(check)


def _in_one_line(text: str) -> str:
    if not text.strip() or text != text.strip() or not text.isprintable():
        raise ValueError
    return text


# Text as names and addresses are.
Line = Annotated[
    str, AfterValidator(_in_one_line), otherwise(gettext_lazy("must be text in one line, without space around it"))
]
Switch = Annotated[bool, otherwise(gettext_lazy("must be true or false"))]


class TomlTable(BaseModel):
    """The keys of a table. Others are refused, for a misspelt one would be ignored in silence."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _known(cls, given: Any) -> Any:
        for key in given if isinstance(given, dict) else ():
            if key not in cls.model_fields:
                words = _("is unknown; known are %(known)s")
                raise problem(words % {"known": ", ".join(sorted(cls.model_fields))}, key)
        return given


Model = TypeVar("Model", bound=TomlTable)
Record = TypeVar("Record", bound="Options")


LONGEST = 1_000_000
# The parser takes the square of a dotted key's parts: nobody writes as many as this.
PARTS = 20
_PART = r"""(?:[\w-]+|"[^"\n]{0,99}"|'[^'\n]{0,99}')[ \t]*\.[ \t]*"""
_LONG_KEY = re.compile(rf"(?<![\w-])(?:{_PART}){{{PARTS}}}")


def read_tables(text: str, name: str) -> dict[str, Any]:
    """Return what TOML says, unchecked. Raises BadInput with `name` and, if known, the line."""
    if len(text) > LONGEST:
        raise BadInput(
            _("%(name)s: %(count)d characters are too many for settings") % {"name": name, "count": len(text)}
        )
    if key := _LONG_KEY.search(text):
        words = _("%(name)s, line %(line)s: a key of more than %(count)s parts")
        raise BadInput(words % {"name": name, "line": text.count("\n", 0, key.start()) + 1, "count": PARTS})
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: a number of too many digits
        raise BadInput(_("%(name)s: %(what)s") % {"name": name, "what": _describe_syntax(error)}) from error


def read_toml(model: type[Model], text: str, name: str) -> Model:
    """Return a file's text as the model. BadInput with `name`, line, key, remedy."""
    tables = read_tables(text, name)
    try:
        return model.model_validate(tables)
    except ValidationError as error:
        lines = _lines(text)
        found = [one for one in error.errors() if one["type"] != "default_factory_not_called"]  # another one's fault
        mistakes = [_mistake(one, tables, lines) for one in found]
    # The first in the file: those below may only follow from it.
    number, what = min(mistakes, key=itemgetter(0))
    words = _("%(name)s, line %(line)s: %(what)s") if number else _("%(name)s: %(what)s")
    raise BadInput(words % {"name": name, "line": number, "what": what})


def read_options(record: type[Record], text: str, name: str) -> Record:
    """Return the file's text as an action's options. Raises BadInput with `name`, line if known, option and advice."""
    try:
        return record.read(read_tables(text, name), strict=True)
    except BadOption as error:
        lines = _lines(text)
        number, what = min((lines.get((option,), 0), f"{option}: {said}") for option, said in error.problems)
        raise BadInput((f"{name}, line {number}: " if number else f"{name}: ") + what) from None


def _describe_syntax(error: Exception) -> str:
    """Return a syntax error in words, the parser's in quotes: it is English."""
    found = re.fullmatch(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", str(error))
    if found is None:
        return _("this is not TOML (“%(said)s”): check quotes and brackets") % {"said": error}
    said = {"said": found[1], "line": found[2], "column": found[3]}
    if found[2] is None:
        return _("this is not TOML at its end (“%(said)s”): check quotes and brackets") % said
    return _("this is not TOML in line %(line)s, column %(column)s (“%(said)s”): check quotes and brackets") % said


def _mistake(error: ErrorDetails, tables: dict[str, Any], lines: dict[Place, int]) -> tuple[int, str]:
    """Return the line of a mistake, or 0 where it is not known, and what is wrong there."""
    place: Place = (*error["loc"], *error.get("ctx", {}).get("place", ()))
    listed = len(place) > 1 and isinstance(place[1], int)
    inside = len(place) > 1 or (error["type"] == PROBLEM and error["loc"])
    depth = 3 if listed else 2 if inside and isinstance(tables.get(str(place[0])), dict) else 1
    table, keys = place[0], place[depth - 1 : depth] if len(place) >= depth > 1 else ()
    title = f"[[{table}]] {int(place[1]) + 1}" if listed else f"[{table}]" if depth == 2 else str(table)
    known = (lines[place[:end]] for end in range(depth, 0, -1) if place[:end] in lines)
    return next(known, 0), " ".join([title, *map(str, keys), _describe_error(error, place)])


def _describe_error(error: ErrorDetails, place: Place) -> str:
    table = {"table": place[0]}
    match error["type"]:
        case "missing":
            return _("is missing")
        case "too_short":
            return _("is missing: write each %(table)s as [[%(table)s]]") % table
        case "model_type" if len(place) == 1:
            return _("must be one table: write [%(table)s]") % table
        case "list_type" | "model_type":
            return _("is no list of tables: write each %(table)s as [[%(table)s]]") % table
    return error["msg"]


_HEADER = re.compile(r"\s*(\[\[?)\s*([A-Za-z_-]+)\s*\]\]?\s*(#.*)?")
_KEY = re.compile(r"""\s*["']?([^\s"'=\[#]+)["']?\s*=""")


def _lines(text: str) -> dict[Place, int]:
    """Return the lines of tables and of keys written one a line, which is how people write them."""
    found: dict[Place, int] = {}
    table: Place = ()
    seen: Counter[str] = Counter()
    for number, line in enumerate(text.splitlines(), 1):
        header, key = _HEADER.fullmatch(line), _KEY.match(line)
        if header:
            table = (header[2], seen[header[2]]) if header[1] == "[[" else (header[2],)
            seen[header[2]] += 1
            found.setdefault((header[2],), number)
            found.setdefault(table, number)
        elif key:
            found.setdefault((*table, key[1]), number)
    return found
