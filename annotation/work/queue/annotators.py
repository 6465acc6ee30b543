"""What the queue knows of an annotator: limits and counts, whether the queue is closed to them, their answers."""

import json
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Literal, NamedTuple

from django.db.models import Count, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.models import Assignment, Membership, Role
from annotation.work.queue.check_scheduling import count_passed_checks, schedule_item
from annotation.work.queue.statements import JUDGED
from corpus.collections.arm_allocation import ALL_ROUNDS, SHOWN_ONLY, Weights, draw_arm, weights_of
from store.sql import fetch_row

Closed = Literal["", "paused", "consent", "failed"]
Reached = Literal["", "quota", "daily_quota"]


class JudgedCounts(NamedTuple):
    """Judgments of a member (`Assignment.judgments`) today in the site's time zone and in total, and the open pairs.

    `compared_today`, `compared`: the comparisons of two documents that they answered, which quotas count like pairs.
    """

    today: int
    judged: int
    held: int
    compared_today: int = 0
    compared: int = 0

    @property
    def work_today(self) -> int:
        """Return the pairs and comparisons of today."""
        return self.today + self.compared_today

    @property
    def work(self) -> int:
        """Return all pairs and comparisons."""
        return self.judged + self.compared


def count_judged(membership: int) -> JudgedCounts:
    """Count the judgments of a member: for pages of admins and annotators, and for quotas. One statement."""
    return JudgedCounts(*fetch_row(JUDGED, membership=membership, midnight=start_of_site_day()))


def judged_counts(of: str = "") -> dict[str, Any]:
    """Return the aggregates `judged` and `today` of many members; `of`: as in `Assignment.judgments`."""
    done = Assignment.judgments(of)
    return {
        "judged": Count(f"{of}pk", filter=done),
        "today": Count(f"{of}pk", filter=done & Q(**{f"{of}ended_at__gte": start_of_site_day()})),
    }


def start_of_site_day() -> datetime:
    """Return when today began in the site's zone, by which counts of a day are the same for all who read them."""
    now = timezone.localtime(timezone=timezone.get_default_timezone())
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


@dataclass(frozen=True, slots=True)
class WorkLimits:
    """The limits of a member's work: at most so many pairs in a day and in all, and the last day. None: no limit.

    A comparison counts as a pair.
    """

    daily: int | None = None
    total: int | None = None
    last_day: date | None = None

    @classmethod
    def of(cls, membership: Membership) -> "WorkLimits":
        """Return the limits of a membership."""
        return cls(membership.daily_quota, membership.total_quota, membership.last_day)

    @property
    def has_quota(self) -> bool:
        """Return whether the member's judgments must be counted."""
        return self.daily is not None or self.total is not None

    def is_over(self, day: date | None = None) -> bool:
        """Return whether the deadline has passed on this day (None: today in the site's time zone)."""
        today = day or timezone.localdate(timezone=timezone.get_default_timezone())
        return self.last_day is not None and today > self.last_day

    def pairs_left(self, today: int, judged: int) -> int | None:
        """Return how many more pairs the quotas allow after the work of today and in all; None: any number."""
        quotas = ((self.daily, today), (self.total, judged))
        return min((max(0, quota - count) for quota, count in quotas if quota is not None), default=None)

    def find_reached(self, today: int, judged: int) -> Reached:
        """Return the quota because of which no new pair comes; "" where none is reached."""
        if self.total is not None and judged >= self.total:
            return "quota"
        return "daily_quota" if self.daily is not None and today >= self.daily else ""


def closed(membership: Membership) -> Closed:
    """Return why a member gets no task; "" where the queue or the qualification test is open to them."""
    if membership.paused_at is not None:
        return "paused"
    if membership.consent < membership.collection.consent_version:
        return "consent"
    if membership.failed_at is not None and needs_qualification(membership):
        return "failed"
    return ""


def needs_qualification(membership: Membership) -> bool:
    """Return whether the member must first pass the qualification test, which only annotators take."""
    has_open_test = membership.collection.qualification and membership.qualified_at is None
    return has_open_test and membership.role == Role.ANNOTATOR


def why_closed(closed: str) -> str:
    """Return the message that explains a result of `closed` to whoever sent a decision; "" where it is accepted."""
    if closed in ("", "consent"):
        return ""
    if closed == "paused":
        return _("Your access is paused, so this was not saved.")
    return _("You have not passed the qualification test, so this was not saved.")


@dataclass(frozen=True, slots=True)
class AnnotatorContext:
    """A member's limits, experiment arms and batches in the queue, and whether it is closed to them."""

    membership: int
    assessor: int
    collection: int
    minutes: int
    watermark: tuple[float, int] | None = None
    weights: Weights = SHOWN_ONLY
    seed: int = 0
    drawn: int = 0  # Items whose arm was drawn for this member so far.
    rounds: str = ALL_ROUNDS  # The rounds of a debate that are shown.
    lent: int = 0  # Items that were assigned to this member so far.
    closed_to: int = 0  # Of those, how many are in closed batches.
    # Size of a batch, share of attention checks (0 before any are made), share of repeats.
    shares: tuple[int, float, float] = (20, 0.0, 0.0)
    closed: str = ""  # Why nothing is assigned (`closed`); empty: the queue is open.
    grades: int = 1  # The highest grade of the collection's scale.
    grade_names: tuple[str, ...] = ()
    least_ms: int = 0  # A grade that comes sooner after its pair was shown is refused.
    # Number of the qualification test to take before all other tasks; None where none is needed.
    trial: int | None = None
    limits: WorkLimits = WorkLimits()

    @classmethod
    def of(cls, membership: Membership) -> "AnnotatorContext":
        """Return the context of a membership whose collection is loaded."""
        priority, position, collection = (
            membership.watermark_priority,
            membership.watermark_place,
            membership.collection,
        )
        return cls(
            membership=membership.pk,
            assessor=membership.assessor_id,
            collection=membership.collection_id,
            minutes=collection.lease_minutes,
            watermark=None if priority is None or position is None else (priority, position),
            weights=weights_of(collection.arms),
            seed=collection.seed,
            drawn=membership.arms_drawn,
            rounds=collection.rounds,
            lent=membership.lent,
            closed_to=membership.closed_to,
            shares=(collection.batch, collection.checks if collection.has_checks else 0.0, collection.repeats),
            closed=closed(membership),
            grades=collection.grades,
            grade_names=tuple(collection.grade_names),
            least_ms=collection.min_judgment_ms,
            trial=membership.trial if needs_qualification(membership) else None,
            limits=WorkLimits.of(membership),
        )

    def arm_at(self, number: int) -> str:
        """Return the arm of this member's `number`-th draw (from 0); "" where everybody reads the debate."""
        return "" if self.weights == SHOWN_ONLY else draw_arm(self.weights, self.seed, self.membership, number)

    @property
    def next_kind(self) -> str:
        """Return the kind of the next item: check, repeat, or "" for an item of the queue."""
        size, checks, repeats = self.shares
        return schedule_item(**self._position, checks=checks, repeats=repeats, size=size)

    @property
    def skipped_checks(self) -> int:
        """Return how many scheduled checks of this batch lie before the next item or soon after it."""
        size, checks, _repeats = self.shares
        return count_passed_checks(**self._position, checks=checks, size=size)

    @property
    def _position(self) -> dict[str, int]:
        return {"seed": self.seed, "annotator": self.membership, "number": self.lent, "closed_to": self.closed_to}


@dataclass(frozen=True, slots=True)
class SubmittedAnswer:
    """A submitted judgment. `token`: the lease's; `milliseconds`: time on the page, if known."""

    item: int  # The item's id, or its public id.
    token: str
    grade: int
    comment: str = ""
    milliseconds: int | None = None
    idle: int | None = None  # Milliseconds of these with the page hidden or untouched.
    # Characters of the document that the author marked as evidence: [start, end).
    spans: tuple[tuple[int, int], ...] = ()

    def fields(self, held: float) -> dict[str, Any]:
        """Return the columns to store. Times are at most the `held` seconds since the assignment."""
        # A browser's clock may be wrong, and pay is compared with medians of these times.
        most = max(0, round(held * 1000))
        milliseconds = None if self.milliseconds is None else min(self.milliseconds, most)
        idle = None if milliseconds is None or self.idle is None else min(self.idle, milliseconds)
        marked = json.dumps(self.spans) if self.spans else None
        return {
            "grade": self.grade,
            "comment": self.comment,
            "milliseconds": milliseconds,
            "idle": idle,
            "spans": marked,
        }
