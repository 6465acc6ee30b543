"""The two tables of batches. Every function runs in the writer's thread, in a transaction of its own."""

import json
import uuid
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from psycopg import Connection

from judges.batching.caller import LEASE_S, Collected
from judges.batching.endpoints import MOST
from judges.engine.answers import Sent, record_of, sent_of
from judges.engine.rows import Attempted, store
from judges.records import Inputs, Judge, Prompt, Request

TAKE = "SELECT pg_try_advisory_lock(7107, %s)"
LEAVE = "SELECT pg_advisory_unlock(7107, %s)"
"""One process at a time works on a batch campaign."""

RENEW = """
UPDATE judges_work SET lease_until = now() + make_interval(secs => %(lease)s)
WHERE campaign_id = %(campaign)s AND state = 'running'
"""

RELEASE = """
UPDATE judges_work SET state = 'pending', lease_until = NULL, claims = GREATEST(0, claims - 1)
WHERE campaign_id = %s AND state = 'running'
"""

FREE = """
WITH mine AS (
    DELETE FROM judges_reservation WHERE campaign_id = %(campaign)s AND holder = %(holder)s RETURNING usd, calls)
UPDATE judges_campaign SET reserved = GREATEST(0, reserved - mine.usd),
    calls_reserved = GREATEST(0, calls_reserved - mine.calls)
FROM mine WHERE id = %(campaign)s
"""

HOLD = """
UPDATE judges_reservation SET until = now() + make_interval(secs => %(lease)s)
WHERE campaign_id = %(campaign)s AND holder = %(holder)s
"""

OUT = "SELECT id, name, provider_id, judge FROM judges_batch WHERE campaign_id = %s AND ended_at IS NULL ORDER BY id"

CALLS = """
SELECT id, sent FROM judges_batchcall
WHERE batch_id = %(batch)s AND (%(ids)s::bigint[] IS NULL OR id = ANY(%(ids)s)) ORDER BY id
"""

GROUPS = """
SELECT "group", count(*) FROM judges_batchcall WHERE campaign_id = %s AND batch_id IS NULL GROUP BY 1 ORDER BY 1
"""

FORM = """
UPDATE judges_batchcall SET batch_id = %(batch)s WHERE id IN (
    SELECT id FROM judges_batchcall WHERE campaign_id = %(campaign)s AND batch_id IS NULL AND "group" = %(group)s
    ORDER BY id LIMIT %(most)s)
RETURNING 1
"""


@dataclass(frozen=True, slots=True)
class Out:
    """A batch that has not ended. `provider_id` is empty while nobody knows whether the provider has it."""

    id: int
    name: str
    provider_id: str
    judge: Judge


def add(connection: Connection[Any], campaign: int, collected: Sequence[Collected]) -> None:
    """Keep calls for the next batches."""
    rows = [(campaign, _group(one.sent.judge), _pack(one)) for one in collected]
    with connection.cursor() as cursor:
        cursor.executemany('INSERT INTO judges_batchcall (campaign_id, "group", sent) VALUES (%s, %s, %s)', rows)


def form(connection: Connection[Any], campaign: int) -> int:
    """Put the calls that wait into new batches, one group each; how many batches."""
    formed = 0
    for group, count in connection.execute(GROUPS, [campaign]).fetchall():
        judge = _first(connection, campaign, group).judge
        for _ in range(-(-count // MOST[judge.provider])):
            name = f"quorum-{campaign}-{uuid.uuid4().hex[:12]}"
            values = [campaign, name, json.dumps(asdict(judge)), judge.model]
            found = connection.execute(
                "INSERT INTO judges_batch (campaign_id, name, judge, model, provider_id, calls, problem) "
                "VALUES (%s, %s, %s, %s, '', 0, '') RETURNING id",
                values,
            ).fetchone()
            assert found is not None
            taken = connection.execute(
                FORM, {"batch": found[0], "campaign": campaign, "group": group, "most": MOST[judge.provider]}
            ).rowcount
            connection.execute("UPDATE judges_batch SET calls = %s WHERE id = %s", [taken, found[0]])
            formed += 1
    return formed


def out(connection: Connection[Any], campaign: int) -> list[Out]:
    """Batches that have not ended, oldest first."""
    rows = connection.execute(OUT, [campaign]).fetchall()
    return [Out(id, name, provider_id, Judge(**judge)) for id, name, provider_id, judge in rows]


def calls(connection: Connection[Any], batch: int, ids: Sequence[int] | None = None) -> dict[int, tuple[Sent, Request]]:
    """Calls of a batch that wait still, with the requests that they are; `ids`: only these."""
    wanted = None if ids is None else list(ids)
    rows = connection.execute(CALLS, {"batch": batch, "ids": wanted}).fetchall()
    return {id: _unpack(bytes(sent)) for id, sent in rows}


def left(connection: Connection[Any], batch: int, n: int) -> list[int]:
    """Ids of some calls that wait still."""
    query = "SELECT id FROM judges_batchcall WHERE batch_id = %s ORDER BY id LIMIT %s"
    return [row[0] for row in connection.execute(query, [batch, n]).fetchall()]


def submitted(connection: Connection[Any], batch: int, provider_id: str) -> None:
    """The provider has it."""
    connection.execute("UPDATE judges_batch SET provider_id = %s, problem = '' WHERE id = %s", [provider_id, batch])


def troubled(connection: Connection[Any], batch: int, problem: str) -> None:
    """Why nothing goes on with it for the moment."""
    connection.execute("UPDATE judges_batch SET problem = %s WHERE id = %s", [problem, batch])


def answered(connection: Connection[Any], attempts: Sequence[Attempted], ids: Sequence[int], shard: int) -> None:
    """Answers become attempts, and nothing waits for them any more: both or neither."""
    store(connection, attempts, shard)
    connection.execute("DELETE FROM judges_batchcall WHERE id = ANY(%s)", [list(ids)])


def ended(connection: Connection[Any], batch: int) -> None:
    """All its answers are attempts."""
    connection.execute("UPDATE judges_batch SET ended_at = now() WHERE id = %s", [batch])


def renew(connection: Connection[Any], campaign: int, holder: str) -> None:
    """What waits for batches is held on to."""
    connection.execute(RENEW, {"campaign": campaign, "lease": LEASE_S})
    connection.execute(HOLD, {"campaign": campaign, "holder": holder, "lease": LEASE_S})


def put_back(connection: Connection[Any], campaign: int, holder: str) -> None:
    """Nothing of a campaign that stands still is running: pairs are pending, calls that were not sent are gone, and
    so is the money that they held.
    """
    connection.execute(RELEASE, [campaign])
    connection.execute("DELETE FROM judges_batchcall WHERE campaign_id = %s", [campaign])
    connection.execute(FREE, {"campaign": campaign, "holder": holder})


def dissolve(connection: Connection[Any], batch: int) -> None:
    """It was never sent."""
    connection.execute("DELETE FROM judges_batchcall WHERE batch_id = %s", [batch])
    connection.execute("DELETE FROM judges_batch WHERE id = %s", [batch])


def _first(connection: Connection[Any], campaign: int, group: str) -> Sent:
    query = 'SELECT sent FROM judges_batchcall WHERE campaign_id = %s AND batch_id IS NULL AND "group" = %s LIMIT 1'
    row = connection.execute(query, [campaign, group]).fetchone()
    assert row is not None
    return _unpack(bytes(row[0]))[0]


def _group(judge: Judge) -> str:
    return sha256("\0".join((*judge.account, judge.model)).encode()).hexdigest()


def _pack(one: Collected) -> bytes:
    return zlib.compress(json.dumps({**record_of(one.sent), "schema": one.schema}).encode(), 1)


def _unpack(packed: bytes) -> tuple[Sent, Request]:
    record: dict[str, Any] = json.loads(zlib.decompress(packed))
    sent = sent_of(record)
    system, user = (message["content"] for message in json.loads(sent.messages))
    prompt = Prompt(name="", sha256="", system=system, user=user)
    inputs = Inputs("", (), "", sent.document)
    return sent, Request(sent.judge, prompt, record["schema"], inputs, sent.row["role"])
