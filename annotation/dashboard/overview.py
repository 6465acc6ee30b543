"""Figures of the start page and of a collection's home, read from counters and small indexes only."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Exists, F, OuterRef, Q
from django.utils import timezone

from annotation.campaigns.rows import CampaignRow, load_counters
from annotation.models import Assignment, Membership, Role, User
from annotation.queue.skipped import skipped_by_all
from corpus.models import Collection, Item
from judges.campaigns import selectors
from judges.models import Campaign, Work

MANY = 1000  # Counts without a counter are exact up to here.


def list_collection_cards(user: User) -> list[dict[str, Any]]:
    """The cards of the collections that `user` may see, in four statements at most.

    Only admins and owners see how far the pairs are; others see their own work.
    """
    done = Count("assignments", filter=Q(assignments__state=Assignment.State.DONE))
    memberships = {m.collection_id: m for m in user.memberships.filter(is_active=True).annotate(judged=done)}
    collections = Collection.objects.order_by("name")
    if not user.is_owner:
        collections = collections.filter(pk__in=memberships)
    seen = list(collections)
    admin = {c.pk for c in seen if user.is_owner or memberships[c.pk].role >= Role.ADMIN}
    # The newest stands last: its counters are the card's.
    campaigns: dict[int, list[Campaign]] = {collection.pk: [] for collection in seen}
    for campaign in Campaign.judging.filter(collection__in=admin).order_by("pk") if admin else []:
        campaigns[campaign.collection_id].append(campaign)
    counts = load_counters([campaign.pk for found in campaigns.values() for campaign in found])
    cards = []
    for collection in seen:
        membership = memberships.get(collection.pk)
        rows = [CampaignRow(campaign, counts[campaign.pk]) for campaign in campaigns[collection.pk]]
        cards.append(
            {
                "collection": collection,
                "role": membership.get_role_display() if membership else "owner",
                "may_judge": membership is not None,
                "sees_all": collection.pk in admin,
                "judged": membership.judged if membership else 0,
                "newest": rows[-1] if rows else None,
                # Of all campaigns: an escalation waits in the queue whatever came after its campaign.
                "waiting": sum(row.unresolved_escalations for row in rows),
            }
        )
    return cards


def own_work(membership: Membership) -> dict[str, Any]:
    """Count an annotator's own work for their home page; nobody else's counts are in it.

    Three statements, whatever the size of the collection.
    """
    State = Assignment.State
    # In the site's own time zone (TIME_ZONE): "today" is the day of the people who judge.
    midnight = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    mine = Assignment.objects.filter(item=OuterRef("pk"), membership=membership)
    free = Item.objects.filter(collection=membership.collection_id, state=Item.State.OPEN, taken__lt=F("overlap"))
    counts = membership.assignments.aggregate(
        judged=Count("pk", filter=Q(state=State.DONE)),
        today=Count("pk", filter=Q(state=State.DONE, ended_at__gte=midnight)),
        skipped=Count("pk", filter=Q(state=State.SKIPPED)),
        has_open=Count("pk", filter=Q(state=State.OPEN, lease_until__gt=timezone.now())),
    )
    return counts | {
        # Items that could come to them; MANY stands for MANY and more.
        "waiting": free.filter(~Exists(mine)).order_by()[:MANY].count(),
        "conflicts": len(_list_conflicts(membership.collection)) if membership.role >= Role.ADJUDICATOR else 0,
    }


def _list_conflicts(collection: Collection) -> list[tuple[int | None, str]]:
    """Campaign and reason of each item that waits for an adjudicator, exact up to MANY."""
    found = Item.objects.filter(collection=collection, state=Item.State.CONFLICT).order_by()
    return list(found.values_list("campaign", "reason")[:MANY])


@dataclass(frozen=True)
class CollectionOverview:
    """The home of a collection as admins see it."""

    status: dict[str, Any]  # As the command `status` gives it.
    campaign: Campaign | None
    conflicts: int
    # Of the conflicts, escalations of this campaign: they wait for an adjudicator, not for annotators.
    own_conflicts: int
    skipped: int  # Pairs that everybody skipped.
    # Other tasks that wait for annotators (reason, tasks): earlier campaigns, holes, texts; together exact up to MANY.
    others: list[tuple[str, int]]
    failures: list[Work]
    latency: dict[str, float] | None  # Medians over the campaign's pairs.
    pairs: int  # Of the collection, exact up to MANY; only counted while there is no campaign.
    at: datetime

    @property
    def for_annotators(self) -> int:
        """Escalated pairs of this campaign that wait for annotators."""
        return max(0, int(self.status["open"]) - self.own_conflicts)

    @property
    def other_tasks(self) -> int:
        """Number of waiting tasks that the newest campaign did not open."""
        return sum(n for _reason, n in self.others)

    @property
    def labels(self) -> dict[str, int]:
        """Pairs that the policy labelled 1 and 0."""
        found: dict[str, int] = self.status["labels"]
        return {"1": 0, "0": 0} | found

    @property
    def reasons(self) -> list[tuple[str, str, int]]:
        """Escalations by reason (key, words, pairs), most frequent first."""
        named = {value: str(label) for value, label in Item.Reason.choices}
        found = [(key, named.get(key, ""), int(n)) for key, n in self.status["escalations"].items() if n]
        return sorted(found, key=lambda row: (-row[2], row[0]))

    @property
    def rounds(self) -> list[tuple[str, int]]:
        """Debates that agreed, by round."""
        return [(key, int(n)) for key, n in sorted(self.status["agreed_in_round"].items()) if n]

    @property
    def resolved(self) -> int:
        """Pairs that judges labelled or people settled."""
        return int(self.status["labelled"] + self.status["settled"])

    @property
    def in_work(self) -> int:
        """Pairs that judges have not ended."""
        return max(0, int(self.status["pending"] + self.status["running"]))

    @property
    def segments(self) -> list[tuple[str, float, float]]:
        """The bar of the progress: what a part is, where it begins, and how long it is, of 100."""
        s, at, found = self.status, 0.0, []
        counts = {"resolved": self.resolved, "open": s["open"], "failed": s["failed"]}
        for key, n in counts.items():
            length = 100 * n / max(s["pairs"], 1)
            if n:
                found.append((key, round(at, 3), round(length, 3)))
            at += length
        return found

    @property
    def is_live(self) -> bool:
        """Return whether the campaign runs, so that the numbers change by themselves."""
        return self.campaign is not None and self.campaign.state == Campaign.State.RUNNING


def collection_overview(
    collection: Collection, campaign: Campaign | None, status: dict[str, Any]
) -> CollectionOverview:
    """Return all figures of an admin's home page, from counters and a few indexed rows."""
    # Read once: their number, and how many of them are this campaign's own.
    disputed = _list_conflicts(collection)
    number = campaign.pk if campaign else None
    candidates = collection.pair_set.filter(is_candidate=True, query__is_current=True, document__is_current=True)
    failed = Work.objects.filter(campaign=number, state=Work.State.FAILED).order_by("-id")
    return CollectionOverview(
        status=status,
        campaign=campaign,
        conflicts=len(disputed),
        own_conflicts=sum(one == number and reason != Item.Reason.AUDIT for one, reason in disputed),
        skipped=skipped_by_all(collection).count(),
        others=_count_other_tasks(collection, campaign) if campaign else [],
        failures=list(failed.select_related("pair__query", "pair__document")[:5]) if status["failed"] else [],
        latency=selectors.latency_medians(campaign) if campaign else None,
        pairs=0 if campaign else candidates.order_by()[: MANY + 1].count(),
        at=timezone.now(),
    )


def _count_other_tasks(collection: Collection, campaign: Campaign) -> list[tuple[str, int]]:
    # The queue holds items of all campaigns; the newest one's counters know only its own.
    waiting = Item.objects.filter(collection=collection, state=Item.State.OPEN).exclude(campaign=campaign.pk)
    reasons = Counter(waiting.order_by().values_list("reason", flat=True)[:MANY])
    return [(str(Item.Reason(reason).label), n) for reason, n in reasons.most_common()]
