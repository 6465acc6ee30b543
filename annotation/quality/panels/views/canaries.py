"""The page of canaries: which judges follow hostile text; sending canaries now, and on a schedule."""

from django import forms
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_POST

from annotation.access.audit_log.recording import record
from annotation.access.permissions import Scope, action
from annotation.quality.label_quality.canaries import (
    ALARM_RATE,
    debaters_and_voters,
    draw_flip_rates,
    list_followed_texts,
    read_canary_results,
    tabulate_kinds,
)
from corpus.chart_downloads import download
from jobs import notifications
from judges.campaigns.selectors import campaigns_of
from judges.models import Panel
from judges.models.canaries import CanarySchedule
from judges.probes import canaries
from judges.probes.injections import INJECTIONS

WHOM = (("free", gettext_lazy("free judges only")), ("every", gettext_lazy("all judges")))


class AskForm(forms.Form):
    """Form of the judges to which canaries are sent."""

    whom = forms.ChoiceField(choices=WHOM)


class ScheduleForm(forms.Form):
    """Form of the canary schedule: interval and judges. They are of the panel that is then the default."""

    hours = forms.IntegerField(
        min_value=0,
        max_value=24 * 366,
        label=gettext_lazy("Interval (hours)"),
        help_text=gettext_lazy("0 turns the schedule off."),
    )
    whom = forms.ChoiceField(choices=WHOM, label=gettext_lazy("Judges"))

    @classmethod
    def of(cls, row: CanarySchedule | None) -> "ScheduleForm":
        """Return the form with the current schedule."""
        hours, paid = (row.hours, row.paid) if row else (0, False)
        return cls(initial={"hours": hours, "whom": "every" if paid else "free"})


@action("admin")
@require_GET
def page(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show canaries of the judges of the default panel and of the collection's newest campaign."""
    return _render_page(request, scope, ScheduleForm.of(CanarySchedule.objects.first()))


@action("admin")
@require_POST
def ask(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Have a worker send canaries to the default panel now."""
    form = AskForm(request.POST)
    if not form.is_valid():
        return _render_page(request, scope, ScheduleForm.of(CanarySchedule.objects.first()), status=422)
    # The job is a message only: without Redis it would be lost (ADR 0097).
    if notifications.is_redis_unavailable():
        messages.error(request, _("Redis is not responding, so no worker can run this. Try again when it is back."))
        return redirect("canaries", scope.collection.name)
    paid = form.cleaned_data["whom"] == "every"
    record(scope, "canaries.asked", paid=paid)
    transaction.on_commit(lambda: notifications.notify(canaries.TASK, True, paid))
    messages.info(request, _("Test running in the background. Reload this page in a minute."))
    return redirect("canaries", scope.collection.name)


@action("admin")
@require_POST
def schedule(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Set how often workers send canaries by themselves, on the whole site."""
    form = ScheduleForm(request.POST)
    if not form.is_valid():
        return _render_page(request, scope, form, status=422)
    settings = {"hours": form.cleaned_data["hours"], "paid": form.cleaned_data["whom"] == "every"}
    with transaction.atomic():
        canaries.set_schedule(**settings)
        record(scope, "canaries.schedule", **settings)
    messages.success(request, _("Saved."))
    return redirect("canaries", scope.collection.name)


def _render_page(request: HttpRequest, scope: Scope, form: ScheduleForm, status: int = 200) -> HttpResponse:
    campaign = campaigns_of(scope.collection).first()
    panel = Panel.objects.filter(is_default=True).first()
    judges = canaries.panel_judges(panel) if panel else []
    results = read_canary_results([*(judge.id for judge in judges), *debaters_and_voters(campaign)])
    chart = draw_flip_rates(results)
    if file := download(request, [chart]):
        return file
    context = {
        "scope": scope,
        "panel": panel,
        "results": results,
        "kinds": tabulate_kinds(results),
        "chart": chart,
        "followed": list_followed_texts(results),
        "texts": {injection.name: injection.text for injection in INJECTIONS},
        "number": len(INJECTIONS),
        "limit": ALARM_RATE,
        "form": form,
        "free": [judge for judge in judges if canaries.is_free(judge)],
        "paid": [judge for judge in judges if not canaries.is_free(judge)],
        "estimate": canaries.forecast(judges) if judges else None,
        "schedule": CanarySchedule.objects.first(),
    }
    return render(request, "panels/canaries.html", context, status=status)
