"""The page of policies compared: a replay of stored answers, with a simulator."""

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from annotation.access.audit_log.recording import record
from annotation.access.permissions import Scope, action
from annotation.quality.label_quality.statistics import is_large
from annotation.quality.policies import cached_results, page
from annotation.quality.policies.debates import study_debates
from annotation.quality.policies.lara_replay import LEFT_OUT
from annotation.quality.policies.report import answered_campaigns
from annotation.quality.policies.tables import study_tables
from corpus.chart_downloads import send_file
from corpus.errors import BadInput
from corpus.numbered import numbered_or_404
from judges.models import Campaign

LISTED = 20  # Newest campaigns to choose from; older ones are reached by their number in the address.


@action("admin")
@require_GET
def policies(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show every policy on a campaign's stored answers, and what escalating other cells costs."""
    campaign = _get_campaign(scope, request.GET.get("campaign", ""))
    context: dict[str, object] = {"scope": scope, "campaign": campaign, "page": None}
    context["found"] = None
    # A campaign that was cancelled is offered where it alone has answers; else its number in the address leads to it.
    offered = answered_campaigns(scope.collection)
    kept = offered.exclude(state=Campaign.State.CANCELLED)
    context["campaigns"] = list((kept if kept.exists() else offered)[:LISTED])
    if campaign:
        found = cached_results.cached_comparison(scope.collection, campaign, lara="lara" in request.GET)
        context["found"] = found
        if found["document"]:
            shown = page.build_page(found["document"], request.GET)
            if file := send_file(request, shown["charts"], [shown["table"]]):
                return file
            left_out = any(line["reason"] == LEFT_OUT for line in shown["lines"])
            context |= {"page": shown, "left_out": left_out}
    return render(request, "policies/policies.html", context)


@action("admin")
@require_GET
def debate_study(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show what order, agents, families, temperature and rounds do to debates."""
    context: dict[str, object] = {"scope": scope, "is_large": is_large(scope.collection), "tables": []}
    if not context["is_large"]:
        try:
            tables = study_tables(study_debates(scope.collection))
        except BadInput:
            return render(request, "policies/study.html", context)
        if file := send_file(request, (), tables):
            return file
        context["tables"] = tables
    return render(request, "policies/study.html", context)


@action("admin")
@require_POST
def compare_policies(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Compare anew for a large collection; a worker does it where one lives."""
    campaign = _get_campaign(scope, request.POST.get("campaign", ""))
    if campaign is not None:
        with transaction.atomic():
            done = cached_results.POLICIES.refresh(scope.collection, campaign=campaign.pk) is not None
            record(scope, "policies.compared", campaign=campaign.number)
        messages.info(
            request, _("Figures updated.") if done else _("Computing in the background. Reload this page in a moment.")
        )
    query = f"?campaign={campaign.number}" if campaign else ""
    return redirect(reverse("policies", args=[scope.collection.name]) + query)


def _get_campaign(scope: Scope, asked: str) -> Campaign | None:
    known = answered_campaigns(scope.collection).select_related("collection")
    if not asked.isdecimal():
        return known.first()
    return numbered_or_404(known, scope.collection, asked, _("Campaign not found."))
