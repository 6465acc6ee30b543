"""Leases on the pairs of a campaign: claim, renew, release. Every function runs in the writer's thread.

The clock is the database's. A claim raises the pair's fencing token, so that later writes of the earlier holder are
refused.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from typing import Any

from psycopg import Connection
from psycopg.rows import dict_row

from judges.domain.verdicts import NoVerdict
from judges.engine import audit_sampling
from judges.engine.plan import Plan
from judges.engine.rows import AttemptRow, stored_turn
from judges.records import Inputs, Prompt, Slot, Turn
from store.sql import read_sql

# Pairs of one claim: few enough that a slow worker does not hoard what others could judge.
BATCH = 64
# Claims that sent a call. A pair that lost its worker this often probably kills it: the pair fails
# instead of taking the next worker down.
MAX_CLAIMS = 3

CLAIM = read_sql(__file__, "claim")
GIVE_UP = read_sql(__file__, "give_up")

# For a campaign of batches, which one process alone works on (judges.batch): its pairs stay
# `running` while a batch is out.
HELD = """
SELECT id, pair_id, fence, attempt_base FROM judges_work
WHERE campaign_id = %(campaign)s AND state = 'running' AND id > %(after)s ORDER BY id LIMIT %(n)s
"""

# Returns a row for each lease that is still ours; the other pairs have been claimed by another worker.
RENEW = """
UPDATE judges_work w SET lease_until = now() + make_interval(secs => %(lease)s)
FROM unnest(%(ids)s::bigint[], %(fences)s::int[]) AS mine(id, fence)
WHERE w.id = mine.id AND w.fence = mine.fence AND w.state = 'running'
RETURNING w.id
"""

# A claim counts once it sends its first call: a pair that was only claimed cannot have killed its worker.
BEGIN = """
UPDATE judges_work w SET claims = w.claims + 1
FROM unnest(%(ids)s::bigint[], %(fences)s::int[]) AS mine(id, fence)
WHERE w.id = mine.id AND w.fence = mine.fence AND w.state = 'running'
"""
GATHER_S = 0.01  # Claims that begin within this time are counted together.

# The claim is uncounted: else a campaign paused three times would fail its pairs.
RELEASE = """
UPDATE judges_work w SET state = 'pending', lease_until = NULL, claims = GREATEST(0, w.claims - mine.begun)
FROM unnest(%(ids)s::bigint[], %(fences)s::int[], %(begun)s::int[]) AS mine(id, fence, begun)
WHERE w.id = mine.id AND w.fence = mine.fence AND w.state = 'running'
"""

# Pairs of dead workers, in campaigns whose pairs nobody claims. A worker that is still at one is refused by its fence.
ABANDONED = """
UPDATE judges_work w SET state = 'pending', lease_until = NULL, fence = w.fence + 1, claims = GREATEST(0, w.claims - 1)
FROM judges_campaign c
WHERE c.id = w.campaign_id AND c.state IN ('cancelled', 'paused', 'budget') AND w.state = 'running'
    AND w.lease_until < now()
    AND NOT EXISTS (SELECT 1 FROM judges_batch b WHERE b.campaign_id = c.id AND b.ended_at IS NULL)
"""

# For a pending pair `lease_until` is the time from which it may be claimed. Tries that failed because of
# the account are not counted: the next ones start from them.
WAIT = """
UPDATE judges_work w SET state = 'pending', lease_until = now() + make_interval(secs => %(wait)s),
    claims = GREATEST(0, w.claims - mine.begun), attempt_base = GREATEST(w.attempt_base, LEAST(mine.tried, 32000))
FROM unnest(%(ids)s::bigint[], %(fences)s::int[], %(begun)s::int[], %(tried)s::int[]) AS mine(id, fence, begun, tried)
WHERE w.id = mine.id AND w.fence = mine.fence AND w.state = 'running'
"""

FINAL = ("refused", "truncated", "prompt_cut")  # Outcomes of a call that another try would not change.
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

# For pairs that judges found relevant: the deciding window of the document, from which evidence is written.
RELEVANT_WINDOWS = """
SELECT DISTINCT ON (pair_id) pair_id, "window" FROM judges_work
WHERE pair_id = ANY(%s) AND state = 'labelled' AND label = 1 ORDER BY pair_id, id DESC
"""

# `running` is compared again in the statement: a pause in the meantime wins.
FINISH = """
UPDATE judges_campaign c SET state = 'finished', finished_at = now(), paused_because = ''
WHERE c.id = %(campaign)s AND c.state = 'running' AND NOT EXISTS (
    SELECT 1 FROM judges_work w WHERE w.campaign_id = c.id AND w.state IN ('pending', 'running'))
"""

# `starts` is the start that was refused: a campaign that has been resumed since is not paused by an old refusal.
PAUSE = """
UPDATE judges_campaign SET state = 'paused', paused_because = %(why)s
WHERE id = %(campaign)s AND state = 'running' AND starts = %(starts)s
"""

# What a running campaign is waiting for; '' if it is not waiting.
WAITS_FOR = "UPDATE judges_campaign SET paused_because = %(why)s WHERE id = %(campaign)s AND state = 'running'"

# Starting, joining and finishing a campaign of one collection exclude each other.
LOCK = "SELECT pg_advisory_xact_lock(7106, %(collection)s)"


@dataclass(slots=True)
class RefusalStreak:
    """Tries of a question that its account refused for now (429), one after another."""

    last: AttemptRow
    count: int = 1
    answers: int = 0  # Calls that the account had answered at the last refusal.
    passed_over: int = 0  # How often the account answered other calls in between.


@dataclass(slots=True)
class ClaimState:
    """State of a claim, shared by all windows of its pair."""

    begun: bool = False  # A call of this claim was sent.
    waits: bool = False  # An account is in trouble: the pair goes back to pending, and nothing more is sent for it.
    lost: bool = False  # The lease is lost: another worker has the pair.


@dataclass(slots=True)
class Claimed:
    """A claimed pair, or a window of its document, with its inputs and earlier turns."""

    work: int
    pair: int
    fence: int
    attempt_base: int
    query: int = 0
    inputs: Inputs = field(default_factory=lambda: Inputs("", (), "", ""))
    ended: dict[Slot, Turn | NoVerdict] = field(default_factory=dict)  # Counted attempts.
    # Highest number of an attempt so far, for slots with an attempt since the last retry-failed.
    tries: dict[Slot, int] = field(default_factory=dict)
    # What was wrong with an answer that was not counted and is to be repaired.
    problems: dict[Slot, str] = field(default_factory=dict)
    # Rendered questions of votes with their schemas, by highest grade, endpoint (Decisions or chat) and prompt.
    ballots: dict[tuple[int, bool, str], tuple[Prompt, dict[str, Any]]] = field(default_factory=dict)
    last_error: str = ""
    # Refusals for now (429): they are no tries of the question, and one row is stored for all of a slot.
    refused: dict[Slot, RefusalStreak] = field(default_factory=dict)
    lease: ClaimState = field(default_factory=ClaimState)
    window: int = 0  # The number of this window of the document, from 1; 0: the whole pair.
    windows: list["Claimed"] = field(default_factory=list)  # Windows judged separately, in order; empty: the pair is.

    @property
    def parts(self) -> list["Claimed"]:
        """What is judged separately: the windows of a long document, or the pair itself."""
        return self.windows or [self]


def claim(
    connection: Connection[Any],
    plan: Plan,
    *,
    lease: float,
    n: int = BATCH,
    stalled: Callable[[], bool] = lambda: False,
) -> list[Claimed]:
    """Claim up to `n` pairs for `lease` seconds, pending or expired, with their texts and earlier attempts.

    `stalled`: whether PostgreSQL was away a moment ago. Nobody could renew a lease then, so expired ones are left.
    """
    expired = not stalled()
    values = {"campaign": plan.campaign, "lease": lease, "n": n, "most": MAX_CLAIMS, "shard": 0, "expired": expired}
    # Given up before the claim, so that the claim does not take such a pair once more.
    if expired:
        connection.execute(GIVE_UP, values)
    rows = sorted(connection.execute(CLAIM, values).fetchall())
    return _load_pairs(connection, rows, plan)


def running_pairs(connection: Connection[Any], plan: Plan, *, after: int, n: int = BATCH) -> list[Claimed]:
    """Return up to `n` running pairs after `after`, of a campaign that only one process works on."""
    rows = connection.execute(HELD, {"campaign": plan.campaign, "after": after, "n": n}).fetchall()
    return _load_pairs(connection, rows, plan, again=True)


def _load_pairs(
    connection: Connection[Any], rows: Sequence[tuple[int, int, int, int]], plan: Plan, *, again: bool = False
) -> list[Claimed]:
    """Load the texts and earlier attempts of pairs, given as rows of work, pair, fence and attempt base.

    1. Read the attempts of pairs that were claimed before.
    2. Read the texts; cut long documents into windows where the collection asks for it.
    3. Restore each pair, or window, from its attempts.
    """
    pairs = {pair: Claimed(work, pair, token, base) for work, pair, token, base in rows}
    if not pairs:
        return []
    reclaimed = [claimed.pair for claimed in pairs.values() if again or claimed.fence > 1]
    cursor = connection.cursor(row_factory=dict_row)
    attempts = cursor.execute(EVIDENCE, [plan.campaign, reclaimed]).fetchall() if reclaimed else []
    # A pair continues as it began, whole or in windows, whatever the collection says by now: its answers are paid for.
    in_windows = {row["pair_id"]: row["window"] > 0 for row in attempts if row["counts"]}
    for pair, query, text, answers, instruction, title, document, key in connection.execute(MATERIAL, [list(pairs)]):
        claimed = pairs[pair]
        claimed.query = query
        definition = plan.rubric.definition(answers=bool(answers), query_instruction=instruction)
        claimed.inputs = Inputs(text, tuple(answers), title, document, definition, plan.collection, key, plan.shown)
        if in_windows.get(pair, plan.by_windows):
            # Windows share the claim's state, so that a lost lease stops all of them.
            ids = (claimed.work, pair, claimed.fence, claimed.attempt_base, query)
            claimed.windows = [
                Claimed(*ids, part, lease=claimed.lease, window=number)
                for number, part in enumerate(claimed.inputs.parts, 1)
            ]
    if plan.writes:
        for pair, window in connection.execute(RELEVANT_WINDOWS, [list(pairs)]):
            if window:
                pairs[pair].inputs = pairs[pair].inputs.parts[window - 1]
    for row in attempts:
        parts = pairs[row["pair_id"]].parts
        part = next((part for part in parts if part.window == row["window"]), None)
        if part is not None:  # else tried in vain before the collection asked for windows, or no longer did
            slot, outcome = (row["role"], row["nth"], row["who"]), row["outcome"]
            if row["counts"]:
                part.ended[slot] = stored_turn(row) if outcome == "labelled" else NoVerdict(outcome)
            elif row["status"] == TOO_MANY and outcome == "error":
                part.last_error = row["error"]  # no try of the question
            elif row["number"] > part.attempt_base:  # tries before the last retry-failed no longer count
                part.tries[slot] = max(row["number"], part.tries.get(slot, 0))
                is_unusable = outcome in ("unparsed", "out_of_range")
                # Under `single` an answer that is no vote does not count, so that a retry may ask again; nothing else
                # may.
                if outcome in FINAL or (is_unusable and slot in part.problems):
                    part.ended[slot] = NoVerdict(outcome)
                elif is_unusable:
                    part.problems[slot] = row["error"]
                part.last_error = row["error"] or part.last_error
    return list(pairs.values())


def renew(connection: Connection[Any], pairs: list[Claimed], lease: float) -> set[int]:
    """Renew the leases for `lease` seconds; return the work ids of those that are still ours."""
    return {row[0] for row in connection.execute(RENEW, _lease_values(pairs) | {"lease": lease})}


def release(connection: Connection[Any], pairs: list[Claimed]) -> None:
    """Release the pairs untouched: this claim does not count against them."""
    if pairs:
        connection.execute(RELEASE, _lease_values(pairs))


def postpone_pairs(connection: Connection[Any], pairs: list[Claimed]) -> None:
    """Postpone pairs until an account works again: neither the claim nor the tries count."""
    if pairs:
        # A pair's tries so far become its base: failures while the account was down use up none of the next ones.
        tries = {
            claimed.work: max([claimed.attempt_base, *(n for part in claimed.parts for n in part.tries.values())])
            for claimed in pairs
        }
        values = _lease_values(pairs)
        connection.execute(WAIT, values | {"tried": [tries[work] for work in values["ids"]], "wait": WAIT_S})


def finish_campaign(connection: Connection[Any], *, campaign: int, collection: int) -> bool:
    """Close a campaign whose pairs have all ended, and top up its audit; return whether it was closed."""
    # Under the lock no start can add pairs between the check for open pairs and the end.
    connection.execute(LOCK, {"collection": collection})
    closed = connection.execute(FINISH, {"campaign": campaign}).rowcount > 0
    if closed:
        audit_sampling.top_up_sample(connection, campaign=campaign, collection=collection)
    return closed


def _lease_values(pairs: Iterable[Claimed]) -> dict[str, Any]:
    # Sorted, so that two statements over the same rows lock them in the same order.
    rows = sorted((claimed.work, claimed.fence, int(claimed.lease.begun)) for claimed in pairs)
    return dict(zip(("ids", "fences", "begun"), map(list, zip(*rows, strict=True)), strict=True))


class SentLeases:
    """Claims of one process that sent their first call a moment ago, counted together."""

    def __init__(self, ask: Callable[[Callable[[Connection[Any]], Any]], Awaitable[Any]]) -> None:
        self.ask = ask
        self.uncounted: list[Claimed] = []
        self.task: asyncio.Task[None] | None = None

    def note(self, claimed: Claimed) -> None:
        """Count the claim at its first call; it is stored within milliseconds, and nobody waits for that."""
        if claimed.lease.begun:
            return
        claimed.lease.begun = True
        self.uncounted.append(claimed)
        if self.task is None or self.task.done():
            self.task = asyncio.create_task(self._count(), context=Context())

    async def _count(self) -> None:
        while self.uncounted:
            await asyncio.sleep(GATHER_S)
            values = _lease_values(self.uncounted)
            self.uncounted = []

            def begin(connection: Connection[Any], values: dict[str, Any] = values) -> int:
                return connection.execute(BEGIN, values).rowcount

            await self.ask(begin)
