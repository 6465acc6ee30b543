"""What the headers of an answer say of the account's rate. Pure.

`x-ratelimit-*` (OpenAI and what is like it) and `anthropic-ratelimit-*` name a limit, what is left
of it, and when it is whole again. Whether that is a window or a bucket that fills all the time they
do not say: so the numbers are bounds and hints for the engine (judges.engine.limits), never the
whole truth.
"""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

# (limit, left, whole again), for requests and for tokens.
NAMES = [
    (f"{kind}-limit", f"{kind}-remaining", f"{kind}-reset")
    for kind in ("anthropic-ratelimit-requests", "anthropic-ratelimit-input-tokens", "anthropic-ratelimit-tokens")
] + [
    (f"x-ratelimit-limit{kind}", f"x-ratelimit-remaining{kind}", f"x-ratelimit-reset{kind}")
    for kind in ("-requests", "-tokens", "")
]
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
LONGEST_S = 86_400.0
YEAR_2001 = 1e9  # Seconds since 1970: a larger number is a time, not a duration.


@dataclass(frozen=True, slots=True)
class Rate:
    """Requests that an account takes now (`left`, -1: unknown), and seconds until it has room again (`hold`)."""

    left: int = -1
    hold: float = 0.0
    per_minute: int = 0  # Its limit of requests, as far as it can be one a minute; 0: unknown.
    reset: float = 0.0  # Seconds until all of what is used up is there again.


def read_rate(headers: Mapping[str, str]) -> Rate | None:
    """Return what the headers say; None where they say nothing."""
    left, hold, per_minute, reset, heard = -1, 0.0, 0, 0.0, False
    for limit_name, left_name, reset_name in NAMES:
        remaining, most = _number(headers.get(left_name)), _number(headers.get(limit_name))
        if remaining is None:
            continue
        heard = True
        seconds = read_duration(headers.get(reset_name, "")) or 0.0
        of_requests = "token" not in limit_name
        if of_requests:
            left = int(remaining) if left < 0 else min(left, int(remaining))
        if remaining < 1 and seconds:
            reset = max(reset, seconds)
            # Where it is always full, the first one is back after its share of the time.
            hold = max(hold, seconds / max(1.0, most or 1.0))
        if of_requests and most:
            per_minute = int(most) if not per_minute else min(per_minute, int(most))
    return Rate(left, min(hold, LONGEST_S), per_minute, min(reset, LONGEST_S)) if heard else None


def read_duration(text: str) -> float | None:
    """Return the seconds of "1s", "6m0s", "20ms", "1.5", a date, or a time since 1970; None for anything else."""
    text = text.strip()
    number = _number(text)
    if number is not None:
        if number > YEAR_2001:  # in seconds, or in milliseconds
            return max(0.0, (number / 1000 if number > 1000 * YEAR_2001 else number) - time.time())
        return number
    parts = _PART.findall(text)
    if parts and "".join(map("".join, parts)) == text:
        return float(sum(float(value) * UNITS[unit] for value, unit in parts))
    try:
        return max(0.0, datetime.fromisoformat(text).timestamp() - time.time())
    except ValueError:
        return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None
