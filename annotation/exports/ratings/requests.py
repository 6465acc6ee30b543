"""The request of a search endpoint as a search template of Elasticsearch and OpenSearch. Pure."""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from django.utils.translation import gettext as _

from corpus.errors import BadOption

KINDS = ("elasticsearch", "opensearch")  # Kinds of endpoints that have _rank_eval.
# Where there is no endpoint: the index's own default fields.
DEFAULT_BODY = '{"query": {"multi_match": {"query": "{{query}}"}}}'
MOST_WORDS = 50  # Of a query, as the value `words` of a template (benchmark.search_endpoints).
# Values, but no sections; `}}}` may be the end of a value and of an object.
_TAG = re.compile(r"\{\{\{\s*([\w-]+)\s*\}\}\}|\{\{&?\s*([\w-]+)\s*\}\}")
_QUOTES = re.compile(r'\\.|(")', re.DOTALL)


class RequestTemplate(NamedTuple):
    """A template of `_rank_eval`, and its parameters, in which {{query}} stands for the query's text."""

    template: dict[str, Any]
    params: Mapping[str, Any]

    def insert_query(self, query: str) -> dict[str, Any]:
        """Return the parameters of a query."""
        return {name: _insert_query(value, query) for name, value in self.params.items()}


def _insert_query(value: Any, query: str) -> Any:
    if isinstance(value, str):
        if value == "{{words}}":
            return list(dict.fromkeys(re.findall(r"\w+", query)))[:MOST_WORDS]
        return value.replace("{{query}}", query)
    if isinstance(value, dict):
        return {name: _insert_query(part, query) for name, part in value.items()}
    return [_insert_query(part, query) for part in value] if isinstance(value, list) else value


def read_template(settings: Mapping[str, Any], depth: int) -> RequestTemplate:
    """Return the template of an endpoint's settings, with `depth` for {{k}}; without a body the default one.

    A request to `_search/template` names a stored template, or has its source. Raises BadOption for a
    request without {{query}} in its body, which `_rank_eval` could not ask.
    """
    parameters = settings.get("parameters") or {}
    constants = {**parameters, "index": settings.get("index", ""), "k": depth}
    body = _insert_constants(str(settings.get("body") or DEFAULT_BODY), constants)
    if not re.search(r"\{\{[#^]?(query|words)\b", body):
        message = _("The endpoint's body has no {{query}}, and _rank_eval sends only bodies: choose another.")
        raise BadOption("endpoint", message)
    try:
        request = json.loads(body)
    except ValueError:
        request = body  # With sections, for example, which the engine reads.
    path = str(settings.get("path") or "").partition("?")[0].rstrip("/")
    if path.endswith("/_search/template") and isinstance(request, dict):
        template = {"id": request["id"]} if "id" in request else {"inline": request.get("source", {})}
        return RequestTemplate(template, request.get("params", {}))
    params = {**parameters, "query": "{{query}}", **({"words": "{{words}}"} if "words" in body else {})}
    # Named `inline` in the documentation of all versions; their code also accepts `source`.
    return RequestTemplate({"inline": request}, params)


def _insert_constants(body: str, constants: Mapping[str, Any]) -> str:
    """Return a body with the values that are the same for all queries, as text within texts and else as JSON.

    {{query}} is in quotes afterwards: as here, the engine escapes it, but adds none.
    """
    pieces, is_in_text, position = [], False, 0
    for tag in _TAG.finditer(body):
        before, name = body[position : tag.start()], tag[1] or tag[2]
        for quotes in _QUOTES.finditer(before):
            is_in_text ^= quotes[1] is not None
        piece = tag[0]
        if name == "query":
            piece = "{{query}}" if is_in_text else '"{{query}}"'
        elif name in constants:
            value = constants[name]
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            piece = json.dumps(text if is_in_text else value, ensure_ascii=False)
            piece = piece[1:-1] if is_in_text else piece
        pieces += [before, piece]
        position = tag.end()
    return "".join([*pieces, body[position:]])
