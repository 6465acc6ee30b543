"""The statements of the queue. Each is prepared once for a connection; `assignment` has the types of their rows.

Lock order, which keeps them free of deadlocks: own assignment, its item, what hangs on it (judgment, label, tally),
and only then the items of others, always with SKIP LOCKED.
"""

from collections.abc import Iterable

from django.db.models.expressions import RawSQL

from store.sql import read_sql

OWN = read_sql(__file__, "lock_own")
DECIDED = read_sql(__file__, "read_decision")
FIRST = read_sql(__file__, "store_blind_judgment")
RESOLVE = read_sql(__file__, "resolve_task")
FINISH = read_sql(__file__, "finish_texts")
END = read_sql(__file__, "end_assignment")
EXPIRE = read_sql(__file__, "expire_leases")
CLAIM = read_sql(__file__, "claim_task")
CLAIM_INSTEAD = read_sql(__file__, "claim_instead")
GROUP = read_sql(__file__, "claim_group")
GROUP_SIZE = 20  # Pairs of one query that GROUP assigns together, at most.

# By `place`, since of a lease group the first pair is the one that the page goes on with.
OPEN = """
SELECT a.id, a.item_id, i.state AS item_state
FROM annotation_assignment a JOIN corpus_item i ON i.id = a.item_id
WHERE a.membership_id = %(membership)s AND a.state = 'open'
ORDER BY a.place LIMIT 1
FOR UPDATE OF a
"""

# Standing judgments of an item: those of assignments that are done. A withdrawal's assignment is open again.
STANDING = """
SELECT coalesce(array_agg(j.grade) FILTER (WHERE j.grade IS NOT NULL), '{}') AS grades,
       coalesce(bool_or(a.flagged), false) AS flagged
FROM annotation_assignment a LEFT JOIN corpus_judgment j ON j.id = a.judgment_id
WHERE a.item_id = %(item)s AND a.state = 'done' AND a.membership_id <> %(membership)s
"""

# Of a group all: whoever works on one has the others on the same page.
RENEW = """
UPDATE annotation_assignment SET lease_until = now() + make_interval(mins => %(minutes)s)
WHERE membership_id = %(membership)s AND state = 'open'
"""

DRAFT = """
UPDATE annotation_assignment SET draft = %(draft)s::jsonb
WHERE membership_id = %(membership)s AND item_id = %(item)s AND token = %(token)s AND state IN ('open', 'returned')
RETURNING id
"""

# Counted from assignments, since a whole query can pass over the places that were drawn for checks.
CHECKS_LENT = """
SELECT count(*) AS n FROM annotation_assignment a JOIN corpus_item i ON i.id = a.item_id
WHERE a.membership_id = %(membership)s AND a.number >= %(begin)s AND i.reason = 'check'
"""


def one_array(ids: Iterable[int]) -> RawSQL:
    """Return ids for `pk__in` as one parameter: thousands of parameters take longer to send than their rows."""
    return RawSQL("SELECT unnest(%s::bigint[])", [list(ids)])
