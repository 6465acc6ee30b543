"""Decisions that a collection waits for, most pressing first (dashboard/_attention.html)."""

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

SILENT_S = 15.0  # A provider that answered nothing for as long is worth a look.
FEWEST_CALLS = 5  # Of a judge without a usable answer, from which on it has a line.
MOST_PEOPLE = 3  # Annotators with a line of their own; more share one.


@dataclass(frozen=True, slots=True)
class AttentionItem:
    """A line of the list. `key`: its sentence; `count`: pairs, of `part` of `whole` things; `words`: what it says."""

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
    story: CollectionOverview,
    quality: LabelQuality,
    flips: Iterable[CanaryFlips],
    collection: Collection,
    *,
    judges: bool,
    adjudicates: bool,
) -> list[AttentionItem]:
    """List what waits for a decision, most pressing first; by what the reader may do."""
    found = quality.statistics
    return [
        *(_list_routes(found.audits, collection) if found.audits else ()),
        *_list_annotators(found.people or (), collection),
        *_list_failed_tests(collection),
        *_list_silent_accounts(story, collection),
        *(AttentionItem("canary", _address(collection, "canaries"), words=one.summary) for one in flips if one.alarm),
        *_list_campaign(story, collection),
        *_list_queues(story, quality, collection, judges=judges, adjudicates=adjudicates),
    ]


def _address(collection: Collection, name: str, query: str = "") -> str:
    address = reverse(name, args=[collection.name])
    return f"{address}?{query}" if query else address


def _list_routes(audits: Audits, collection: Collection) -> Iterator[AttentionItem]:
    """Yield one line for all routes that are surely wrong too often: one decision."""
    if over := audits.over:
        audited = sum(route.settled for route in over)
        yield AttentionItem(
            "routes",
            _address(collection, "quality", f"campaign={audits.campaign}" if audits.campaign else ""),
            count=sum(route.population for route in over),
            part=len(over),
            whole=len(audits.routes),
            wrong=audited - sum(route.right for route in over),
            audited=audited,
        )


def _list_annotators(people: Iterable[PersonQuality], collection: Collection) -> Iterator[AttentionItem]:
    alarmed = [person for person in people if person.active and person.alarms]
    # A list of names would push everything else off the screen.
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


def _list_silent_accounts(story: CollectionOverview, collection: Collection) -> Iterator[AttentionItem]:
    """Yield a line for each provider that has not answered for SILENT_S while the campaign runs, and since when."""
    campaign = story.campaign
    if campaign is None or campaign.state != Campaign.State.RUNNING:
        return
    for account in read_accounts(campaign):
        since = silent_since(campaign, account["judges"]) if account["errors"] else None
        if since is not None and (timezone.now() - since).total_seconds() >= SILENT_S:
            words = formats.date_format(timezone.localtime(since), "SECONDS_FORMAT")
            yield AttentionItem("silent", _address(collection, "campaigns"), name=account["name"], words=words)


def _list_campaign(story: CollectionOverview, collection: Collection) -> Iterator[AttentionItem]:
    """Yield a line for a stopped campaign, one for each of its judges without a vote, and one for its failed pairs."""
    status, campaigns = story.status, _address(collection, "campaigns")
    if status["state"] in (Campaign.State.BUDGET, Campaign.State.PAUSED):
        yield AttentionItem(status["state"], campaigns, count=status["pending"])
    for report in join_reports(judge_reports([story.campaign.pk] if story.campaign else ()).values()):
        if report.calls >= FEWEST_CALLS and not report.usable:
            yield AttentionItem("no-votes", campaigns, count=report.calls, name=report.judge)
    if status["failed"]:
        address = _address(collection, "pairs", f"{story.filter}state=failed")
        yield AttentionItem("failed", address, count=status["failed"])


def _list_queues(
    story: CollectionOverview, quality: LabelQuality, collection: Collection, *, judges: bool, adjudicates: bool
) -> Iterator[AttentionItem]:
    """Yield a line for each kind of work that waits for people; where too few can judge, it leads to inviting them."""
    invite = _address(collection, "members")
    desk = _address(collection, "judge") if judges else invite
    if story.conflicts:
        listed = _address(collection, "pairs", "state=conflict")
        address = _address(collection, "adjudicate") if adjudicates else listed
        yield AttentionItem("conflicts", address, count=story.conflicts)
    audits = quality.statistics.audits
    waiting = (
        ("escalated", story.for_annotators, collection.overlap),
        ("audits", audits.open if audits else 0, OVERLAP),
    )
    for key, count, needed in waiting:
        if count and quality.people < needed:
            yield AttentionItem(f"{key}-few", invite, count=count, part=quality.people, whole=needed)
        elif count:
            yield AttentionItem(key if judges else f"{key}-others", desk, count=count)
    if story.skipped:
        yield AttentionItem("skipped", _address(collection, "hand_over_skipped"), count=story.skipped)
    if story.others:
        words = "; ".join(f"{tasks:,} {reason}" for reason, tasks in story.others)
        yield AttentionItem("others", _address(collection, "pairs", "state=open"), count=story.other_tasks, words=words)
