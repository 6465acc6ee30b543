"""Every test of accounts that has the database begins with its tries at the doors uncounted."""

import pytest
from django.core.cache import cache


@pytest.fixture(autouse=True)
def fresh_limits(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("django_db"):
        cache.clear()
