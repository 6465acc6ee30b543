"""Hits of a search engine's answer, read by JMESPath: id, title, text, score and metadata. Pure."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jmespath
from django.utils.translation import gettext as _
from jmespath.exceptions import JMESPathError

from actions.options import UNSTORABLE
from corpus.errors import BadOption
from corpus.formats.files import is_identifier
from corpus.formats.html_documents import has_markup, read_html

_FIELDS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
SHOWN_FIELDS = 12  # Fields of an answer that a message names.


@dataclass(frozen=True, slots=True)
class Hit:
    """A hit as people and judges read it. `score` is None where the engine gives none: its order counts."""

    id: str
    title: str
    text: str
    score: float | None
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HitPage:
    """The hits of an answer in the engine's order, and the numbers of those that lack something.

    Hits without an id, and all but the first of the same id, are left out; hits without a text are not.
    """

    hits: list[Hit]
    duplicates: int = 0
    without_id: int = 0
    without_text: int = 0
    is_partial: bool = False  # The engine says that it did not search all documents.


@dataclass(frozen=True, slots=True)
class FieldPath:
    """A path of plain fields such as `_source.title`, for which JMESPath's interpreter takes five times as long."""

    expression: str

    def search(self, value: Any) -> Any:
        """Return what JMESPath finds: None where a field is missing, or where its parent is no object."""
        for name in self.expression.split("."):
            if not isinstance(value, dict):
                return None
            value = value.get(name)
        return value


def compile_path(option: str, expression: str) -> Any:
    """Return a compiled JMESPath expression. Raises BadOption, which names the option."""
    if _FIELDS.fullmatch(expression):
        return FieldPath(expression)
    try:
        return jmespath.compile(expression)
    except JMESPathError as error:
        words = _("“%(expression)s” is not a JMESPath expression: %(error)s")
        error_line = " ".join(str(error).split())[:160]
        raise BadOption(option, words % {"expression": expression, "error": error_line}) from None
    except RecursionError:
        raise BadOption(option, _("Write a shorter JMESPath expression.")) from None


class HitMapping:
    """The expressions of an endpoint's settings, compiled once. Raises BadOption for one that is no JMESPath."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = settings
        self.hits = compile_path("hits", settings["hits"])
        self.id = compile_path("id", settings["id"])
        self.title = compile_path("title", settings["title"]) if settings.get("title") else None
        self.text = [compile_path("text", path) for path in settings["text"]]
        self.score = compile_path("score", settings["score"]) if settings.get("score") else None
        self.error = compile_path("error", settings["error"]) if settings.get("error") else None
        self.partial = compile_path("partial", settings["partial"]) if settings.get("partial") else None
        self.metadata = {
            name: compile_path("metadata", path) for name, path in (settings.get("metadata") or {}).items()
        }

    def read(self, answer: Any) -> HitPage:
        """Return the hits of an answer. Raises BadOption where `hits` finds no list: an empty one is no mistake."""
        rows = self.find_rows(answer)
        hits: dict[str, Hit] = {}
        duplicates = without_id = without_text = 0
        for row in rows:
            identity = read_id(_search("id", self.id, row))
            if not identity:
                without_id += 1
            elif identity in hits:
                duplicates += 1
            else:
                title = " ".join(read_text(_search("title", self.title, row)).split()) if self.title else ""
                texts = (read_text(_search("text", path, row)) for path in self.text)
                text = "\n".join(text for text in texts if text)
                score = read_score(_search("score", self.score, row)) if self.score else None
                metadata = {name: _search("metadata", path, row) for name, path in self.metadata.items()}
                metadata = {name: _clean(value) for name, value in metadata.items() if value is not None}
                without_text += not text
                hits[identity] = Hit(identity, title, text, score, metadata)
        is_partial = bool(self.partial and _search("partial", self.partial, answer))
        return HitPage(list(hits.values()), duplicates, without_id, without_text, is_partial)

    def find_error(self, answer: Any) -> str:
        """Return what an answer says of its own failure; "" for nothing."""
        error = _search("error", self.error, answer) if self.error else None
        return read_text(error) or str(error) if error else ""

    def find_rows(self, answer: Any) -> list[Any]:
        """Return the hits as the answer has them; an object of equally long lists is a list of objects."""
        rows = _search("hits", self.hits, answer)
        if isinstance(rows, dict) and rows:
            columns = {name: column for name, column in rows.items() if isinstance(column, list)}
            lengths = {len(column) for column in columns.values()}
            if len(lengths) == 1:
                return [
                    {name: columns[name][place] if name in columns else rows[name] for name in rows}
                    for place in range(lengths.pop())
                ]
        if not isinstance(rows, list):
            words = _("“%(path)s” finds no list of hits in the answer. The answer has %(fields)s.")
            fields = ", ".join(describe_fields(answer)) or _("nothing")
            raise BadOption("hits", words % {"path": self.settings["hits"], "fields": fields})
        return rows

    def problems(self, answer: Any, page: HitPage) -> list[tuple[str, str]]:
        """Return what to change where hits lack an id or a text: the option and a sentence for each."""
        rows = self.find_rows(answer)
        fields = ", ".join(describe_fields(rows[0])) if rows else ""
        problems = []
        if page.without_id:
            words = _(
                "%(count)s of %(all)s hits have no usable id at “%(path)s”: at most 255 characters, no white space. "
                "A hit has %(fields)s."
            )
            values = {"count": page.without_id, "all": len(rows), "path": self.settings["id"], "fields": fields}
            problems.append(("id", words % values))
        if page.without_text:
            words = _("%(count)s of %(all)s hits have no text at “%(path)s”. A hit has %(fields)s.")
            path = ", ".join(self.settings["text"])
            values = {"count": page.without_text, "all": len(page.hits), "path": path, "fields": fields}
            problems.append(("text", words % values))
        if page.is_partial:
            words = _(
                "The engine did not search all documents: the answer is partial. Give it more time in the request."
            )
            problems.append(("partial", words))
        if page.duplicates:
            words = _("%(count)s of %(all)s hits repeat an id. Group them in the engine, or take another id.")
            problems.append(("id", words % {"count": page.duplicates, "all": len(rows)}))
        return problems


def read_id(value: Any) -> str:
    """Return an id as text; "" for what cannot be one: files end it at white space."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    identity = str(value).strip()
    return identity if is_identifier(identity) and not UNSTORABLE.search(identity) else ""


def read_text(value: Any) -> str:
    """Return a field as people read it: HTML as its text, a list by lines, an object as nothing."""
    if isinstance(value, list):
        return "\n".join(text for text in map(read_text, value) if text)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    text = UNSTORABLE.sub("", str(value)).replace("\r\n", "\n").replace("\r", "\n")
    return (read_html(text).text if has_markup(text) else text).strip()


def read_score(value: Any) -> float | None:
    """Return a score as a finite number; None for anything else."""
    try:
        score = float(value) if not isinstance(value, bool) else math.nan
    except (TypeError, ValueError, OverflowError):
        return None
    return score if math.isfinite(score) else None


def describe_fields(value: Any) -> list[str]:
    """Return the first fields of an answer or a hit by their paths, objects within it by their own fields."""
    if not isinstance(value, dict):
        return [_("a list")] if isinstance(value, list) else []
    fields: list[str] = []
    for name, inner in value.items():
        inner_fields = describe_fields(inner) if isinstance(inner, dict) and inner else []
        path = _clean(name)
        fields += [f"{path}.{inner_field}" for inner_field in inner_fields] or [path]
    more = [] if len(fields) <= SHOWN_FIELDS else ["…"]
    return [field[:80] for field in fields if field != "…"][:SHOWN_FIELDS] + more


def describe_shape(value: Any, depth: int = 4) -> Any:
    """Return the shape of an answer: names with types in place of values, of a list its length and first element."""
    if isinstance(value, dict):
        if depth == 0:
            return _("object")
        return {_clean(name)[:80]: describe_shape(inner, depth - 1) for name, inner in list(value.items())[:40]}
    if isinstance(value, list):
        length = _("list of %(count)s") % {"count": len(value)}
        return {length: describe_shape(value[0], depth - 1)} if value and depth else length
    names = {str: _("text"), bool: _("true or false"), int: _("number"), float: _("number"), type(None): _("null")}
    return names[type(value)]


def _search(option: str, path: Any, value: Any) -> Any:
    try:
        return path.search(value)
    except JMESPathError as error:
        words = _("“%(expression)s” cannot be applied: %(error)s")
        error_line = " ".join(str(error).split())[:160]
        raise BadOption(option, words % {"expression": path.expression, "error": error_line}) from None


def _clean(value: Any) -> Any:
    """Return a value of JSON without the characters that PostgreSQL cannot store."""
    if isinstance(value, str):
        return UNSTORABLE.sub("", value)
    if isinstance(value, list):
        return [_clean(part) for part in value]
    if isinstance(value, dict):
        return {UNSTORABLE.sub("", str(name)): _clean(part) for name, part in value.items()}
    return value if not isinstance(value, float) or math.isfinite(value) else None
