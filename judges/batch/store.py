"""Statements on the tables of batches and their calls. Each function runs in the writer's thread."""

import json
import uuid
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from typing import Any

from psycopg import Connection

from judges.batch.endpoints import MOST
from judges.engine.answers import SENT_CALL, SentCall
from judges.engine.rows import AttemptRow, store_rows
from judges.records import Inputs, Judge, ModelRequest, Prompt

LEASE_S = 7 * 86_400.0  # Lease of pairs, and of reserved money, that wait for a batch: it is not renewed meanwhile.
# A call for the next batch, and the JSON schema of its answer.
Collected = tuple[SentCall, dict[str, Any]]

# One process at a time works on a batch campaign: it holds this session lock while it does.
TAKE = "SELECT pg_try_advisory_lock(7107, %s)"
LEAVE = "SELECT pg_advisory_unlock(7107, %s)"

RENEW = """
UPDATE judges_work SET lease_until = now() + make_interval(secs => %(lease)s)
WHERE campaign_id = %(campaign)s AND state = 'running'
"""

RELEASE = """
UPDATE judges_work SET state = 'pending', lease_until = NULL, claims = GREATEST(0, claims - 1)
WHERE campaign_id = %s AND state = 'running'
"""

# Tries that an account's refusal used up do not count: the pairs' next tries are counted from them.
FORGIVE = """
UPDATE judges_work w SET attempt_base = LEAST(a.tried, 32000)
FROM (SELECT pair_id, max(number) AS tried FROM judges_attempt
      WHERE campaign_id = %(campaign)s AND pair_id = ANY(%(pairs)s) GROUP BY pair_id) a
WHERE w.campaign_id = %(campaign)s AND w.pair_id = a.pair_id AND w.attempt_base < a.tried
"""

# Returns the reserved money of calls that were never sent to the campaign.
FREE = "DELETE FROM judges_reservation WHERE campaign_id = %(campaign)s AND holder = %(holder)s"

# A batch may take days: its reservation lasts as long as the batch, not as the process that made it.
HOLD = """
UPDATE judges_reservation SET until = now() + make_interval(secs => %(lease)s)
WHERE campaign_id = %(campaign)s AND holder = %(holder)s
"""

OUT = """
SELECT b.id, b.name, provider_id, judge || jsonb_build_object('encrypted_key', coalesce(ciphertext, '')),
    calls, sent_at, likely
FROM judges_batch b LEFT JOIN judges_storedkey k ON k.name = judge ->> 'api_key_env'
WHERE campaign_id = %s AND ended_at IS NULL ORDER BY b.id
"""

CALLS = """
SELECT id, sent FROM judges_batchcall
WHERE batch_id = %(batch)s AND (%(ids)s::bigint[] IS NULL OR id = ANY(%(ids)s)) ORDER BY id
"""

WAITING = """
SELECT "group", id, size FROM judges_batchcall WHERE campaign_id = %s AND batch_id IS NULL ORDER BY "group", id
"""

ADD = """
INSERT INTO judges_batchcall (id, campaign_id, "group", size, sent) VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING
"""

NEW = """
INSERT INTO judges_batch (campaign_id, name, judge, model, provider_id, calls, problem)
VALUES (%s, %s, %s, %s, '', %s, %s) RETURNING id
"""

# The states of one batch. It is marked as sent before the request: from then on the provider may have
# it, whatever the answer, and only a batch that was certainly not created is marked as unsent. A
# batch that only fits (`likely`) may turn out to be another client's: then the search continues.
SENT = "UPDATE judges_batch SET sent_at = now(), problem = '' WHERE id = %(batch)s"
UNSENT = "UPDATE judges_batch SET sent_at = NULL, provider_id = '' WHERE id = %(batch)s"
SUBMITTED = """
UPDATE judges_batch SET provider_id = %(provider)s, problem = %(problem)s, likely = %(problem)s <> ''
WHERE id = %(batch)s
"""
UNLINKED = "UPDATE judges_batch SET provider_id = '', likely = false, problem = %(problem)s WHERE id = %(batch)s"
PROBLEM = "UPDATE judges_batch SET problem = %(problem)s WHERE id = %(batch)s"
MISSING = PROBLEM + " AND problem = ''"  # An earlier problem stays.
ENDED = "UPDATE judges_batch SET ended_at = now() WHERE id = %(batch)s"

ENVELOPE = 2048  # Bytes of a call beside its messages and its schema: id, model, parameters, separators.


@dataclass(frozen=True, slots=True)
class OpenBatch:
    """A batch that has not ended. `provider_id` is empty while it is unknown."""

    id: int
    name: str
    provider_id: str
    judge: Judge
    calls: int
    sent_at: datetime | None  # None: it has not been sent.
    likely: bool = False  # `provider_id` names a batch that fits, and may be another client's.


def draw_ids(connection: Connection[Any], n: int) -> list[int]:
    """Return ids for calls. They are drawn in a separate transaction, so that adding the calls may be repeated."""
    sequence = "SELECT nextval(pg_get_serial_sequence('judges_batchcall', 'id')) FROM generate_series(1, %s)"
    return [row[0] for row in connection.execute(sequence, [n])]


def add_calls(connection: Connection[Any], campaign: int, collected: Sequence[Collected], ids: Sequence[int]) -> None:
    """Store calls for batches, grouped by account and model; ids that are stored already are left alone."""
    rows = []
    for id, (sent, schema) in zip(ids, collected, strict=True):
        # A batch holds calls of one model and key, so calls are grouped by both.
        group = sha256("\0".join((*sent.judge.account, sent.judge.model)).encode()).hexdigest()
        # An upper bound of its bytes: JSON in ASCII is the longest of the providers' forms.
        size = len(json.dumps(sent.messages)) + len(json.dumps(schema)) + ENVELOPE
        rows.append((id, campaign, group, size, _pack_call(sent, schema)))
    connection.cursor().executemany(ADD, rows)


def change_calls(connection: Connection[Any], calls: Mapping[int, Collected]) -> None:
    """Store waiting calls again, after their prices have changed."""
    rows = [(_pack_call(sent, schema), id) for id, (sent, schema) in calls.items()]
    connection.cursor().executemany("UPDATE judges_batchcall SET sent = %s WHERE id = %s", rows)


def _pack_call(sent: SentCall, schema: dict[str, Any]) -> bytes:
    return zlib.compress(json.dumps({**SENT_CALL.dump_python(sent), "schema": schema}).encode(), 1)


def form_batches(connection: Connection[Any], campaign: int) -> int:
    """Create batches of the waiting calls, each of one group and within the provider's limits; return their number."""
    count = 0
    calls = connection.execute(WAITING, [campaign]).fetchall()
    for _, rows in groupby(calls, key=itemgetter(0)):
        sizes = [(id, size) for _, id, size in rows]
        ((sent,),) = connection.execute("SELECT sent FROM judges_batchcall WHERE id = %s", [sizes[0][0]])
        judge = _unpack_call(bytes(sent))[0].judge
        for ids in chunk_calls(sizes, *MOST[judge.preset.wire]):
            _create_batch(connection, campaign, judge, ids)
            count += 1
    return count


def chunk_calls(calls: Sequence[tuple[int, int]], most_calls: int, most_bytes: int) -> list[list[int]]:
    """Split calls of (id, bytes), in their order, into lists of ids that fit in a batch; one too large is alone."""
    chunks: list[list[int]] = []
    chunk_bytes = 0
    for id, size in calls:
        if not chunks or chunk_bytes + size > most_bytes or len(chunks[-1]) == most_calls:
            chunks.append([])
            chunk_bytes = 0
        chunks[-1].append(id)
        chunk_bytes += size
    return chunks


def split_batch(connection: Connection[Any], batch: OpenBatch, campaign: int, problem: str) -> int:
    """Replace a refused batch by two halves; return their number, 0 if it has only one call."""
    ids = pending_call_ids(connection, batch.id, batch.calls)
    if len(ids) < 2:
        return 0
    for half in (ids[: len(ids) // 2], ids[len(ids) // 2 :]):
        _create_batch(connection, campaign, batch.judge, half, problem)
    connection.execute("DELETE FROM judges_batch WHERE id = %s", [batch.id])
    return 2


def _create_batch(
    connection: Connection[Any], campaign: int, judge: Judge, ids: Sequence[int], problem: str = ""
) -> None:
    # A unique name for each batch, by which it is found at the provider if its id was lost.
    name = f"quorum-{uuid.uuid4().hex[:16]}"
    values = [campaign, name, json.dumps(asdict(replace(judge, encrypted_key=""))), judge.model, len(ids), problem]
    ((batch,),) = connection.execute(NEW, values)
    connection.execute("UPDATE judges_batchcall SET batch_id = %s WHERE id = ANY(%s)", [batch, list(ids)])


def open_batches(connection: Connection[Any], campaign: int) -> list[OpenBatch]:
    rows = connection.execute(OUT, [campaign]).fetchall()
    return [OpenBatch(id, name, provider, Judge(**judge), *rest) for id, name, provider, judge, *rest in rows]


def pending_calls(
    connection: Connection[Any], batch: int, ids: Sequence[int] | None = None
) -> dict[int, tuple[SentCall, ModelRequest]]:
    """Return the calls of a batch that still wait, with their requests, by id; `ids`: only these."""
    rows = connection.execute(CALLS, {"batch": batch, "ids": None if ids is None else list(ids)})
    return {id: _unpack_call(bytes(sent)) for id, sent in rows.fetchall()}


def _unpack_call(packed: bytes) -> tuple[SentCall, ModelRequest]:
    record: dict[str, Any] = json.loads(zlib.decompress(packed))
    sent = SENT_CALL.validate_python(record)
    system, user = (message["content"] for message in json.loads(sent.messages))
    # The stored row has the prompt's name and hash; only its messages are needed here.
    prompt = Prompt(name="", sha256="", system=system, user=user)
    inputs = Inputs("", (), "", sent.document)
    return sent, ModelRequest(sent.judge, prompt, record["schema"], inputs, sent.row["role"])


def pending_call_ids(connection: Connection[Any], batch: int, n: int) -> list[int]:
    """Return the ids of up to `n` calls of the batch that still wait."""
    query = "SELECT id FROM judges_batchcall WHERE batch_id = %s ORDER BY id LIMIT %s"
    return [row[0] for row in connection.execute(query, [batch, n]).fetchall()]


def known_provider_ids(connection: Connection[Any]) -> set[str]:
    return {id for (id,) in connection.execute("SELECT provider_id FROM judges_batch WHERE provider_id <> ''")}


def store_answers(connection: Connection[Any], attempts: Sequence[AttemptRow], ids: Sequence[int], shard: int) -> None:
    """Store answers as attempts, and delete the calls that waited for them."""
    store_rows(connection, attempts, shard)
    connection.execute("DELETE FROM judges_batchcall WHERE id = ANY(%s)", [list(ids)])


def renew_leases(connection: Connection[Any], campaign: int, holder: str) -> None:
    connection.execute(RENEW, {"campaign": campaign, "lease": LEASE_S})
    connection.execute(HOLD, {"campaign": campaign, "holder": holder, "lease": LEASE_S})


def put_back(connection: Connection[Any], campaign: int, holder: str) -> None:
    """Release a campaign's pairs, and delete its unsent calls with their reserved money."""
    connection.execute(RELEASE, [campaign])
    connection.execute("DELETE FROM judges_batchcall WHERE campaign_id = %s", [campaign])
    connection.execute(FREE, {"campaign": campaign, "holder": holder})


def delete_unsent_batch(connection: Connection[Any], batch: int) -> None:
    connection.execute("DELETE FROM judges_batchcall WHERE batch_id = %s", [batch])
    connection.execute("DELETE FROM judges_batch WHERE id = %s", [batch])
