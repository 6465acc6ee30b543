"""Rate limits as providers have them: buckets that fill all the time, and windows; what their refusals say."""

import json
import math
import time
from collections import deque
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.modelserver.formats import Call, error


class Bucket:
    """It fills by `rate` a second, up to `burst`."""

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst, self.level, self.at = rate, burst, burst, time.monotonic()

    def take(self) -> bool:
        now = time.monotonic()
        self.level, self.at = min(self.burst, self.level + (now - self.at) * self.rate), now
        if self.level < 1:
            return False
        self.level -= 1
        return True

    @property
    def left(self) -> int:
        return int(self.level)

    @property
    def until_next(self) -> float:
        return max(0.0, (1 - self.level) / self.rate)

    @property
    def until_full(self) -> float:
        return (self.burst - self.level) / self.rate


class Window:
    """At most `burst` in any `burst / rate` seconds; refused ones count, too."""

    def __init__(self, rate: float, burst: float) -> None:
        self.seconds, self.burst = burst / rate, burst
        self.taken: deque[float] = deque()

    def take(self) -> bool:
        now = time.monotonic()
        while self.taken and self.taken[0] <= now - self.seconds:
            self.taken.popleft()
        free = len(self.taken) < self.burst
        self.taken.append(now)
        return free

    @property
    def left(self) -> int:
        return max(0, int(self.burst) - len(self.taken))

    @property
    def until_next(self) -> float:
        return self.taken[0] + self.seconds - time.monotonic() if self.taken else 0.0

    until_full = until_next


class RateLimit:
    """One account's limit. `says`: openai, anthropic, google, retry-after or nothing."""

    def __init__(self, rate: float, burst: float, says: str = "nothing", kind: str = "bucket", wait: float = 0) -> None:
        self.limit: Bucket | Window = Bucket(rate, burst) if kind == "bucket" else Window(rate, burst)
        self.per_minute, self.says, self.wait = round(rate * 60), says, wait

    def headers(self) -> dict[str, str]:
        """What every answer says of the limit."""
        full, left = self.limit.until_full, self.limit.left
        if self.says == "openai":
            named = {"limit-requests": self.per_minute, "remaining-requests": left}
            named |= {"reset-requests": f"{math.ceil(full * 1000)}ms"}
            return {f"x-ratelimit-{name}": str(value) for name, value in named.items()}
        if self.says == "anthropic":
            reset = (datetime.now(UTC) + timedelta(seconds=full)).isoformat()
            named = {"limit": self.per_minute, "remaining": left, "reset": reset}
            return {f"anthropic-ratelimit-requests-{name}": str(value) for name, value in named.items()}
        return {}

    def refuse(self, call: Call) -> tuple[dict[str, str], bytes] | None:
        """Headers and body of a refusal; None: the request is let through."""
        if self.limit.take():
            return None
        wait = self.wait or self.limit.until_next
        body: Any = error(call.format, 429, "Too many requests")
        headers = self.headers()
        if self.says == "openai":
            headers["retry-after-ms"] = str(math.ceil(wait * 1000))
        elif self.says in ("anthropic", "retry-after"):
            headers["retry-after"] = str(math.ceil(wait))
        elif self.says == "google":
            info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{wait:g}s"}
            body = {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "quota", "details": [info]}}
        return headers, json.dumps(body).encode()
