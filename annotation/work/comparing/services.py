"""Comparisons: draw a set, control it; assign comparisons to people, and store their answers."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _

from actions.services import Actor, action
from annotation.models import Membership
from annotation.models.comparisons import Comparison, ComparisonLease, ComparisonSet, Preference
from annotation.models.judged_comparisons import JudgedComparison
from annotation.work.comparing import selectors
from annotation.work.comparing.options import MOST, ComparisonAnswer, ComparisonAnswerOptions, ComparisonOptions
from annotation.work.quality_control import onboarding
from annotation.work.queue.aggregation import UNDO_WITHIN
from annotation.work.queue.annotators import WorkLimits, closed, count_judged, why_closed
from corpus.errors import BadInput, BadOption, StateConflict
from corpus.holding import hold, hold_row
from corpus.models import Collection
from store.sql import execute, read_sql

CLAIM = read_sql(__file__, "claim_comparisons")
EXPIRE = read_sql(__file__, "expire_comparisons")
OPEN = 2  # Comparisons that are open for a person: one is shown, the next is on the page already.
Outcome = Preference.Outcome
# By answer: the outcome, and that of a comparison which was shown swapped.
OUTCOMES: dict[ComparisonAnswer, tuple[str, str]] = {
    ComparisonAnswer.LEFT: (Outcome.FIRST, Outcome.SECOND),
    ComparisonAnswer.RIGHT: (Outcome.SECOND, Outcome.FIRST),
    ComparisonAnswer.EQUAL: (Outcome.EQUAL, Outcome.EQUAL),
    ComparisonAnswer.BOTH_BAD: (Outcome.BOTH_BAD, Outcome.BOTH_BAD),
}


@action("comparisons.drawn", key="set")
def draw_comparisons(actor: Actor, collection: Collection, options: ComparisonOptions) -> ComparisonSet:
    """Draw a set of comparisons of two documents of a query. Raises BadOption where there is nothing to compare."""
    couples = selectors.draw_set(collection, options)
    if not couples:
        raise BadOption("documents", _("No query has two such documents to compare."))
    if len(couples) > MOST:
        sentence = _("%(count)s comparisons are more than %(most)s: choose fewer queries, documents or opponents.")
        raise BadOption("queries", sentence % {"count": f"{len(couples):,}", "most": f"{MOST:,}"})
    comparison_set = ComparisonSet.objects.create(
        collection=collection,
        title=options.title,
        options=options.model_dump(mode="json"),
        seed=options.seed,
        people=options.people,
        created_by=actor.user,
    )
    Comparison.objects.bulk_create(
        Comparison(set=comparison_set, first_id=first, second_id=second, seq=seq)
        for seq, (first, second) in enumerate(couples, 1)
    )
    comparison_set.refresh_from_db()  # The database gave its number.
    return comparison_set


def _log_control(_options: None, comparison_set: ComparisonSet) -> dict[str, Any]:
    state = "ended" if comparison_set.ended_at else "paused" if comparison_set.paused_at else "resumed"
    return {"set": comparison_set.number, "state": state}


@action("comparisons.control", noted=_log_control)
def pause_set(actor: Actor, comparison_set: ComparisonSet) -> ComparisonSet:
    """Pause a set: people get none of its comparisons until it is resumed."""
    return _change_state(comparison_set, paused_at=timezone.now())


@action("comparisons.control", noted=_log_control)
def resume_set(actor: Actor, comparison_set: ComparisonSet) -> ComparisonSet:
    """Resume a paused set."""
    return _change_state(comparison_set, paused_at=None)


@action("comparisons.control", noted=_log_control)
def end_set(actor: Actor, comparison_set: ComparisonSet) -> ComparisonSet:
    """End a set for good. Its answers are kept, and nobody can add or undo any."""
    return _change_state(comparison_set, ended_at=timezone.now())


@action("comparisons.deleted", noted=lambda _options, number: {"set": number})
def delete_set(actor: Actor, comparison_set: ComparisonSet) -> int:
    """Delete a set that has no answers, and return its number."""
    hold_row(comparison_set)
    answers = (rows.filter(comparison__set=comparison_set) for rows in (Preference.objects, JudgedComparison.objects))
    if any(rows.exists() for rows in answers):
        raise BadInput(_("This set has answers, which are kept. End it instead."))
    number = comparison_set.number
    comparison_set.delete()
    return number


# By the name of the action in the URL.
SET_ACTIONS: dict[str, Callable[[Actor, ComparisonSet], Any]] = {
    "pause": pause_set,
    "resume": resume_set,
    "end": end_set,
    "delete": delete_set,
}


def _change_state(comparison_set: ComparisonSet, **values: Any) -> ComparisonSet:
    if hold_row(comparison_set).ended_at is not None:
        raise BadInput(_("This set has ended."))
    for name, value in values.items():
        setattr(comparison_set, name, value)
    comparison_set.save(update_fields=list(values))
    return comparison_set


# People at work


@transaction.atomic
def claim(membership: Membership) -> None:
    """Renew the member's open comparisons, and assign further ones until they have two."""
    # The lock of their row puts the requests of two tabs in order.
    _claim_more(hold(Membership.objects.select_related("collection"), membership.pk, no_key=True))


@transaction.atomic
def answer(membership: Membership, options: ComparisonAnswerOptions) -> None:
    """Store a member's answer to an assigned comparison, and assign the next.

    The same comparison answered again changes nothing: it was a second press. Raises StateConflict where it is not
    assigned to them any more, and BadInput for an answer that took less time than the collection allows.
    """
    member = hold(Membership.objects.select_related("collection"), membership.pk, no_key=True)
    if refusal := why_closed(closed(member)):
        raise StateConflict(refusal)
    leases = selectors.leases_of(member).select_related("comparison__set")
    row = leases.filter(comparison__set__number=options.set, comparison__seq=options.comparison).first()
    if row is None or row.comparison.set.ended_at is not None:
        raise StateConflict(_("This comparison is no longer assigned to you. Your answer was not saved."))
    if row.is_open:
        if options.seconds is not None and options.seconds * 1000 < member.collection.min_judgment_ms:
            raise BadInput(_("Ignored: this is a new comparison."))
        _append(member, row, OUTCOMES[options.answer][row.swapped], options.seconds)
        ComparisonLease.objects.filter(pk=row.pk).update(is_open=False, answered_at=Now())
    _claim_more(member)


@transaction.atomic
def undo(membership: Membership) -> None:
    """Withdraw the member's last answer, whose comparison is open again. Raises StateConflict where there is none."""
    member = hold(Membership.objects.select_related("collection"), membership.pk, no_key=True)
    if refusal := why_closed(closed(member)):
        raise StateConflict(refusal)
    answered = selectors.leases_of(member).filter(
        is_open=False, comparison__set__ended_at=None, answered_at__gt=timezone.now() - UNDO_WITHIN
    )
    row = answered.order_by("-answered_at", "-pk").first()
    if row is None:
        raise StateConflict(_("There is no answer to undo."))
    _append(member, row, "", None)
    until = timezone.now() + timedelta(minutes=member.collection.lease_minutes)
    ComparisonLease.objects.filter(pk=row.pk).update(is_open=True, lease_until=until)


def _append(member: Membership, lease: ComparisonLease, outcome: str, seconds: float | None) -> None:
    Preference.objects.create(
        comparison_id=lease.comparison_id,
        assessor_id=member.assessor_id,
        outcome=outcome,
        swapped=lease.swapped,
        seconds=seconds,
    )


def _claim_more(member: Membership) -> None:
    minutes = member.collection.lease_minutes
    open_leases = selectors.leases_of(member).filter(
        is_open=True, comparison__set__ended_at=None, comparison__set__paused_at=None
    )
    renewed = open_leases.update(lease_until=Now() + timedelta(minutes=minutes))
    if onboarding.find_stop(member):
        return
    limits, most = WorkLimits.of(member), OPEN
    if limits.has_quota:
        counts = count_judged(member.pk)
        most = min(OPEN, limits.pairs_left(counts.work_today + counts.held, counts.work + counts.held) or 0)
    values: dict[str, Any] = {"membership": member.pk, "minutes": minutes}
    for comparison_set in selectors.sets_at_work(member.collection).filter(people__gt=0):
        if renewed >= most:
            return
        execute(EXPIRE, set=comparison_set.pk, membership=member.pk)
        values |= {"set": comparison_set.pk, "people": comparison_set.people, "seed": comparison_set.seed}
        renewed += execute(CLAIM, **values, most=most - renewed)
