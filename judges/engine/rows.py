"""Rows that a worker writes: ended attempts and decided pairs, each kind in one set-based statement.

Both statements check the fence. An attempt whose lease was lost is kept as evidence of what was paid, but never
counts; an outcome whose lease was lost changes nothing. Both may be run twice with the same rows.
"""

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Connection

from corpus.collections.task_order import MEASURING, open_items
from corpus.labels import ADJUDICATOR, PEOPLE, write_labels
from judges.campaigns.counters import ADD
from judges.domain.audits import OVERLAP
from judges.engine.cost_accounting import BOOKING
from judges.records import WITHOUT_PAIR, Quote, Turn

Row = dict[str, Any]

# What the row of a call says until its answer is there.
NO_ANSWER: Row = {
    **{"outcome": "error", "counts": False, "cached": False, "quotes": [], "calls": 0},
    **dict.fromkeys(("verdict", "score", "probabilities", "status")),
    **dict.fromkeys(("reason", "reasoning", "error", "finish", "answered_by"), ""),
    **dict.fromkeys(("tokens_in", "tokens_cached", "tokens_written", "tokens_out", "tokens_reasoning", "ms"), 0),
    **dict.fromkeys(("cost", "usd", "bound"), 0.0),
}


@dataclass(slots=True)
class Attempted:
    """A row of Attempt with its two compressed bodies, and what it held of the budget."""

    row: Row
    # Text is compressed as it is stored, in the writer's thread; bytes are compressed already. So is `raw`.
    messages: str | bytes = b""
    raw: str | bytes = b""


@dataclass(slots=True)
class Decided:
    """The outcome of a pair, with what labels, judgments and items need."""

    row: Row
    is_target: bool = False  # A target that a judge wrote, good or for a person to edit: it labels nothing.


Ended = Attempted | Decided

# `held` locks the work rows whose lease is still ours; an answer that came too late is stored and paid for, but does
# not count. ON CONFLICT skips what was stored before the writer was cut off.
ATTEMPTS = f"""
WITH r AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%(rows)s::json) AS r(
        id bigint, work bigint, fence int, campaign bigint, pair bigint, "window" smallint, judge bigint, prompt bigint,
        role text, round smallint, agent_pair smallint, place smallint, generation smallint, number smallint,
        outcome text, counts bool, cached bool, verdict smallint,
        score smallint, probabilities jsonb, reason text, reasoning text, quotes jsonb, error text, status smallint,
        finish text, tokens_in int, tokens_cached int, tokens_written int, tokens_out int, tokens_reasoning int,
        cost float8, ms int, key text, started timestamptz, holder text, usd float8, calls int, bound float8,
        answered_by text)
),
held AS MATERIALIZED (
    SELECT w.id, w.fence FROM judges_work w
    WHERE w.id IN (SELECT work FROM r) AND w.state = 'running' ORDER BY w.id FOR NO KEY UPDATE
),
written AS (
    INSERT INTO judges_attempt (
        id, campaign_id, pair_id, "window", judge_id, prompt_id, role, round, agent_pair, place, generation, number,
        outcome, counts, cached, verdict, score, probabilities, reason, reasoning, quotes, error, status, finish_reason,
        tokens_in, tokens_cached, tokens_written, tokens_out, tokens_reasoning, cost, assumed, milliseconds, cache_key,
        started_at, answered_by)
    SELECT r.id, campaign, pair, COALESCE("window", 0), judge, prompt, role, round, agent_pair, place, generation,
        number, outcome, counts AND held.id IS NOT NULL, cached, verdict, score, probabilities, reason,
        COALESCE(reasoning, ''), quotes,
        CASE WHEN held.id IS NULL AND error = '' THEN 'came after the lease was lost' ELSE error END,
        status, finish, tokens_in, tokens_cached, COALESCE(tokens_written, 0), tokens_out, tokens_reasoning, cost,
        CASE WHEN cost IS NULL THEN bound ELSE 0 END, ms, key, started, COALESCE(answered_by, '')
    FROM r LEFT JOIN held ON held.id = r.work AND held.fence = r.fence
    ON CONFLICT DO NOTHING
    RETURNING id, campaign_id, judge_id, role, round, counts, cached, outcome, answered_by, cost, assumed, tokens_in,
        tokens_cached, tokens_written, tokens_out, tokens_reasoning
),
bodies AS (
    INSERT INTO judges_attemptbody (campaign_id, attempt_id, messages, raw)
    SELECT written.campaign_id, b.id, b.messages, b.raw
    FROM unnest(%(ids)s::bigint[], %(messages)s::bytea[], %(raws)s::bytea[]) AS b(id, messages, raw)
    JOIN written ON written.id = b.id
),
{BOOKING}
SELECT id, counts FROM written
"""

# What runs and conversations asked: about no pair, so there is no work and no fence (judges.models.retrieval).
# Vectors and their prompts are kept by text elsewhere, so their bodies are not stored again.
CALLS = f"""
WITH r AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%(rows)s::json) AS r(
        id bigint, campaign bigint, query bigint, topic text, judge bigint, prompt bigint, role text, place int,
        number smallint, outcome text, cached bool, reason text, error text, status smallint, finish text,
        tokens_in int, tokens_cached int, tokens_written int, tokens_out int, tokens_reasoning int, cost float8, ms int,
        key text, started timestamptz, holder text, usd float8, calls int, bound float8, answered_by text)
    JOIN unnest(%(ids)s::bigint[], %(messages)s::bytea[], %(raws)s::bytea[]) AS b(id, messages, raw) USING (id)
),
written AS (
    INSERT INTO judges_retrievalcall (
        id, campaign_id, query, topic, judge_id, prompt_id, role, sample, number, outcome, cached, text, error, status,
        finish_reason, tokens_in, tokens_cached, tokens_written, tokens_out, tokens_reasoning, cost, assumed,
        milliseconds, cache_key, started_at, messages, raw, answered_by)
    SELECT id, campaign, query, COALESCE(topic, ''), judge, prompt, role, place, number, outcome, cached,
        CASE WHEN outcome = 'labelled' AND role <> 'embed' THEN reason ELSE '' END, error, status, finish, tokens_in,
        tokens_cached, COALESCE(tokens_written, 0), tokens_out, tokens_reasoning, cost,
        CASE WHEN cost IS NULL THEN bound ELSE 0 END, ms, key, started,
        CASE WHEN role = 'embed' THEN '' ELSE messages END, CASE WHEN role = 'embed' THEN '' ELSE raw END,
        COALESCE(answered_by, '')
    FROM r
    ON CONFLICT DO NOTHING
    RETURNING id, campaign_id, judge_id, role, 0::smallint AS round, cached, outcome, answered_by, cost, assumed,
        tokens_in,
        tokens_cached, tokens_written, tokens_out, tokens_reasoning
),
{BOOKING}
SELECT id FROM written
"""

# Whoever resolves labels locks the pairs first, in this order (corpus.labels).
LOCK_PAIRS = "SELECT id FROM corpus_pair WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE"

_LABELLED = """
SELECT e.pair, NULL::bigint, e.grade, e.origin FROM ended e WHERE e.state = 'labelled' ORDER BY e.pair"""
# Everything follows from `ended`, the pairs whose lease is still ours: a late worker changes nothing. A judge's label
# supersedes its own earlier judgment of the pair (`head`).
OUTCOMES = """
WITH r AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%(rows)s::json) AS r(
        work bigint, fence int, campaign bigint, pair bigint, collection bigint, state text, label smallint,
        reason text, error text, agreed smallint, "window" smallint, uncertainty float8, priority float8,
        overlap smallint,
        assessor bigint, grade smallint, origin text, stratum text, probability float8, drawn bool)
),
ended AS (
    UPDATE judges_work w SET state = r.state, label = r.label, reason = r.reason, error = r.error,
        agreed_in_round = r.agreed, "window" = COALESCE(r."window", 0), stratum = COALESCE(r.stratum, ''),
        lease_until = NULL, ended_at = now()
    FROM r WHERE w.id = r.work AND w.fence = r.fence AND w.state = 'running'
    RETURNING r.*
),
judged AS (
    INSERT INTO corpus_judgment (pair_id, assessor_id, step, grade, supersedes_id, arm, guideline, comment)
    SELECT e.pair, e.assessor, 'final', e.grade, head.id, '', 0, ''
    FROM ended e LEFT JOIN LATERAL (
        SELECT j.id FROM judgment_head j
        WHERE j.pair_id = e.pair AND j.assessor_id = e.assessor AND j.item_id IS NULL AND j.aspect_id IS NULL
        ORDER BY j.id DESC LIMIT 1) head ON true
    WHERE e.state = 'labelled'
),
labelled AS (
    {labels}
),
uncertain AS (
    UPDATE corpus_pair p SET uncertainty = e.uncertainty FROM ended e
    WHERE p.id = e.pair AND e.state = 'escalated' AND p.uncertainty <> e.uncertainty
),
{items},
{audits},
sums AS (
    SELECT campaign, %(shard)s::int AS shard, key, sum(value) AS value FROM (
        SELECT campaign, CASE state WHEN 'labelled' THEN 'labelled:' || label
                                    WHEN 'escalated' THEN 'escalated:' || reason ELSE 'failed' END, 1 FROM ended
        UNION ALL SELECT campaign, 'agreed:' || agreed, 1 FROM ended WHERE agreed IS NOT NULL
        UNION ALL SELECT campaign, 'moved', 1 FROM moved
        UNION ALL SELECT campaign, 'route:' || stratum, 1 FROM routed
        UNION ALL SELECT campaign, 'escalated:audit', 1 FROM drawn
        UNION ALL SELECT campaign, 'audited', 1 FROM drawn WHERE known = 'settled') AS k(campaign, key, value)
    GROUP BY 1, 3 ORDER BY 1, 3
),
tallied AS ({tally})
SELECT work FROM ended
"""

_ESCALATED = """
SELECT e.collection, e.pair, e.campaign, e.reason, e.priority, e.overlap
FROM ended e WHERE e.state = 'escalated' AND NOT EXISTS (
    SELECT 1 FROM corpus_item i
    WHERE i.pair_id = e.pair AND i.reason = e.reason AND i.state IN ('open', 'conflict'))"""
# An open item of the same pair and reason is kept and passes to the newer campaign; else the next one opens.
ITEMS = f"""
standing AS MATERIALIZED (
    SELECT i.id, i.campaign, e.campaign AS taker FROM ended e JOIN corpus_item i ON i.pair_id = e.pair
        AND i.reason = e.reason AND i.state IN ('open', 'conflict') AND i.campaign IS DISTINCT FROM e.campaign
    WHERE e.state = 'escalated'
),
taken AS (UPDATE corpus_item i SET campaign = s.taker FROM standing s WHERE i.id = s.id),
moved AS (SELECT campaign FROM standing WHERE campaign IN (SELECT id FROM judges_campaign)),
opened AS (
    {open_items(_ESCALATED)}
)"""

_DRAWN = f"""
SELECT d.collection, d.pair, d.campaign, 'audit' AS reason, d.priority, {OVERLAP} AS overlap
FROM drawn d WHERE d.item IS NULL"""
# Labelled pairs that were drawn go to people with the label, unless people met the pair with another reason before:
# their answers would not be blind, so such pairs belong to no route. An earlier audit's item serves again. (A scalar
# query, because NOT EXISTS may be planned as a join that reads all items.)
AUDITS = f"""
routed AS MATERIALIZED (
    SELECT e.* FROM ended e WHERE e.state = 'labelled' AND e.stratum IS NOT NULL AND (
        SELECT true FROM corpus_item i
        WHERE i.pair_id = e.pair AND i.reason NOT IN ('audit', {", ".join(f"'{reason}'" for reason in MEASURING)})
        LIMIT 1) IS NOT TRUE
),
drawn AS MATERIALIZED (
    SELECT e.*, i.id AS item, i.state AS known FROM routed e LEFT JOIN LATERAL (
        SELECT id, state FROM corpus_item WHERE pair_id = e.pair AND reason = 'audit' AND state <> 'withdrawn'
        ORDER BY seq DESC LIMIT 1) i ON true
    WHERE e.drawn
),
audit_items AS (
    {open_items(_DRAWN)}
    ON CONFLICT DO NOTHING
    RETURNING id, pair_id
),
audited AS (
    INSERT INTO judges_audit (campaign_id, pair_id, item_id, stratum, probability, label)
    SELECT d.campaign, d.pair, COALESCE(d.item, n.id), d.stratum, d.probability, d.label
    FROM drawn d LEFT JOIN audit_items n ON n.pair_id = d.pair
    WHERE COALESCE(d.item, n.id) IS NOT NULL ORDER BY d.pair
    ON CONFLICT DO NOTHING
)"""

OUTCOMES = OUTCOMES.format(
    labels=write_labels(_LABELLED, unless=(ADJUDICATOR, PEOPLE)),
    items=ITEMS,
    audits=AUDITS,
    tally=ADD.format(rows="SELECT campaign, shard, key, value FROM sums"),
)

_UNWRITTEN = """
SELECT e.collection, e.pair, e.campaign, 'evidence' AS reason, e.priority, 1 AS overlap
FROM ended e WHERE NOT e.good AND NOT EXISTS (
    SELECT 1 FROM corpus_item i
    WHERE i.pair_id = e.pair AND i.reason = 'evidence' AND i.state IN ('open', 'conflict'))"""
# The state `labelled` says that the work is done; its label stays null, and no judgment, label or audit is written.
TARGETS = """
WITH r AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%(rows)s::json) AS r(
        work bigint, fence int, campaign bigint, pair bigint, collection bigint, good bool, contribution text,
        evidence text, writer text, measures jsonb, priority float8)
),
ended AS (
    UPDATE judges_work w SET state = CASE WHEN r.good THEN 'labelled' ELSE 'escalated' END,
        reason = CASE WHEN r.good THEN '' ELSE 'evidence' END, error = '', lease_until = NULL, ended_at = now()
    FROM r WHERE w.id = r.work AND w.fence = r.fence AND w.state = 'running'
    RETURNING r.*
),
targets AS (
    INSERT INTO corpus_target (pair_id, version, kind, writer, contribution, evidence, measures, good)
    SELECT e.pair, COALESCE((SELECT max(t.version) + 1 FROM corpus_target t WHERE t.pair_id = e.pair), 1),
        'judge', e.writer, e.contribution, e.evidence, e.measures, e.good
    FROM ended e ORDER BY e.pair
),
opened AS (
    {items}
),
sums AS (
    SELECT campaign, %(shard)s::int AS shard, key, sum(value) AS value FROM (
        SELECT campaign, CASE WHEN good THEN 'written' ELSE 'escalated:evidence' END, 1 FROM ended
    ) AS k(campaign, key, value) GROUP BY 1, 3 ORDER BY 1, 3
),
tallied AS ({tally})
SELECT work FROM ended
""".format(items=open_items(_UNWRITTEN), tally=ADD.format(rows="SELECT campaign, shard, key, value FROM sums"))


def stored_turn(row: Row) -> Turn:
    """Return the turn that the row of a labelled attempt holds; that of a text has a verdict that says nothing."""
    quotes = tuple(Quote(**quote) for quote in row["quotes"])
    return Turn(
        1 if row["verdict"] is None else row["verdict"], row["reason"], quotes, row["score"], row["probabilities"]
    )


def _compress_text(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else zlib.compress(text.encode("utf-8", "replace"), 1)


def store_rows(connection: Connection[Any], ended: Sequence[Ended], shard: int) -> None:
    """Write everything in the connection's present transaction: attempts first, then outcomes."""
    # Attempts first, so that an outcome is never visible without the evidence that it rests on.
    attempts = [one for one in ended if isinstance(one, Attempted) and one.row["role"] not in WITHOUT_PAIR]
    calls = [one for one in ended if isinstance(one, Attempted) and one.row["role"] in WITHOUT_PAIR]
    outcomes = [one.row for one in ended if isinstance(one, Decided) and not one.is_target]
    targets = [one.row for one in ended if isinstance(one, Decided) and one.is_target]
    for statement, stored in ((ATTEMPTS, attempts), (CALLS, calls)):
        if stored:
            values = {
                "rows": json.dumps([one.row for one in stored]),
                "ids": [one.row["id"] for one in stored],
                "messages": [_compress_text(one.messages) for one in stored],
                "raws": [_compress_text(one.raw) for one in stored],
                "shard": shard,
            }
            connection.execute(statement, values)
    if outcomes:
        connection.execute(LOCK_PAIRS, [[row["pair"] for row in outcomes if row["state"] == "labelled"]])
        connection.execute(OUTCOMES, {"rows": json.dumps(outcomes), "shard": shard})
    if targets:
        connection.execute(LOCK_PAIRS, [[row["pair"] for row in targets]])
        connection.execute(TARGETS, {"rows": json.dumps(targets), "shard": shard})
