"""Operations that are made from actions: their body is the record of options."""

from collections.abc import Callable
from typing import Any, cast

from django.http import HttpRequest
from ninja import Router, Status
from ninja.decorators import decorate_view

from actions.options import Options
from actions.services import ACTIONS, Actor
from api.authentication import may, scope_of
from api.idempotency import once
from corpus.access import Action

HERE = "/collections/{slug:name}"


def operation(
    router: Router,
    service: Callable[..., Any],
    method: str,
    path: str,
    *,
    response: Any,
    show: Callable[[Any], Any] = lambda result: result,
    find: Callable[[Any, int], Any] | None = None,
    status: int = 201,
) -> Any:
    """Add the operation of an action to a room's router; `path` begins after the collection's.

    Its body is the record of options, its name and description are the service's. `show`: what is answered of the
    result; `find`: what has the path's `number` in the collection, for an action on that.
    """
    about = ACTIONS[service]

    def act(request: HttpRequest, number: int | None, body: Options | None) -> Any:
        scope = scope_of(request)
        subject = scope.collection if find is None else find(scope.collection, number or 0)
        given = () if about.options is None else (body,)
        return Status(status, show(service(Actor.of(scope), subject, *given)))

    view = _signature(act, about.options, has_number=find is not None)
    view.__name__, view.__doc__ = service.__name__, service.__doc__
    add = router.api_operation(
        [method], HERE + path, auth=may(cast(Action, about.role), about.scope), response={status: response}
    )
    return add(decorate_view(once)(view))


def estimate_operation(
    router: Router,
    service: Callable[..., Any],
    estimate: Callable[..., Any],
    path: str,
    *,
    response: Any,
    show: Callable[[Any], Any] = lambda found: found,
) -> Any:
    """Add the operation that says what an action would come to, told the same options; nothing starts."""
    about = ACTIONS[service]

    def act(request: HttpRequest, number: int | None, body: Options | None) -> Any:
        scope = scope_of(request)
        return show(estimate(Actor.of(scope), scope.collection, body))

    view = _signature(act, about.options, has_number=False)
    view.__name__, view.__doc__ = estimate.__name__, estimate.__doc__
    return router.post(f"{HERE}{path}/estimate", auth=may(cast(Action, about.role)), response=response)(view)


def _signature(act: Callable[..., Any], record: Any, *, has_number: bool) -> Callable[..., Any]:
    """Return the view with the parameters that its path and its body have: ninja reads them from the signature."""
    if record is None:

        def control(request: HttpRequest, name: str, number: int) -> Any:
            return act(request, number, None)

        return control
    if has_number:

        def change(request: HttpRequest, name: str, number: int, body: record) -> Any:
            return act(request, number, body)

        return change

    def start(request: HttpRequest, name: str, body: record) -> Any:
        return act(request, None, body)

    return start
