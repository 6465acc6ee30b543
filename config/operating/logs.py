"""Form of log lines: one JSON object a line, or text; each with what the request, task, job or pair has bound to it.

No line holds a text: only fields of FIELDS are taken from a record, and of an error its places in
the code and the first line of what it says, because a database or a parser quotes what it was given
in the lines below that.
"""

import logging
import os
import traceback
from contextvars import ContextVar
from typing import Any

import structlog
from structlog.types import EventDict, ExcInfo, Processor

from embedded.refuse import refuse

FORMS = ("json", "text")
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
# Only these get louder than warnings: below that, the SDKs of providers write prompts and answers down.
OURS = (
    *("annotation", "api", "benchmark", "config", "corpus", "embedded", "jobs", "judges", "training"),
    "django_structlog",  # requests and tasks
)
# What these say of a failed request or task, django_structlog says with its id.
SAID_TWICE = ("django.request", "celery.app.trace")
# What a line may say beside its event (`logger.info(..., extra={...})`).
FIELDS = (
    *("method", "path", "status", "milliseconds", "duration_ms"),
    *("job", "campaign", "pair", "attempt", "judge", "role", "round", "number", "outcome", "state", "label", "reason"),
)
LONGEST = 2_000  # Characters of an event.
LONGEST_ERROR = 300
# Parts of an address that open a door: of invitations and of forgotten passwords.
SECRETS = ("token", "key", "uidb36")
MASK = "***"

# Lines say who asks and about which collection, as soon as the request knows.
current_request: ContextVar[Any] = ContextVar("quorum_request", default=None)


def logging_settings(form: str, level: str) -> dict[str, Any]:
    """Return LOGGING. `level` "": INFO as JSON, WARNING as text. A wrong value stops."""
    if form not in FORMS:
        refuse(f"QUORUM_LOG={form!r} is none of {', '.join(FORMS)}.")
    ours = level.upper() or ("INFO" if form == "json" else "WARNING")
    if ours not in LEVELS:
        refuse(f"QUORUM_LOG_LEVEL={level!r} is none of {', '.join(LEVELS)}.")
    others = max(ours, "WARNING", key=LEVELS.index)
    # Whoever logs by structlog itself gets to the same handler, and past the same list of fields.
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, structlog.stdlib.render_to_log_kwargs],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": "config.operating.logs.make_formatter", "form": form}},
        "filters": {"away": {"()": "config.away.InOneLine"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["away"]}},
        "root": {"handlers": ["stderr"], "level": others},
        "loggers": {name: {"level": ours} for name in OURS} | {name: {"level": "CRITICAL"} for name in SAID_TWICE},
    }


class ThreadsAreMeant(logging.Filter):
    """Drop granian's advice to start fewer threads: nearly all of ours wait (docs/adr/0074)."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith("Configuration allows spawning up to")


def make_formatter(form: str = "") -> logging.Formatter:
    """Return what makes a line of a record. `form` "": what QUORUM_LOG says; the web server's own logging asks so."""
    form = form or os.environ.get("QUORUM_LOG", "text")
    last: Processor = structlog.processors.JSONRenderer()
    if form == "text":
        last = structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0, pad_level=False)
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.contextvars.merge_contextvars,
            add_request_facts,
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.stdlib.ExtraAdder(FIELDS),
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            cut_event,
            structlog.processors.ExceptionRenderer(describe_error),
        ],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, last],
    )


def add_request_facts(logger: Any, method: str, event: EventDict) -> EventDict:
    """Add the user's number and the collection's name, without asking the database for them."""
    request = current_request.get()
    if request is None:
        return event
    scope = getattr(request, "scope", None)
    # Not `request.user`, which would read the session and the account where nobody has asked for them.
    user = getattr(scope, "user", None) or getattr(request, "_cached_user", None)
    if (number := getattr(user, "pk", None)) is not None:
        event.setdefault("user", number)
    if (collection := getattr(scope, "collection", None)) is not None:
        event.setdefault("collection", collection.name)
    # Django names the address of what it refuses.
    event["event"] = str(event["event"]).replace(request.path, masked_path(request))
    return event


def masked_path(request: Any) -> str:
    """Return a request's address without query and secrets (invitations' tokens)."""
    from django.urls import Resolver404, resolve

    path = str(request.path)
    match = getattr(request, "resolver_match", None)
    if match is None:  # refused before anybody looked the address up
        try:
            match = resolve(request.path_info)
        except Resolver404:
            return path
    for name in SECRETS:
        if value := str(match.kwargs.get(name) or ""):
            path = path.replace(value, MASK)
    return path


def first_line(error: BaseException) -> str:
    """Return an error's first line; a database or parser quotes values below it."""
    return (str(error).splitlines() or [""])[0][:LONGEST_ERROR]


def describe_error(exc_info: ExcInfo) -> str:
    """Return where an error and its causes came from and the first line of each."""
    parts: list[str] = []
    seen: set[int] = set()
    found: BaseException | None = exc_info[1]
    while found is not None and id(found) not in seen:
        # Causes may form a circle, as when an error is raised from one that it caused.
        seen.add(id(found))
        places = "".join(traceback.format_tb(found.__traceback__))
        parts.append(f"{places}{type(found).__name__}: {first_line(found)}")
        found = found.__cause__ or (None if found.__suppress_context__ else found.__context__)
    return "\n".join(reversed(parts))


def cut_event(logger: Any, method: str, event: EventDict) -> EventDict:
    """Cut the event, and an error that stands in it (Celery's), to the first line: what follows quotes values."""
    said = str(event["event"])
    info = event.get("exc_info")
    if isinstance(info, tuple) and info[1] is not None:
        for whole in (repr(info[1]), str(info[1])):
            said = said.replace(whole, first_line(info[1])) if whole else said
    event["event"] = (said.strip().splitlines() or [""])[0][:LONGEST]
    return event
