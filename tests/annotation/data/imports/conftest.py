"""A collection, and the admin who brings files to it."""

from pathlib import Path

import pytest
from django.test import Client

from annotation.models import Role
from corpus.models import Collection
from tests.factories import client_of, make_collection, make_member


@pytest.fixture(autouse=True)
def var(request: pytest.FixtureRequest, settings, tmp_path: Path) -> Path:
    if "instance" not in request.fixturenames:  # whose processes have its VAR
        settings.VAR = tmp_path
    return tmp_path


@pytest.fixture
def birds(db: None) -> Collection:
    return make_collection("birds")


@pytest.fixture
def charlie(birds: Collection) -> Client:
    return client_of(make_member(birds, "charlie", Role.ADMIN))
