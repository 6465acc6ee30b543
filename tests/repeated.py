"""Calls that were paid for twice, counted from the local server's log."""

from collections import Counter
from typing import Any

GRACE_S = 0.05
"""An answer that came less than this before the kill may not be committed yet."""


def repeated_beyond_flight(requests: list[dict[str, Any]], killed: float, dead: float) -> tuple[int, int]:
    """(calls sent twice without need, calls in flight at the kill), from the server's log.

    `killed`: just before the signal; `dead`: when no worker was left, and none had started anew.
    What arrives in between was sent before the kill, too.
    """
    sent = Counter(request["sha256"] for request in requests)
    flying = {r["sha256"] for r in requests if r["arrived"] <= dead and r["answered"] > killed - GRACE_S}
    repeated = sum(times - 1 - (key in flying) for key, times in sent.items() if times > 1)
    return repeated, len(flying)
