"""The list of what needs a decision in a collection, the most pressing first (dashboard/_attention.html)."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.home.campaigns.selectors import find_failing_since, read_accounts
from annotation.home.overview.overview import CollectionOverview
from annotation.models import Membership, Role
from annotation.quality.label_quality.canaries import CanaryResult
from annotation.quality.label_quality.loading import LabelQuality
from annotation.work.quality_control import onboarding
from corpus.models import Collection
from corpus.reader_time import format_time
from judges.campaigns.judge_reports import join_reports, judge_reports
from judges.domain.audits import OVERLAP
from judges.models import Campaign

SILENT_S = 15.0  # A provider that has not answered for so long is listed.
FEWEST_CALLS = 5  # A judge without a usable answer to so many calls is listed.
MOST_PEOPLE = 3  # Annotators with a line each; more share one.


@dataclass(frozen=True, slots=True)
class AttentionItem:
    """A line of the list: `key` selects its sentence in the template, which the other fields fill."""

    key: str
    address: str
    count: int = 0
    part: int = 0
    whole: int = 0
    wrong: int = 0
    audited: int = 0
    words: str = ""
    name: str = ""


def list_attention(
    overview: CollectionOverview,
    quality: LabelQuality,
    canary_results: Iterable[CanaryResult],
    collection: Collection,
    *,
    judges: bool,
    adjudicates: bool,
) -> list[AttentionItem]:
    """List what needs a decision, the most pressing first. `judges`, `adjudicates`: what the reader may do.

    1. Routes that are significantly wrong too often, in one line.
    2. Annotators with alarms, and those who failed the qualification test, some of whom ask to take another.
    3. Providers that have not answered for SILENT_S while the campaign runs, and judges that follow injections.
    4. A stopped campaign, its judges without a usable answer, and its failed pairs.
    5. Tasks that wait for people, with links to invitations where too few can judge.
    """
    items: list[AttentionItem] = []
    audits, campaign = quality.statistics.audits, overview.campaign
    if audits and (routes := audits.over):
        audited = sum(route.settled for route in routes)
        items.append(
            AttentionItem(
                "routes",
                _address(collection, "quality", f"campaign={audits.campaign}" if audits.campaign else ""),
                count=sum(route.population for route in routes),
                part=len(routes),
                whole=len(audits.routes),
                wrong=audited - sum(route.right for route in routes),
                audited=audited,
            )
        )

    alarmed = [person for person in quality.statistics.people or () if person.active and person.alarms]
    # A list of many names would push everything else off the screen.
    if len(alarmed) > MOST_PEOPLE:
        items.append(AttentionItem("annotators", _address(collection, "members"), count=len(alarmed)))
    else:
        for person in alarmed:
            address = reverse("member", args=[collection.name, person.membership])
            items.append(AttentionItem("annotator", address, name=person.name, words="; ".join(person.alarms)))
    if collection.qualification:
        failed = Membership.objects.filter(
            collection=collection, is_active=True, role=Role.ANNOTATOR, failed_at__isnull=False, qualified_at=None
        ).select_related("user", "collection")
        for member in failed.order_by("user__username"):
            result = onboarding.read_result(member)
            words = _("did not pass the test: %(right)s of %(total)s right, %(mark)s%% is required")
            words %= {"right": result.right, "total": result.total, "mark": collection.pass_mark}
            name, asks = member.user.username, member.retake_asked_at is not None
            address = reverse("person_qualification" if asks else "member", args=[collection.name, member.pk])
            items.append(AttentionItem("retake" if asks else "annotator", address, name=name, words=words))

    campaigns = _address(collection, "campaigns")
    if campaign is not None and campaign.state == Campaign.State.RUNNING:
        for account in read_accounts(campaign):
            since = find_failing_since(campaign, account.judge_ids) if account.state.errors else None
            if since is not None and (timezone.now() - since).total_seconds() >= SILENT_S:
                words = format_time(since, "SECONDS_FORMAT")
                items.append(AttentionItem("silent", campaigns, name=account.state.name, words=words))
    for canary_result in canary_results:
        if canary_result.raises_alarm:
            items.append(AttentionItem("canary", _address(collection, "canaries"), words=canary_result.summary))

    status = overview.status
    if status["state"] in (Campaign.State.BUDGET, Campaign.State.PAUSED):
        items.append(AttentionItem(status["state"], campaigns, count=status["pending"]))
    for report in join_reports(judge_reports([campaign.pk] if campaign else ()).values()):
        if report.calls >= FEWEST_CALLS and not report.usable:
            items.append(AttentionItem("no-votes", campaigns, count=report.calls, name=report.judge))
    if status["failed"]:
        address = _address(collection, "pairs", f"{overview.filter}state=failed")
        items.append(AttentionItem("failed", address, count=status["failed"]))

    invite = _address(collection, "members")
    if overview.conflicts:
        pairs_address = _address(collection, "pairs", "state=conflict")
        address = _address(collection, "adjudicate") if adjudicates else pairs_address
        items.append(AttentionItem("conflicts", address, count=overview.conflicts))
    queues = (
        ("escalated", max(0, int(overview.status["open"]) - overview.own_conflicts), collection.overlap),
        ("audits", audits.open if audits else 0, OVERLAP),
    )
    for key, count, needed in queues:
        if count and quality.people < needed:
            items.append(AttentionItem(f"{key}-few", invite, count=count, part=quality.people, whole=needed))
        elif count:
            address = _address(collection, "judge") if judges else invite
            items.append(AttentionItem(key if judges else f"{key}-others", address, count=count))
    if overview.skipped:
        items.append(AttentionItem("skipped", _address(collection, "hand_over_skipped"), count=overview.skipped))
    if overview.others:
        words = "; ".join(f"{tasks:,} {reason}" for reason, tasks in overview.others)
        address = _address(collection, "pairs", "state=open")
        items.append(
            AttentionItem("others", address, count=sum(tasks for _reason, tasks in overview.others), words=words)
        )
    return items


def _address(collection: Collection, name: str, query: str = "") -> str:
    address = reverse(name, args=[collection.name])
    return f"{address}?{query}" if query else address
