"""Limits and money under load: never above the account's in any minute, never above the budget (checks 4 and 5)."""

import time
from collections.abc import Iterator

import pytest
from django.conf import settings
from redis import Redis

from judges.engine.limits import SCRIPT

BUCKET_MS, HOUR_MS = 250, 3_600_000


class Script:
    """`limits.lua` as one process calls it: five requests a minute."""

    def __init__(self, client: "Redis[bytes]", account: str) -> None:
        self.keys = [
            f"{settings.PREFIX}:limit:{{{account}}}:{part}" for part in ("state", "processes", "held", "window")
        ]
        self.client, self.script = client, client.register_script(SCRIPT)

    def ask(self, calls: int, concurrency: int = 0, process: str = "p") -> tuple[int, int]:
        """(granted, milliseconds to wait)."""
        arguments = [process, 15_000, concurrency, 5, 0, 0, 0, 0, 0, 2000, 0, *[1] * calls]
        granted, wait, *_ = self.script(keys=self.keys, args=arguments)
        return granted, wait

    def ahead(self, milliseconds: int) -> None:
        """As if all that is kept came from a clock that was so far ahead: the clock was set back since."""
        state, processes, _, window = self.keys
        self.client.hincrby(state, "seen", milliseconds)
        for name, until in self.client.zrange(processes, 0, -1, withscores=True):
            self.client.zadd(processes, {name: until + milliseconds})
        fields = self.client.hgetall(window)
        self.client.delete(window)
        for field, value in fields.items():
            place = int(field[1:]) + milliseconds // BUCKET_MS
            self.client.hset(window, f"{field[:1].decode()}{place}", value)


@pytest.fixture
def script(instance: dict[str, str]) -> Iterator[Script]:
    with Redis.from_url(settings.REDIS_URL) as client:
        yield Script(client, "clock")


def test_a_window_that_was_full_when_the_clock_was_set_back_is_free_a_minute_later(script: Script) -> None:
    assert script.ask(5) == (5, 0)
    granted, wait = script.ask(1)
    assert granted == 0 and 59_000 < wait <= 60_250
    script.ahead(HOUR_MS)
    granted, wait = script.ask(1)
    assert granted == 0 and 59_000 < wait <= 60_500, "as long as before, not an hour"
    assert script.ask(1)[0] == 0, "and nothing is granted above the limit meanwhile"


def test_slots_of_a_process_that_died_before_the_clock_was_set_back_come_back(script: Script) -> None:
    assert script.ask(2, concurrency=2, process="dead")[0] == 2
    assert script.ask(1, concurrency=2)[0] == 0
    script.ahead(HOUR_MS)
    assert script.ask(1, concurrency=2)[0] == 0
    (until,) = [
        score for name, score in script.client.zrange(script.keys[1], 0, -1, withscores=True) if name == b"dead"
    ]
    assert until <= (time.time() + 16) * 1000
