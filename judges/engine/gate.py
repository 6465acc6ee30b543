"""How many calls of a process are out at once: as many as its event loop can take in without delay.

An answer that waits in the socket because the loop is busy is paid for and not stored: a kill would pay it twice. So
the gate opens slowly, narrows while the loop lags or commits are late, and else widens as long as calls wait.
"""

import asyncio
import time
from collections import deque

FIRST = 16
LEAST = 4
LOOK_S = 0.02
LAG_S = 0.008
LATE_S = 0.045
STEP = 2


class Gate:
    """`async with gate:` around a call. `watch` runs as a task for as long as the loop does."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = float(min(FIRST, most))
        self.out = 0
        self.is_late = False
        self.waiting: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> None:
        if self.out < int(self.limit) and not self.waiting:
            self.out += 1
            return
        future = asyncio.get_running_loop().create_future()
        self.waiting.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.out -= 1
            raise

    async def __aexit__(self, *_: object) -> None:
        self.out -= 1
        self._admit()

    def stored_after(self, seconds: float) -> None:
        """An answer was committed so long after it came."""
        self.is_late = self.is_late or seconds > LATE_S

    def _admit(self) -> None:
        while self.waiting and self.out < int(self.limit):
            future = self.waiting.popleft()
            if not future.done():
                self.out += 1
                future.set_result(None)

    async def watch(self) -> None:
        """Follow the loop's lag."""
        while True:
            begun = time.monotonic()
            await asyncio.sleep(LOOK_S)
            lag = time.monotonic() - begun - LOOK_S
            if lag > LAG_S or self.is_late:
                self.is_late = False
                self.limit = max(LEAST, self.limit * 0.85)
            elif self.waiting:
                self.limit = min(self.most, self.limit + STEP)
                self._admit()
