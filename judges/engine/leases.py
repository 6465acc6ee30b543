"""Claiming work, keeping its lease, and giving it back. Every function runs in the writer's thread.

The clock is the database's. A claim raises the fence, so that whatever the earlier holder still writes is refused.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from psycopg import Connection
from psycopg.rows import dict_row

from judges.campaigns import audit_sampling
from judges.domain.verdicts import NoVerdict
from judges.engine.plan import Plan
from judges.engine.rows import Attempted, stored_turn
from judges.records import Inputs, Prompt, Slot, Turn
from store.sql import read_sql

# Pairs of one claim: few enough that a slow worker does not hoard what others could judge.
BATCH = 64
# Claims that sent something. A pair that lost its worker so often probably kills it: it fails
# instead of taking the next one down.
MAX_CLAIMS = 3

CLAIM = read_sql(__file__, "claim")
GIVE_UP = read_sql(__file__, "give_up")

# For a campaign of batches, which one process alone works on (judges.batch): its pairs stay
# `running` while a batch is out.
HELD = """
SELECT id, pair_id, fence, attempt_base FROM judges_work
WHERE campaign_id = %(campaign)s AND state = 'running' AND id > %(after)s ORDER BY id LIMIT %(n)s
"""

# A row comes back for each lease that is ours still; whoever is missing has been taken over.
RENEW = """
UPDATE judges_work w SET lease_until = now() + make_interval(secs => %(lease)s)
FROM unnest(%(ids)s::bigint[], %(fences)s::int[]) AS mine(id, fence)
WHERE w.id = mine.id AND w.fence = mine.fence AND w.state = 'running'
RETURNING w.id
"""

# Claims count as they begin to send: no pair that a worker had only claimed took that worker down.
BEGIN = """
UPDATE judges_work w SET claims = w.claims + 1
FROM unnest(%(ids)s::bigint[], %(fences)s::int[]) AS mine(id, fence)
WHERE w.id = mine.id AND w.fence = mine.fence AND w.state = 'running'
"""
GATHER_S = 0.01  # Claims that begin within so many seconds are counted together.

# The claim is uncounted: else a campaign paused three times would fail its pairs.
RELEASE = """
UPDATE judges_work w SET state = 'pending', lease_until = NULL, claims = GREATEST(0, w.claims - mine.begun)
FROM unnest(%(ids)s::bigint[], %(fences)s::int[], %(begun)s::int[]) AS mine(id, fence, begun)
WHERE w.id = mine.id AND w.fence = mine.fence AND w.state = 'running'
"""

# Pairs of dead workers, of campaigns from which nobody claims. Whoever has one still is refused by the fence.
ABANDONED = """
UPDATE judges_work w SET state = 'pending', lease_until = NULL, fence = w.fence + 1, claims = GREATEST(0, w.claims - 1)
FROM judges_campaign c
WHERE c.id = w.campaign_id AND c.state IN ('cancelled', 'paused', 'budget') AND w.state = 'running'
    AND w.lease_until < now()
    AND NOT EXISTS (SELECT 1 FROM judges_batch b WHERE b.campaign_id = c.id AND b.ended_at IS NULL)
"""

# Of a pending pair `lease_until` says from when on it may be claimed. What an account's trouble
# cost in tries counts anew.
WAIT = """
UPDATE judges_work w SET state = 'pending', lease_until = now() + make_interval(secs => %(wait)s),
    claims = GREATEST(0, w.claims - mine.begun), attempt_base = GREATEST(w.attempt_base, LEAST(mine.tried, 32000))
FROM unnest(%(ids)s::bigint[], %(fences)s::int[], %(begun)s::int[], %(tried)s::int[]) AS mine(id, fence, begun, tried)
WHERE w.id = mine.id AND w.fence = mine.fence AND w.state = 'running'
"""

FINAL = ("refused", "truncated", "prompt_cut")  # Outcomes of a call that no other try would mend.
WAIT_S = 2.0
TOO_MANY = 429

# Texts and earlier answers are read for the whole claim, not pair by pair.
MATERIAL = """
SELECT p.id, p.query_id, q.text, q.answers, q.instruction, d.title, d.text, d.id
FROM corpus_pair p JOIN corpus_query q ON q.id = p.query_id JOIN corpus_document d ON d.id = p.document_id
WHERE p.id = ANY(%s)
"""

EVIDENCE = """
SELECT pair_id, "window", role, round + generation AS nth, agent_pair + place AS who, number, outcome, counts, verdict,
       score, probabilities, reason, quotes, error, status
FROM judges_attempt WHERE campaign_id = %s AND pair_id = ANY(%s) ORDER BY id
"""

# Of pairs that judges found relevant: the window of the document that says so, which is what evidence is written from.
RELEVANT_WINDOWS = """
SELECT DISTINCT ON (pair_id) pair_id, "window" FROM judges_work
WHERE pair_id = ANY(%s) AND state = 'labelled' AND label = 1 ORDER BY pair_id, id DESC
"""

# `running` is compared again in the statement: a pause that came meanwhile wins.
FINISH = """
UPDATE judges_campaign c SET state = 'finished', finished_at = now(), paused_because = ''
WHERE c.id = %(campaign)s AND c.state = 'running' AND NOT EXISTS (
    SELECT 1 FROM judges_work w WHERE w.campaign_id = c.id AND w.state IN ('pending', 'running'))
"""

# `starts` names the start that was refused: a campaign that somebody has resumed since is not paused by old news.
PAUSE = """
UPDATE judges_campaign SET state = 'paused', paused_because = %(why)s
WHERE id = %(campaign)s AND state = 'running' AND starts = %(starts)s
"""

# What a running campaign waits for; '' where it waits for nothing.
WAITS_FOR = "UPDATE judges_campaign SET paused_because = %(why)s WHERE id = %(campaign)s AND state = 'running'"

# Starting, joining and finishing a campaign of one collection exclude each other.
LOCK = "SELECT pg_advisory_xact_lock(7106, %(collection)s)"


@dataclass(slots=True)
class Refusals:
    """Tries of a question that its account refused for now, one after another."""

    last: Attempted
    count: int = 1
    answers: int = 0  # How many calls the account had answered at the last one.
    passed_over: int = 0  # How often it answered others in between.


@dataclass(slots=True)
class ClaimState:
    """What becomes of a claim, for all windows of its pair."""

    begun: bool = False  # A call of this claim was sent.
    waits: bool = False  # An account is in trouble: the pair goes back to pending, and nothing more of it is bought.
    lost: bool = False  # The lease is gone: somebody else has the pair.


@dataclass(slots=True)
class Claimed:
    """A claimed pair, or a window of its document, with inputs and earlier turns."""

    work: int
    pair: int
    fence: int
    attempt_base: int
    query: int = 0
    inputs: Inputs = field(default_factory=lambda: Inputs("", (), "", ""))
    ended: dict[Slot, Turn | NoVerdict] = field(default_factory=dict)  # Counted attempts.
    # Highest number of an attempt so far, where there was one since the last retry-failed.
    tries: dict[Slot, int] = field(default_factory=dict)
    # What was wrong with an answer that was not counted and waits for its repair.
    problems: dict[Slot, str] = field(default_factory=dict)
    # Rendered questions of votes with their schemas, by highest grade, endpoint (Decisions or chat) and prompt.
    ballots: dict[tuple[int, bool, str], tuple[Prompt, dict[str, Any]]] = field(default_factory=dict)
    last_error: str = ""
    # Tries that the account refused for now (429): they are no tries of the question, and one row stands for all.
    refused: dict[Slot, Refusals] = field(default_factory=dict)
    lease: ClaimState = field(default_factory=ClaimState)
    window: int = 0  # Which window of the document this is, from 1; 0: the pair itself.
    windows: list["Claimed"] = field(default_factory=list)  # Those that are judged apart, in order; none: the pair is.

    @property
    def parts(self) -> list["Claimed"]:
        """Return what is judged apart: the windows of a long document, or the pair itself."""
        return self.windows or [self]

    def cut(self) -> None:
        """Cut the document into windows that are judged apart under this claim."""
        for number, inputs in enumerate(self.inputs.parts, 1):
            part = Claimed(self.work, self.pair, self.fence, self.attempt_base, self.query, inputs, lease=self.lease)
            part.window = number
            self.windows.append(part)


def claim(
    connection: Connection[Any],
    plan: Plan,
    *,
    lease: float,
    n: int = BATCH,
    stalled: Callable[[], bool] = lambda: False,
) -> list[Claimed]:
    """Claim up to `n` pairs, pending or expired, with texts and earlier attempts."""
    # PostgreSQL was away a moment ago: nobody could renew, so expired leases are left alone.
    expired = not stalled()
    values = {"campaign": plan.campaign, "lease": lease, "n": n, "most": MAX_CLAIMS, "shard": 0, "expired": expired}
    # Given up before the claim, so that what follows cannot claim such a pair once more.
    if expired:
        connection.execute(GIVE_UP, values)
    rows = sorted(connection.execute(CLAIM, values).fetchall())
    return _with_material(connection, rows, plan)


def running_pairs(connection: Connection[Any], plan: Plan, *, after: int, n: int = BATCH) -> list[Claimed]:
    """Up to `n` running pairs after `after`, of a campaign that only one process works on."""
    rows = connection.execute(HELD, {"campaign": plan.campaign, "after": after, "n": n}).fetchall()
    return _with_material(connection, rows, plan, again=True)


def _with_material(
    connection: Connection[Any], rows: Sequence[tuple[int, int, int, int]], plan: Plan, *, again: bool = False
) -> list[Claimed]:
    claimed = {pair: Claimed(work, pair, fence, base) for work, pair, fence, base in rows}
    if not claimed:
        return []
    # A pair that is claimed for the first time has no attempts.
    known = [one.pair for one in claimed.values() if again or one.fence > 1]
    cursor = connection.cursor(row_factory=dict_row)
    attempts = cursor.execute(EVIDENCE, [plan.campaign, known]).fetchall() if known else []
    # A pair goes on as it began, whole or in windows, whatever the collection says by now: its answers are paid for.
    begun = {row["pair_id"]: row["window"] > 0 for row in attempts if row["counts"]}
    for pair, query, text, answers, own, title, document, key in connection.execute(MATERIAL, [list(claimed)]):
        one = claimed[pair]
        one.query = query
        definition = plan.rubric.definition(answers=bool(answers), own=own)
        one.inputs = Inputs(text, tuple(answers), title, document, definition, plan.collection, key, plan.shown)
        if begun.get(pair, plan.by_windows):
            one.cut()
    if plan.writes:
        for pair, window in connection.execute(RELEVANT_WINDOWS, [list(claimed)]):
            one = claimed[pair]
            one.inputs = one.inputs.parts[window - 1] if window else one.inputs
    _restore_answers(claimed, attempts)
    return list(claimed.values())


def _restore_answers(claimed: dict[int, Claimed], attempts: Iterable[dict[str, Any]]) -> None:
    """Let reclaimed pairs go on from their counted attempts."""
    for row in attempts:
        slot, outcome = (row["role"], row["nth"], row["who"]), row["outcome"]
        one = next((part for part in claimed[row["pair_id"]].parts if part.window == row["window"]), None)
        if one is None:  # tried in vain before the collection asked for windows, or no longer did
            continue
        if row["counts"]:
            one.ended[slot] = stored_turn(row) if outcome == "labelled" else NoVerdict(outcome)
        elif row["status"] == TOO_MANY and outcome == "error":
            one.last_error = row["error"]  # no try of the question
        elif row["number"] > one.attempt_base:  # what was tried before the last retry-failed counts no more
            one.tries[slot] = max(row["number"], one.tries.get(slot, 0))
            is_unusable = outcome in ("unparsed", "out_of_range")
            # Under `single` an answer that is no vote does not count, so that a retry may ask again; nothing else may.
            if outcome in FINAL or (is_unusable and slot in one.problems):
                one.ended[slot] = NoVerdict(outcome)
            elif is_unusable:
                one.problems[slot] = row["error"]
            one.last_error = row["error"] or one.last_error


def renew(connection: Connection[Any], held: list[Claimed], lease: float) -> set[int]:
    """Renew the leases for `lease` seconds; return the ids of those that are still ours."""
    return {row[0] for row in connection.execute(RENEW, _lease_values(held) | {"lease": lease})}


def release(connection: Connection[Any], held: list[Claimed]) -> None:
    """Release the pairs untouched: this claim does not count against them."""
    if held:
        connection.execute(RELEASE, _lease_values(held))


def postpone_pairs(connection: Connection[Any], held: list[Claimed]) -> None:
    """Postpone pairs until an account works: neither claim nor tries count."""
    if held:
        # A pair's tries so far become its base: what failed while the account was down uses up none of the next ones.
        tried = {
            one.work: max((one.attempt_base, *(number for part in one.parts for number in part.tries.values())))
            for one in held
        }
        values = _lease_values(held)
        connection.execute(WAIT, values | {"tried": [tried[work] for work in values["ids"]], "wait": WAIT_S})


def finish_campaign(connection: Connection[Any], *, campaign: int, collection: int) -> bool:
    """Close a finished campaign, and fill up its audit; whether it was closed."""
    # Under the lock no start can add pairs between the look for open ones and the end.
    connection.execute(LOCK, {"collection": collection})
    closed = connection.execute(FINISH, {"campaign": campaign}).rowcount > 0
    if closed:
        audit_sampling.top_up_sample(connection, campaign=campaign, collection=collection)
    return closed


def _lease_values(held: Iterable[Claimed]) -> dict[str, Any]:
    # Sorted, so that two statements over the same rows lock them in the same order.
    rows = sorted((one.work, one.fence, int(one.lease.begun)) for one in held)
    return dict(zip(("ids", "fences", "begun"), map(list, zip(*rows, strict=True)), strict=True))


def _store_sent(connection: Connection[Any], values: dict[str, Any]) -> int:
    return connection.execute(BEGIN, values).rowcount


class SentLeases:
    """Claims of one process that sent their first call a moment ago, counted together."""

    def __init__(self, ask: Callable[[Callable[[Connection[Any]], Any]], Awaitable[Any]]) -> None:
        self.ask = ask
        self.noted: list[Claimed] = []
        self.task: asyncio.Task[None] | None = None

    def note(self, claimed: Claimed) -> None:
        """Count the claim at its first call, stored within milliseconds, unwaited."""
        if claimed.lease.begun:
            return
        claimed.lease.begun = True
        self.noted.append(claimed)
        if self.task is None or self.task.done():
            self.task = asyncio.create_task(self._count(), context=Context())

    async def _count(self) -> None:
        while self.noted:
            await asyncio.sleep(GATHER_S)
            values = _lease_values(self.noted)
            self.noted = []
            await self.ask(partial(_store_sent, values=values))
