"""Which tests are of the first stage (`make test`) and which of the second (`make test-all`)."""

from collections.abc import Iterable
from typing import Any

import pytest


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
