"""Fixtures of judges' tests: models that a live worker asks, and campaigns that nobody works on."""

import pytest

from tests.engine_parts import _standing_worker, unattended, worker
from tests.modelserver.fixtures import LocalModels

__all__ = ["_standing_worker", "unattended", "worker"]


@pytest.fixture
def models(worker: object, model_server: LocalModels) -> LocalModels:
    """The local model server, with a live worker that asks it."""
    return model_server
