"""Requests from mustache templates: each value is escaped by where it stands, in JSON or in an address. Pure.

The templates are those of the engines' own search templates: `{{query}}`, `{{k}}`, named parameters and sections.
A renderer that escapes all values alike cannot do this, so that a marker is rendered for each value, and is then
replaced by the value as its surroundings need it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from django.utils.translation import gettext as _
from pystache import Renderer
from pystache.common import PystacheError
from pystache.context import KeyNotFoundError
from pystache.parsed import ParsedTemplate
from pystache.parser import ParsingError, parse

from corpus.errors import BadInput

Values = Mapping[str, Any]
_MARK = re.compile("\0(\\d+)\0")  # No option has a null character (actions.options).
# `{{{name}}}` and `{{&name}}`: values that mustache would not escape.
_RAW = re.compile(r"\{\{(?:\{\s*([^{}]+?)\s*\}|&\s*([^{}]+?)\s*)\}\}")
LONGEST = 1_000_000  # Characters of a request: sections in sections could make any number.


class _Marking(Renderer):  # type: ignore[misc]
    """A renderer that writes a marker for each value, and collects the values."""

    def __init__(self) -> None:
        # Without partials: a template reads no file.
        super().__init__(escape=self.mark, partials={}, missing_tags="strict")
        self.values: list[Any] = []

    def mark(self, value: Any) -> str:
        if isinstance(value, str) and value.startswith("\0"):
            return value
        self.values.append(value)
        return f"\0{len(self.values) - 1}\0"

    def str_coerce(self, value: Any) -> str:
        """Mark a value that is no text, before it is made one."""
        return self.mark(value)


@lru_cache(maxsize=256)
def parse_template(template: str) -> ParsedTemplate:
    """Parse a template, in which all values are to be escaped. Raises BadInput."""
    try:
        return parse(_RAW.sub(lambda tag: f"{{{{{tag[1] or tag[2]}}}}}", template), raise_on_mismatch=True)
    except ParsingError as error:
        raise BadInput(_("The template cannot be read: %(error)s") % {"error": _one_line(error)}) from None
    except (IndexError, ValueError, RecursionError):
        raise BadInput(_("The template cannot be read. Check the tags in double braces")) from None


def render_path(template: str, values: Values) -> str:
    """Return the path and query of an address, with the values URL-quoted. Raises BadInput."""
    text, marked = _render(template, values)
    return _MARK.sub(lambda mark: quote(_as_text(marked[int(mark[1])]), safe=""), text)


def render_body(template: str, values: Values) -> str:
    """Return a JSON body: values are escaped in texts, and twice in texts within texts (GraphQL); others are JSON.

    Raises BadInput where the template does not render, or does not render as JSON.
    """
    text, marked = _render(template, values)
    body = "".join(_write_json(text, marked))
    try:
        json.loads(body)
    except (ValueError, RecursionError) as error:
        words = _("The rendered template is not JSON: %(error)s")
        raise BadInput(words % {"error": _one_line(error)}) from None
    return body


def _render(template: str, values: Values) -> tuple[str, list[Any]]:
    """Return a template with a marker for each value, and the values by marker."""
    parsed, renderer = parse_template(template), _Marking()
    try:
        text = str(renderer.render(parsed, dict(values)))
    except KeyNotFoundError as error:
        words = _("The template names {{%(name)s}}, which is not a parameter. Use one of %(names)s")
        raise BadInput(words % {"name": error.key, "names": ", ".join(sorted(values))}) from None
    except (PystacheError, RecursionError, TypeError) as error:
        raise BadInput(_("The template does not render: %(error)s") % {"error": _one_line(error)}) from None
    if "{{" in text:
        raise BadInput(_("The template has {{ without }}"))
    if len(text) > LONGEST:
        raise BadInput(_("The template renders as more than %(most)s characters") % {"most": f"{LONGEST:,}"})
    return text, renderer.values


def _write_json(text: str, marked: list[Any]) -> Iterator[str]:
    """Yield the parts of a JSON text in which the markers are replaced."""
    in_text = in_inner_text = False
    position = 0
    for mark in _MARK.finditer(text):
        before = text[position : mark.start()]
        for quotes in re.finditer(r'(\\.)|"', before, re.DOTALL):
            if quotes[1] is None:
                in_text, in_inner_text = not in_text, False
            elif quotes[1] == '\\"' and in_text:
                in_inner_text = not in_inner_text
        value = marked[int(mark[1])]
        yield before
        if not in_text:
            yield json.dumps(value, ensure_ascii=False)
        else:
            inner = _escape(_as_text(value))
            yield _escape(inner) if in_inner_text else inner
        position = mark.end()
    yield text[position:]


def _escape(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _as_text(value: Any) -> str:
    """Return a value as it stands within a text: lists by commas, as engines' lists of fields are."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(part, str | int | float) for part in value):
        return ",".join(map(_as_text, value))
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
