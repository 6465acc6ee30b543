"""A collection, and the admin who brings files to it."""

import pytest

from annotation.models import Role
from tests.factories import client_of, make_collection, make_member


@pytest.fixture(autouse=True)
def var(request, settings, tmp_path):
    if "instance" not in request.fixturenames:  # whose processes have its VAR
        settings.VAR = tmp_path
    return tmp_path


@pytest.fixture
def birds(db):
    return make_collection("birds")


@pytest.fixture
def charlie(birds):
    return client_of(make_member(birds, "charlie", Role.ADMIN))
