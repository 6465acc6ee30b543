"""Every sentence of the Overview is true: the demo's, read against the database in each state of its work."""

from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client

from annotation.models import Role
from config import demo
from corpus.models import Collection, Item
from judges.models import Audit
from tests.annotation.dashboard.overview_claims import statements, untrue
from tests.engine_parts import _standing_worker as _standing_worker
from tests.engine_parts import collection_of
from tests.engine_parts import worker as worker  # a fixture
from tests.factories import make_member


def home(collection: Collection) -> str:
    client = Client()
    client.force_login(collection.memberships.get(user__username="charlie").user)
    response = client.get(f"/c/{collection.name}/")
    assert response.status_code == 200
    return str(response.content.decode())


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_every_sentence_of_the_demos_overview_is_true(worker, tmp_path) -> None:
    collection, _ = demo.load_collection(tmp_path, StringIO())
    make_member(collection, "charlie", Role.ADMIN)
    call_command("judge", collection.name, "--wait", stdout=StringIO(), stderr=StringIO())
    page = home(collection)
    assert untrue(page, collection) == []
    said = " ".join(statements(page))
    pairs = collection.pair_set.count()  # 387, or one fewer where another numpy breaks a tie of the pool otherwise
    waiting = Item.objects.filter(collection=collection, state="open").exclude(reason="audit").count()
    assert f"{pairs - waiting} of {pairs} pairs resolved {waiting} wait for people" in said
    assert "Not ready to export without review" in said and "Ready to export" not in said
    assert "blind checks need 2 people each, and 1 can judge here Invite people" in said, "charlie is alone"
    asked = Item.objects.filter(collection=collection).values("pair").distinct().count()
    assert 30 <= Audit.objects.filter(campaign__collection=collection).count() <= 35, (
        "once people had 308 of 342 labels"
    )
    assert 4 * asked <= pairs, "people are asked for a quarter at most"


@pytest.mark.django_db(transaction=True)
def test_labels_that_nobody_checked_are_not_called_ready(worker) -> None:
    """Everything is labelled and nothing waits; without an audit the accuracy is unknown, and the page says so."""
    collection = collection_of(4)
    Collection.objects.filter(pk=collection.pk).update(audit=0.0)
    make_member(collection, "charlie", Role.ADMIN)
    call_command("judge", collection.name, "--policy", "single", "--wait", stdout=StringIO(), stderr=StringIO())
    page = home(collection)
    assert untrue(page, collection) == []
    said = " ".join(statements(page))
    assert "4 of 4 pairs resolved" in said and "Nothing needs attention." in said
    assert "The accuracy is unknown: label audits are switched off." in said and "Ready to export" not in said
    members = collection.memberships.all()
    Item.objects.create(collection=collection, pair=collection.pair_set.first(), campaign=None, reason="hole", place=1)
    page = home(collection)
    said = " ".join(statements(page))
    assert "1 task on a pair with a label" in said and "Nothing needs" not in said and members.count() == 1
