"""The OpenAPI document as the reference shows it: resources, their operations, and the fields of these."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from typing import Any

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext

from api.reference import examples
from api.reference.examples import Schema

ROOT = "/api/v1/collections"
DEEPEST = 3  # Levels of objects within objects that a table of fields shows.
CODE = re.compile("`([^`]+)`")
LARGEST = 1_000_000_000  # Higher bounds are those of the database's columns.
BOUNDS = (
    ("minimum", "≥ {}"), ("exclusiveMinimum", "> {}"), ("maximum", "≤ {}"), ("exclusiveMaximum", "< {}"),
    ("minLength", "at least {} characters"), ("maxLength", "at most {} characters"),
    ("minItems", "at least {} rows"), ("maxItems", "at most {} rows"), ("pattern", "matches {}"),
)  # fmt: skip


@dataclass(frozen=True)
class Described:
    """What has a description in the document, which is in English."""

    text: str

    @property
    def translated(self) -> SafeString:
        """The description in the reader's language, where options of pages have the same one; names as code."""
        return mark_safe(CODE.sub(r"<code>\1</code>", escape(gettext(self.text) if self.text else "")))

    @property
    def language(self) -> str:
        """The language of `translated`, where it is not that of the page."""
        return "en" if self.text and gettext(self.text) == self.text else ""


@dataclass(frozen=True)
class ApiField(Described):
    """A field of a request or response: its name with those around it, its type, and its bounds."""

    name: str
    type: str
    bounds: str
    is_required: bool
    place: str


@dataclass(frozen=True)
class ApiAnswer:
    """A response of an operation: its status, title, media type and fields."""

    status: int
    title: str
    media: str
    type: str
    fields: Sequence[ApiField]


@dataclass(frozen=True)
class ApiOperation(Described):
    """An operation with its examples. `scope`: that a token needs; `role`: the lowest that may call it."""

    method: str
    path: str
    title: str
    scope: str
    role: str
    media: str
    parameters: Sequence[ApiField]
    body: Sequence[ApiField]
    answers: Sequence[ApiAnswer]
    refusals: Sequence[int]
    curl: str
    python: str

    @property
    def key(self) -> str:
        """The operation's anchor on its page."""
        below = self.path.removeprefix(f"{ROOT}/{{name}}/").removeprefix("/api/v1/")
        return f"{self.method.lower()}-{re.sub('[^a-z]+', '-', below).strip('-')}"


@dataclass(frozen=True)
class Resource:
    """The operations on one kind of object, which have a page."""

    key: str
    group: str
    operations: Sequence[ApiOperation]

    @property
    def title(self) -> str:
        """The resource's name, such as `Hole fillings`."""
        return self.key.replace("-", " ").capitalize()


class Reference:
    """The resources of an OpenAPI document, by the part of the address that follows a collection's name."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        self.schemas: Mapping[str, Schema] = document["components"]["schemas"]

    @cached_property
    def resources(self) -> dict[str, Resource]:
        """Resources by key, in the order of the document, those of a group together."""
        operations: dict[str, list[ApiOperation]] = {}
        groups: dict[str, str] = {}
        for path, methods in self.document["paths"].items():
            key = (path.removeprefix(ROOT).split("/")[2:3] or ["collections"])[0].partition(".")[0]
            for method, operation in methods.items():
                groups.setdefault(key, operation["tags"][0])
                operations.setdefault(key, []).append(self._read(method.upper(), path, operation))
        order = list(dict.fromkeys(groups.values()))
        keys = sorted(groups, key=lambda key: order.index(groups[key]))
        return {key: Resource(key, groups[key].capitalize(), operations[key]) for key in keys}

    def _read(self, method: str, path: str, operation: Mapping[str, Any]) -> ApiOperation:
        content: Mapping[str, Any] = operation.get("requestBody", {}).get("content", {})
        media = next(iter(content), "")
        schema: Schema = content[media]["schema"] if media else {}
        answers = [self._answer(int(status), answer) for status, answer in operation["responses"].items()]
        successes = [answer for answer in answers if answer.status < 300]
        parameters = operation.get("parameters", [])
        values = {
            parameter["name"]: str(examples.make_value(parameter["schema"], self.schemas, parameter["name"]))
            for parameter in parameters
            if parameter["in"] == "path"
        }
        below = path.removeprefix(f"{ROOT}/{{name}}/").removeprefix(ROOT)
        body = None
        if media == "application/json":
            made = examples.make_value(schema, self.schemas)
            body = {**made, **examples.BODIES.get(f"{method} {below}".strip(), {})}
        headers = {name: examples.HEADERS[name] for row in parameters if (name := row["name"]) in examples.HEADERS}
        # How the client reads the response: a list page by page, a file, or one object.
        answer = successes[0]
        shape = "file" if answer.media and "json" not in answer.media.split(", ")[0] else ""
        if {"next", "items"} <= {field.name for field in answer.fields}:
            shape = "rows"
        return ApiOperation(
            operation.get("description", ""),
            method,
            path,
            operation["summary"].capitalize(),
            operation["x-scope"],
            operation["x-role"],
            media,
            [
                self._field(row["name"], {**row["schema"], **row}, row.get("required"), row["in"])
                for row in parameters
                # The name of the collection and the number of the object need no words.
                if row["in"] != "path" or "enum" in row["schema"]
            ],
            list(self._fields(schema)),
            successes,
            sorted(answer.status for answer in answers if answer.status >= 300),
            examples.write_curl(method, path.format(**values), body, headers, media, shape),
            examples.write_python(method, path.removeprefix(ROOT).removeprefix("/"), values, body, shape),
        )

    def _answer(self, status: int, answer: Mapping[str, Any]) -> ApiAnswer:
        content = answer.get("content", {})
        schema: Schema = next((part["schema"] for part in content.values()), {})
        kind = self._type(schema) if content else ""
        title = answer.get("description") or HTTPStatus(status).phrase
        return ApiAnswer(status, title, ", ".join(content), kind, list(self._fields(schema)))

    def _fields(self, schema: Schema, before: str = "", depth: int = 0) -> Iterator[ApiField]:
        """Yield the fields of an object or a list of objects, each followed by those within it."""
        schema = self._object(schema)
        if schema.get("type") == "array":
            yield from self._fields(schema.get("items", {}), f"{before}[]", depth)
        required = set(schema.get("required", ()))
        for name, field in schema.get("properties", {}).items():
            full = f"{before}.{name}" if before else name
            yield self._field(full, field, name in required)
            if depth < DEEPEST:
                yield from self._fields(field, full, depth + 1)

    def _object(self, schema: Schema) -> Schema:
        """Return the object or list among the variants of a schema, without references."""
        schema = examples.resolve(schema, self.schemas)
        for variant in schema.get("anyOf", ()):
            if (resolved := examples.resolve(variant, self.schemas)).get("type") in ("object", "array"):
                return resolved
        return schema

    def _field(self, name: str, field: Schema, is_required: bool | None, place: str = "") -> ApiField:
        variants = [examples.resolve(part, self.schemas) for part in (field, *field.get("anyOf", ()))]
        bounds = [
            text.format(part[key])
            for part in variants
            for key, text in BOUNDS
            if key in part and (isinstance(part[key], str) or part[key] < LARGEST)
        ]
        if (default := field.get("default")) not in (None, "", [], {}):
            bounds.append(f"default {examples.json_text(default)}")
        text = field.get("description") or ""
        return ApiField(text, name, self._type(field), ", ".join(bounds), bool(is_required), place)

    def _type(self, schema: Schema) -> str:
        """Return a schema's type in words, such as `list of integers` or `"for" or "against"`."""
        schema = examples.resolve(schema, self.schemas)
        if "enum" in schema:
            return " | ".join(map(examples.json_text, schema["enum"]))
        if variants := schema.get("anyOf"):
            return " | ".join(dict.fromkeys(self._type(variant) for variant in variants))
        if schema.get("type") == "array":
            return f"list of {self._type(schema.get('items', {}))}"
        return str(schema.get("format") or schema.get("type") or "any")
