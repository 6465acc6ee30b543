"""Pages of campaigns: the list, starting one, and pause, resume, retry, cancel."""

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, ngettext_lazy
from django.views.decorators.http import require_GET, require_POST

from actions.options import ActionForm, show_refusal
from actions.pages import answer_action
from actions.services import Actor
from annotation.access.audit_log.recording import record
from annotation.access.permissions import Scope, action
from annotation.home.campaigns.estimates import estimate_campaign
from annotation.home.campaigns.forms import StartForm, WriteForm
from annotation.home.campaigns.selectors import list_campaigns
from corpus.errors import BadInput
from corpus.numbered import numbered_or_404
from judges.campaigns import evidence_campaigns as evidence
from judges.campaigns import lifecycle
from judges.campaigns.forecasts import forecast_writing
from judges.campaigns.lifecycle import Started
from judges.campaigns.services import control_campaign, start_judging
from judges.costs.collection_budgets import collection_budget
from judges.models import Campaign

LIMITS = ("limit", "budget", "max_calls")


@action("results")
@require_GET
def campaigns(request: HttpRequest, scope: Scope) -> HttpResponse:
    """List the campaigns, the newest first, with the forms that start one."""
    return _render_campaigns(request, scope, StartForm(scope.collection))


@action("admin")
@require_POST
def start(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Start a campaign: the first POST shows its estimate, the second one confirms it."""

    def done(started: Started) -> str:
        if started.campaign is None or started.idle:
            messages.info(request, _("Nothing to do: this configuration has judged every pair."))
        else:
            if started.joined:
                message = ngettext(
                    "Campaign %(campaign)s resumed; %(added)s pair added.",
                    "Campaign %(campaign)s resumed; %(added)s pairs added.",
                    started.added,
                )
            else:
                message = ngettext(
                    "Campaign %(campaign)s started with %(added)s pair.",
                    "Campaign %(campaign)s started with %(added)s pairs.",
                    started.added,
                )
            values = {"campaign": started.campaign.number, "added": f"{started.added:,}"}
            messages.success(request, message % values)
        return reverse("collection", args=[scope.collection.name])

    def show(form: ActionForm) -> HttpResponse:
        return _render_campaigns(request, scope, form, status=422)

    between: dict[str, Any] = {"confirm": "campaigns/confirm.html", "estimate": estimate_campaign}
    return answer_action(
        request, scope, start_judging, StartForm(scope.collection, request.POST), show, done, **between
    )


@action("admin")
@require_POST
def write_evidence(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Start a judge that writes contribution and evidence for relevant pairs without any."""
    form = WriteForm(request.POST, prefix="write")
    if not form.is_valid():
        return _render_campaigns(request, scope, StartForm(scope.collection), writing=form, status=422)
    fields = form.cleaned_data
    try:
        configuration = evidence.writer_configuration(fields["writer"], fields["measure"])
        limits = {name: fields[name] for name in LIMITS}
        # Not estimated again once confirmed.
        estimate = (
            None
            if "confirm" in request.POST
            else forecast_writing(scope.collection, configuration, limit=fields["limit"])
        )
        if estimate is not None and not estimate.free:
            budget = collection_budget(scope.collection)
            context = {
                "scope": scope,
                "form": form,
                "estimate": estimate,
                "caps": budget,
                "short": budget.is_short_for(estimate.known.expected),
                "hidden": [(field.html_name, value) for field in form if (value := form.data.get(field.html_name))],
            }
            return render(request, "campaigns/writing_confirm.html", context)
        with transaction.atomic():
            started = lifecycle.start_campaign(collection=scope.collection, configuration=configuration, **limits)
            number = started.campaign.number if started.campaign else None
            record(scope, "evidence.started", campaign=number, pairs=started.added, **limits)
    except BadInput as error:
        show_refusal(form, error)
        return _render_campaigns(request, scope, StartForm(scope.collection), writing=form, status=422)
    if started.campaign is None or started.idle:
        messages.info(request, _("Nothing to do: every relevant pair has evidence or waits for a person."))
    else:
        messages.success(
            request,
            ngettext(
                "Campaign %(campaign)s started: generating evidence for %(added)s pair.",
                "Campaign %(campaign)s started: generating evidence for %(added)s pairs.",
                started.added,
            )
            % {"campaign": started.campaign.number, "added": f"{started.added:,}"},
        )
    return redirect("campaigns", scope.collection.name)


@action("admin")
@require_POST
def control(request: HttpRequest, scope: Scope, campaign: int, act: str) -> HttpResponse:
    """Control a campaign: pause, resume, cancel, retry-failed, send-again."""
    row = numbered_or_404(Campaign.objects, scope.collection, campaign, _("Campaign not found."))
    if act not in MESSAGES:
        raise Http404(_("Unknown action."))
    try:
        touched = control_campaign(Actor.of(scope), row, act).touched
        is_idle = act == "retry-failed" and not touched
        message = _("Nothing to retry: no pair has failed.") if is_idle else MESSAGES[act]
        messages.success(request, message % {"campaign": row.number, "touched": touched})
    except BadInput as error:
        messages.error(request, _("Nothing was changed: %(error)s.") % {"error": error})
    return redirect(f"{request.path.rsplit('/campaigns/', 1)[0]}/campaigns/#campaign-{row.number}")


# Messages after a successful action.
MESSAGES = {
    "pause": gettext_lazy("Campaign %(campaign)s paused. Answers to calls already sent are still saved."),
    "resume": gettext_lazy("Campaign %(campaign)s resumed."),
    "cancel": gettext_lazy("Campaign %(campaign)s cancelled. Its judgments are kept."),
    "retry-failed": ngettext_lazy("Retrying %(touched)s failed pair.", "Retrying %(touched)s failed pairs.", "touched"),
    "send-again": ngettext_lazy("Sending %(touched)s batch again.", "Sending %(touched)s batches again.", "touched"),
}


def _render_campaigns(
    request: HttpRequest, scope: Scope, form: ActionForm, *, writing: WriteForm | None = None, status: int = 200
) -> HttpResponse:
    listed_campaigns = list_campaigns(scope.collection)
    context = {
        "scope": scope,
        "form": form,
        "listed_campaigns": [listed for listed in listed_campaigns if not listed.only_bills_finished_job],
        "cost_centres": [listed for listed in listed_campaigns if listed.only_bills_finished_job],
        "writing": writing or WriteForm(prefix="write"),
        "texts": evidence.target_coverage(scope.collection),
    }
    return render(request, "campaigns/campaigns.html", context, status=status)
