"""When a pair that nobody lends (a conflict, a gold pair) was put on a page: a signed field tells, without scripts."""

import time

from django.core import signing

from annotation.models import Membership

CONFLICT, GOLD = "conflict", "gold"  # Desks that show such pairs.
SALT = "annotation.judging.shown"


def stamp(desk: str, membership: Membership, item: int) -> str:
    """The hidden field's value for a pair that is being shown now."""
    return signing.dumps([desk, membership.pk, item, _now_ms()], salt=SALT)


def shown_ms(value: str, desk: str, membership: Membership, item: int) -> int:
    """Milliseconds since that pair was shown to that person; 0 where the field does not say so."""
    try:
        *what, began = signing.loads(value, salt=SALT)
    except signing.BadSignature:
        return 0
    return max(0, _now_ms() - began) if what == [desk, membership.pk, item] else 0


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
