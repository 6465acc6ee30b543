"""The list of what needs a decision in a collection, the most pressing first (dashboard/_attention.html)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.urls import reverse
from django.utils import formats, timezone
from django.utils.translation import gettext as _

from annotation.home.campaigns.selectors import read_accounts, silent_since
from annotation.home.overview.overview import CollectionOverview
from annotation.models import Membership, Role
from annotation.quality.label_quality.canaries import CanaryFlips
from annotation.quality.label_quality.loading import LabelQuality
from annotation.quality.label_quality.records import Audits, PersonQuality
from annotation.work.quality_control import onboarding
from corpus.models import Collection
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
    flips: Iterable[CanaryFlips],
    collection: Collection,
    *,
    judges: bool,
    adjudicates: bool,
) -> list[AttentionItem]:
    """List what needs a decision, the most pressing first. `judges`, `adjudicates`: what the reader may do."""
    statistics = quality.statistics
    return [
        *(_list_routes(statistics.audits, collection) if statistics.audits else ()),
        *_list_annotators(statistics.people or (), collection),
        *_list_failed_tests(collection),
        *_list_silent_accounts(overview, collection),
        *(
            AttentionItem("canary", _address(collection, "canaries"), words=canary.summary)
            for canary in flips
            if canary.alarm
        ),
        *_list_campaign(overview, collection),
        *_list_queues(overview, quality, collection, judges=judges, adjudicates=adjudicates),
    ]


def _address(collection: Collection, name: str, query: str = "") -> str:
    address = reverse(name, args=[collection.name])
    return f"{address}?{query}" if query else address


def _list_routes(audits: Audits, collection: Collection) -> Iterator[AttentionItem]:
    """Yield one line for all routes that are significantly wrong too often."""
    if routes := audits.over:
        audited = sum(route.settled for route in routes)
        yield AttentionItem(
            "routes",
            _address(collection, "quality", f"campaign={audits.campaign}" if audits.campaign else ""),
            count=sum(route.population for route in routes),
            part=len(routes),
            whole=len(audits.routes),
            wrong=audited - sum(route.right for route in routes),
            audited=audited,
        )


def _list_annotators(people: Iterable[PersonQuality], collection: Collection) -> Iterator[AttentionItem]:
    alarmed = [person for person in people if person.active and person.alarms]
    # A list of many names would push everything else off the screen.
    if len(alarmed) > MOST_PEOPLE:
        yield AttentionItem("annotators", _address(collection, "members"), count=len(alarmed))
        return
    for person in alarmed:
        address = reverse("person", args=[collection.name, person.membership])
        yield AttentionItem("annotator", address, name=person.name, words="; ".join(person.alarms))


def _list_failed_tests(collection: Collection) -> Iterator[AttentionItem]:
    """Yield a line for each person who failed the qualification test and waits for an admin."""
    if not collection.qualification:
        return
    failed = Membership.objects.filter(
        collection=collection, is_active=True, role=Role.ANNOTATOR, failed_at__isnull=False, qualified_at=None
    ).select_related("user", "collection")
    for member in failed.order_by("user__username"):
        result = onboarding.read_result(member)
        words = _("did not pass the test: %(right)s of %(total)s right, %(mark)s%% is required")
        words %= {"right": result.right, "total": result.total, "mark": collection.pass_mark}
        address = reverse("person", args=[collection.name, member.pk])
        yield AttentionItem("annotator", address, name=member.user.username, words=words)


def _list_silent_accounts(overview: CollectionOverview, collection: Collection) -> Iterator[AttentionItem]:
    """Yield a line for each provider that has not answered for SILENT_S while the campaign runs."""
    campaign = overview.campaign
    if campaign is None or campaign.state != Campaign.State.RUNNING:
        return
    for account in read_accounts(campaign):
        since = silent_since(campaign, account["judges"]) if account["errors"] else None
        if since is not None and (timezone.now() - since).total_seconds() >= SILENT_S:
            words = formats.date_format(timezone.localtime(since), "SECONDS_FORMAT")
            yield AttentionItem("silent", _address(collection, "campaigns"), name=account["name"], words=words)


def _list_campaign(overview: CollectionOverview, collection: Collection) -> Iterator[AttentionItem]:
    """Yield lines for a stopped campaign, for each of its judges without a usable answer, and for failed pairs."""
    status, campaigns = overview.status, _address(collection, "campaigns")
    if status["state"] in (Campaign.State.BUDGET, Campaign.State.PAUSED):
        yield AttentionItem(status["state"], campaigns, count=status["pending"])
    for report in join_reports(judge_reports([overview.campaign.pk] if overview.campaign else ()).values()):
        if report.calls >= FEWEST_CALLS and not report.usable:
            yield AttentionItem("no-votes", campaigns, count=report.calls, name=report.judge)
    if status["failed"]:
        address = _address(collection, "pairs", f"{overview.filter}state=failed")
        yield AttentionItem("failed", address, count=status["failed"])


def _list_queues(
    overview: CollectionOverview, quality: LabelQuality, collection: Collection, *, judges: bool, adjudicates: bool
) -> Iterator[AttentionItem]:
    """Yield a line for each kind of task that waits for people; it links to invitations where too few can judge."""
    invite = _address(collection, "members")
    judging = _address(collection, "judge") if judges else invite
    if overview.conflicts:
        listed = _address(collection, "pairs", "state=conflict")
        address = _address(collection, "adjudicate") if adjudicates else listed
        yield AttentionItem("conflicts", address, count=overview.conflicts)
    audits = quality.statistics.audits
    queues = (
        ("escalated", overview.for_annotators, collection.overlap),
        ("audits", audits.open if audits else 0, OVERLAP),
    )
    for key, count, needed in queues:
        if count and quality.people < needed:
            yield AttentionItem(f"{key}-few", invite, count=count, part=quality.people, whole=needed)
        elif count:
            yield AttentionItem(key if judges else f"{key}-others", judging, count=count)
    if overview.skipped:
        yield AttentionItem("skipped", _address(collection, "hand_over_skipped"), count=overview.skipped)
    if overview.others:
        words = "; ".join(f"{tasks:,} {reason}" for reason, tasks in overview.others)
        yield AttentionItem(
            "others", _address(collection, "pairs", "state=open"), count=overview.other_tasks, words=words
        )
