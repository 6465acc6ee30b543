"""Pages of pushes to a hub: the form, what would be sent, progress and result, and the stored token."""

from pathlib import Path
from typing import Any, cast

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from actions.options import ActionForm, Options
from actions.pages import answer_action, form_of
from actions.services import Actor
from annotation.access.permissions import Scope, action
from annotation.models.hub import HubPush
from annotation.models.snapshots import Snapshot
from config.hub import services
from config.hub.options import TokenOptions
from config.hub.pushing import find_source, has_token, hub_address, list_sizes, token_name
from corpus.errors import BadInput
from corpus.models import Collection
from judges.models.keys import StoredKey
from judges.stored_keys import can_store

STOP_POLLING = 286  # HTMX stops polling at this status.
SHOWN = 10


@action("admin", "GET", "POST")
def push_to_hub(request: HttpRequest, scope: Scope, kind: str, number: int) -> HttpResponse:
    """Show the pushes of an export or a model and the form of another, which is confirmed before it starts."""
    source = services.PushSource(scope.collection, kind, number)
    try:
        row = find_source(*source)
    except BadInput:
        raise Http404(_("File not found.")) from None
    sizes, name = list_sizes(Path(row.folder)), scope.collection.name
    is_export = isinstance(row, Snapshot)
    page = reverse("exports", args=[name]) if is_export else reverse("training_model", args=[name, number])
    context = {"scope": scope, "kind": kind, "number": number, "is_export": is_export}
    context |= {"files": sizes, "bytes": sum(sizes.values()), "source_page": page}

    def show(form: ActionForm) -> HttpResponse:
        pushes = HubPush.objects.filter(**source._asdict()).order_by("-pk")[:SHOWN]
        goes_on = any(not push.is_over for push in pushes)
        values = {**context, "form": form, "pushes": pushes, "goes_on": goes_on}
        values["has_token"] = has_token(scope.collection)
        if request.headers.get("HX-Request"):
            return render(request, "hub/_pushes.html", values, status=200 if goes_on else STOP_POLLING)
        values["stored_token"] = StoredKey.objects.filter(name=token_name(scope.collection)).first()
        values |= {"token_form": form_of(services.store_token), "can_store": can_store(), "hub": hub_address()}
        return render(request, "hub/push.html", values, status=422 if form.is_bound else 200)

    def ask(actor: Actor, collection: Collection, options: Any) -> HubPush:
        return services.ask_push(actor, source, options)

    def estimate(actor: Actor, collection: Collection, options: Options) -> dict[str, Any]:
        return {**context, "hub": hub_address()}

    confirmation: dict[str, Any] = {"confirm": "hub/confirm.html", "estimate": estimate}
    form = form_of(services.ask_push, request)
    return answer_action(request, scope, ask, form, show, lambda push: request.path, **confirmation)


@action("admin", "POST")
def hub_token(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Store or delete the collection's token, and go back to the page of the push."""
    kind, number = request.POST.get("kind", ""), request.POST.get("number", "")
    try:
        if "delete" in request.POST:
            services.delete_token(Actor.of(scope), scope.collection)
            messages.success(request, _("The token was deleted."))
        elif (form := form_of(services.store_token, request)).is_valid():
            services.store_token(Actor.of(scope), scope.collection, cast(TokenOptions, form.options))
            messages.success(request, _("The token was stored."))
        else:
            messages.error(request, _("Enter a token."))
    except BadInput as error:
        messages.error(request, f"{error}.")
    page = {"dataset": "push_export", "model": "push_model"}.get(kind)
    back = page and number.isdecimal() and reverse(page, args=[scope.collection.name, int(number[:15])])
    return redirect(back or reverse("exports", args=[scope.collection.name]))
