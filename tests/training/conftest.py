"""A collection and its admin, for the pages of training."""

import pytest
from django.test import Client

from annotation.models import Role
from corpus.models import Collection
from tests.factories import make_collection, make_member


@pytest.fixture
def birds(db: None) -> Collection:
    return make_collection("birds")


@pytest.fixture
def alice(birds: Collection) -> Client:
    client = Client()
    client.force_login(make_member(birds, "alice", Role.ADMIN).user)
    return client
