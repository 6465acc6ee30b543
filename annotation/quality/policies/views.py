"""The page that compares policies on stored answers, with a simulator, and the debate study."""

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

LISTED = 20  # Number of newest campaigns in the list; the address of the page takes older ones too.


@action("admin")
@require_GET
def policies(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show every policy on a campaign's stored answers, and the cost of escalating other cells."""
    campaign = _get_campaign(scope, request.GET.get("campaign", ""))
    context: dict[str, object] = {"scope": scope, "campaign": campaign, "page": None, "comparison": None}
    # Cancelled campaigns are listed only where no other has answers.
    campaigns = answered_campaigns(scope.collection)
    active_campaigns = campaigns.exclude(state=Campaign.State.CANCELLED)
    context["campaigns"] = list((active_campaigns if active_campaigns.exists() else campaigns)[:LISTED])
    if campaign:
        comparison = cached_results.cached_comparison(scope.collection, campaign, lara="lara" in request.GET)
        context["comparison"] = comparison
        if comparison["document"]:
            comparison_page = page.build_page(comparison["document"], request.GET)
            if file := send_file(request, comparison_page.charts, [comparison_page.policy_table.download_table]):
                return file
            is_left_out = any(row.unavailable_reason == LEFT_OUT for row in comparison_page.policy_table.rows)
            context |= {"page": comparison_page, "left_out": is_left_out}
    return render(request, "policies/policies.html", context)


@action("admin")
@require_GET
def debate_study(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the effect of order, agents, families, temperature and rounds on debates."""
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
    """Recompute the comparison of a large collection, in a worker where one is running."""
    campaign = _get_campaign(scope, request.POST.get("campaign", ""))
    if campaign is not None:
        with transaction.atomic():
            is_done = cached_results.POLICIES.refresh(scope.collection, campaign=campaign.pk) is not None
            record(scope, "policies.compared", campaign=campaign.number)
        messages.info(
            request,
            _("Figures updated.") if is_done else _("Computing in the background. Reload this page in a moment."),
        )
    query = f"?campaign={campaign.number}" if campaign else ""
    return redirect(reverse("policies", args=[scope.collection.name]) + query)


def _get_campaign(scope: Scope, number: str) -> Campaign | None:
    campaigns = answered_campaigns(scope.collection).select_related("collection")
    if not number.isdecimal():
        return campaigns.first()
    return numbered_or_404(campaigns, scope.collection, number, _("Campaign not found."))
