"""Options of a search endpoint: the keys of an [[endpoint]] table, and what is stored of them."""

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from pydantic import BeforeValidator, field_validator, model_validator

from actions.options import Options, option
from benchmark.models import RUN_NAME
from benchmark.search_endpoints.hits import HitMapping
from benchmark.search_endpoints.kinds import KINDS, EndpointKind, KindName
from benchmark.search_endpoints.templates import render_body, render_path
from corpus.errors import BadInput, BadOption
from corpus.url_fetch.addresses import PORTS, bracket_host, check_url, is_number
from corpus.url_fetch.problems import NoPage
from judges.presets import PRESETS

# Headers whose values are secrets, by which they are recognised where somebody enters one as a plain header.
CREDENTIALS = re.compile(
    r"(?i)(.*[-_])?(authorization|cookie|token|secret|password|key[-_]?id|(api|access|admin|auth|secret)[-_]?key)"
)
# Names of values that a path or a body has as they are: `?api_key=abc`, `"api_key": "abc"`.
_VALUE_NAMES = re.compile(r"""[?&]([^=&{}]+)=(?!\{\{)|"([^"]+)"\s*:\s*"(?!\{\{)""")
RESERVED = ("query", "words", "k", "index")  # Names that a request gives values to by itself.
MOST_WORDS = 50  # Of a query, as the value `words` of a template.
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_NAMED = re.compile(r"\s*([^\s=:]+)\s*[=:]\s*(.*?)\s*")
# Variables that are this instance's own or other services' keys, which no search engine may receive.
_OWN_VARIABLE = re.compile(
    r"(QUORUM|DJANGO|POSTGRES|PG|REDIS|EMAIL|CELERY|OPENAI|ANTHROPIC|GOOGLE|GEMINI|AZURE|AWS|HF|HUGGING|COHERE|JINA"
    r"|VOYAGE|WANDB)_?.*|SECRET_KEY|DATABASE_URL|(.*_)?DSN"
)
_PROVIDER_KEYS = {preset.key_env for preset in PRESETS.values()}


def read_lines(value: Any) -> Any:
    """Return the lines of a form's field as a list; other values unchanged."""
    return [line.strip() for line in value.splitlines() if line.strip()] if isinstance(value, str) else value


def read_named_lines(value: Any) -> Any:
    """Return lines `name = value` of a form's field as a table; other values unchanged. Raises ValueError."""
    if not isinstance(value, str):
        return value
    table = {}
    for line in read_lines(value):
        match = _NAMED.fullmatch(line)
        if match is None:
            raise ValueError(gettext("Write name = value on each line"))
        table[match[1]] = match[2]
    return table


def read_parameters(value: Any) -> Any:
    """Return lines `name = value` as a table whose values are JSON where they can be read as such, else texts."""
    table = read_named_lines(value)
    if not isinstance(value, str):
        return table

    def parse(text: str) -> Any:
        try:
            return json.loads(text)
        except ValueError:
            return text

    return {name: parse(text) for name, text in table.items()}


Lines = Annotated[list[str], BeforeValidator(read_lines)]
NamedLines = Annotated[dict[str, str], BeforeValidator(read_named_lines)]
Parameters = Annotated[dict[str, Any], BeforeValidator(read_parameters)]


class EndpointOptions(Options):
    """A search endpoint: where it is, how it is asked, how its hits are read, and by which variables it signs in."""

    name: str = option(_("Name"), _("Its runs show this name."), at_most=100)
    kind: KindName = option(_("Kind"), choices={name: kind.title for name, kind in KINDS.items()})
    base_url: str = option(
        _("Base URL"),
        _("A private address must be in QUORUM_SEARCH_HOSTS, as host:port."),
        at_most=500,
    )
    index: str = option(_("Index or collection"), default="", at_most=500)
    template: str = option(
        _("Request template"),
        _("JSON with {{query}}, {{k}} and parameters. Leave blank for the engine's usual request."),
        default="",
        at_most=50_000,
        long=True,
    )
    parameters: Parameters = option(
        _("Parameters"), _("One per line: name = value."), default={}, initial="", at_most=50, long=True
    )
    method: Literal["GET", "POST"] | None = option(_("Method"), default=None)
    path: str = option(
        _("Path"), _("Begins with a slash. Leave blank for the engine's usual path."), default="", at_most=2000
    )
    body: str = option(_("Body"), _("JSON with {{query}} and {{k}}."), default="", at_most=50_000, long=True)
    hits: str = option(_("Hits"), _("JMESPath of the list of hits."), default="", at_most=1000)
    id: str = option(_("Id"), _("JMESPath within a hit."), default="", at_most=1000)
    title: str = option(_("Title"), _("JMESPath within a hit; may be blank."), default="", at_most=1000)
    text: Lines = option(
        _("Text"),
        _("JMESPath within a hit, one per line. The texts are joined, and HTML becomes text."),
        default=[],
        initial="",
        at_most=50,
        long=True,
    )
    score: str = option(
        _("Score"), _("JMESPath within a hit. Leave blank for the order alone."), default="", at_most=1000
    )
    metadata: NamedLines = option(
        _("Metadata"),
        _("One per line: name = JMESPath within a hit."),
        default={},
        initial="",
        at_most=50,
        long=True,
    )
    error: str = option(_("Error"), _("JMESPath of the error in an answer with status 200."), default="", at_most=1000)
    partial: str = option(
        _("Partial answer"),
        _("JMESPath that is true where the engine did not search all documents, as in too little time."),
        default="",
        at_most=1000,
    )
    user_env: str = option(_("User variable"), _("Name of the environment variable with the user's name."), default="")
    password_env: str = option(
        _("Password variable"), _("Name of the environment variable with the password, never the password."), default=""
    )
    bearer_env: str = option(
        _("Bearer token variable"), _("Name of the environment variable with the token, never the token."), default=""
    )
    api_key_env: str = option(
        _("API key variable"),
        _("Name of the environment variable with the key. It is sent as the engine expects."),
        default="",
    )
    header_env: NamedLines = option(
        _("Headers from variables"),
        _("One per line: header = name of an environment variable."),
        default={},
        initial="",
        at_most=20,
        long=True,
    )
    headers: NamedLines = option(
        _("Other headers"),
        _("One per line: header = value. No keys."),
        default={},
        initial="",
        at_most=20,
        long=True,
    )
    requests_per_minute: int | None = option(_("Requests per minute"), default=None, ge=1, le=1_000_000)
    timeout_s: float = option(_("Time limit in seconds"), default=10.0, ge=0.1, le=300)

    @field_validator("name")
    @classmethod
    def _plain_name(cls, name: str) -> str:
        if RUN_NAME.regex.fullmatch(name) is None:  # type: ignore[union-attr]
            raise BadOption("name", gettext("Use letters, digits, . _ + and - (at most 100)."))
        return name

    @field_validator("base_url")
    @classmethod
    def _plain_address(cls, address: str) -> str:
        """Return the address without the slash at its end. Raises BadOption unless searches may be sent there."""
        address = address.strip().rstrip("/")
        if "?" in address or "#" in address:
            raise BadOption("base_url", gettext("Write the part after ? into the path."))
        try:
            check_url(address, allowed=settings.SEARCH_HOSTS, any_port=True)
        except NoPage as problem:
            if is_number(urlsplit(address).hostname or ""):
                raise BadOption("base_url", gettext("Write the IP address as four numbers, or a name.")) from None
            if problem.code == "not-public":
                words = gettext(
                    "%(host)s is on a private network. Set QUORUM_SEARCH_HOSTS=%(host)s on the server to allow it."
                )
                raise BadOption("base_url", words % {"host": address_key(address)}) from None
            raise BadOption("base_url", problem) from None
        return address

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        self.complete_settings()
        return self

    @property
    def endpoint_kind(self) -> EndpointKind:
        """The kind of search engine."""
        return KINDS[self.kind]

    def complete_settings(self) -> dict[str, Any]:
        """Return what is stored: all options but name and kind, with the kind's own in place of those left blank.

        Runs take a copy, so that they need no kinds. Raises BadOption for what does not fit together.
        """
        kind, plain = self.endpoint_kind, self.kind == "http"
        if not plain:
            for name in ("method", "body"):
                if getattr(self, name):
                    words = gettext("%(engine)s has its own. Leave it out, or write a template.")
                    raise BadOption(name, words % {"engine": kind.title})
        elif self.template:
            raise BadOption("template", gettext("The kind http has a body instead. Write the template there."))
        values = self.model_dump(mode="json", exclude={"name", "kind", "template"})
        for name, own in kind.settings.model_dump(mode="json").items():
            if name in ("parameters", "headers"):
                values[name] = {**own, **values[name]}
            elif values[name] in (None, "", []):
                values[name] = own
        if self.template:
            values |= {"method": "POST", "body": self.template}
        values |= {"key_header": kind.key_header, "key_prefix": kind.key_prefix, "max_k": kind.max_k}
        for name in kind.needs:
            if not values.get(name) and not values["parameters"].get(name):
                option_name = name if name in type(self).model_fields else "parameters"
                words = gettext("%(engine)s needs %(name)s.")
                raise BadOption(option_name, words % {"engine": kind.title, "name": name})
        constants = {**values["parameters"], "index": self.index}
        values["headers"] = {name: render_path(text, constants) for name, text in values["headers"].items()}
        self._check_request(values)
        for name in ("hits", "id", "text"):
            if not values[name]:
                raise BadOption(name, gettext("Write the JMESPath expression that finds it."))
        HitMapping(values)
        self._check_headers(values)
        return values

    def _check_request(self, values: dict[str, Any]) -> None:
        """Raise BadOption where path or body do not render, or do not contain the query."""
        body = "template" if self.template else "body" if self.kind == "http" else "path"
        if names := sorted(self.parameters.keys() & {*RESERVED}):
            raise BadOption("parameters", gettext("%(name)s is set for each request.") % {"name": names[0]})
        for name in self.parameters:
            _refuse_key("parameters", name)
        for name, text in (("path", values["path"]), (body, values["body"])):
            for in_path, in_body in _VALUE_NAMES.findall(text):
                _refuse_key(name, in_path or in_body)
        if not values["path"].startswith("/") or re.search(r"[\s#]", values["path"]):
            raise BadOption("path", gettext("Begin the path with a slash, and leave out spaces and #."))
        if values["method"] == "GET" and values["body"]:
            raise BadOption(body, gettext("GET sends no body. Use POST, or write the query into the path."))
        requests = []
        for query in ('a "b" c', "d"):
            try:
                path = render_path(values["path"], request_values(values, query, 10))
            except BadInput as error:
                raise BadOption("path", f"{error}.") from None
            try:
                text = render_body(values["body"], request_values(values, query, 10)) if values["body"] else ""
            except BadInput as error:
                raise BadOption(body, f"{error}.") from None
            requests.append((path, text))
        if requests[0] == requests[1]:
            name = body if values["body"] else "path"
            raise BadOption(name, gettext("Write {{query}} where the query belongs."))

    def _check_headers(self, values: dict[str, Any]) -> None:
        """Raise BadOption for headers that are none, for values that look like keys, and for more than one sign-in."""
        for option_name in ("headers", "header_env"):
            for header, text in values[option_name].items():
                if not _HEADER.fullmatch(header) or not (text.isascii() and text.isprintable() and len(text) <= 1000):
                    words = gettext("“%(name)s” is not a header name with a value of plain letters.")
                    raise BadOption(option_name, words % {"name": header})
                if header.lower() in ("host", "content-length", "transfer-encoding", "connection"):
                    raise BadOption(option_name, gettext("%(name)s is set for each request.") % {"name": header})
        for header in values["headers"]:
            _refuse_key("headers", header)
        variables = {name: values[name] for name in ("user_env", "password_env", "bearer_env", "api_key_env")}
        for name, variable in [
            *variables.items(),
            *(("header_env", variable) for variable in self.header_env.values()),
        ]:
            if variable and not _VARIABLE.fullmatch(variable):
                raise BadOption(name, gettext("Name an environment variable, never the key itself."))
            if variable and (_OWN_VARIABLE.fullmatch(variable.upper()) or variable.upper() in _PROVIDER_KEYS):
                words = gettext("%(name)s belongs to Quorum or another service. Use a variable of the engine's own.")
                raise BadOption(name, words % {"name": variable})
        if bool(self.user_env) != bool(self.password_env):
            missing = "password_env" if self.user_env else "user_env"
            raise BadOption(missing, gettext("Name the variables of both user and password."))
        if self.api_key_env and not values["key_header"]:
            raise BadOption(
                "api_key_env", gettext("This kind has no header for keys. Name header and variable in header_env.")
            )
        headers = [name for name, is_used in (("user_env", self.user_env), ("bearer_env", self.bearer_env)) if is_used]
        headers += ["api_key_env"] if self.api_key_env and values["key_header"] == "Authorization" else []
        headers += ["header_env"] if any(header.lower() == "authorization" for header in self.header_env) else []
        if len(headers) > 1:
            raise BadOption(headers[-1], gettext("Use only one of %(names)s.") % {"names": ", ".join(headers)})


def _refuse_key(option: str, name: str) -> None:
    """Raise BadOption for the name of a value that is a key: keys are not stored."""
    if CREDENTIALS.fullmatch(name):
        words = gettext("%(name)s is a key. Name an environment variable in header_env instead.")
        raise BadOption(option, words % {"name": name})


def request_values(settings: Mapping[str, Any], query: str, k: int) -> dict[str, Any]:
    """Return the values of a request's template."""
    words = list(dict.fromkeys(re.findall(r"\w+", query)))[:MOST_WORDS]
    return {**settings["parameters"], "index": settings["index"], "query": query, "words": words, "k": k}


def address_key(base_url: str) -> str:
    """Return host:port of an address, as QUORUM_SEARCH_HOSTS lists it."""
    parts = urlsplit(base_url)
    return f"{bracket_host(parts.hostname or '')}:{parts.port or PORTS[parts.scheme]}".lower()
