"""The audit log: what is appended, what a page shows of it, and that nothing of it can be altered."""

import pytest
from django.db import IntegrityError, InternalError, transaction
from django.db.utils import DatabaseError

from annotation.auditing import record
from annotation.models import AuditEntry, Role
from corpus.removal import delete_collection
from tests.factories import make_collection, make_member, make_user

pytestmark = pytest.mark.django_db


def test_an_act_is_appended_with_who_where_whom_and_what() -> None:
    alice, bob = make_user("alice"), make_user("bob")
    birds = make_collection("birds")
    record(alice, "member.role", birds, concerns=bob, before="annotator", after="admin")
    entry = AuditEntry.objects.get()
    assert (entry.person, entry.concerns, entry.collection, entry.collection_name) == (alice, bob, birds, "birds")
    assert entry.details == {"before": "annotator", "after": "admin"}


def test_an_act_that_the_log_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match=r"annotation\.auditing\.ACTS"):
        record(None, "member.roel")


def test_the_log_cannot_be_altered_through_the_orm() -> None:
    record(make_user("alice"), "session.in")
    entry = AuditEntry.objects.get()
    ways = {
        "update": lambda: AuditEntry.objects.update(act="session.out"),
        "save": lambda: entry.save(),
        "bulk_update": lambda: AuditEntry.objects.bulk_update([entry], ["act"]),
        "delete": lambda: entry.delete(),
        "queryset delete": lambda: AuditEntry.objects.all().delete(),
        "raw delete": lambda: AuditEntry.objects.all()._raw_delete("default"),
        "upsert": lambda: AuditEntry.objects.bulk_create(
            [entry], update_conflicts=True, update_fields=["act"], unique_fields=["id"]
        ),
        "delete of a person who is named": lambda: entry.person.delete(),
    }
    entry.act = "session.out"
    for name, way in ways.items():
        with pytest.raises((DatabaseError, InternalError, IntegrityError)), transaction.atomic():
            way()
            pytest.fail(name)
    assert list(AuditEntry.objects.values_list("act", flat=True)) == ["session.in"]


def test_the_log_outlives_the_collection_that_it_tells_of() -> None:
    birds = make_collection("birds")
    record(make_member(birds, "alice", Role.ADMIN).user, "settings.changed", birds)
    delete_collection(birds)
    told = list(AuditEntry.objects.order_by("id").values_list("act", "collection_name"))
    assert told == [("settings.changed", "birds"), ("collection.deleted", "birds")]
