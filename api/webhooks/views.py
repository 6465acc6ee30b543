"""Pages of webhooks: the list, one with its log, a delivery, and actions on them."""

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from annotation.access.permissions import Scope, action
from api.models import Webhook, WebhookDelivery
from api.webhooks import services
from api.webhooks.addresses import LONGEST
from api.webhooks.delivering import build_body
from api.webhooks.selectors import deliveries_of, find_webhook, list_webhooks, read_delivery_page
from corpus.errors import BadInput
from jobs.workers import has_workers

# HTMX stops polling at this status.
STOP_POLLING = 286
State = WebhookDelivery.DeliveryState


class WebhookForm(forms.Form):
    """The form of a webhook: its receiver's address, a description and its events."""

    url = forms.CharField(
        max_length=LONGEST,
        label=gettext_lazy("Address of the receiver"),
        help_text=gettext_lazy("It begins with https://. Redirects are not followed."),
        widget=forms.TextInput(attrs={"inputmode": "url", "autocomplete": "off", "spellcheck": "false"}),
    )
    description = forms.CharField(
        max_length=200,
        required=False,
        label=gettext_lazy("Description"),
        help_text=gettext_lazy("What it is for; shown in this list."),
    )
    events = forms.MultipleChoiceField(
        choices=Webhook.Event.choices, label=gettext_lazy("Events"), widget=forms.CheckboxSelectMultiple
    )


@action("admin", "GET", "POST")
def webhooks(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the webhooks and the form of a new one; a POST creates it and shows its secret once."""
    form = WebhookForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            row, secret = services.create_webhook(scope.collection, scope.user, **form.cleaned_data)
        except BadInput as error:
            # The form has checked the rest: the service refuses an address, or too many webhooks.
            form.add_error("url", str(error))
        else:
            return _render_webhook(request, scope, row, secret=secret)
    counts = ("pending", "failed", "last_delivered")
    rows = [
        {"webhook": row, **{name: getattr(row, name) for name in counts}} for row in list_webhooks(scope.collection)
    ]
    context = {"scope": scope, "form": form, "webhooks": rows}
    return render(request, "webhooks/webhooks.html", context, status=422 if request.method == "POST" else 200)


@action("admin", "GET", "POST")
def webhook(request: HttpRequest, scope: Scope, webhook: int) -> HttpResponse:
    """Show a webhook with its log; a POST changes it."""
    row = find_webhook(scope.collection, webhook)
    if request.method == "GET":
        return _render_webhook(request, scope, row)
    form = WebhookForm(request.POST)
    if form.is_valid():
        try:
            services.change_webhook(row, scope.user, **form.cleaned_data)
        except BadInput as error:
            form.add_error("url", str(error))
        else:
            messages.success(request, _("Webhook saved."))
            return redirect("webhook", scope.collection.name, row.number)
    # The service may have changed this object before it refused.
    row.refresh_from_db()
    return _render_webhook(request, scope, row, form)


@action("admin", "POST")
def control_webhook(request: HttpRequest, scope: Scope, webhook: int, act: str) -> HttpResponse:
    """Control a webhook: test, secret, enable, disable, replay-failed or delete."""
    row = find_webhook(scope.collection, webhook)
    try:
        if act == "test":
            test = services.send_test(row, scope.user)
            return redirect("webhook_delivery", scope.collection.name, row.number, test.pk)
        if act == "secret":
            return _render_webhook(request, scope, row, secret=services.replace_secret(row, scope.user))
        if act in ("enable", "disable"):
            services.change_webhook(row, scope.user, active=act == "enable")
        elif act == "replay-failed":
            failed = WebhookDelivery.objects.filter(state=State.FAILED)
            _say_replayed(request, services.replay_deliveries(row, scope.user, failed))
        elif act == "delete":
            services.delete_webhook(row, scope.user)
            messages.success(request, _("Webhook deleted."))
            return redirect("webhooks", scope.collection.name)
        else:
            raise Http404(_("Unknown action."))
    except BadInput as error:
        messages.error(request, str(error))
    return redirect("webhook", scope.collection.name, row.number)


@action("admin", "GET")
def delivery(request: HttpRequest, scope: Scope, webhook: int, delivery: int) -> HttpResponse:
    """Show a delivery: its body, and each attempt with its response. HTMX polls until the delivery has ended."""
    row = find_webhook(scope.collection, webhook)
    delivery_row = get_object_or_404(deliveries_of(row).select_related("webhook__collection"), pk=delivery)
    is_over = delivery_row.state != State.PENDING
    context = {
        "scope": scope,
        "webhook": row,
        "delivery": delivery_row,
        "body": build_body(delivery_row),
        "unattended": not is_over and not has_workers(),
    }
    if request.headers.get("HX-Request"):
        return render(request, "webhooks/_attempts.html", context, status=STOP_POLLING if is_over else 200)
    return render(request, "webhooks/delivery.html", context)


@action("admin", "POST")
def replay(request: HttpRequest, scope: Scope, webhook: int, delivery: int) -> HttpResponse:
    """Send one delivery again."""
    row = find_webhook(scope.collection, webhook)
    delivery_row = get_object_or_404(WebhookDelivery, webhook=row, pk=delivery)
    try:
        rows = WebhookDelivery.objects.filter(pk=delivery_row.pk)
        _say_replayed(request, services.replay_deliveries(row, scope.user, rows))
    except BadInput as error:
        messages.error(request, str(error))
    return redirect("webhook_delivery", scope.collection.name, row.number, delivery_row.pk)


def _say_replayed(request: HttpRequest, count: int) -> None:
    message = ngettext("%(count)s delivery will be sent again.", "%(count)s deliveries will be sent again.", count)
    messages.success(request, message % {"count": count})


def _render_webhook(
    request: HttpRequest, scope: Scope, row: Webhook, form: WebhookForm | None = None, secret: str = ""
) -> HttpResponse:
    initial = {"url": row.url, "description": row.description, "events": row.events}
    context = {
        "scope": scope,
        "webhook": row,
        "form": form or WebhookForm(initial=initial),
        "secret": secret,
        "page": read_delivery_page(row, request.GET),
        "states": State.choices,
        "failed": WebhookDelivery.objects.filter(webhook=row, state=State.FAILED).count(),
    }
    return render(request, "webhooks/webhook.html", context, status=422 if form is not None else 200)
