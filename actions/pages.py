"""Pages of actions: the form, an estimate to confirm where there is one, and the start."""

from collections.abc import Callable, Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from actions.errors import BadInput
from actions.options import ActionForm, Options, show_refusal
from actions.services import ACTIONS, Actor

Show = Callable[[ActionForm], HttpResponse]


def form_of(service: Callable[..., Any], request: HttpRequest | None = None, **form_options: Any) -> ActionForm:
    """Return the form of an action, filled in by a POST. `form_options`: further arguments of ActionForm."""
    record = ACTIONS[service].options
    assert record is not None, f"{service.__name__} takes no options"
    data = (request.POST, request.FILES) if request is not None and request.method == "POST" else ()
    return ActionForm(record, *data, **form_options)


def answer_action(
    request: HttpRequest,
    scope: Any,
    service: Callable[..., Any],
    form: ActionForm,
    show: Show,
    done: Callable[[Any], str],
    *,
    confirm: str = "",
    estimate: Callable[[Actor, Any, Options], Mapping[str, Any]] | None = None,
) -> HttpResponse:
    """Show the page with its form, or carry out the action and redirect to its result.

    `show` renders the page; `done` returns the URL of the result. `confirm`: the template of a page
    that shows the `estimate` before the action.
    """
    if not form.is_bound or not form.is_valid():
        return show(form)
    try:
        if estimate is not None and "confirm" not in request.POST:
            # The filled fields, repeated by the form that confirms the estimate.
            hidden = [(name, value) for name in form.fields for value in request.POST.getlist(name) if value]
            context = {"scope": scope, "form": form, "hidden": hidden}
            return render(request, confirm, {**context, **estimate(Actor.of(scope), scope.collection, form.options)})
        return redirect(done(service(Actor.of(scope), scope.collection, form.options)))
    except BadInput as error:
        show_refusal(form, error)
    return show(form)
