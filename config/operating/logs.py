"""Log lines, as JSON objects or as text, with the context that a request, task, job or pair has bound.

No line contains users' texts: of a record only FIELDS are used, and of an error its traceback and the first line of its
message, because databases and parsers quote values in the lines below it.
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
# Only these log below the level of warnings, where the SDKs of providers log prompts and answers.
OURS = (
    *("annotation", "api", "benchmark", "config", "corpus", "embedded", "jobs", "judges", "training"),
    "django_structlog",  # Requests and tasks.
)
# django_structlog also logs the failed requests and tasks of these loggers, with an id.
DUPLICATES = ("django.request", "celery.app.trace")
# Fields of a line besides its event (`logger.info(..., extra={...})`).
FIELDS = (
    *("method", "path", "status", "milliseconds", "duration_ms"),
    *("job", "campaign", "pair", "attempt", "judge", "role", "round", "number", "outcome", "state", "label", "reason"),
)
LONGEST = 2_000  # Characters of an event.
LONGEST_ERROR = 300
# Parameters of addresses that give access: those of invitations and of password resets.
SECRETS = ("token", "key", "uidb36")
MASK = "***"

# Lines include the user and the collection as soon as the request has determined them.
current_request: ContextVar[Any] = ContextVar("quorum_request", default=None)


def logging_settings(form: str, level: str) -> dict[str, Any]:
    """Return Django's LOGGING. `level`: "" means INFO as JSON and WARNING as text. Wrong values end the program."""
    if form not in FORMS:
        refuse(f"QUORUM_LOG={form!r} is none of {', '.join(FORMS)}.")
    ours = level.upper() or ("INFO" if form == "json" else "WARNING")
    if ours not in LEVELS:
        refuse(f"QUORUM_LOG_LEVEL={level!r} is none of {', '.join(LEVELS)}.")
    others = max(ours, "WARNING", key=LEVELS.index)
    # Records from structlog itself use the same handler and the same list of fields.
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
        "filters": {"unavailability": {"()": "config.unavailability.TracebackFilter"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["unavailability"]}},
        "root": {"handlers": ["stderr"], "level": others},
        "loggers": {name: {"level": ours} for name in OURS} | {name: {"level": "CRITICAL"} for name in DUPLICATES},
    }


class ThreadsAreMeant(logging.Filter):
    """Drops granian's advice to start fewer threads, since nearly all of ours are waiting (docs/adr/0074)."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith("Configuration allows spawning up to")


def make_formatter(form: str = "") -> logging.Formatter:
    """Return the formatter of records. `form`: "" for QUORUM_LOG, as the web server's own logging needs."""
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
    """Add the user's id and the collection's name, if they are known without a query."""
    request = current_request.get()
    if request is None:
        return event
    scope = getattr(request, "scope", None)
    # Not `request.user`, which would load the session and the account.
    user = getattr(scope, "user", None) or getattr(request, "_cached_user", None)
    if (number := getattr(user, "pk", None)) is not None:
        event.setdefault("user", number)
    if (collection := getattr(scope, "collection", None)) is not None:
        event.setdefault("collection", collection.name)
    # Django includes the address of a refused request in the event.
    event["event"] = str(event["event"]).replace(request.path, masked_path(request))
    return event


def masked_path(request: Any) -> str:
    """Return a request's address without the query and without secrets (like invitations' tokens)."""
    from django.urls import Resolver404, resolve

    path = str(request.path)
    match = getattr(request, "resolver_match", None)
    if match is None:  # The request was refused before its address was resolved.
        try:
            match = resolve(request.path_info)
        except Resolver404:
            return path
    for name in SECRETS:
        if value := str(match.kwargs.get(name) or ""):
            path = path.replace(value, MASK)
    return path


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message; databases and parsers quote values below it."""
    return (str(error).splitlines() or [""])[0][:LONGEST_ERROR]


def describe_error(exc_info: ExcInfo) -> str:
    """Return the tracebacks of an error and its causes, each with the first line of its message."""
    parts: list[str] = []
    seen_ids: set[int] = set()
    error: BaseException | None = exc_info[1]
    while error is not None and id(error) not in seen_ids:
        # Causes may form a circle, as when an error is raised from one that it caused.
        seen_ids.add(id(error))
        places = "".join(traceback.format_tb(error.__traceback__))
        parts.append(f"{places}{type(error).__name__}: {first_line(error)}")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n".join(reversed(parts))


def cut_event(logger: Any, method: str, event: EventDict) -> EventDict:
    """Cut the event, and an error within it (as in Celery's), to the first line, since further lines quote values."""
    text = str(event["event"])
    info = event.get("exc_info")
    if isinstance(info, tuple) and info[1] is not None:
        for quoted_error in (repr(info[1]), str(info[1])):
            text = text.replace(quoted_error, first_line(info[1])) if quoted_error else text
    event["event"] = (text.strip().splitlines() or [""])[0][:LONGEST]
    return event
