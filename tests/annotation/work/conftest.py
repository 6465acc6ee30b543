"""A collection and its annotators, where a test file makes no others."""

import pytest
from django.test import Client

from annotation.models import Membership
from corpus.models import Collection
from tests.factories import make_collection, make_member
from tests.queue_scene import signed_in


@pytest.fixture
def collection() -> Collection:
    return make_collection("books", title="Python's reference", instruction="Relevant: it answers the question.")


@pytest.fixture
def alice(collection: Collection) -> Membership:
    return make_member(collection, "alice")


@pytest.fixture
def bob(collection: Collection) -> Membership:
    return make_member(collection, "bob")


@pytest.fixture
def client(alice: Membership) -> Client:
    """Alice's browser."""
    return signed_in(alice)
