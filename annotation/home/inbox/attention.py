"""The list of what needs a decision in a collection, the most pressing first (dashboard/_attention.html)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db.models import Q
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.home.campaigns.selectors import read_accounts
from annotation.models import Membership, Role
from annotation.quality.label_quality import canaries
from annotation.quality.label_quality.annotators import FEW_HASTY, LEAST_S
from annotation.quality.label_quality.statistics import StoredStatistics
from annotation.work.quality_control import onboarding
from annotation.work.queue.skipped import count_recently, skipped_by_all
from annotation.work.threads.selectors import count_unanswered_recently
from corpus.models import Collection, Item
from judges.campaigns.judge_reports import join_reports, judge_reports
from judges.domain.audits import OVERLAP
from judges.models import Campaign
from store.sql import fetch_row, fetch_rows, read_sql

MANY = 1000  # What waits is counted up to here.
SILENT_S = 3.0  # A provider whose calls have failed for so long is listed.
FEWEST_CALLS = 5  # A judge without a usable answer to so many calls is listed.
MOST_PEOPLE = 3  # Annotators with a line each; more share one.
LAST_JUDGMENTS = 30  # A person's latest judgments, whose median time is looked at.
COUNT_WAITING = read_sql(__file__, "count_waiting")
FIND_HASTY = read_sql(__file__, "find_hasty")


@dataclass(frozen=True, slots=True)
class OpenWork:
    """What waits in a collection, in pairs unless it says otherwise."""

    campaign: int | None  # Primary key of the newest campaign that was not cancelled.
    people: int  # Active members who are not paused.
    pending: int  # Not judged, in that campaign if it is stopped.
    failed: int
    conflicts: int  # Wait for an adjudicator.
    escalated: int  # Wait for annotators.
    audits: int  # Blind checks that wait for annotators.
    others: Mapping[str, int]  # Tasks on pairs that have a label, by reason.
    is_open: bool  # Something is running that may change all this.
    threads: int  # Comments and flags that wait for an answer.
    skipped: int  # Skipped by every annotator.


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
    since: datetime | None = None

    @property
    def figure(self) -> str:
        """The count for people; "1,000+" where counting ended there."""
        return f"{self.count:,}" + ("+" if self.count == MANY else "")

    @property
    def identity(self) -> str:
        """Return the same text as long as the same thing needs attention."""
        return f"{self.key} {self.name} {self.since.isoformat() if self.since else ''}".strip()


def read_open_work(collection: Collection, *, polls: bool = False) -> OpenWork:
    """Count what waits, up to MANY of each. `polls`: skipped pairs and threads may be a minute old."""
    threads = count_unanswered_recently(collection, MANY) if polls else None
    row = fetch_row(COUNT_WAITING, collection=collection.pk, many=MANY, threads=threads)
    skipped = count_recently(collection) if polls else skipped_by_all(collection).count()
    return OpenWork(*(*row, skipped))


def list_attention(
    collection: Collection, open_work: OpenWork, statistics: StoredStatistics, *, judges: bool, adjudicates: bool
) -> list[AttentionItem]:
    """List what needs a decision, the most pressing first. `judges`, `adjudicates`: what the reader may do.

    1. Routes that are significantly wrong too often, in one line.
    2. Annotators with alarms, in haste, and those who failed the qualification test, some of whom ask to take another.
    3. Providers that have not answered for SILENT_S while a campaign runs, and judges that follow injections.
    4. A stopped campaign, its judges without a usable answer, and failed pairs.
    5. Tasks that wait for people, with links to invitations where too few can judge.
    6. Comments and flags that wait for an answer, and pairs that everybody skipped.
    """
    items: list[AttentionItem] = []
    audits = statistics.audits
    is_alive = Q(pk=open_work.campaign) | Q(state=Campaign.State.RUNNING)
    campaigns_by_id = Campaign.objects.filter(is_alive, collection=collection).in_bulk()
    campaign = campaigns_by_id.get(open_work.campaign or 0)
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
    items += _list_people(collection, statistics)
    items += _list_silent_providers(collection, campaigns_by_id.values())
    for canary_result in canaries.read_canary_results(canaries.debaters_and_voters(campaign)):
        if canary_result.raises_alarm:
            address = _address(collection, "canaries")
            items.append(AttentionItem("canary", address, words=canary_result.summary, name=canary_result.judge_name))

    campaigns = _address(collection, "campaigns")
    if campaign is not None and campaign.state in (Campaign.State.BUDGET, Campaign.State.PAUSED):
        # Paused by a person, or by an account that refused us: then the campaign says which and why.
        key = "refused" if campaign.state == Campaign.State.PAUSED and campaign.paused_because else campaign.state
        items.append(AttentionItem(key, campaigns, count=open_work.pending, words=campaign.paused_because))
    for report in join_reports(judge_reports([campaign.pk] if campaign else ()).values()):
        if report.calls >= FEWEST_CALLS and not report.usable:
            items.append(AttentionItem("no-votes", campaigns, count=report.calls, name=report.judge))
    if open_work.failed:
        items.append(AttentionItem("failed", _address(collection, "pairs", "state=failed"), count=open_work.failed))

    invite = _address(collection, "members")
    if open_work.conflicts:
        pairs_address = _address(collection, "pairs", "state=conflict")
        address = _address(collection, "adjudicate") if adjudicates else pairs_address
        items.append(AttentionItem("conflicts", address, count=open_work.conflicts))
    queues = (("escalated", open_work.escalated, collection.overlap), ("audits", open_work.audits, OVERLAP))
    for key, count, needed in queues:
        if count and open_work.people < needed:
            items.append(AttentionItem(f"{key}-few", invite, count=count, part=open_work.people, whole=needed))
        elif count:
            address = _address(collection, "judge") if judges else invite
            items.append(AttentionItem(key if judges else f"{key}-others", address, count=count))
    if open_work.threads:
        items.append(AttentionItem("threads", _address(collection, "pairs", "answer=waiting"), count=open_work.threads))
    if open_work.skipped:
        address = _address(collection, "hand_over_skipped")
        items.append(AttentionItem("skipped", address, count=open_work.skipped))
    if open_work.others:
        reasons = sorted(open_work.others.items(), key=lambda row: -row[1])
        words = "; ".join(f"{tasks:,} {Item.Reason(reason).label}" for reason, tasks in reasons)
        address = _address(collection, "pairs", "state=open")
        items.append(AttentionItem("others", address, count=sum(open_work.others.values()), words=words))
    return items


def _list_people(collection: Collection, statistics: StoredStatistics) -> list[AttentionItem]:
    """List annotators with alarms in the statistics, too fast lately, or without success in the test."""
    alarms = {
        person.membership: (person.name, "; ".join(person.alarms))
        for person in statistics.people or ()
        if person.active and person.alarms
    }
    limits = {"last": LAST_JUDGMENTS, "fewest": FEW_HASTY, "least": LEAST_S * 1000}
    for member, name, milliseconds in fetch_rows(FIND_HASTY, collection=collection.pk, **limits):
        words = _("takes %(seconds)s s per judgment, less than reading takes")
        alarms.setdefault(member, (name, words % {"seconds": f"{milliseconds / 1000:.1f}"}))
    # A list of many names would push everything else off the screen.
    if len(alarms) > MOST_PEOPLE:
        items = [AttentionItem("annotators", _address(collection, "members"), count=len(alarms))]
    else:
        items = [
            AttentionItem("annotator", reverse("member", args=[collection.name, member]), name=name, words=words)
            for member, (name, words) in sorted(alarms.items(), key=lambda row: row[1])
        ]
    if collection.qualification:
        failed = Membership.objects.filter(
            collection=collection, is_active=True, role=Role.ANNOTATOR, failed_at__isnull=False, qualified_at=None
        ).select_related("user", "collection")
        for member in failed.order_by("user__username"):
            result = onboarding.read_result(member)
            words = _("did not pass the test: %(right)s of %(total)s correct, %(mark)s%% required")
            words %= {"right": result.right, "total": result.total, "mark": collection.pass_mark}
            name, asks = member.user.username, member.retake_asked_at is not None
            address = reverse("person_qualification" if asks else "member", args=[collection.name, member.pk])
            key = "retake" if asks else "annotator"
            items.append(AttentionItem(key, address, name=name, words=words, since=member.failed_at))
    return items


def _list_silent_providers(collection: Collection, campaigns: Iterable[Campaign]) -> list[AttentionItem]:
    """List the accounts of those campaigns that run all of whose calls have failed for SILENT_S."""
    silent = {
        account.title: datetime.fromtimestamp(account.state.failing_since, UTC)
        for campaign in campaigns
        if campaign.state == Campaign.State.RUNNING
        for account in read_accounts(campaign)
        if account.state.errors and account.state.failing_since
    }
    address = _address(collection, "campaigns")
    return [
        AttentionItem("silent", address, name=title, since=since)
        for title, since in silent.items()
        if (timezone.now() - since).total_seconds() >= SILENT_S
    ]


def _address(collection: Collection, name: str, query: str = "") -> str:
    address = reverse(name, args=[collection.name])
    return f"{address}?{query}" if query else address
