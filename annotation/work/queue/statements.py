"""SQL statements of the queue. Each is prepared once for a connection; `assignment` has the types of their rows.

Lock order, against deadlocks: the member's own assignment, its item, the rows that follow from it
(judgment, label, tally), and only then the items of other people, always with SKIP LOCKED.
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
GROUP_SIZE = 20  # The most pairs of a query that GROUP assigns together.

OPEN = read_sql(__file__, "lock_open_lease")
STANDING = read_sql(__file__, "read_standing")
RENEW = read_sql(__file__, "renew_leases")
DRAFT = read_sql(__file__, "keep_draft")
JUDGED = read_sql(__file__, "count_judged")
CHECKS_LENT = read_sql(__file__, "count_checks_lent")


def one_array(ids: Iterable[int]) -> RawSQL:
    """Return ids for `pk__in` as one parameter, since thousands of parameters take longer to send."""
    return RawSQL("SELECT unnest(%s::bigint[])", [list(ids)])
