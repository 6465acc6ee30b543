"""The audit log: what is appended, what a page shows of it, and that nothing of it can be altered."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import IntegrityError, InternalError, transaction
from django.db.utils import DatabaseError
from django.http import QueryDict
from django.test import Client

from annotation.access.audit_log import selectors
from annotation.access.audit_log.recording import ACTS, KINDS, acts_of_kind, record
from annotation.models import AuditEntry, Role
from annotation.people.accounts import members
from corpus.collections.removal import delete_collection
from corpus.commands import QuorumCommand
from corpus.errors import BadInput
from corpus.models import Collection
from tests.factories import make_collection, make_member, make_user
from tests.queue_scene import signed_in

pytestmark = pytest.mark.django_db


def test_every_act_is_of_one_kind_and_one_that_the_log_does_not_know_is_refused() -> None:
    assert sorted(act for kind in KINDS for act in acts_of_kind(kind)) == sorted(ACTS)
    with pytest.raises(ValueError, match=r"annotation\.access\.audit_log\.recording\.ACTS"):
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


def told() -> tuple[Client, Collection]:
    """An admin's browser and a collection with 120 lines of alice, one of bob about alice, and another collection's."""
    birds, stones = make_collection("birds"), make_collection("stones")
    alice, bob = make_member(birds, "alice", Role.ADMIN).user, make_user("bob")
    for number in range(120):
        record(alice, "settings.changed", birds, number=number)
    record(bob, "member.role", birds, concerns=alice, before="annotator", after="admin")
    record(bob, "settings.changed", stones)
    client = Client()
    client.force_login(alice)
    return client, birds


def test_pages_go_back_by_key_and_lose_nothing(django_assert_max_num_queries) -> None:
    client, _birds = told()
    seen, address = [], "/c/birds/audit-log/"
    while address:
        with django_assert_max_num_queries(6):
            page = client.get(address).content.decode()
        seen += re.findall(r"number:\s+(\d+)", page)
        older = re.findall(r'href="(\?[^"]*before=\d+)"', page)
        address = f"/c/birds/audit-log/{older[0].replace('&amp;', '&')}" if older else ""
        assert "stones" not in page, "another collection's"
    assert [int(number) for number in seen] == list(range(119, -1, -1))


def test_filters_choose_lines_and_nonsense_is_left_out() -> None:
    _client, birds = told()
    for number, queries in {
        121: ("", "act=nonsense", "actor=%00", "since=2026-13-45&until=x", "since=0001-01-01&until=9999-12-31"),
        120: ("act=data", "actor=ALICE"),
        1: ("act=member.role", "act=people", "actor=bob", "person=ALICE"),
        0: ("act=benchmark", "actor=nobody", "act=data&actor=bob", "since=1999-01-01&until=1999-12-31"),
    }.items():
        for query in queries:
            filters = selectors.AuditLogFilters.read(QueryDict(query))
            assert selectors.filter_records(birds, filters).count() == number, query


def test_the_export_holds_what_is_filtered_in_both_formats() -> None:
    client, _birds = told()
    answer = client.post("/c/birds/audit-log/export/", {"format": "jsonl", "act": "member.role"})
    (line,) = [json.loads(text) for text in b"".join(answer.streaming_content).decode().splitlines()]
    assert (line["who"], line["act"], line["whom"], line["collection"]) == ("bob", "member.role", "alice", "birds")
    assert line["details"] == {"before": "annotator", "after": "admin"}
    answer = client.post("/c/birds/audit-log/export/", {"format": "csv"})
    rows = list(csv.reader(io.StringIO(b"".join(answer.streaming_content).decode())))
    assert rows[0] == ["id", "at", "who", "act", "collection", "whom", "details"]
    assert len(rows) == 1 + 121 + 2, "and both exports are lines themselves"


def test_an_object_is_linked_while_it_exists() -> None:
    birds = make_collection("birds")
    admin, alice = make_member(birds, "admin", Role.ADMIN), make_member(birds, "alice")
    made = members.invite(collection=birds, role=Role.ANNOTATOR, author=admin.user)
    record(admin.user, "member.paused", birds, concerns=alice.user)
    record(admin.user, "campaign.control", birds, campaign=10**6)
    record(admin.user, "run.control", birds, run="bm25", what="delete")
    record(admin.user, "settings.changed", birds, keys=["title"], title="<script>alert(1)</script>")
    record(admin.user, "campaign.control", birds, campaign={"not": "a number"})
    client = signed_in(admin)
    page = client.get("/c/birds/audit-log/")
    assert "&lt;script&gt;alert(1)" in page.text and "<script>alert" not in page.text
    shown = {title: url for _entry, title, url in page.context["page"]["entries"]}
    assert shown["alice"] == f"/c/birds/people/{alice.pk}/"
    assert shown[f"Invitation {made.pk}"] == f"/c/birds/members/#invitation-{made.pk}"
    assert shown["Settings"] == "/c/birds/settings/"
    assert (shown["Campaign 1000000"], shown["Run bm25"]) == ("", "")


class Change(QuorumCommand):
    """A command that ends by the error that it is given."""

    act = "settings.changed"

    def arguments(self, parser: Any) -> None:
        parser.add_argument("name")
        parser.add_argument("--error")

    def run(self, **options: Any) -> None:
        assert AuditEntry.objects.order_by("-pk")[0].details["outcome"] == "began"
        if options["error"]:
            raise options["error"]


def test_a_command_leaves_its_line_before_it_acts_and_another_on_how_it_ended() -> None:
    """Finished, refused, interrupted, failed; whatever is killed leaves the first line, which stands before the act."""
    birds = make_collection("birds")
    call_command(Change(), "birds")
    for error in (BadInput("No."), KeyboardInterrupt(), ZeroDivisionError()):
        with pytest.raises((SystemExit, ZeroDivisionError)):
            call_command(Change(), "birds", error=error)
    lines = list(AuditEntry.objects.filter(act="settings.changed", collection=birds).order_by("pk"))
    outcomes = [line.details["outcome"] for line in lines]
    assert outcomes == ["began", "finished", "began", "refused", "began", "interrupted", "began", "failed"]
    assert [line.details["began"] for line in lines[1::2]] == [line.pk for line in lines[::2]]
    assert {line.details["command"] for line in lines} == {"test_audit_log"} and lines[0].details["shell"]
    with pytest.raises(SystemExit):
        call_command(Change(), "fish", error=BadInput("No."))
    named = AuditEntry.objects.filter(collection=None).values_list("details__name", flat=True)
    assert list(named) == ["fish", "fish"], "what a command makes is named before it exists"


def test_a_service_that_a_command_calls_leaves_one_line_with_the_shell(tmp_path: Path) -> None:
    make_collection("birds")
    (tmp_path / "good.toml").write_text("overlap = 2\n")
    for _ in range(2):
        call_command("configure_collection", "birds", str(tmp_path / "good.toml"))
    line = AuditEntry.objects.get()
    assert (line.act, line.details["overlap"]) == ("settings.changed", 2)
    assert line.details["command"] == "configure_collection"
