"""Deleting a collection asks, removes every layer's rows and no other collection's; evidence is protected otherwise."""

import json

import pytest
from django.apps import apps
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from annotation.models import Assignment, AuditEntry, Guideline, Invitation, Membership
from benchmark.models import Filling, Qrels, QrelsRow, Ranking, Report, ReportValues, Run, Suite, SuiteMember
from corpus.collections.removal import rows_of
from corpus.models import Collection, Document, Judgment, Label
from judges.models import Attempt, JudgeVersion, Tally, Work
from tests.called import call
from tests.evidence import make_attempt, make_campaign, make_judge, make_judgment, make_label
from tests.factories import make_collection, make_item, make_member, make_pair

pytestmark = pytest.mark.django_db


def fill(name):
    """A collection with a row in every table that hangs on it."""
    collection = make_collection(name)
    item = make_item(make_pair(collection))
    alice = make_member(collection, f"alice-{name}")
    judgment = make_judgment(item.pair, alice.assessor, 1, item=item)
    make_judgment(item.pair, alice.assessor, 0, item=item, supersedes=judgment)
    make_label(item.pair, 0)
    Assignment.objects.create(item=item, membership=alice, judgment=judgment, lease_until=timezone.now())
    Guideline.objects.create(collection=collection, version=1, text="Be strict.")
    Invitation.objects.create(collection=collection, role=1, invited_by=alice.user, expires_at=timezone.now())
    judge = JudgeVersion.objects.first() or make_judge("judge")
    campaign = make_campaign(collection, [judge])
    Work.objects.create(campaign=campaign, pair=item.pair)
    Tally.objects.create(campaign=campaign, shard=0, key="pending", value=1)
    attempt = make_attempt(campaign, item.pair, judge, 1)
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO judges_attemptbody VALUES (%s, %s, '', '')", [campaign.pk, attempt.pk])
    fill_benchmark(collection, item.pair)
    return collection


def fill_benchmark(collection, pair):
    """A run with a ranking, two versions of the qrels, a filling, a report, and a place in a suite that stays."""
    keys = [pair.document_id]
    run = Run.objects.create(collection=collection, name="bm25", kind="bm25", state="ready")
    Ranking.objects.create(run=run, query_id=pair.query_id, documents=keys, scores=[1.0])
    before = Qrels.objects.create(collection=collection, number=1, kind="original")
    after = Qrels.objects.create(collection=collection, number=2, kind="filled", parent=before)
    QrelsRow.objects.create(qrels=after, query_id=pair.query_id, documents=keys, grades=[1], origins=["people"])
    Filling.objects.create(collection=collection, depth=10, before=before, after=after).runs.add(run)
    report = Report.objects.create(collection=collection, before=before, after=after, key=collection.name)
    ReportValues.objects.create(report=report, run=run, measure="ndcg", before=[0.0], after=[1.0])
    suite, _ = Suite.objects.get_or_create(name="all")
    SuiteMember.objects.create(suite=suite, collection=collection, place=suite.members.count())


def counts():
    with connection.cursor() as cursor:
        found = {}
        for model in apps.get_models():
            if model._meta.app_label in {"corpus", "judges", "annotation", "benchmark"}:
                cursor.execute(f"SELECT count(*) FROM {model._meta.db_table}")
                found[model._meta.label] = cursor.fetchone()[0]
    return found


def test_without_yes_it_says_what_would_go_and_leaves_it():
    fill("books")
    before = counts()
    refused = call("delete_collection", "books")
    assert refused.code == 2
    assert "1 documents, 1 queries, 1 pairs" in refused.err and "--yes" in refused.err
    assert counts() == before


def test_everything_goes_and_nothing_of_another_collection(settings, tmp_path):
    settings.VAR = tmp_path
    fill("kept")
    before = counts()
    fill("books")
    for name in ("kept", "books"):
        (tmp_path / "exports" / name / "1").mkdir(parents=True)
        (tmp_path / "exports" / name / "1" / "labels.csv").write_text("q1,d1,1,people")
    finished = call("delete_collection", "books", "--yes", "--json")
    after = counts()
    # The account stays: a person may be a member elsewhere.
    assert after.pop("annotation.User") == before.pop("annotation.User") + 1
    # So does the audit log, which tells of the deletion.
    assert after.pop("annotation.AuditEntry") == before.pop("annotation.AuditEntry") + 1
    assert after == before
    assert finished.json["rows"]["judgments"] == 2
    assert [path.name for path in (tmp_path / "exports").iterdir()] == ["kept"]
    line = json.loads((tmp_path / "audit.jsonl").read_text())
    assert line["deleted_collection"] == "books" and line["judgments"] == 2


def test_every_table_with_a_collection_is_known_to_the_removal():
    known = set(rows_of(Collection(pk=1)))
    for model in filter(lambda one: one._meta.managed, apps.get_models()):  # a view keeps no rows
        for field in model._meta.concrete_fields:
            if field.is_relation and field.related_model in known and model is not AuditEntry:
                assert model in known, f"{model._meta.label} would be left behind"
    assert {Document, Judgment, Label, Membership, Assignment, Attempt, Work, Run, Ranking, Filling} <= known


@pytest.mark.parametrize("change", [{"grade": 0}, None])
def test_a_judgment_is_neither_changed_nor_deleted(change):
    alice = make_member(make_collection("books"), "alice")
    make_judgment(make_pair(alice.collection), alice.assessor, 1)
    rows = Judgment.objects.all()
    with pytest.raises(DatabaseError, match="Cannot"), transaction.atomic():
        rows.update(**change) if change else rows._raw_delete("default")
