"""Decisions of annotators and what follows them in the same transaction: quality control and the next claim.

The functions take a psycopg connection inside a transaction that the caller opened, by
`assignment.in_transaction`. Each stores its decision, claims the next item and returns the id of its
assignment, or None where no item is left. The same decision sent again with its token changes
nothing and returns the same. They raise the errors of the queue: Http404, DecisionRefused, BadInput.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from psycopg import Connection

from annotation.models import new_token
from annotation.work.quality_control import batches, onboarding
from annotation.work.queue import assignment
from annotation.work.queue import statements as sql
from annotation.work.queue.annotators import AnnotatorContext, SubmittedAnswer
from annotation.work.queue.assignment import run_statement
from annotation.work.queue.check_scheduling import QUALIFICATION

# One claim in so many ignores the watermark, because judges add items that belong before it.
FROM_THE_START = 16


@dataclass(frozen=True, slots=True)
class Decision:
    """A kind of decision on the page of one pair: how its form is parsed, and how it is stored."""

    # Takes the form and the membership, and returns the arguments of `store_and_claim` that follow the database
    # connection and the annotator's context.
    parse: Callable[..., tuple[Any, ...]]
    # Stores the decision, and claims the next pair in the same transaction.
    store_and_claim: Callable[..., int | None]


@dataclass(frozen=True, slots=True)
class QueryDecision(Decision):
    """A kind of decision that the page of a query offers too. All pairs of that page are assigned already."""

    store: Callable[..., object]  # Stores the decision without claiming a pair; has the same arguments.


def submit(db: Connection[Any], annotator: AnnotatorContext, answer: SubmittedAnswer) -> int | None:
    """Store a judgment, and claim the next task; after a blind judgment the same lease continues with the debate."""
    own = assignment.submit_judgment(db, annotator, answer)
    return own.id if own is not None and own.asks_first else claim_next(db, annotator, own)


def skip(db: Connection[Any], annotator: AnnotatorContext, item: int, token: str, reason: str) -> int | None:
    """Skip a task with a reason, and claim the next."""
    return claim_next(db, annotator, assignment.skip(db, annotator, item, token, reason))


def flag(db: Connection[Any], annotator: AnnotatorContext, item: int, token: str, note: str) -> int | None:
    """Flag a task for the adjudicators with a note, and claim the next."""
    return claim_next(db, annotator, assignment.flag(db, annotator, item, token, note))


def claim(db: Connection[Any], annotator: AnnotatorContext, *, catches_up: bool = False) -> int | None:
    """Renew the member's open lease, or claim a new one; `catches_up`: with an attention check that was skipped."""
    lease = assignment.renew_lease(db, annotator)
    return _claim_new(db, annotator, None, catches_up=catches_up) if lease is None else lease


def claim_query(db: Connection[Any], annotator: AnnotatorContext) -> int | None:
    """Claim a task and, with a new lease, up to 20 open tasks of the same query, as one lease group."""
    open_lease = assignment.lock_open_lease(db, annotator)
    lease = claim(db, annotator, catches_up=True)
    if open_lease is None and lease is not None:
        # Assign the member the other open pairs of a new lease's query, at most 20 with it.
        arms = [annotator.arm_at(annotator.drawn + number) for number in range(sql.GROUP_SIZE)]
        left = assignment.pairs_left(db, annotator)
        run_statement(
            db,
            sql.GROUP,
            most=sql.GROUP_SIZE - 1 if left is None else min(sql.GROUP_SIZE - 1, left),
            assignment=lease,
            collection=annotator.collection,
            membership=annotator.membership,
            minutes=annotator.minutes,
            drawn=annotator.drawn,
            arms=arms,
            tokens=[new_token() for _ in arms],
        )
    return lease


def claim_next(db: Connection[Any], annotator: AnnotatorContext, own: assignment.OwnAssignment | None) -> int | None:
    """Claim the lease after a decision on `own`, None where the decision was stored already; return its id.

    Returns None after a practice pair: its author first reads the feedback.
    """
    if own is None:
        return claim(db, annotator)
    if own.reason == QUALIFICATION and own.priority < 0:
        return None
    # After a late decision or one in a lease group another lease may be open, which is renewed.
    if own.state != "open" or own.place:
        return claim(db, annotator)
    return _claim_new(db, annotator, annotator.watermark if own.id % FROM_THE_START else None)


def _claim_new(
    db: Connection[Any], annotator: AnnotatorContext, watermark: tuple[float, int] | None, *, catches_up: bool = False
) -> int | None:
    """Claim a new lease, in the qualification test where the member takes it; close a complete batch before.

    None without an item, at a quota and after the deadline.
    """
    if annotator.closed or assignment.pairs_left(db, annotator) == 0:
        return None
    if annotator.trial is not None:
        values = {"kind": QUALIFICATION, "trial": annotator.trial, "lent": 0, "separate": 0}
        lease = assignment.claim_lease(db, sql.CLAIM_INSTEAD, annotator, **values)
        if lease is None:
            onboarding.decide(annotator.membership)
        return lease
    # All items of a batch are assigned: its attention checks are evaluated.
    size, checks, _repeats = annotator.shares
    if checks > 0 and annotator.lent - annotator.closed_to >= size:
        batches.close(annotator.membership)
    return assignment.claim_next_task(db, annotator, watermark, catches_up=catches_up)
