"""The collection of the tests of people."""

import pytest

from corpus.models import Collection
from tests.factories import make_collection


@pytest.fixture
def birds(db: None) -> Collection:
    return make_collection("birds", title="Birds")
