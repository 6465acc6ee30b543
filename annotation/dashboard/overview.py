"""What the start page and a collection's home show, read from counters and small indexes only."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Count, Exists, F, OuterRef, Prefetch, Q, Sum
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.models import Assignment, Membership, Role, User
from annotation.queue.skipped import skipped_by_all
from corpus.models import Collection, Item
from judges.campaigns import selectors
from judges.campaigns.configurations import VOTED, describe_panel
from judges.costs.accounting import Paid, format_cost, of_calls
from judges.models import Campaign, JudgeVersion, Tally, Work
from judges.models.batches import Batch

MANY = 1000
"""Counts without a counter are exact up to here."""

Status = dict[str, Any]
"""As CONTRACT gives it for the command `status`."""


class Counted:
    """Counters of a campaign, by key (judges.campaigns.counters)."""

    counts: dict[str, float]

    def _sum(self, prefix: str) -> int:
        return int(sum(value for key, value in self.counts.items() if key.startswith(prefix)))

    @property
    def pairs(self) -> int:
        """Pairs it covers."""
        return self._sum("pairs")

    @property
    def labelled(self) -> int:
        """Labelled by the policy, or written by a campaign that writes targets."""
        return self._sum("labelled:") + self._sum("written")

    @property
    def escalated(self) -> int:
        """Sent to people; audits are labelled pairs and do not belong."""
        return self._sum("escalated:") - self._sum("escalated:audit")

    @property
    def with_label(self) -> int:
        """Labelled by the policy or settled by people."""
        return self.labelled + self._sum("settled")

    @property
    def failed(self) -> int:
        """Failed."""
        return self._sum("failed")

    @property
    def ended(self) -> int:
        """Pairs that the judges are done with: labelled, sent to people, or failed."""
        return self.labelled + self.escalated + self.failed


@dataclass(frozen=True)
class CollectionCard(Counted):
    """A collection on the start page. Only admins see how far its pairs are; others their own work."""

    collection: Collection
    role: str
    may_judge: bool
    sees_all: bool
    """An admin here, or an owner."""
    judged: int = 0
    counts: dict[str, float] = field(default_factory=dict)
    state: str = ""
    waiting: int = 0
    """Escalations of all campaigns that people did not settle yet."""

    @property
    def percent(self) -> int:
        """Pairs with a label of its pairs, rounded down: 100 means all."""
        return 100 * self.with_label // self.pairs if self.pairs else 0


def list_collection_cards(user: User) -> list[CollectionCard]:
    """The collections that `user` may see, in four statements at most."""
    memberships = {m.collection_id: m for m in _own_memberships(user)}
    collections = Collection.objects.order_by("name")
    if not user.is_owner:
        collections = collections.filter(pk__in=memberships)
    seen = list(collections)
    admin = {c.pk for c in seen if user.is_owner or memberships[c.pk].role >= Role.ADMIN}
    campaigns: dict[int, list[Campaign]] = {collection.pk: [] for collection in seen}
    for campaign in Campaign.judging.filter(collection__in=admin).order_by("pk") if admin else []:
        campaigns[campaign.collection_id].append(campaign)
    counts = _load_counters([campaign.pk for found in campaigns.values() for campaign in found])
    return [_build_card(one, memberships.get(one.pk), one.pk in admin, campaigns[one.pk], counts) for one in seen]


def _own_memberships(user: User) -> Any:
    done = Count("assignments", filter=Q(assignments__state=Assignment.State.DONE))
    return user.memberships.filter(is_active=True).annotate(judged=done)


def _load_counters(campaigns: list[int]) -> dict[int, dict[str, float]]:
    counts: dict[int, dict[str, float]] = {pk: {} for pk in campaigns}
    rows = Tally.objects.filter(campaign__in=campaigns).values_list("campaign", "key").annotate(total=Sum("value"))
    for campaign, key, total in rows if campaigns else []:
        counts[campaign][key] = total
    return counts


def _build_card(
    collection: Collection,
    membership: Any,
    sees_all: bool,
    campaigns: list[Campaign],
    counts: dict[int, dict[str, float]],
) -> CollectionCard:
    rows = [CampaignRow(campaign, counts[campaign.pk]) for campaign in campaigns]
    return CollectionCard(
        collection=collection,
        role=membership.get_role_display() if membership else "owner",
        may_judge=membership is not None,
        sees_all=sees_all,
        judged=membership.judged if membership else 0,
        counts=rows[-1].counts if rows else {},
        state=campaigns[-1].get_state_display() if campaigns else "",
        waiting=sum(row.unresolved_escalations for row in rows),
    )


@dataclass(frozen=True)
class CampaignRow(Counted):
    """A campaign in the list, with its counters."""

    campaign: Campaign
    counts: dict[str, float]
    voters: tuple[JudgeVersion, ...] = ()
    """In the order of the panel; a judge stands there once for each of its samples."""

    @property
    def counted(self) -> str:
        """How many votes decide, and which of them are samples of one model; "" where no panel votes."""
        if self.campaign.policy not in VOTED or not self.voters:
            return ""
        early = self.campaign.early_stop and self.campaign.policy == Campaign.Policy.ENSEMBLE
        return describe_panel(self.voters, self.campaign.majority, early_stop=early)

    @property
    def unresolved_escalations(self) -> int:
        """Escalated pairs that people did not settle yet."""
        return max(0, self.escalated - self._sum("settled") - self._sum("moved"))

    @property
    def calls(self) -> int:
        """Attempts sent."""
        return int(self.counts.get("calls", 0))

    @property
    def cost(self) -> float | None:
        """USD; None when no call had a known price."""
        unpriced = self.counts.get("calls_without_price", 0)
        return None if self.calls and unpriced == self.calls else float(self.counts.get("cost", 0.0))

    @property
    def paid(self) -> Paid:
        """What it cost, and how many calls are not in it."""
        return of_calls(
            self.cost,
            self.calls,
            int(self.counts.get("calls_without_price", 0)),
            int(self.counts.get("calls_assumed", 0)),
            self.counts.get("cost_assumed", 0.0),
        )

    @property
    def assumed(self) -> str:
        """How much of what counts against its budget is assumed, in a sentence; "" for nothing."""
        n, most = int(self.counts.get("calls_assumed", 0)), self.counts.get("cost_assumed", 0.0)
        if not n:
            return ""
        words = ngettext(
            "%(most)s of what counts against the budget is assumed: %(n)s answer did not say what it used.",
            "%(most)s of what counts against the budget is assumed: %(n)s answers did not say what they used.",
            n,
        )
        return words % {"most": format_cost(most), "n": f"{n:,}"}

    @property
    def may_pause(self) -> bool:
        """It runs."""
        return self.campaign.state == Campaign.State.RUNNING

    @property
    def may_resume(self) -> bool:
        """It was paused, or a limit stopped it."""
        return self.campaign.state in (Campaign.State.PAUSED, Campaign.State.BUDGET)

    @property
    def may_cancel(self) -> bool:
        """It is not over."""
        return self.may_pause or self.may_resume

    @property
    def has_unconfirmed_batch(self) -> bool:
        """Nobody knows of one of its batches whether the provider began it."""
        return any(batch.is_unconfirmed for batch in getattr(self.campaign, "out", []))

    @property
    def may_retry(self) -> bool:
        """Pairs failed, and it was not cancelled."""
        return bool(self.failed) and self.campaign.state != Campaign.State.CANCELLED


def campaign_rows(collection: Collection, limit: int = 100) -> list[CampaignRow]:
    """The newest campaigns of a collection with the batches that are out and who votes, in four statements."""
    out = Prefetch("batches", Batch.objects.filter(ended_at=None).order_by("pk"), to_attr="out")
    found = list(Campaign.objects.filter(collection=collection).prefetch_related(out).order_by("-pk")[:limit])
    counts = _load_counters([campaign.pk for campaign in found])
    judges = JudgeVersion.objects.in_bulk({pk for campaign in found for pk in campaign.voters})
    return [
        CampaignRow(campaign, counts[campaign.pk], tuple(judges[pk] for pk in campaign.voters if pk in judges))
        for campaign in found
    ]


@dataclass(frozen=True)
class OwnWork:
    """What an annotator sees at home: their own counts and nobody else's."""

    today: int
    judged: int
    skipped: int
    has_open: bool
    waiting: int
    """Items that could come to them; MANY stands for MANY and more."""
    conflicts: int
    """For adjudicators; 0 for others."""


def own_work(membership: Membership) -> OwnWork:
    """Three statements, whatever the size of the collection."""
    State = Assignment.State
    midnight = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    counts = membership.assignments.aggregate(
        judged=Count("pk", filter=Q(state=State.DONE)),
        today=Count("pk", filter=Q(state=State.DONE, ended_at__gte=midnight)),
        skipped=Count("pk", filter=Q(state=State.SKIPPED)),
        has_open=Count("pk", filter=Q(state=State.OPEN, lease_until__gt=timezone.now())),
    )
    return OwnWork(
        today=counts["today"],
        judged=counts["judged"],
        skipped=counts["skipped"],
        has_open=bool(counts["has_open"]),
        waiting=_count_open_tasks(membership),
        conflicts=count_conflicts(membership.collection) if membership.role >= Role.ADJUDICATOR else 0,
    )


def _count_open_tasks(membership: Membership) -> int:
    mine = Assignment.objects.filter(item=OuterRef("pk"), membership=membership)
    free = Item.objects.filter(collection=membership.collection_id, state=Item.State.OPEN, taken__lt=F("overlap"))
    return free.filter(~Exists(mine)).order_by()[:MANY].count()


def count_conflicts(collection: Collection) -> int:
    """Items that wait for an adjudicator, exact up to MANY."""
    return len(_list_conflicts(collection))


def _list_conflicts(collection: Collection) -> list[tuple[int | None, str]]:
    """Campaign and reason of each."""
    found = Item.objects.filter(collection=collection, state=Item.State.CONFLICT).order_by()
    return list(found.values_list("campaign", "reason")[:MANY])


@dataclass(frozen=True)
class Share:
    """A part of a whole, with a word for it."""

    key: str
    label: str
    count: int


@dataclass(frozen=True)
class CollectionOverview:
    """The home of a collection as admins see it."""

    status: Status
    campaign: Campaign | None
    conflicts: int
    own_conflicts: int
    """Of the conflicts, escalations of this campaign: they wait for an adjudicator, not for annotators."""
    skipped: int
    """Pairs that everybody skipped."""
    others: tuple["Share", ...]
    """Other tasks that wait for annotators, by reason: earlier campaigns, holes, texts; together exact up to MANY."""
    judging: int
    """Active members who are not paused: people who could judge a pair."""
    failures: list[Work]
    latency: selectors.Latency | None
    """Medians over the campaign's pairs."""
    pairs: int
    """Pairs of the collection, exact up to MANY; only counted while there is no campaign."""
    at: datetime

    @property
    def ended(self) -> int:
        """Pairs that the campaign is done with."""
        return int(self.status["pairs"] - self.status["pending"] - self.status["running"])

    @property
    def with_label(self) -> int:
        """Pairs of the campaign that have a label: by its policy or by people."""
        return int(self.status["labelled"] + self.status["settled"])

    @property
    def unjudged(self) -> int:
        """Pairs that judges still have to look at."""
        return int(self.status["pending"] + self.status["running"])

    @property
    def for_annotators(self) -> int:
        """Escalated pairs of this campaign that wait for annotators."""
        return max(0, int(self.status["open"]) - self.own_conflicts)

    @property
    def other_tasks(self) -> int:
        """How many other tasks wait."""
        return sum(one.count for one in self.others)

    @property
    def sent(self) -> int:
        """Pairs that went to people, audits among them."""
        return int(sum(self.status["escalations"].values()))

    @property
    def relevant(self) -> int:
        """Pairs that the policy labelled 1."""
        return int(self.status["labels"].get("1", 0))

    @property
    def not_relevant(self) -> int:
        """Pairs that the policy labelled 0."""
        return int(self.status["labels"].get("0", 0))

    @property
    def reasons(self) -> list[Share]:
        """Escalations by reason, most frequent first."""
        named = {value: str(label) for value, label in Item.Reason.choices}
        found = [Share(key, named.get(key, ""), int(n)) for key, n in self.status["escalations"].items() if n]
        return sorted(found, key=lambda share: (-share.count, share.key))

    @property
    def rounds(self) -> list[Share]:
        """Debates that agreed, by round."""
        found = self.status["agreed_in_round"].items()
        return [Share(key, _("round %(key)s") % {"key": key}, int(n)) for key, n in sorted(found) if n]

    @property
    def flow_summary(self) -> str:
        """The picture as a sentence."""
        s = self.status
        return _(
            "%(labelled)s labelled by judges, %(escalated)s escalated to people (%(settled)s settled, %(open)s open), "
            "%(failed)s failed, %(pending)s still to be judged."
        ) % {
            "labelled": f"{s['labelled']:,}",
            "escalated": f"{s['escalated']:,}",
            "settled": f"{s['settled']:,}",
            "open": f"{s['open']:,}",
            "failed": f"{s['failed']:,}",
            "pending": f"{s['pending'] + s['running']:,}",
        }

    @property
    def is_live(self) -> bool:
        """Numbers change by themselves: worth asking again."""
        return self.campaign is not None and self.campaign.state == Campaign.State.RUNNING


def collection_overview(collection: Collection, campaign: Campaign | None) -> CollectionOverview:
    """Everything on an admin's home, from counters, and the last failures by their index."""
    status = selectors.campaign_status(collection, campaign)
    disputed = _list_conflicts(collection)
    number = campaign.pk if campaign else None
    return CollectionOverview(
        status=status,
        campaign=campaign,
        conflicts=len(disputed),
        own_conflicts=sum(one == number and reason != Item.Reason.AUDIT for one, reason in disputed),
        skipped=skipped_by_all(collection).count(),
        others=_count_other_tasks(collection, campaign) if campaign else (),
        judging=collection.memberships.filter(is_active=True, user__is_active=True, paused_at=None).count(),
        failures=_newest_failures(campaign) if campaign and status["failed"] else [],
        latency=selectors.latency_medians(campaign) if campaign else None,
        pairs=0 if campaign else _count_candidates(collection),
        at=timezone.now(),
    )


def _count_candidates(collection: Collection) -> int:
    found = collection.pair_set.filter(is_candidate=True, query__is_current=True, document__is_current=True)
    return found.order_by()[: MANY + 1].count()


def _count_other_tasks(collection: Collection, campaign: Campaign) -> tuple[Share, ...]:
    """The queue holds items of all campaigns; the newest one's counters know only its own."""
    waiting = Item.objects.filter(collection=collection, state=Item.State.OPEN).exclude(campaign=campaign.pk)
    reasons = Counter(waiting.order_by().values_list("reason", flat=True)[:MANY])
    return tuple(Share(reason, str(Item.Reason(reason).label), n) for reason, n in reasons.most_common())


def _newest_failures(campaign: Campaign, limit: int = 5) -> list[Work]:
    failed = Work.objects.filter(campaign=campaign, state=Work.State.FAILED)
    return list(failed.select_related("pair__query", "pair__document").order_by("-id")[:limit])
