"""A collection with an annotator, and an admin who acts on its pairs."""

import pytest

from annotation.models import Role
from tests.factories import client_of, make_collection, make_member


@pytest.fixture
def books():
    return make_collection("books", order="random")


@pytest.fixture
def alice(books):
    return make_member(books, "alice")


@pytest.fixture
def charlie(books):
    return client_of(make_member(books, "charlie", Role.ADMIN))
