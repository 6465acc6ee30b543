"""Annotators of the collection that a test file makes."""

import pytest

from annotation.models import Membership
from corpus.models import Collection
from tests.factories import make_member


@pytest.fixture
def alice(collection: Collection) -> Membership:
    return make_member(collection, "alice")


@pytest.fixture
def bob(collection: Collection) -> Membership:
    return make_member(collection, "bob")
