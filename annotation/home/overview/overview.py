"""Figures of the start page and of a collection's home, read only from counters and small indexes."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.models import Assignment, Membership, Role, User
from annotation.work.queue.annotators import WorkLimits, count_judged, judged_counts
from corpus.models import Collection, Item
from judges.campaigns import selectors
from judges.campaigns.pair_states import IMPORTED, PairState, PairStates, recent_states
from judges.models import Campaign, Work

MANY = 1000  # Counts without a counter are exact up to here.
SHOWN = 50  # Campaigns that can be selected.
NO_LABEL = frozenset({Item.Reason.AUDIT, Item.Reason.EVIDENCE})  # Conflicts of pairs that have a label.


def list_collection_cards(user: User) -> list[dict[str, Any]]:
    """Return the cards of a user's collections; only viewers, admins and owners see progress."""
    rows = user.memberships.filter(is_active=True).annotate(**judged_counts("assignments__"))
    memberships = {membership.collection_id: membership for membership in rows}
    collections = Collection.objects.order_by("name")
    if not user.is_owner:
        collections = collections.filter(pk__in=memberships)
    readable = {
        collection.pk
        for collection in collections
        if user.is_owner or memberships[collection.pk].role in (Role.VIEWER, Role.ADMIN)
    }
    states, live = recent_states(readable), set()
    if readable:
        running = Campaign.judging.filter(collection__in=readable, state=Campaign.State.RUNNING)
        live = set(running.values_list("collection", flat=True))
    return [
        {
            "collection": collection,
            "role": membership.get_role_display() if membership else "owner",
            "may_judge": membership is not None and (user.is_owner or membership.role != Role.VIEWER),
            "sees_all": collection.pk in readable,
            "judged": membership.judged if membership else 0,  # type: ignore[attr-defined]  # annotated
            "states": states.get(collection.pk),
            "is_live": collection.pk in live,
            "waiting": states[collection.pk].counts[PairState.OPEN] if collection.pk in states else 0,
        }
        for collection in collections
        for membership in [memberships.get(collection.pk)]
    ]


def own_work(membership: Membership) -> dict[str, Any]:
    """Count an annotator's work for their home page, in four statements."""
    State = Assignment.State
    assignments = Assignment.objects.filter(item=OuterRef("pk"), membership=membership)
    free = Item.objects.filter(collection=membership.collection_id, state=Item.State.OPEN, taken__lt=F("overlap"))
    counts = membership.assignments.aggregate(
        **judged_counts(),
        skipped=Count("pk", filter=Q(state=State.SKIPPED)),
        has_open=Count("pk", filter=Q(state=State.OPEN, lease_until__gt=timezone.now())),
    )
    count = free.filter(~Exists(assignments)).order_by()[:MANY].count()
    work = count_judged(membership.pk)
    left = WorkLimits.of(membership).pairs_left(work.work_today, work.work)
    return counts | {
        "compared": work.compared,
        "compared_today": work.compared_today,
        "waiting": count if left is None else min(count, left),
        "conflicts": _find_conflicts(membership.collection).count() if membership.role >= Role.ADJUDICATOR else 0,
    }


def _find_conflicts(collection: Collection) -> QuerySet[Item]:
    """Return the items that wait for an adjudicator, at most MANY."""
    return Item.objects.filter(collection=collection, state=Item.State.CONFLICT).order_by()[:MANY]


@dataclass(frozen=True)
class CollectionOverview:
    """The home of a collection as admins see it: all its pairs, or one selected campaign."""

    status: dict[str, Any]  # As the command `status` prints it.
    unjudged: int  # Pairs that nobody has judged and no campaign will.
    selected: Campaign | None  # The only campaign that the figures count; None: the whole collection.
    campaign: Campaign | None  # The selected one, else the newest that was not cancelled.
    campaigns: list[Campaign]  # Those that can be selected, the newest first.
    is_live: bool  # A campaign is running, so the numbers change.
    conflicts: int
    # Escalated pairs among the conflicts: they wait for an adjudicator, not for annotators.
    own_conflicts: int
    failures: list[Work]
    latency: dict[str, float] | None  # Medians over the pairs of `campaign`.
    at: datetime

    @property
    def filter(self) -> str:
        """Start of the query string of links to pairs."""
        return f"campaign={self.selected.number}&" if self.selected else ""

    @property
    def open_filter(self) -> str:
        """Query string of the pairs that wait for people; in a collection, pairs without a label."""
        return f"{self.filter}state=open" + ("" if self.selected else "&label=none")

    @property
    def has_figures(self) -> bool:
        """Return whether there are figures beyond the number of pairs."""
        return self.campaign is not None or self.unjudged < int(self.status["pairs"])

    @property
    def labels(self) -> dict[str, int]:
        """Pairs that the policy labelled 1 and 0."""
        counts: dict[str, int] = self.status["labels"]
        return {"1": 0, "0": 0} | counts

    @property
    def reasons(self) -> list[tuple[str, str, int]]:
        """Escalations by reason (key, words, pairs), most frequent first."""
        words = {value: str(label) for value, label in Item.Reason.choices} | {IMPORTED: _("imported judgments")}
        rows = [(key, words.get(key, ""), int(n)) for key, n in self.status["escalations"].items() if n]
        return sorted(rows, key=lambda row: (-row[2], row[0]))

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
        """Pairs that a campaign is judging or will judge."""
        return max(0, int(self.status["pending"] + self.status["running"]) - self.unjudged)

    @property
    def segments(self) -> list[tuple[str, float, float]]:
        """Segments (key, start, length) of the progress bar, in percent of its width."""
        status, start, parts = self.status, 0.0, []
        counts = {"resolved": self.resolved, "open": status["open"], "failed": status["failed"]}
        for key, n in counts.items():
            length = 100 * n / max(status["pairs"], 1)
            if n:
                parts.append((key, round(start, 3), round(length, 3)))
            start += length
        return parts


def collection_overview(
    collection: Collection, selected: Campaign | None, status: dict[str, Any], states: PairStates
) -> CollectionOverview:
    """Return the figures of an admin's home page. `status`: of the collection, or of the selected campaign."""
    campaigns = list(selectors.campaigns_of(collection)[:SHOWN])
    campaign = selected or next(iter(campaigns), None)
    disputed = list(_find_conflicts(collection).values_list("campaign", "reason"))
    failed = Work.objects.filter(campaign__in=[selected] if selected else campaigns, state=Work.State.FAILED)
    if selected is None:
        unjudged = states.counts[PairState.UNJUDGED]
        own_conflicts = sum(reason not in NO_LABEL for _campaign, reason in disputed)
        failed = failed.exclude(pair__labels__aspect=None)
    else:
        unjudged = int(status["pending"]) if selected.state == Campaign.State.CANCELLED else 0
        own_conflicts = sum(pk == selected.pk and reason != Item.Reason.AUDIT for pk, reason in disputed)
    failures = failed.order_by("-id").select_related("pair__query", "pair__document")[:5] if status["failed"] else ()
    return CollectionOverview(
        status=status,
        unjudged=unjudged,
        selected=selected,
        campaign=campaign,
        campaigns=campaigns if len(campaigns) > 1 or selected else [],
        is_live=any(row.state == Campaign.State.RUNNING for row in ([selected] if selected else campaigns)),
        conflicts=len(disputed),
        own_conflicts=own_conflicts,
        failures=list(failures),
        latency=selectors.latency_medians(campaign) if campaign else None,
        at=timezone.now(),
    )
