"""What the walks over all addresses share."""

import logging

import pytest

from tests.site.test_permissions import World


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of refusals are wanted here: they need no log."""
    monkeypatch.setattr(logging.getLogger("django.request"), "disabled", True)


@pytest.fixture
def world() -> World:
    return World()
