"""Which tests are of the first stage (`make test`), of the second (`make test-all`), and which run once a week.

The rest of a costly matrix, whose first rows run every time, is weekly, and so is what takes
minutes and changes with few commits: each such test has a day of the week on which `.ci/run` runs
it, and `make test-all` runs them all. Fridays have none, for they have another Python, and
Sundays none, for they have other examples of properties.
"""

import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.standing import STANDING

ENGINE = Path(__file__).parent / "judges" / "engine"


def mark_worker_tests(items: Iterable[pytest.Item]) -> None:
    """Tests of what judge workers do are slow, but the engine's own: all the others build on what those show."""
    for item in items:
        if STANDING in getattr(item, "fixturenames", ()) and ENGINE not in item.path.parents:
            item.add_marker(pytest.mark.slow)


DAYS = [*"1234567"]  # of ISO: Monday is 1
WEEKLY_DAYS = [*"12346"]


def is_left_out(item: pytest.Item, slow: bool, weekly: str) -> bool:
    """Return whether a test waits for another run.

    `slow` asks for the slow tests, those in a browser and those of real models, `weekly` for the weekly ones of a day
    in `DAYS`, or for all.
    """
    if item.get_closest_marker("weekly"):
        return weekly not in ("all", _day(item))
    return not slow and any(map(item.get_closest_marker, ("slow", "browser", "models")))


def first_quick(values: Iterable[Any], count: int = 1) -> list[Any]:
    """The parameters of a costly test: every run takes the first `count`, the others are weekly."""
    rows = list(values)
    return [*rows[:count], *(_weekly(row) for row in rows[count:])]


def first_slow(values: Iterable[Any], count: int = 1) -> list[Any]:
    """The parameters of a costly slow test: every run takes the first `count`, the others are weekly."""
    rows = list(values)
    return [*(_marked(row, pytest.mark.slow) for row in rows[:count]), *(_weekly(row) for row in rows[count:])]


def crossed(firsts: Iterable[Any], others: Iterable[Any]) -> list[tuple[Any, Any]]:
    """A cross in place of a matrix: each of `firsts` with the first of `others`, and that one's fellows with one."""
    rows, columns = list(firsts), list(others)
    return [*((row, columns[0]) for row in rows), *((rows[0], column) for column in columns[1:])]


def _day(item: pytest.Item) -> str:
    return WEEKLY_DAYS[zlib.crc32(item.nodeid.encode()) % len(WEEKLY_DAYS)]


def _weekly(value: Any) -> Any:
    return _marked(value, pytest.mark.weekly)


def _marked(value: Any, mark: pytest.MarkDecorator) -> Any:
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=mark)
