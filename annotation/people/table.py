"""The rows of the People page: each member with how much, how fast and how well they judge."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from annotation.agreement.cached_results import MeasuringFailed, measuring
from annotation.agreement.grade_matrix import known_assessors
from annotation.agreement.measures import Statistic
from annotation.models import Assignment, Membership
from annotation.models.quality_control import Batch, JudgmentExclusion
from annotation.people.accounts import members
from annotation.quality.label_quality.records import PersonQuality
from annotation.quality.label_quality.statistics import StoredStatistics, cached_statistics
from annotation.work.quality_control import exclusion, onboarding
from annotation.work.queue.annotators import needs_qualification
from corpus.models import Assessor, Collection

SHOWN = 50  # Acts and batches on a person's page.


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A line of the table. `quality` None: nothing is measured of this person yet."""

    member: Membership
    judged: int
    today: int
    quality: PersonQuality | None

    @property
    def alerts(self) -> tuple[str, ...]:
        """Return why an admin should look at this person's work; empty for those who left."""
        # Someone who left needs no attention.
        if not self.member.is_active:
            return ()
        alarms = self.quality.alarms if self.quality else ()
        return (gettext("did not pass the test"), *alarms) if self.is_failed else alarms

    @property
    def is_failed(self) -> bool:
        """Return whether the person failed the qualification test and cannot judge."""
        return self.member.failed_at is not None and needs_qualification(self.member)

    @property
    def status(self) -> int:
        """Return the sort key of the status: 0 active, 1 paused, 2 left."""
        return 2 if not self.member.is_active else 1 if self.member.paused_at else 0


@dataclass(frozen=True, slots=True)
class Column:
    """A column that the table is sorted by: `descending`, what a first click gives."""

    key: str
    title: Promise
    value: Callable[[MemberRow], Any]
    descending: bool = True
    number: bool = True


def _measured(name: str) -> Callable[[MemberRow], float | None]:
    def value(row: MemberRow) -> float | None:
        found = getattr(row.quality, name) if row.quality else None
        return found.value if isinstance(found, Statistic) else found

    return value


COLUMNS = (
    Column("name", _("Name"), lambda row: row.member.user.username.casefold(), descending=False, number=False),
    Column("role", _("Role"), lambda row: row.member.role, number=False),
    Column("judged", _("Judged"), lambda row: row.judged),
    Column("today", _("Today"), lambda row: row.today),
    Column("agreement", _("Agrees with others"), _measured("majority"), descending=False),
    Column("gold", _("Accuracy on gold"), _measured("gold"), descending=False),
    # Shares and not counts: who has answered more checks has missed more.
    Column(
        "checks",
        _("Checks passed"),
        lambda row: 1 - row.quality.missed / row.quality.checks if row.quality and row.quality.checks else None,
        descending=False,
    ),
    Column("seconds", _("Median time"), _measured("seconds"), descending=False),
    Column("alerts", _("Alerts"), lambda row: len(row.alerts), number=False),
    Column("status", _("Status"), lambda row: row.status, descending=False, number=False),
)


def read_statistics(collection: Collection) -> tuple[StoredStatistics, str]:
    """Read or compute everybody's figures, or say in words why they could not be measured."""
    try:
        with measuring(collection):
            return cached_statistics(collection), ""
    except MeasuringFailed as error:
        return StoredStatistics(stored=False), str(error)


def list_rows(collection: Collection, people: Iterable[PersonQuality], order: str) -> list[MemberRow]:
    """List members in an order (a column's key, "-": descending); without one alerts first; the unmeasured last."""
    measured = {one.membership: one for one in people}
    rows = [
        MemberRow(member, member.judged, member.today, measured.get(member.pk))  # type: ignore[attr-defined]  # annotated
        for member in members.list_members(collection)
    ]
    column = next((one for one in COLUMNS if one.key == order.removeprefix("-")), None)
    if column is None:
        # Who leads stands above who judges where nothing else decides.
        return sorted(rows, key=lambda row: (row.status == 2, -len(row.alerts), -row.member.role))
    # Sorted apart, so that a person without a figure is never the best or the worst.
    known = [row for row in rows if column.value(row) is not None]
    unknown = [row for row in rows if column.value(row) is None]
    return sorted(known, key=column.value, reverse=order.startswith("-")) + unknown


def list_headings(order: str) -> list[dict[str, Any]]:
    """List the table's headings: each with its order on a click, and the present order."""
    found = []
    for column in COLUMNS:
        first, second = (f"-{column.key}", column.key) if column.descending else (column.key, f"-{column.key}")
        now = {column.key: "ascending", f"-{column.key}": "descending"}.get(order, "")
        turn = second if order == first else first
        found.append({"title": column.title, "number": column.number, "order": turn, "sorted": now})
    return found


def find_quality(collection: Collection, member: Membership) -> tuple[StoredStatistics, str, PersonQuality | None]:
    """Find one person's figures, with all that was read for them and why one is missing."""
    found, problem = read_statistics(collection)
    one = next((one for one in found.people or () if one.membership == member.pk), None)
    # The same rule as in the table, on the person's own page.
    return found, problem, replace(one, alarms=one.alarms if member.is_active else ()) if one else None


def annotator_record(membership: Membership) -> dict[str, Any]:
    """Read what the page of a person shows. Nine statements."""
    acts = JudgmentExclusion.objects.filter(membership=membership)
    acts = acts.select_related("made_by", "reverses", "reversed_by").order_by("-pk")
    result = onboarding.read_result(membership)
    own = (Assessor.Kind.PERSON, membership.assessor_id)
    names = (one.name for one in known_assessors(membership.collection) if (one.kind, one.id) == own)
    standing = membership.assignments.filter(Assignment.judgments()).count()
    return {
        "standing": standing,
        # With those that are no tasks: under aspects, and an adjudicator's.
        "excludable": standing > 0 or exclusion.current_judgments(membership).exists(),
        "texts": exclusion.current_texts(membership).count(),
        "acts": list(acts[:SHOWN]),
        "batches": list(Batch.objects.filter(membership=membership).order_by("-number")[:SHOWN]),
        "result": result if result.answered else None,
        # The name under which the list of pairs finds what they graded; empty for nothing.
        "listed_as": next(names, ""),
    }
