"""Redis keeps since when an account fails, and an account that fails is tried again within seconds."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from uuid import uuid4

import pytest
from django.conf import settings
from redis import Redis

from judges.engine.account_states import read_account_states
from judges.engine.limits import SCRIPT, LimitNews, limit_keys

ACCOUNT = ("openai", "", uuid4().hex)


@pytest.fixture
def redis(instance: dict[str, str]) -> Iterator["Redis[bytes]"]:
    with Redis.from_url(settings.REDIS_URL) as client:
        yield client


def tell(redis: "Redis[bytes]", **news: int | str) -> None:
    told = asdict(LimitNews()) | {
        **{"process": "p", "lease": 15_000, "held": 0, "most": 0, "per_minute": 0, "tokens_per_minute": 0, "fits": 0},
        **{"first": 512, "epoch": 0, "backoff": 500, "circuit": 2000, "keep_ms": 600_000, "asked": [1], **news},
    }
    redis.register_script(SCRIPT)(keys=limit_keys(settings.PREFIX, ACCOUNT), args=[json.dumps(told)])


def failing_since() -> float:
    return read_account_states([ACCOUNT])[ACCOUNT].failing_since


def test_the_first_of_its_errors_in_a_row_is_remembered_until_it_answers(redis: "Redis[bytes]") -> None:
    tell(redis, errors=1, said="ConnectError: refused")
    first = failing_since()
    assert first > 0
    tell(redis, errors=3)
    assert failing_since() == first
    tell(redis, succeeded=1)
    assert failing_since() == 0
    tell(redis, succeeded=1, errors=1)
    assert failing_since() >= first, "it answered, and failed again"


def test_an_account_that_has_long_been_silent_is_tried_every_eight_seconds(redis: "Redis[bytes]") -> None:
    state = limit_keys(settings.PREFIX, ACCOUNT)[0]
    waits = []
    tell(redis, errors=20)
    for _ in range(6):
        waits.append(read_account_states([ACCOUNT])[ACCOUNT].open_seconds)
        redis.hset(state, "open_until", 0)
        tell(redis, errors=1)
    assert waits == [2, 4, 8, 8, 8, 8]
