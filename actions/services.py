"""Services of actions: permission, one transaction, one entry of the audit log, then the body."""

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
    """What a page or an operation has proved: who asks, and what they may."""

    @property
    def user(self) -> Any: ...

    def may(self, action: Any, /) -> bool: ...


@dataclass(frozen=True, slots=True)
class Actor:
    """Who does something: a person by page or program, or (without a scope) the shell."""

    name: str
    scope: ActorScope | None = None
    details: Mapping[str, Any] = field(default_factory=dict)  # What the audit log keeps of a command.

    @classmethod
    def of(cls, scope: ActorScope) -> "Actor":
        """Return the actor of a request."""
        return cls(scope.user.username, scope)

    @property
    def user(self) -> Any:
        """The person; None for the shell."""
        return self.scope and self.scope.user

    def record(self, act: str, collection: Any, **details: Any) -> None:
        """Append an act to the audit log, in the transaction of the act."""
        import_string(settings.AUDIT)(self.scope, act, collection, **self.details, **details)

    def check(self, role: str) -> None:
        """Raise PermissionDenied for who may not."""
        if self.scope is not None and not self.scope.may(role):
            raise PermissionDenied(_("Your role here does not allow this."))


@dataclass(frozen=True, slots=True)
class Unchanged:
    """A service's answer to a repeated request: its result, without an entry in the audit log."""

    result: Any


@dataclass(frozen=True, slots=True)
class Action:
    """What an action is called in the audit log, who may do it, and what it can be told."""

    name: str | Callable[[Any], str]
    role: str
    scope: TokenScope
    options: type[Options] | None
    key: str
    noted: Callable[..., Mapping[str, Any]] | None

    def details(self, options: Options | None, result: Any) -> dict[str, Any]:
        """Return what the audit log keeps: the options, and the number of what was made."""
        kept = {self.key: getattr(result, "number", None) or getattr(result, "pk", result)} if self.key else {}
        if self.noted is not None:
            return {**kept, **self.noted(options, result)}
        return {**(options.noted() if options else {}), **kept}


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

    `name`: its word in the audit log, or how that is called of the subject; `role`: who may, as
    pages say it; `scope`: what a token needs; `key`: what the log calls the result, whose number it
    keeps; `noted`: what it keeps where that is not the options; `record`: of the options, where the
    function's signature does not name it; `after`: what is done with the result when the
    transaction has ended; `retry`: what calls the transaction once more where another one was in
    its way.
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
                    word = name if isinstance(name, str) else name(subject)
                    actor.record(word, collection, **about.details(options, result))
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
