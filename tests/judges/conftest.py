"""Fixtures of judges' tests: models that a live worker asks, campaigns that nobody works on, credentials of nobody."""

from pathlib import Path

import pytest

from tests.engine_parts import _standing_worker, unattended, worker
from tests.modelserver.fixtures import LocalModels
from tests.modelserver.presets.native import NATIVE

__all__ = ["_standing_worker", "unattended", "worker"]


@pytest.fixture
def models(worker: object, model_server: LocalModels) -> LocalModels:
    """The local model server, with a live worker that asks it."""
    return model_server


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Credentials of nobody: none of this machine's are found, and none of its metadata services is asked."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK", "GOOGLE_APPLICATION_CREDENTIALS"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "CLOUDSDK_CONFIG"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    for alike in NATIVE:
        for name, value in alike.environment.items():
            monkeypatch.setenv(name, value)
