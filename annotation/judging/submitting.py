"""Decisions of annotators and what follows: settle, quality control, claim the next item. All in one transaction.

The functions take a psycopg connection inside a transaction that the caller opened, by
`assignment.in_transaction`. Each claims the next item and returns its assignment's id, or None when
nothing is left. The same decision sent again with its token changes nothing and answers the same.
They raise what the queue raises: Unknown, DecisionRefused, TooSoon.
"""

from typing import Any

from psycopg import Connection

from annotation.quality_control import batches, onboarding
from annotation.queue import assignment
from annotation.queue import statements as sql
from annotation.queue.annotators import AnnotatorContext, SubmittedAnswer
from annotation.queue.check_scheduling import QUALIFICATION

# One claim in so many ignores the watermark, because judges add items that come before it.
FROM_THE_START = 16


def submit(db: Connection[Any], desk: AnnotatorContext, answer: SubmittedAnswer) -> int | None:
    """Settle one judgment, and claim. After the reveal arm's first vote the same lease goes on."""
    own = assignment.submit_judgment(db, desk, answer)
    return own.id if own is not None and own.asks_first else claim_next(db, desk, own)


def skip(db: Connection[Any], desk: AnnotatorContext, item: int, token: str, reason: str) -> int | None:
    """Skip a task with a reason, and claim the next."""
    return claim_next(db, desk, assignment.skip(db, desk, item, token, reason))


def flag(db: Connection[Any], desk: AnnotatorContext, item: int, token: str, note: str) -> int | None:
    """Flag a task for the adjudicators with a note, and claim the next."""
    return claim_next(db, desk, assignment.flag(db, desk, item, token, note))


def claim(db: Connection[Any], desk: AnnotatorContext, *, catches_up: bool = False) -> int | None:
    """Return the member's open lease, renewed, or a new one; `catches_up`: with a check that was passed over."""
    mine = assignment.renew_lease(db, desk)
    return _claim_new(db, desk, None, catches_up=catches_up) if mine is None else mine


def claim_query(db: Connection[Any], desk: AnnotatorContext) -> int | None:
    """Claim a task and, with a new lease, up to 20 waiting tasks of the same query, as one lease group."""
    held = assignment.lock_open_lease(db, desk)
    lease = claim(db, desk, catches_up=True)
    if held is None and lease is not None:
        assignment.claim_lease_group(db, desk, lease)
    return lease


def claim_next(db: Connection[Any], desk: AnnotatorContext, own: assignment.OwnAssignment | None) -> int | None:
    """Return the lease after a decision; where the decision was known already, the one that is open.

    A late one may find that its author holds another lease already. After practice nothing comes by
    itself: its author reads first how they did.
    """
    if own is None:
        return claim(db, desk)
    # After a practice pair comes its feedback, and no new pair with it.
    if own.reason == QUALIFICATION and own.priority < 0:
        return None
    # A late answer, or one in a group: the open pair may be another, and is renewed first.
    if own.state != "open" or own.place:
        return claim(db, desk)
    return _claim_new(db, desk, desk.watermark if own.id % FROM_THE_START else None)


def _claim_new(
    db: Connection[Any], desk: AnnotatorContext, watermark: tuple[float, int] | None, *, catches_up: bool = False
) -> int | None:
    """Claim a new lease after quality control: the test, and a complete batch is closed."""
    if desk.closed:
        # Closed to the member: what they hold ended already, and nothing new is assigned.
        return None
    if desk.trial is not None:
        values = {"kind": QUALIFICATION, "trial": desk.trial, "lent": 0, "separate": 0}
        lease = assignment.claim_lease(db, sql.CLAIM_INSTEAD, desk, **values)
        if lease is None:
            onboarding.decide(desk.membership)
        return lease
    if desk.ends_batch:
        batches.close(desk.membership)
    return assignment.claim_next_task(db, desk, watermark, catches_up=catches_up)
