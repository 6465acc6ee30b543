"""The decorator for services of actions: permission, one transaction, one entry in the audit log."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Literal, ParamSpec, Protocol, TypeVar, get_type_hints

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

from actions.options import Options

R = TypeVar("R")
P = ParamSpec("P")
TokenScope = Literal["judge", "manage"]
MANAGE: TokenScope = "manage"


class ActorScope(Protocol):
    """The scope of an authorised request: its person and their permissions."""

    @property
    def user(self) -> Any: ...

    def may(self, action: Any, /) -> bool: ...


@dataclass(frozen=True, slots=True)
class Actor:
    """Who carries out an action: a person by page or API, or the shell (no scope)."""

    name: str
    scope: ActorScope | None = None
    details: Mapping[str, Any] = field(default_factory=dict)  # Added to entries of the audit log.

    @classmethod
    def of(cls, scope: ActorScope) -> "Actor":
        """Return the actor of a request."""
        return cls(scope.user.username, scope)

    @property
    def user(self) -> Any:
        """The person; None for the shell."""
        return self.scope and self.scope.user

    def record(self, act: str, collection: Any, **details: Any) -> None:
        """Append an entry to the audit log, in the transaction of the act."""
        import_string(settings.AUDIT)(self.scope, act, collection, **self.details, **details)

    def check(self, role: str) -> None:
        """Raise PermissionDenied where the person may not act in this role."""
        if self.scope is not None and not self.scope.may(role):
            raise PermissionDenied(_("Your role here does not allow this."))


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The result of a service that changed nothing, so that the audit log gets no entry."""

    result: Any


@dataclass(frozen=True, slots=True)
class Action:
    """An action: its name in the audit log, the permission that it needs, and its options."""

    name: str | Callable[[Any], str]
    role: str
    scope: TokenScope
    options: type[Options] | None
    key: str
    noted: Callable[..., Mapping[str, Any]] | None

    def details(self, options: Options | None, result: Any) -> dict[str, Any]:
        """Return the details for the audit log: the options, and the number of the result."""
        number = {self.key: getattr(result, "number", None) or getattr(result, "pk", result)} if self.key else {}
        if self.noted is not None:
            return {**number, **self.noted(options, result)}
        return {**(options.noted() if options else {}), **number}


ACTIONS: dict[Callable[..., Any], Action] = {}


def action(
    name: str | Callable[[Any], str],
    *,
    role: str = "admin",
    scope: TokenScope = MANAGE,
    key: str = "",
    noted: Callable[..., Mapping[str, Any]] | None = None,
    record: type[Options] | None = None,
    after: Callable[[Any], None] | None = None,
    retry: Callable[[Callable[[], Any]], Any] = lambda once: once(),
) -> Callable[[Callable[P, R | Unchanged]], Callable[P, R]]:
    """Make a function `(actor, subject, options)` the service of an action.

    `name`: its name in the audit log, or a function of the subject that returns it; `role`: the
    permission, as for pages; `scope`: the scope that a token needs; `key`: the key of the result's number
    in the log; `noted`: returns the log's details where these are not the options; `record`: the record of
    options, where the signature does not name it; `after`: called with the result after the transaction;
    `retry`: calls the transaction, and again where it conflicted with another one.
    """

    def decorate(service: Callable[P, R | Unchanged]) -> Callable[P, R]:
        hints = get_type_hints(service)
        about = Action(name, role, scope, record or hints.get("options"), key, noted)

        @wraps(service)
        def act(*args: Any, **kwargs: Any) -> Any:
            actor, subject, options = args[0], args[1], args[2] if len(args) > 2 else None
            actor.check(role)

            def once() -> Any:
                with transaction.atomic():
                    result = service(*args, **kwargs)
                    if isinstance(result, Unchanged):
                        return result
                    collection = getattr(subject, "collection", subject)
                    act_name = name if isinstance(name, str) else name(subject)
                    actor.record(act_name, collection, **about.details(options, result))
                return result

            result = retry(once)
            if isinstance(result, Unchanged):
                return result.result
            if after is not None:
                after(result)
            return result

        ACTIONS[act] = about
        return act

    return decorate
