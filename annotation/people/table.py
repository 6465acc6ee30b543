"""The table of the People page: how much, how fast and how well each member judges."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from annotation.agreement.cached_results import MeasuringFailed, measuring
from annotation.agreement.grade_matrix import known_assessors
from annotation.agreement.measures import Statistic
from annotation.models import Membership
from annotation.models.quality_control import Batch, JudgmentExclusion
from annotation.people.accounts import members
from annotation.quality.label_quality.records import PersonQuality
from annotation.quality.label_quality.statistics import StoredStatistics, cached_statistics
from annotation.work.quality_control import exclusion, onboarding
from annotation.work.queue.annotators import WorkLimits, count_judged, needs_qualification
from corpus.models import Assessor, Collection

SHOWN = 50  # The most exclusions and batches on a person's page.


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A row of the table. `quality` is None before anything is measured of the member."""

    member: Membership
    judged: int
    today: int
    quality: PersonQuality | None

    @property
    def alerts(self) -> tuple[str, ...]:
        """Return why an admin should look at this member's work; empty for members who left."""
        if not self.member.is_active:
            return ()
        alarms = self.quality.alarms if self.quality else ()
        if not self.is_failed:
            return alarms
        asks = self.member.retake_asked_at is not None
        return (gettext("asks to take the test again") if asks else gettext("did not pass the test"), *alarms)

    @property
    def is_failed(self) -> bool:
        """Return whether the member failed the qualification test and cannot judge."""
        return self.member.failed_at is not None and needs_qualification(self.member)

    @property
    def is_past_deadline(self) -> bool:
        """Return whether the member gets no new pairs because their last day has passed."""
        return WorkLimits.of(self.member).is_over()

    @property
    def status(self) -> int:
        """Return the sort key of the status: 0 for active, 1 for paused, 2 for left."""
        return 2 if not self.member.is_active else 1 if self.member.paused_at else 0


@dataclass(frozen=True, slots=True)
class Column:
    """A sortable column of the table; `descending`: the order on the first click."""

    key: str
    title: Promise
    value: Callable[[MemberRow], Any]
    descending: bool = True
    number: bool = True


def _measured(name: str) -> Callable[[MemberRow], float | None]:
    def value(row: MemberRow) -> float | None:
        figure = getattr(row.quality, name) if row.quality else None
        return figure.value if isinstance(figure, Statistic) else figure

    return value


COLUMNS = (
    Column("name", _("Name"), lambda row: row.member.user.username.casefold(), descending=False, number=False),
    Column("role", _("Role"), lambda row: row.member.role, number=False),
    Column("judged", _("Judged"), lambda row: row.judged),
    Column("today", _("Today"), lambda row: row.today),
    Column("agreement", _("Agrees with others"), _measured("majority"), descending=False),
    Column("gold", _("Accuracy on gold"), _measured("gold"), descending=False),
    # Shares, because the number of missed checks grows with the number of checks.
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
    """Return the stored or computed figures of all members, or the reason why they cannot be measured."""
    try:
        with measuring(collection):
            return cached_statistics(collection), ""
    except MeasuringFailed as error:
        return StoredStatistics(stored=False), str(error)


def list_rows(collection: Collection, people: Iterable[PersonQuality], order: str) -> list[MemberRow]:
    """List members in the order of a column ("-" before its key: descending), by default those with alerts first.

    Members without a figure in the column come last.
    """
    quality_by_member = {person.membership: person for person in people}
    rows = [
        MemberRow(member, member.judged, member.today, quality_by_member.get(member.pk))  # type: ignore[attr-defined]  # annotated
        for member in members.list_members(collection)
    ]
    column = next((heading for heading in COLUMNS if heading.key == order.removeprefix("-")), None)
    if column is None:
        # Among equal members, those with a higher role come first.
        return sorted(rows, key=lambda row: (row.status == 2, -len(row.alerts), -row.member.role))
    measured_rows = [row for row in rows if column.value(row) is not None]
    unmeasured_rows = [row for row in rows if column.value(row) is None]
    return sorted(measured_rows, key=column.value, reverse=order.startswith("-")) + unmeasured_rows


def find_quality(collection: Collection, member: Membership) -> tuple[StoredStatistics, str, PersonQuality | None]:
    """Return the figures of all members, the reason why they are missing, and the figures of one member."""
    statistics, problem = read_statistics(collection)
    quality = next((person for person in statistics.people or () if person.membership == member.pk), None)
    # As in the table, members who left have no alarms.
    if quality and not member.is_active:
        quality = replace(quality, alarms=())
    return statistics, problem, quality


def annotator_record(membership: Membership) -> dict[str, Any]:
    """Return the context of a member's page. Nine statements."""
    acts = JudgmentExclusion.objects.filter(membership=membership)
    acts = acts.select_related("made_by", "reverses", "reversed_by").order_by("-pk")
    result = onboarding.read_result(membership)
    own = (Assessor.Kind.PERSON, membership.assessor_id)
    names = (
        assessor.name for assessor in known_assessors(membership.collection) if (assessor.kind, assessor.id) == own
    )
    counts = count_judged(membership.pk)
    return {
        "today": counts.today,
        "standing": counts.judged,
        "compared": counts.compared,
        "compared_today": counts.compared_today,
        # Also judgments under aspects and by adjudicators, which have no assignment.
        "excludable": counts.judged > 0 or exclusion.current_judgments(membership).exists(),
        "texts": exclusion.current_texts(membership).count(),
        "acts": list(acts[:SHOWN]),
        "batches": list(Batch.objects.filter(membership=membership).order_by("-number")[:SHOWN]),
        "result": result if result.answered else None,
        # The name by which the list of pairs filters their grades; empty without grades.
        "listed_as": next(names, ""),
    }
