"""Every test of accounts begins with its tries at the doors uncounted."""

import pytest
from django.core.cache import cache


@pytest.fixture(autouse=True)
def fresh_limits() -> None:
    cache.clear()
