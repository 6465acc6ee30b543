"""The form of a search endpoint: the fields of its kind, in groups, with the kind's own values as placeholders."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.forms import BoundField
from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from actions.options import ActionForm
from actions.pages import form_of
from benchmark.models import SearchEndpoint
from benchmark.search_endpoints.kinds import EndpointKind

ENGINE = ("name", "base_url", "index")
MAPPING = ("hits", "id", "title", "text", "score", "metadata", "error", "partial")
SIGN_IN = ("api_key_env", "user_env", "password_env", "bearer_env", "header_env")
LIMITS = ("headers", "requests_per_minute", "timeout_s")
# By group, the fields of an engine that is known, and those of any other that speaks JSON.
KNOWN_GROUPS: tuple[tuple[Promise, tuple[str, ...]], ...] = (
    (_("Engine"), (*ENGINE, "title", "text")),
    (_("Sign-in"), SIGN_IN),
    (_("Request"), ("parameters", "template", "path")),
    (_("Hits"), ("hits", "id", "score", "metadata", "error", "partial")),
    (_("Limits"), LIMITS),
)
PLAIN_GROUPS: tuple[tuple[Promise, tuple[str, ...]], ...] = (
    (_("Engine"), ("name", "base_url")),
    (_("Request"), ("method", "path", "body", "parameters", "index")),
    (_("Hits"), MAPPING),
    (_("Sign-in"), SIGN_IN[1:]),
    (_("Limits"), LIMITS),
)
KNOWN_FIELDS = tuple(name for _title, names in KNOWN_GROUPS for name in names)
PLAIN_FIELDS = tuple(name for _title, names in PLAIN_GROUPS for name in names)
# What the form of an engine that is not known shows as an example.
EXAMPLES = {
    "path": "/search",
    "body": '{"q": "{{query}}", "n": {{k}}}',
    "hits": "results[]",
    "id": "id",
    "title": "name",
    "text": ["name", "description"],
    "score": "score",
}
CODE = ("template", "body", "path", "parameters", "base_url", "index", *MAPPING, *SIGN_IN, "headers")


@dataclass(frozen=True, slots=True)
class FieldGroup:
    """Fields under one heading; a group that is not open is folded away until one of its fields is wrong."""

    title: Promise
    fields: list[BoundField]
    is_open: bool


def endpoint_form(
    service: Callable[..., Any], kind: EndpointKind, request: HttpRequest | None = None, **options: Any
) -> ActionForm:
    """Return the form of an endpoint of a kind."""
    is_plain = kind.name == "http"
    only = [
        name
        for name in (PLAIN_FIELDS if is_plain else KNOWN_FIELDS)
        if is_plain or name != "api_key_env" or kind.key_header
    ]
    fixed = {"kind": kind.name, **options.pop("fixed", {})}
    form = form_of(service, request, only=only, fixed=fixed, **options)
    own = kind.settings.model_dump(mode="json")
    placeholders = {**own, "base_url": kind.base_url, "template": kind.settings.body, **(EXAMPLES if is_plain else {})}
    needed = [name for name in kind.needs if name not in form.fields]
    placeholders["parameters"] = {**own["parameters"], **dict.fromkeys(needed, "...")}
    for name, field in form.fields.items():
        if name in CODE:
            field.widget.attrs |= {"class": "mono", "spellcheck": "false", "autocomplete": "off", "dir": "ltr"}
        if (example := to_lines(placeholders.get(name))) and name != "method":
            field.widget.attrs["placeholder"] = example.strip()
    if is_plain:
        form.fields["method"].initial = kind.settings.method
    for name in kind.needs:
        if name in form.fields:
            form.fields[name].required = True
    return form


def field_groups(form: ActionForm, kind: EndpointKind) -> list[FieldGroup]:
    """Return the fields of a form by group: what every endpoint of the kind needs is open."""
    is_plain = kind.name == "http"
    groups = []
    for number, (title, names) in enumerate(PLAIN_GROUPS if is_plain else KNOWN_GROUPS):
        fields = [form[name] for name in names if name in form.fields]
        needs_parameter = "parameters" in names and any(name not in form.fields for name in kind.needs)
        is_open = number < (3 if is_plain else 1) or needs_parameter or any(field.errors for field in fields)
        groups.append(FieldGroup(title, fields, is_open))
    return groups


def initial_options(endpoint: SearchEndpoint, kind: EndpointKind) -> dict[str, Any]:
    """Return the options of an endpoint as its form shows them; what is the kind's own is left blank."""
    own = kind.settings.model_dump(mode="json")
    settings = {**endpoint.settings, "template": endpoint.settings["body"]}
    values: dict[str, Any] = {}
    for name in PLAIN_FIELDS if kind.name == "http" else KNOWN_FIELDS:
        value, of_kind = settings.get(name), own.get("body" if name == "template" else name)
        if isinstance(value, Mapping) and isinstance(of_kind, Mapping):
            value = {key: part for key, part in value.items() if of_kind.get(key) != part}
        is_own = kind.name != "http" and value == of_kind
        values[name] = "" if is_own else value if isinstance(value, int | float) else to_lines(value)
    return values


def to_lines(value: Any) -> str:
    """Return an option as its form writes it: a list by lines, a table as lines `name = value`."""
    if isinstance(value, Mapping):
        texts = {name: part if isinstance(part, str) else json.dumps(part) for name, part in value.items()}
        return "\n".join(f"{name} = {text}" for name, text in texts.items())
    if isinstance(value, list):
        return "\n".join(map(str, value))
    return "" if value is None else str(value)
