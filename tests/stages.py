"""Which tests are of the first stage (`make test`) and which of the second (`make test-all`)."""

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


def is_second_stage(item: pytest.Item) -> bool:
    """Return whether a test runs in `make test-all` only: the slow ones, and those in a browser."""
    return bool(item.get_closest_marker("slow") or item.get_closest_marker("browser"))


def first_quick(values: Iterable[Any]) -> list[Any]:
    """The parameters of a costly test: the quick suite takes the first, the others are slow."""
    first, *others = values
    return [first, *(_slow(one) for one in others)]


def _slow(value: Any) -> Any:
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=pytest.mark.slow)
