"""Operations made from actions: the body of each is the action's record of options."""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from django.http import HttpRequest
from ninja import Router, Status
from ninja.decorators import decorate_view
from pydantic import create_model

from actions.options import Options
from actions.services import ACTIONS, Actor
from api.authentication import may, scope_of
from api.idempotency import once
from corpus.access import Action

COLLECTION_PATH = "/collections/{slug:name}"


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
    one_view: bool = False,
) -> Any:
    """Add the operation of an action to a room's router; `path` begins after the collection's.

    Its body is the record of options; its name and description are the service's. `show` turns the
    result into the response; `find` returns the object of the path's `number`, for an action on it;
    `one_view`: the action sees one snapshot of the database.
    """
    about = ACTIONS[service]

    def act(request: HttpRequest, number: int | None, body: Options | None) -> Any:
        scope = scope_of(request)
        subject = scope.collection if find is None else find(scope.collection, number or 0)
        arguments = () if about.options is None else (_read(about.options, body),)
        return Status(status, show(service(Actor.of(scope), subject, *arguments)))

    view = _signature(act, about.options, has_number=find is not None)
    view.__name__, view.__doc__ = service.__name__, service.__doc__
    add = router.api_operation(
        [method], COLLECTION_PATH + path, auth=may(cast(Action, about.role), about.scope), response={status: response}
    )
    return add(decorate_view(partial(once, one_view=one_view))(view))


def estimate_operation(
    router: Router,
    service: Callable[..., Any],
    estimate: Callable[..., Any],
    path: str,
    *,
    response: Any,
    show: Callable[[Any], Any] = lambda result: result,
) -> Any:
    """Add the operation that estimates an action with the same options, without starting it."""
    about = ACTIONS[service]

    def act(request: HttpRequest, number: int | None, body: Options | None) -> Any:
        scope = scope_of(request)
        return show(estimate(Actor.of(scope), scope.collection, _read(about.options, body)))

    view = _signature(act, about.options, has_number=False)
    view.__name__, view.__doc__ = estimate.__name__, estimate.__doc__
    return router.post(f"{COLLECTION_PATH}{path}/estimate", auth=may(cast(Action, about.role)), response=response)(view)


def _read(record: Any, body: Any) -> Options:
    options: Options = body if isinstance(body, record) else record.read(body.model_dump(exclude_unset=True))
    return options


def _signature(act: Callable[..., Any], record: Any, *, has_number: bool) -> Callable[..., Any]:
    """Return a view with the parameters of its path and body, which ninja reads from the signature."""
    names = record.names("operation") if record else []
    # Without the options that operations leave out.
    if record and len(names) < len(record.model_fields):
        fields: dict[str, Any] = {
            name: (record.model_fields[name].annotation, record.model_fields[name]) for name in names
        }
        record = create_model(f"{record.__name__}Body", __base__=Options, __doc__=record.__doc__, **fields)
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
