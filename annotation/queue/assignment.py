"""People's queue: assign items, resolve them by judgments. What follows a decision: annotation.judging.submitting.

The functions that take a `db` work on one psycopg connection inside a transaction that the caller
opened, so that the web and a race of raw clients run the same statements. `in_transaction` is the
web's way to call them.
"""

import json
import random
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Literal, NamedTuple, TypeVar

import psycopg
from django.db import DatabaseError, connection, transaction
from django.utils.translation import gettext as _
from psycopg import errors
from psycopg.rows import tuple_row

from annotation.models import Assignment, new_token
from annotation.queue import statements as sql
from annotation.queue.aggregation import State, aggregate_judgments
from annotation.queue.annotators import AnnotatorContext, SubmittedAnswer, why_closed
from annotation.queue.check_scheduling import CHECK, SEPARATE
from corpus.collections.arm_allocation import ALL_ROUNDS, HIDDEN, REVEAL, SHOWN
from corpus.collections.task_order import MEASURING
from corpus.labels import name_grade

T = TypeVar("T")
# With growing random waits between them: claims that meet several times in a row are rare.
TRIES = 6
# UniqueViolation: two claims of one member met, and one of them inserted the assignment first.
AGAIN = (errors.DeadlockDetected, errors.SerializationFailure, errors.UniqueViolation)
# Counters are split into shards: people who settle at once do not wait for one row.
SHARDS = 16
# The debate is not on the page: audits are judged from the texts alone.
BLIND = "hidden"
# Of a first vote taken back and given anew: its author saw the debate, so not blind.
SEEN = "reveal:seen"

BEGINNING = (float("-inf"), 0)  # The watermark of a member to whom everything is new.

WORKABLE = ("open", "conflict", "standing")  # States of an item in which a decision on it counts.
# How the tokens of leases begin that a bulk act took from their holders: no page has them, so no late answer counts.
TAKEN_AWAY = "taken-"
EVIDENCE = "evidence"  # The reason of items that ask for texts and not for a grade.


class OwnAssignment(NamedTuple):
    """A member's assignment and item as locked: the columns of lock_own.sql."""

    id: int
    item_id: int
    token: str
    state: str
    judgment_id: int | None
    reason: str
    item_state: str
    pair_id: int
    campaign: int | None
    overlap: int
    taken: int
    done: int
    arm: str
    priority: float
    first_id: int | None
    # Of the blind vote in the reveal arm; None where it is yet to be given, or was taken back.
    first_grade: int | None
    place: int  # In a lease group; 0: not in one.
    held: float  # Seconds since it was assigned.
    served_ms: float | None  # Since it came to the page.

    @property
    def asks_first(self) -> bool:
        """Return whether the annotator must still vote once without seeing the debate."""
        return self.arm == REVEAL and self.reason != "audit" and self.first_grade is None


class DecisionRefused(Exception):
    """The answer counts no more: the item was closed. The text says what happened."""


class DecidedAlready(DecisionRefused):
    """Another decision of the same person is stored. The text says which; undoing it is the way to change it."""


class EndedWith(NamedTuple):
    """A decision on an assignment, without times: sent again it equals the stored one."""

    kind: Literal["judgment", "texts", "flag", "skip"]
    grade: int | None = None
    # A judgment's comment, a flag's note, a skip's reason; contribution, evidence and rating.
    texts: tuple[str, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()

    def explain(self, highest: int) -> str:
        """Say what is stored, for whoever has just sent something else."""
        if self.kind == "judgment" and self.grade is not None:
            grade, comment = name_grade(self.grade, highest), self.texts[0]
            if comment:
                return _(
                    "You already judged this pair, perhaps in another window: %(grade)s, with the comment "
                    "“%(comment)s”. That is stored; what you sent now was not saved."
                ) % {"grade": grade, "comment": comment}
            return _(
                "You already judged this pair, perhaps in another window: %(grade)s. That is stored; what you sent now "
                "was not saved."
            ) % {"grade": grade}
        if self.kind == "flag" and self.texts[0]:
            return _(
                "You already flagged this pair, perhaps in another window, with the note “%(note)s”. That is stored; "
                "what you sent now was not saved."
            ) % {"note": self.texts[0]}
        if self.kind == "skip":
            reason = str(dict(Assignment.SkipReason.choices).get(self.texts[0], self.texts[0]))
            return _(
                "You already skipped this pair, perhaps in another window: %(reason)s. That is stored; what you sent "
                "now was not saved."
            ) % {"reason": reason}
        return {
            "flag": _(
                "You already flagged this pair, perhaps in another window. That is stored; what you sent now was not "
                "saved."
            ),
            "texts": _(
                "You already saved other texts for this pair, perhaps in another window. They are stored; what you "
                "sent now was not saved."
            ),
        }.get(self.kind, _("You already judged this pair, perhaps in another window."))


class TooSoon(Exception):
    """The grade came before anybody can have looked at the pair. The text says so."""


class Unknown(Exception):
    """The item was never assigned to this member."""


def arm_of(reason: str, arm: str = "", rounds: str = ALL_ROUNDS) -> str:
    """Return how much of the debate people see on an item with this reason and arm, as their judgments store it.

    hidden; shown:all, shown:final; reveal:all, reveal:final (a first vote without the debate comes before).
    """
    if reason == "audit" or arm == HIDDEN:
        return BLIND
    return f"{REVEAL if arm == REVEAL else SHOWN}:{rounds}"


def final_token(first: str) -> str:
    """Return a lease's token after the first vote, derived from the one before: a form sent again is known by it."""
    return urlsafe_b64encode(sha256(f"final {first}".encode()).digest()).decode().rstrip("=")


def resolved_counter(reason: str) -> str:
    """Return the name of the counter of settled items; audits are counted apart."""
    return "audited" if reason == "audit" else "settled"


def in_transaction(work: Callable[[psycopg.Connection[Any]], T]) -> T:
    """Run `work` in a transaction on Django's connection; again after a deadlock."""
    return retry_on_conflict(transaction.atomic(lambda: work(connection.connection)))


def retry_on_conflict(once: Callable[[], T]) -> T:
    """Call `once` again after a deadlock, a serialization failure, or two claims of one member at the same moment."""
    for tried in range(TRIES):
        try:
            return once()
        except (psycopg.Error, DatabaseError) as error:
            # Django wraps what its own cursors raise; the cause is psycopg's error either way.
            if tried == TRIES - 1 or not isinstance(error.__cause__ or error, AGAIN):
                raise
            # Random, so that two transactions that met do not meet again.
            time.sleep(random.uniform(0, 0.005 * 2**tried))
    raise AssertionError("unreachable")


def submit_judgment(
    db: psycopg.Connection[Any], desk: AnnotatorContext, answer: SubmittedAnswer
) -> OwnAssignment | None:
    """Settle one judgment and claim nothing. Return the assignment as it was; None where this answer is stored already.

    In the reveal arm the first judgment (`asks_first`) is kept as the blind one, and the same lease
    goes on with the debate. Raises Unknown, DecisionRefused when the item is closed, and TooSoon.
    """
    own = _read_assignment(db, desk, answer.item)
    sent = EndedWith("judgment", answer.grade, (answer.comment,), tuple(sorted(answer.spans)))
    if _is_stored(db, desk, own, answer.token, sent):
        return None
    # The first vote's form sent again: its lease goes on under a token that follows from the form's.
    goes_on = own.first_grade is not None and own.state in ("open", "returned")
    if goes_on and own.token == final_token(answer.token):
        stored = _read_decision(db, own, own.first_id)
        if stored != sent:
            raise DecidedAlready(stored.explain(desk.grades))
        return None
    _check_lease(own, answer.token)
    if own.reason == EVIDENCE:
        raise DecisionRefused(_("This pair needs a contribution and evidence, not a grade."))
    # After the checks of the lease: a form that does not count is told why at once.
    check_time(desk.least_ms, own.served_ms, answer.milliseconds)
    if own.asks_first:
        _store_blind_judgment(db, desk, own, answer)
        return own
    state, label = _aggregate_item(db, desk, own, answer.grade)
    run_statement(
        db,
        sql.RESOLVE,
        **answer.fields(own.held),
        pair=own.pair_id,
        assessor=desk.assessor,
        item=own.item_id,
        supersedes=own.judgment_id,
        arm=arm_of(own.reason, own.arm, desk.rounds),
        collection=desk.collection,
        assignment=own.id,
        retaken=int(own.state == "returned"),
        state=state,
        label=label,
        measuring=list(MEASURING),
        campaign=own.campaign,
        tally=resolved_counter(own.reason),
        shard=desk.membership % SHARDS,
    )
    return own


def _store_blind_judgment(
    db: psycopg.Connection[Any], desk: AnnotatorContext, own: OwnAssignment, answer: SubmittedAnswer
) -> None:
    """Keep the blind vote of the reveal arm; the lease begins anew, now with the debate."""
    late = own.state == "returned"
    # Somebody with another open pair would hold two; a late first vote is only taken while nothing else is open.
    if late and lock_open_lease(db, desk) is not None:
        raise DecisionRefused(_("Your time limit ran out, and another pair was assigned to you."))
    run_statement(
        db,
        sql.FIRST,
        **answer.fields(own.held),
        pair=own.pair_id,
        assessor=desk.assessor,
        item=own.item_id,
        supersedes=own.first_id,
        arm=arm_of(own.reason, own.arm, desk.rounds) if own.first_id is None else SEEN,
        collection=desk.collection,
        assignment=own.id,
        retaken=int(late),
        token=final_token(answer.token),
        minutes=desk.minutes,
    )


def submit_texts(
    db: psycopg.Connection[Any],
    desk: AnnotatorContext,
    item: int,
    token: str,
    texts: tuple[str, str, str],
    write: Callable[[int], None],
) -> OwnAssignment | None:
    """Settle an item that asks for texts, which `write` stores; None: they are. Raises Unknown, DecisionRefused."""
    own = _read_assignment(db, desk, item)
    if _is_stored(db, desk, own, token, EndedWith("texts", texts=texts)):
        return None
    _check_lease(own, token)
    if own.reason != EVIDENCE:
        raise DecisionRefused(_("This pair needs a grade."))
    write(own.pair_id)
    run_statement(
        db,
        sql.FINISH,
        assignment=own.id,
        item=own.item_id,
        retaken=int(own.state == "returned"),
        campaign=own.campaign,
        tally=resolved_counter(own.reason),
        shard=desk.membership % SHARDS,
    )
    return own


def skip(
    db: psycopg.Connection[Any], desk: AnnotatorContext, item: int, token: str, reason: str
) -> OwnAssignment | None:
    """Skip an item with a reason: its member never gets it again. None: stored already."""
    own = _read_assignment(db, desk, item)
    if _is_stored(db, desk, own, token, EndedWith("skip", texts=(reason,))):
        return None
    _check_lease(own, token)
    # A returned lease has given its place back already.
    back = int(own.state == "open")
    _end_assignment(db, own.id, own.item_id, ended="skipped", state=own.item_state, reason=reason, given_back=back)
    return own


def flag(db: psycopg.Connection[Any], desk: AnnotatorContext, item: int, token: str, note: str) -> OwnAssignment | None:
    """Flag an item for the adjudicators with a note. Returns None where that is stored already."""
    own = _read_assignment(db, desk, item)
    if _is_stored(db, desk, own, token, EndedWith("flag", texts=(note,))):
        return None
    _check_lease(own, token)
    state = "standing" if own.item_state == "standing" else "conflict"
    # A late flag takes the place on the item again that the lease had lost.
    late = -int(own.state == "returned")
    _end_assignment(db, own.id, own.item_id, ended="done", state=state, flagged=True, note=note, given_back=late)
    return own


def renew_lease(db: psycopg.Connection[Any], desk: AnnotatorContext) -> int | None:
    """Renew the member's open leases; return the first one's id, or None."""
    # Leases whose item was closed meanwhile are ended: of a group the next pair takes over.
    while (mine := lock_open_lease(db, desk)) is not None:
        lease, item, item_state = mine
        if item_state in WORKABLE:
            run_statement(db, sql.RENEW, membership=desk.membership, minutes=desk.minutes)
            return lease
        _end_assignment(db, lease, item, ended="returned", state=item_state)
    return None


def claim_next_task(
    db: psycopg.Connection[Any],
    desk: AnnotatorContext,
    watermark: tuple[float, int] | None,
    *,
    catches_up: bool = False,
) -> int | None:
    """Claim a new lease and return its id; None when nothing is left for the member.

    Items up to the watermark are not new to them. `catches_up`: a check whose place was passed over comes now.
    """
    before = desk.instead
    # Whole queries pass over the places of checks, and the next single pair makes up for one.
    if catches_up and before != CHECK and desk.passed:
        (lent,) = fetch_tuples(db, sql.CHECKS_LENT, {"membership": desk.membership, "begin": desk.batch_begins})[0]
        before = CHECK if lent < desk.passed else before
    if before:
        # Most often there is one; else the queue's item comes, as where none is due.
        values = {"kind": before, "trial": 0, "lent": desk.lent, "separate": SEPARATE}
        if (lease := claim_lease(db, sql.CLAIM_INSTEAD, desk, **values)) is not None:
            return lease

    def claim_above(watermark: tuple[float, int], *, again: bool = False) -> int | None:
        return claim_lease(db, sql.CLAIM, desk, priority=watermark[0], place=watermark[1], again=again)

    # Above the watermark first: the items below it are known to be nothing for this member, and
    # reading past them takes time.
    if watermark and (lease := claim_above(watermark)) is not None:
        return lease
    # Nothing above it, so leases that ran out are given back, and everything is looked at.
    run_statement(db, sql.EXPIRE, membership=desk.membership)
    lease = claim_above(BEGINNING)
    # Last resort: an item whose lease this member let run out themselves.
    return claim_above(BEGINNING, again=True) if lease is None else lease


def claim_lease_group(db: psycopg.Connection[Any], desk: AnnotatorContext, lease: int) -> None:
    """Assign the member the other waiting pairs of a new lease's query, up to 20 with it."""
    arms = [desk.arm_at(desk.drawn + number) for number in range(sql.GROUP_SIZE)]
    run_statement(
        db,
        sql.GROUP,
        assignment=lease,
        collection=desk.collection,
        membership=desk.membership,
        minutes=desk.minutes,
        drawn=desk.drawn,
        arms=arms,
        tokens=[new_token() for _ in arms],
    )


def claim_lease(db: psycopg.Connection[Any], statement: str, desk: AnnotatorContext, **values: Any) -> int | None:
    """Run a claiming statement and return the id of the assignment that it made; None where it found no item."""
    values |= {
        "collection": desk.collection,
        "membership": desk.membership,
        "minutes": desk.minutes,
        "arm": desk.arm_at(desk.drawn),
    }
    found = fetch_tuples(db, statement, values | {"token": new_token()})
    return int(found[0][0]) if found else None


def save_draft(
    db: psycopg.Connection[Any], desk: AnnotatorContext, item: int, token: str, typed: dict[str, Any] | None
) -> bool:
    """Keep what is typed on the page, or forget it (None). Return whether the lease, running or lost, was found."""
    kept = json.dumps(typed) if typed else None
    values = {"membership": desk.membership, "item": item, "token": token, "draft": kept}
    return bool(fetch_tuples(db, sql.DRAFT, values))


def _read_assignment(db: psycopg.Connection[Any], desk: AnnotatorContext, item: int) -> OwnAssignment:
    """Lock the member's assignment of an item, named by the item's id or by its public id."""
    found = fetch_tuples(db, sql.OWN, {"membership": desk.membership, "number": item})
    if not found:
        raise Unknown
    if refused := why_closed(desk.closed):
        raise DecisionRefused(refused)
    return OwnAssignment(*found[0])


def _is_stored(
    db: psycopg.Connection[Any], desk: AnnotatorContext, own: OwnAssignment, token: str, sent: EndedWith
) -> bool:
    """Return whether this very decision ended the assignment: the same form sent twice (a double press, a reload).

    Raises DecidedAlready where another decision did, so that nobody reads "Saved." of an answer that is dropped.
    """
    if own.state not in ("done", "skipped"):
        return False
    stored = _read_decision(db, own, own.judgment_id)
    if own.token == token and stored == sent:
        return True
    raise DecidedAlready(stored.explain(desk.grades))


def _read_decision(db: psycopg.Connection[Any], own: OwnAssignment, judgment: int | None) -> EndedWith:
    row = fetch_dicts(db, sql.DECIDED, assignment=own.id, judgment=judgment)[0]
    if row["skipped"]:
        return EndedWith("skip", texts=(row["skip_reason"],))
    if row["flagged"]:
        return EndedWith("flag", texts=(row["flag_note"],))
    if own.reason == EVIDENCE:
        return EndedWith("texts", texts=(row["contribution"] or "", row["evidence"] or "", str(row["rating"] or "")))
    return EndedWith("judgment", row["grade"], (row["comment"] or "",), tuple(map(tuple, row["spans"] or ())))


def lock_open_lease(db: psycopg.Connection[Any], desk: AnnotatorContext) -> tuple[int, int, str] | None:
    """Lock the member's first open lease; return its id, item and state, or None."""
    return next(iter(fetch_tuples(db, sql.OPEN, {"membership": desk.membership})), None)


def _check_lease(own: OwnAssignment, token: str) -> None:
    """Raise DecisionRefused unless a decision on this assignment still counts."""
    if own.state == "aside":
        raise DecisionRefused(_("Your judgment of this pair was excluded in the meantime."))
    if own.item_state not in WORKABLE:
        raise DecisionRefused(_("This pair was resolved while you were judging it."))
    # A returned lease counts while the item has room: the work is done, and unassigned.
    if own.state == "returned" and (own.item_state == "conflict" or own.taken >= own.overlap):
        raise DecisionRefused(_("Your time limit ran out, and the pair was reassigned."))
    if own.state == "returned" and own.token.startswith(TAKEN_AWAY):
        raise DecisionRefused(_("This pair was reassigned to another person. What you sent was not saved."))
    if own.token != token:
        raise DecisionRefused(_("This page is out of date: the pair was reopened, perhaps in another window."))


def check_time(least: int, *measured: float | None) -> None:
    """Raise TooSoon where one of the measures (ours since it was served, the browser's) is shorter than `least` ms."""
    if any(one is not None and one < least for one in measured):
        raise TooSoon(
            _(
                "This pair had only just arrived, so your press was taken for a second one on the pair before. Nothing "
                "was saved, and what you typed is still here: look at the pair and judge it."
            )
        )


def _aggregate_item(
    db: psycopg.Connection[Any], desk: AnnotatorContext, own: OwnAssignment, grade: int
) -> tuple[State, int | None]:
    """Return the item's state and label with this grade. The item is locked."""
    if own.item_state == "standing":
        return "standing", None
    if own.item_state == "conflict":
        return "conflict", None
    if own.done + 1 < own.overlap:
        return "open", None
    if own.reason in MEASURING:
        return "settled", None
    # With one person an item needs no look at others, which is the usual case.
    if own.overlap == 1:
        return aggregate_judgments([grade], overlap=1)
    others = {"item": own.item_id, "membership": desk.membership}
    ((grades, flagged),) = fetch_tuples(db, sql.STANDING, others)
    return aggregate_judgments([*grades, grade], overlap=own.overlap, flagged=flagged)


def _end_assignment(
    db: psycopg.Connection[Any],
    assignment: int,
    item: int,
    *,
    ended: str,
    state: str,
    reason: str = "",
    flagged: bool = False,
    note: str = "",
    given_back: int = 1,
) -> None:
    """End an assignment without a grade; `given_back` is taken off the item's `taken`."""
    values = {"ended": ended, "state": state, "reason": reason, "flagged": flagged, "note": note}
    run_statement(db, sql.END, assignment=assignment, item=item, given_back=given_back, **values)


def run_statement(db: psycopg.Connection[Any], statement: str, **values: Any) -> None:
    """Run a statement of which no row is read."""
    fetch_tuples(db, statement, values)


def fetch_dicts(db: psycopg.Connection[Any], statement: str, **values: Any) -> list[dict[str, Any]]:
    """Return the rows of a statement by the names of its columns."""
    return [dict(zip(_names[statement], row, strict=True)) for row in fetch_tuples(db, statement, values)]


def read_rows(statement: str, **values: Any) -> list[dict[str, Any]]:
    """Return the rows of a statement on Django's connection, by the names of its columns."""
    connection.ensure_connection()
    return fetch_dicts(connection.connection, statement, **values)


def fetch_tuples(db: psycopg.Connection[Any], statement: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Return a statement's rows, planned once a connection (Django's cursors plan anew)."""
    # Django turns preparing off (None); the queue's statements are prepared at once.
    if db.prepare_threshold is None:
        db.prepare_threshold = 0
    with psycopg.Cursor(db, row_factory=tuple_row) as cursor:
        cursor.execute(statement.encode(), values, prepare=True)
        # Not `description`: it makes an object for each column, a twentieth of a request.
        found = cursor.fetchall() if cursor.rownumber is not None else []
        if found and statement not in _names:
            _names[statement] = tuple(column.name for column in cursor.description or ())
        return found


# The names of a statement's columns, read once for a process.
_names: dict[str, tuple[str, ...]] = {}
