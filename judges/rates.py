"""Rate limits of an account, as the headers of an answer report them. Pure.

`x-ratelimit-*` (OpenAI and compatible servers) and `anthropic-ratelimit-*` name a limit, what remains
of it, and when it is full again. They do not say whether the limit is a window or a bucket that fills
continuously, so the engine (judges.engine.limits) takes the numbers as bounds and hints only.
"""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

# (limit, remaining, full again), for requests and for tokens.
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
    """The rate limit of an account at the moment of an answer."""

    left: int = -1  # Requests that the account takes now; -1: unknown.
    hold: float = 0.0  # Seconds until it takes another one.
    per_minute: int = 0  # The limit of requests, as far as it may be per minute; 0: unknown.
    reset: float = 0.0  # Seconds until the limit is full again.


def read_rate(headers: Mapping[str, str]) -> Rate | None:
    """Return the rate that the headers report; None if they report none."""
    left, hold, per_minute, reset, is_reported = -1, 0.0, 0, 0.0, False
    for limit_name, left_name, reset_name in NAMES:
        remaining, most = _number(headers.get(left_name)), _number(headers.get(limit_name))
        if remaining is None:
            continue
        is_reported = True
        seconds = read_duration(headers.get(reset_name, "")) or 0.0
        counts_requests = "token" not in limit_name
        if counts_requests:
            left = int(remaining) if left < 0 else min(left, int(remaining))
        if remaining < 1 and seconds:
            reset = max(reset, seconds)
            # If the limit fills continuously, the first request is possible after its share of the time.
            hold = max(hold, seconds / max(1.0, most or 1.0))
        if counts_requests and most:
            per_minute = int(most) if not per_minute else min(per_minute, int(most))
    return Rate(left, min(hold, LONGEST_S), per_minute, min(reset, LONGEST_S)) if is_reported else None


def read_duration(text: str) -> float | None:
    """Return the seconds from now of "1s", "6m0s", "20ms", "1.5", a date, or a time since 1970; else None."""
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
