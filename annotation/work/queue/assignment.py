"""The task queue: assign items to annotators under leases, store their decisions and resolve the items.

`annotation.work.judging.submitting` claims the next item after a decision. Functions with a parameter `db`
run on one psycopg connection, inside a transaction that the caller opened: so the web and tests of
races with raw clients run the same statements. Views call them by `in_transaction`.
"""

import json
import random
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Literal, NamedTuple, TypeVar

import psycopg
from django.db import DatabaseError, connection, transaction
from django.http import Http404
from django.utils.translation import gettext as _
from psycopg import errors
from psycopg.rows import tuple_row

from annotation.models import Assignment, new_token
from annotation.work.queue import statements as sql
from annotation.work.queue.aggregation import aggregate_judgments
from annotation.work.queue.annotators import (
    AnnotatorContext,
    JudgedCounts,
    SubmittedAnswer,
    start_of_site_day,
    why_closed,
)
from annotation.work.queue.check_scheduling import CHECK, SEPARATE
from corpus.collections.arm_allocation import ALL_ROUNDS, HIDDEN, REVEAL, SHOWN
from corpus.collections.task_order import MEASURING
from corpus.errors import BadInput, StateConflict
from corpus.labels import name_grade

T = TypeVar("T")
# With growing random waits between them: claims that meet several times in a row are rare.
TRIES = 6
# UniqueViolation: two claims of one member met, and one of them inserted the assignment first.
AGAIN = (errors.DeadlockDetected, errors.SerializationFailure, errors.UniqueViolation)
# Counters are split into shards, so that people who submit at the same moment do not wait for one row.
SHARDS = 16
# The debate is not shown: audits are judged from the texts alone.
BLIND = "hidden"
# A first judgment that replaces one that was undone: its author has seen the debate, so it is not blind.
SEEN = "reveal:seen"

BEGINNING = (float("-inf"), 0)  # The watermark of a member to whom every item is new.

WORKABLE = ("open", "conflict", "standing")  # States of an item in which a decision on it counts.
# Prefix of the tokens of leases that a bulk action took from their holders. No page has such a token, so no late
# answer is accepted.
TAKEN_AWAY = "taken-"
EVIDENCE = "evidence"  # The reason of items that ask for texts instead of a grade.


class OwnAssignment(NamedTuple):
    """A member's assignment with its item, both locked: the columns of lock_own.sql."""

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
    # The grade of the blind judgment in the reveal arm; None before it is given and after it is undone.
    first_grade: int | None
    place: int  # In a lease group; 0: not in a group.
    held: float  # Seconds since the item was assigned.
    served_ms: float | None  # Milliseconds since the page first showed the item.

    @property
    def asks_first(self) -> bool:
        """Return whether the annotator must still judge once without seeing the debate."""
        return self.arm == REVEAL and self.reason != "audit" and self.first_grade is None


class DecisionRefused(StateConflict):
    """The decision is not accepted any more; the message tells its author why."""


class DecidedAlready(DecisionRefused):
    """The same person has already decided; the message says how. They can change it by undoing it."""


class DecisionContent(NamedTuple):
    """The decision that ended an assignment, without times: a form that is sent twice gives equal decisions."""

    kind: Literal["judgment", "texts", "flag", "skip"]
    grade: int | None = None
    # A judgment's comment, a flag's note, a skip's reason; contribution, evidence and rating.
    texts: tuple[str, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()

    def explain(self, highest: int, names: Sequence[str]) -> str:
        """Return the message that tells which decision is stored to the person who has just sent another one."""
        if self.kind == "judgment" and self.grade is not None:
            grade, comment = name_grade(self.grade, highest, names), self.texts[0]
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


def arm_of(reason: str, arm: str = "", rounds: str = ALL_ROUNDS) -> str:
    """Return how much of the debate people see on an item with this reason and arm, as their judgments store it.

    hidden; shown:all, shown:final; reveal:all, reveal:final (a first vote without the debate comes before).
    """
    if reason == "audit" or arm == HIDDEN:
        return BLIND
    return f"{REVEAL if arm == REVEAL else SHOWN}:{rounds}"


def final_token(first: str) -> str:
    """Return a lease's token after the blind judgment, derived from the token before it.

    A first form that is sent twice can be recognized by it.
    """
    return urlsafe_b64encode(sha256(f"final {first}".encode()).digest()).decode().rstrip("=")


def resolved_counter(reason: str) -> str:
    """Return the name of the counter of resolved items; audits have a counter of their own."""
    return "audited" if reason == "audit" else "settled"


def in_transaction(operation: Callable[[psycopg.Connection[Any]], T]) -> T:
    """Run `operation` in a transaction on Django's connection, again after a deadlock; return what it returns."""
    return retry_on_conflict(transaction.atomic(lambda: operation(connection.connection)))


def retry_on_conflict(attempt: Callable[[], T]) -> T:
    """Call `attempt`, again after a deadlock, a serialization failure, or a simultaneous claim of the same member."""
    for number in range(TRIES):
        try:
            return attempt()
        except (psycopg.Error, DatabaseError) as error:
            # Django wraps the errors of its own cursors; the cause is psycopg's error.
            if number == TRIES - 1 or not isinstance(error.__cause__ or error, AGAIN):
                raise
            # A random wait, so that two transactions that met do not meet again.
            time.sleep(random.uniform(0, 0.005 * 2**number))
    raise AssertionError("unreachable")


def submit_judgment(
    db: psycopg.Connection[Any], annotator: AnnotatorContext, answer: SubmittedAnswer
) -> OwnAssignment | None:
    """Store a judgment and resolve its item where enough judgments agree. Claims nothing.

    1. Lock the member's assignment with its item, and refuse a decision that is not accepted any more.
    2. Refuse a grade that came too soon.
    3. In the reveal arm, store the first judgment as the blind one: the same lease continues with the debate.
    4. Work out the item's state, and its label if the judgments on it agree.
    5. Store the judgment, the label and the counters in one statement.

    Returns the assignment as it was before; None where the same answer is stored already. Raises
    Http404, DecisionRefused and BadInput.
    """
    own = _lock_assignment(
        db,
        annotator,
        answer.item,
        answer.token,
        DecisionContent("judgment", answer.grade, (answer.comment,), tuple(sorted(answer.spans))),
    )
    if own is None:
        return None
    if own.reason == EVIDENCE:
        raise DecisionRefused(_("This pair needs a contribution and evidence, not a grade."))
    # After the checks of the lease, so that a form that is not accepted gets the reason at once.
    check_time(annotator.least_ms, own.served_ms, answer.milliseconds)
    is_late = own.state == "returned"
    judgment = {
        **answer.fields(own.held),
        "pair": own.pair_id,
        "assessor": annotator.assessor,
        "item": own.item_id,
        "collection": annotator.collection,
        "assignment": own.id,
        "retaken": int(is_late),
    }
    if own.asks_first:
        # A late first judgment is accepted only if its author has no other open pair: they would have two.
        if is_late and lock_open_lease(db, annotator) is not None:
            raise DecisionRefused(_("Your time limit ran out, and another pair was assigned to you."))
        run_statement(
            db,
            sql.FIRST,
            **judgment,
            supersedes=own.first_id,
            arm=arm_of(own.reason, own.arm, annotator.rounds) if own.first_id is None else SEEN,
            token=final_token(answer.token),
            minutes=annotator.minutes,
        )
        return own
    state, label = "open", None
    if own.item_state in ("standing", "conflict"):
        state = own.item_state
    elif own.done + 1 >= own.overlap and own.reason in MEASURING:
        state = "settled"
    elif own.done + 1 >= own.overlap:
        grades, has_flag = [], False
        # An item for one person, which is the usual case, has no judgments of others.
        if own.overlap > 1:
            others = {"item": own.item_id, "membership": annotator.membership}
            ((grades, has_flag),) = fetch_tuples(db, sql.STANDING, others)
        state, label = aggregate_judgments([*grades, answer.grade], overlap=own.overlap, flagged=has_flag)
    run_statement(
        db,
        sql.RESOLVE,
        **judgment,
        supersedes=own.judgment_id,
        arm=arm_of(own.reason, own.arm, annotator.rounds),
        state=state,
        label=label,
        measuring=list(MEASURING),
        campaign=own.campaign,
        tally=resolved_counter(own.reason),
        shard=annotator.membership % SHARDS,
    )
    return own


def submit_texts(
    db: psycopg.Connection[Any],
    annotator: AnnotatorContext,
    item: int,
    token: str,
    texts: tuple[str, str, str],
    write: Callable[[int], None],
) -> OwnAssignment | None:
    """Resolve an item that asks for texts, which `write` stores. Return None where the same texts are stored already.

    Raises Http404 and DecisionRefused.
    """
    own = _lock_assignment(db, annotator, item, token, DecisionContent("texts", texts=texts))
    if own is None:
        return None
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
        shard=annotator.membership % SHARDS,
    )
    return own


def skip(
    db: psycopg.Connection[Any], annotator: AnnotatorContext, item: int, token: str, reason: str
) -> OwnAssignment | None:
    """Skip an item with a reason: the member never gets it again. Return None where the same skip is stored already."""
    own = _lock_assignment(db, annotator, item, token, DecisionContent("skip", texts=(reason,)))
    if own is not None:
        # A returned lease has already given its place on the item back.
        given_back = int(own.state == "open")
        _end_assignment(
            db, own.id, own.item_id, ended="skipped", state=own.item_state, reason=reason, given_back=given_back
        )
    return own


def flag(
    db: psycopg.Connection[Any], annotator: AnnotatorContext, item: int, token: str, note: str
) -> OwnAssignment | None:
    """Flag an item for the adjudicators with a note. Return None where the same flag is stored already."""
    own = _lock_assignment(db, annotator, item, token, DecisionContent("flag", texts=(note,)))
    if own is not None:
        state = "standing" if own.item_state == "standing" else "conflict"
        # A late flag takes the place on the item again that the returned lease gave back.
        given_back = -int(own.state == "returned")
        _end_assignment(
            db, own.id, own.item_id, ended="done", state=state, flagged=True, note=note, given_back=given_back
        )
    return own


def renew_lease(db: psycopg.Connection[Any], annotator: AnnotatorContext) -> int | None:
    """Renew the member's open leases; return the first one's id, or None."""
    # Leases on items that were closed in the meantime are ended, until one is found whose item is still open.
    while (open_lease := lock_open_lease(db, annotator)) is not None:
        lease, item, item_state = open_lease
        if item_state in WORKABLE:
            run_statement(db, sql.RENEW, membership=annotator.membership, minutes=annotator.minutes)
            return lease
        _end_assignment(db, lease, item, ended="returned", state=item_state)
    return None


def claim_next_task(
    db: psycopg.Connection[Any],
    annotator: AnnotatorContext,
    watermark: tuple[float, int] | None,
    *,
    catches_up: bool = False,
) -> int | None:
    """Claim a new lease and return its id; None when no item is left for the member.

    Items up to the watermark are not new to them. `catches_up`: assign an attention check now if the
    member's lease groups skipped one.

    1. A check or a repeat, where one is scheduled now.
    2. The first item above the watermark: the items below it are known to be nothing for this member,
       and reading past them takes time.
    3. Return leases that ran out to the queue, and look at all its items.
    4. As the last resort, an item whose lease this member let run out.
    """
    kind = annotator.next_kind
    # Lease groups skip the scheduled positions of checks; the next single pair makes up for one.
    if catches_up and kind != CHECK and annotator.skipped_checks:
        # From the first item in the batch of the next item.
        begin = annotator.lent - (annotator.lent - annotator.closed_to) % annotator.shares[0]
        (assigned_checks,) = fetch_tuples(db, sql.CHECKS_LENT, {"membership": annotator.membership, "begin": begin})[0]
        kind = CHECK if assigned_checks < annotator.skipped_checks else kind
    if kind:
        # If no check or repeat is left, an item of the queue comes instead.
        values = {"kind": kind, "trial": 0, "lent": annotator.lent, "separate": SEPARATE}
        if (lease := claim_lease(db, sql.CLAIM_INSTEAD, annotator, **values)) is not None:
            return lease

    def claim_above(watermark: tuple[float, int], *, again: bool = False) -> int | None:
        return claim_lease(db, sql.CLAIM, annotator, priority=watermark[0], place=watermark[1], again=again)

    if watermark and (lease := claim_above(watermark)) is not None:
        return lease
    run_statement(db, sql.EXPIRE, membership=annotator.membership)
    lease = claim_above(BEGINNING)
    return claim_above(BEGINNING, again=True) if lease is None else lease


def claim_lease(db: psycopg.Connection[Any], statement: str, annotator: AnnotatorContext, **values: Any) -> int | None:
    """Run a claiming statement and return the id of the new assignment; None where no item can be assigned."""
    values |= {
        "collection": annotator.collection,
        "membership": annotator.membership,
        "minutes": annotator.minutes,
        "arm": annotator.arm_at(annotator.drawn),
    }
    rows = fetch_tuples(db, statement, values | {"token": new_token()})
    return int(rows[0][0]) if rows else None


def pairs_left(db: psycopg.Connection[Any], annotator: AnnotatorContext) -> int | None:
    """Return how many pairs more than they hold the member's limits allow; None: any number. A statement for a quota.

    Practice and test are no work in this sense: only the deadline ends them.
    """
    limits = annotator.limits
    if limits.is_over():
        return 0
    if annotator.trial is not None or not limits.has_quota:
        return None
    row = fetch_tuples(db, sql.JUDGED, {"membership": annotator.membership, "midnight": start_of_site_day()})[0]
    counts = JudgedCounts(*row)
    return limits.pairs_left(counts.work_today + counts.held, counts.work + counts.held)


def save_draft(
    db: psycopg.Connection[Any], annotator: AnnotatorContext, item: int, token: str, typed: dict[str, Any] | None
) -> bool:
    """Save what is typed on the page, or delete it (None). Return whether the lease exists, running or lost."""
    draft = json.dumps(typed) if typed else None
    values = {"membership": annotator.membership, "item": item, "token": token, "draft": draft}
    return bool(fetch_tuples(db, sql.DRAFT, values))


def _lock_assignment(
    db: psycopg.Connection[Any], annotator: AnnotatorContext, item: int, token: str, decision: DecisionContent
) -> OwnAssignment | None:
    """Lock the member's assignment and its item, named by the item's id or by its public id, for a decision on it.

    Returns None where this very decision is stored already: the same form sent twice, by a double
    press or a reload. Raises Http404; DecidedAlready where another decision is stored, so that nobody
    reads "Saved." about an answer that is dropped; DecisionRefused for any other reason why the
    decision is not accepted.
    """
    rows = fetch_tuples(db, sql.OWN, {"membership": annotator.membership, "number": item})
    if not rows:
        raise Http404(_("This pair was never assigned to you."))
    if refusal := why_closed(annotator.closed):
        raise DecisionRefused(refusal)
    own = OwnAssignment(*rows[0])
    if own.state in ("done", "skipped"):
        stored = _read_decision(db, own, own.judgment_id)
        if own.token == token and stored == decision:
            return None
        raise DecidedAlready(stored.explain(annotator.grades, annotator.grade_names))
    # The blind judgment's form sent twice: its lease has a token that follows from the form's.
    has_blind_judgment = own.first_grade is not None and own.state in ("open", "returned")
    if decision.kind == "judgment" and has_blind_judgment and own.token == final_token(token):
        stored = _read_decision(db, own, own.first_id)
        if stored == decision:
            return None
        raise DecidedAlready(stored.explain(annotator.grades, annotator.grade_names))
    if own.state == "aside":
        raise DecisionRefused(_("Your judgment of this pair was excluded in the meantime."))
    if own.item_state not in WORKABLE:
        raise DecisionRefused(_("This pair was resolved while you were judging it."))
    # A decision on a returned lease is accepted while the item has room: the work is done.
    if own.state == "returned" and (own.item_state == "conflict" or own.taken >= own.overlap):
        raise DecisionRefused(_("Your time limit ran out, and the pair was reassigned."))
    if own.state == "returned" and own.token.startswith(TAKEN_AWAY):
        raise DecisionRefused(_("This pair was reassigned to another person. What you sent was not saved."))
    if own.token != token:
        raise DecisionRefused(_("This page is out of date: the pair was reopened, perhaps in another window."))
    return own


def _read_decision(db: psycopg.Connection[Any], own: OwnAssignment, judgment: int | None) -> DecisionContent:
    row = fetch_dicts(db, sql.DECIDED, assignment=own.id, judgment=judgment)[0]
    if row["skipped"]:
        return DecisionContent("skip", texts=(row["skip_reason"],))
    if row["flagged"]:
        return DecisionContent("flag", texts=(row["flag_note"],))
    if own.reason == EVIDENCE:
        return DecisionContent(
            "texts", texts=(row["contribution"] or "", row["evidence"] or "", str(row["rating"] or ""))
        )
    return DecisionContent("judgment", row["grade"], (row["comment"] or "",), tuple(map(tuple, row["spans"] or ())))


def lock_open_lease(db: psycopg.Connection[Any], annotator: AnnotatorContext) -> tuple[int, int, str] | None:
    """Lock the member's first open lease; return its id, item and state, or None."""
    return next(iter(fetch_tuples(db, sql.OPEN, {"membership": annotator.membership})), None)


def check_time(least: int, *measured: float | None) -> None:
    """Raise BadInput where a duration, measured by the server or the browser, is below `least` milliseconds."""
    if any(duration is not None and duration < least for duration in measured):
        raise BadInput(
            _(
                "This pair had only just arrived, so your press was taken for a second one on the pair before. Nothing "
                "was saved, and what you typed is still here: look at the pair and judge it."
            )
        )


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
    """End an assignment without a grade, and subtract `given_back` from the item's `taken`."""
    values = {"ended": ended, "state": state, "reason": reason, "flagged": flagged, "note": note}
    run_statement(db, sql.END, assignment=assignment, item=item, given_back=given_back, **values)


def run_statement(db: psycopg.Connection[Any], statement: str, **values: Any) -> None:
    """Run a statement and ignore its rows."""
    fetch_tuples(db, statement, values)


def fetch_dicts(db: psycopg.Connection[Any], statement: str, **values: Any) -> list[dict[str, Any]]:
    """Return the rows of a statement by the names of its columns."""
    return [dict(zip(_names[statement], row, strict=True)) for row in fetch_tuples(db, statement, values)]


def read_rows(statement: str, **values: Any) -> list[dict[str, Any]]:
    """Return the rows of a statement on Django's connection, by the names of its columns."""
    connection.ensure_connection()
    return fetch_dicts(connection.connection, statement, **values)


def fetch_tuples(db: psycopg.Connection[Any], statement: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Return the rows of a statement, which is planned once for a connection (Django's cursors plan it every time)."""
    # Django turns preparing off (None); the queue's statements are prepared at once.
    if db.prepare_threshold is None:
        db.prepare_threshold = 0
    with psycopg.Cursor(db, row_factory=tuple_row) as cursor:
        cursor.execute(statement.encode(), values, prepare=True)
        # Not `description`: it makes an object for each column, a twentieth of a request.
        rows = cursor.fetchall() if cursor.rownumber is not None else []
        if rows and statement not in _names:
            _names[statement] = tuple(column.name for column in cursor.description or ())
        return rows


# Names of columns by statement, read once in a process.
_names: dict[str, tuple[str, ...]] = {}
