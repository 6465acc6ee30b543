"""Campaigns of a collection: what there was, starting one, and pause / resume / retry / cancel."""

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, ngettext_lazy
from django.views.decorators.http import require_GET, require_POST

from actions.options import show_refusal
from annotation.audit_log.recording import record
from annotation.campaigns.forms import StartForm, WriteForm
from annotation.campaigns.people import estimate_people
from annotation.campaigns.rows import campaign_rows
from annotation.panels.self_checks import LARGE, unchecked_judges
from annotation.permissions import Scope, action
from corpus.errors import BadInput
from corpus.numbered import numbered_or_404
from judges.campaigns import lifecycle as services
from judges.campaigns.estimates import Estimate
from judges.campaigns.forecasts import forecast_judging, forecast_writing
from judges.costs.collection_budgets import collection_budget
from judges.evidence import campaigns as evidence
from judges.models import Campaign

LIMITS = ("limit", "budget", "max_calls")


@action("admin")
@require_GET
def campaigns(request: HttpRequest, scope: Scope) -> HttpResponse:
    """All campaigns, newest first, and the form that starts one."""
    return _render_campaigns(request, scope, StartForm(collection=scope.collection))


@action("admin")
@require_POST
def start(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Start a campaign: the first POST shows its expected cost, the confirmed one starts it."""
    form = StartForm(request.POST, collection=scope.collection)
    if not form.is_valid():
        return _render_campaigns(request, scope, form, status=422)
    # The same form comes twice: without `confirm` it shows what it will cost, with it it starts.
    try:
        if "confirm" in request.POST:
            return _start_campaign(request, scope, form)
        return _confirm_start(request, scope, form)
    except BadInput as error:
        show_refusal(form, error)
        return _render_campaigns(request, scope, form, status=422)


@action("admin")
@require_POST
def write_evidence(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Start a judge that writes contribution and evidence for relevant pairs without any."""
    form = WriteForm(request.POST, prefix="write")
    if not form.is_valid():
        return _render_campaigns(request, scope, StartForm(collection=scope.collection), writing=form, status=422)
    given = form.cleaned_data
    try:
        wanted = evidence.writer_configuration(given["writer"], given["measure"])
        limits = {name: given[name] for name in LIMITS}
        # Once confirmed, the cost was on the page before and is not worked out again.
        expected = (
            None if "confirm" in request.POST else forecast_writing(scope.collection, wanted, limit=given["limit"])
        )
        if expected is not None and not expected.free:
            return _ask_to_write(request, scope, form, expected)
        with transaction.atomic():
            started = services.start_campaign(collection=scope.collection, wanted=wanted, **limits)
            number = started.campaign.number if started.campaign else None
            record(scope, "evidence.started", campaign=number, pairs=started.added, **limits)
    except BadInput as error:
        show_refusal(form, error)
        return _render_campaigns(request, scope, StartForm(collection=scope.collection), writing=form, status=422)
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


def _ask_to_write(request: HttpRequest, scope: Scope, form: WriteForm, expected: Estimate) -> HttpResponse:
    caps = collection_budget(scope.collection)
    context = {
        "scope": scope,
        "form": form,
        "estimate": expected,
        "caps": caps,
        "short": caps.is_short_for(expected.known.expected),
        "hidden": [(field.html_name, value) for field in form if (value := form.data.get(field.html_name))],
    }
    return render(request, "campaigns/writing_confirm.html", context)


@action("admin")
@require_POST
def control(request: HttpRequest, scope: Scope, campaign: int, act: str) -> HttpResponse:
    """Control a campaign: pause, resume, cancel, retry-failed, send-again."""
    found = numbered_or_404(Campaign.objects, scope.collection, campaign, _("Campaign not found."))
    if act not in CONTROLS:
        raise Http404(_("Unknown action."))
    try:
        apply, said = CONTROLS[act]
        with transaction.atomic():
            done = apply(campaign=found)
            record(scope, "campaign.control", campaign=found.number, what=act)
        touched = done if isinstance(done, int) else 0
        if act == "retry-failed" and not touched:
            said = gettext_lazy("Nothing to retry: no pair has failed.")
        messages.success(request, said % {"campaign": found.number, "retried": touched, "sent": touched})
    except BadInput as error:
        messages.error(request, _("Nothing was changed: %(error)s.") % {"error": error})
    return redirect(f"{request.path.rsplit('/campaigns/', 1)[0]}/campaigns/#campaign-{found.number}")


# What each act does, and what is said once it is done.
CONTROLS = {
    "pause": (
        services.pause,
        gettext_lazy("Campaign %(campaign)s paused. Answers to calls already sent are still saved."),
    ),
    "resume": (services.resume, gettext_lazy("Campaign %(campaign)s resumed.")),
    "cancel": (services.cancel, gettext_lazy("Campaign %(campaign)s cancelled. Its judgments are kept.")),
    "retry-failed": (
        services.retry_failed,
        ngettext_lazy("Retrying %(retried)s failed pair.", "Retrying %(retried)s failed pairs.", "retried"),
    ),
    "send-again": (
        services.send_again,
        ngettext_lazy("Sending %(sent)s batch again.", "Sending %(sent)s batches again.", "sent"),
    ),
}


def _confirm_start(request: HttpRequest, scope: Scope, form: StartForm) -> HttpResponse:
    wanted = form.configuration()
    given = form.cleaned_data
    estimate = forecast_judging(scope.collection, wanted, limit=given["limit"], again=given["again"])
    left = services.pairs_to_judge(scope.collection, wanted, limit=given["limit"], again=given["again"])
    caps = collection_budget(scope.collection)
    context = {
        "scope": scope,
        "form": form,
        "wanted": wanted,
        "caps": caps,
        "short": estimate is not None and caps.is_short_for(estimate.known.expected),
        "pairs": left,
        "estimate": estimate,
        "people": estimate and estimate_people(scope.collection, wanted, left, estimate.calls.expected),
        "unchecked": unchecked_judges(scope.collection, wanted.judges) if left >= LARGE else (),
        "hidden": form.hidden(),
    }
    return render(request, "campaigns/confirm.html", context)


def _start_campaign(request: HttpRequest, scope: Scope, form: StartForm) -> HttpResponse:
    given = form.cleaned_data
    with transaction.atomic():
        limits = {name: given[name] for name in LIMITS}
        started = services.start_campaign(
            collection=scope.collection,
            wanted=form.configuration(),
            again=given["again"],
            failed_to_people=given["failed_to_people"],
            **limits,
        )
        number = started.campaign.number if started.campaign else None
        record(scope, "campaign.started", campaign=number, pairs=started.added, **limits)
    if started.campaign is None or started.idle:
        messages.info(request, _("Nothing to do: this configuration has judged every pair."))
    else:
        if started.joined:
            done = ngettext(
                "Campaign %(campaign)s resumed; %(added)s pair added.",
                "Campaign %(campaign)s resumed; %(added)s pairs added.",
                started.added,
            )
        else:
            done = ngettext(
                "Campaign %(campaign)s started with %(added)s pair.",
                "Campaign %(campaign)s started with %(added)s pairs.",
                started.added,
            )
        messages.success(request, done % {"campaign": started.campaign.number, "added": f"{started.added:,}"})
    return redirect("collection", scope.collection.name)


def _render_campaigns(
    request: HttpRequest, scope: Scope, form: StartForm, *, writing: WriteForm | None = None, status: int = 200
) -> HttpResponse:
    rows = campaign_rows(scope.collection)
    context = {
        "scope": scope,
        "form": form,
        "rows": [row for row in rows if not row.is_closed_account],
        "spending": [row for row in rows if row.is_closed_account],
        "writing": writing or WriteForm(prefix="write"),
        "texts": evidence.target_coverage(scope.collection),
    }
    return render(request, "campaigns/campaigns.html", context, status=status)
