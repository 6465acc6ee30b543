"""The page of canaries: how often judges follow hostile texts, and forms to send canaries now or on a schedule."""

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

JUDGE_CHOICES = (("free", gettext_lazy("free judges only")), ("all", gettext_lazy("all judges")))


class JudgesForm(forms.Form):
    """Form of the judges of the default panel to which canaries are sent now."""

    judges = forms.ChoiceField(choices=JUDGE_CHOICES, label=gettext_lazy("Judges"))

    @property
    def includes_paid(self) -> bool:
        """Whether a valid form includes judges that may cost money."""
        return bool(self.cleaned_data["judges"] == "all")


class ScheduleForm(JudgesForm):
    """Form of the canary schedule: interval and judges.

    The judges are those of the panel that is the default when canaries are sent.
    """

    hours = forms.IntegerField(
        min_value=0,
        max_value=24 * 366,
        label=gettext_lazy("Interval (hours)"),
        help_text=gettext_lazy("0 turns the schedule off."),
    )
    field_order = ("hours", "judges")

    @classmethod
    def for_current_schedule(cls) -> "ScheduleForm":
        """Return the form with the current schedule, or with 0 hours if there is none."""
        schedule = CanarySchedule.objects.first()
        hours, includes_paid = (schedule.hours, schedule.paid) if schedule else (0, False)
        return cls(initial={"hours": hours, "judges": "all" if includes_paid else "free"})


@action("admin")
@require_GET
def show_canaries(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the results of canaries and the forms of the page, or return its chart as a file."""
    return _render_page(request, scope, ScheduleForm.for_current_schedule())


@action("admin")
@require_POST
def send_canaries(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Have a worker send canaries to the default panel now."""
    form = JudgesForm(request.POST)
    if not form.is_valid():
        return _render_page(request, scope, ScheduleForm.for_current_schedule(), status=422)
    # The job is only a message in Redis, and no row of the database, so without Redis it would be lost.
    if notifications.is_redis_unavailable():
        messages.error(request, _("Redis is not responding, so no worker can run this. Try again when it is back."))
        return redirect("canaries", scope.collection.name)
    includes_paid = form.includes_paid
    record(scope, "canaries.asked", paid=includes_paid)
    now = True  # The worker does not wait until the schedule is due.
    transaction.on_commit(lambda: notifications.notify(canaries.TASK, now, includes_paid))
    messages.info(request, _("Test running in the background. Reload this page in a minute."))
    return redirect("canaries", scope.collection.name)


@action("admin")
@require_POST
def set_canary_schedule(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Set how often workers send canaries by themselves, on the whole site, and to which judges.

    If the command has set a panel for the schedule, it is removed: canaries go to the default panel.
    """
    form = ScheduleForm(request.POST)
    if not form.is_valid():
        return _render_page(request, scope, form, status=422)
    hours = form.cleaned_data["hours"]
    with transaction.atomic():
        canaries.set_schedule(hours=hours, paid=form.includes_paid, panel="")
        record(scope, "canaries.schedule", hours=hours, paid=form.includes_paid)
    messages.success(request, _("Saved."))
    return redirect("canaries", scope.collection.name)


def _render_page(request: HttpRequest, scope: Scope, schedule_form: ScheduleForm, status: int = 200) -> HttpResponse:
    """Render the page, or if the URL requests its chart, return the chart as a file.

    The results are those of the judges of the default panel, and of the debaters and voters of the newest campaign.
    """
    newest_campaign = campaigns_of(scope.collection).first()
    default_panel = Panel.objects.filter(is_default=True).first()
    judges = canaries.panel_judges(default_panel) if default_panel else []
    results = read_canary_results([*(judge.id for judge in judges), *debaters_and_voters(newest_campaign)])
    chart = draw_flip_rates(results)
    if file := download(request, [chart]):
        return file
    context = {
        "scope": scope,
        "panel": default_panel,
        "results": results,
        "kind_rows": tabulate_kinds(results),
        "chart": chart,
        "followed_texts": list_followed_texts(results),
        "injection_count": len(INJECTIONS),
        "alarm_rate": ALARM_RATE,
        "form": schedule_form,
        "free_judges": [judge for judge in judges if canaries.is_free(judge)],
        "paid_judges": [judge for judge in judges if not canaries.is_free(judge)],
        "estimate": canaries.forecast(judges) if judges else None,
        "schedule": CanarySchedule.objects.first(),
    }
    return render(request, "panels/canaries.html", context, status=status)
