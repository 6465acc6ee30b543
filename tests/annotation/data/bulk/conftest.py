"""A collection with an annotator, and an admin who acts on its pairs."""

import pytest
from django.test import Client

from annotation.models import Membership, Role
from corpus.models import Collection
from tests.factories import client_of, make_collection, make_member


@pytest.fixture
def books() -> Collection:
    return make_collection("books", order="random")


@pytest.fixture
def alice(books: Collection) -> Membership:
    return make_member(books, "alice")


@pytest.fixture
def charlie(books: Collection) -> Client:
    return client_of(make_member(books, "charlie", Role.ADMIN))
