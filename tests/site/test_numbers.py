"""Campaigns, imports, exports and trainings are called by numbers that begin at 1 in each collection, at every door."""

import importlib
import threading
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from annotation.audit_log.recording import record
from annotation.exports.formats import FORMATS
from annotation.exports.snapshots import create_snapshot
from annotation.models import AuditEntry, Computed, Membership, Role
from annotation.models.imports import FileImport
from annotation.models.pair_table import SavedView
from annotation.models.snapshots import Snapshot
from api.tokens import make_token
from corpus.collections.removal import delete_collection
from corpus.models import ExportRecord, LastNumber
from corpus.numbered import find_numbered
from judges.models import Campaign
from tests.called import call
from tests.evidence import make_campaign
from tests.factories import make_collection, make_member, make_pair
from tests.imported_files import bring
from training.models import Job

KINDS = (Campaign, FileImport, Snapshot, Job)


def make_each(admin: Membership) -> tuple[Campaign, FileImport, Snapshot, Job]:
    """One row of each kind in the admin's collection."""
    collection = admin.collection
    return (
        make_campaign(collection, [], policy="human", state="running"),
        FileImport.objects.create(collection=collection, owner=admin.user),
        create_snapshot(collection=collection, form=FORMATS["csv"], user=admin.user),
        Job.objects.create(collection=collection, folder="/nowhere", options={"recipe": "prism"}),
    )


@pytest.fixture
def admins(db: None) -> tuple[Membership, Membership]:
    """Admins of two collections, which have had two and one of each kind."""
    alice = make_member(make_collection("birds"), "alice", Role.ADMIN)
    bob = make_member(make_collection("stones"), "bob", Role.ADMIN)
    for admin in (alice, bob, alice):
        make_pair(admin.collection)
        make_each(admin)
    return alice, bob


@pytest.mark.django_db
def test_jobs_of_no_collection_count_among_each_other() -> None:
    assert [Job.objects.create(folder="/nowhere").number for _ in range(2)] == [1, 2]


def test_each_collection_counts_its_own(admins: tuple[Membership, Membership]) -> None:
    for kind in KINDS:
        rows: Any = kind.objects.order_by("pk")
        assert list(rows.values_list("collection__name", "number")) == [("birds", 1), ("stones", 1), ("birds", 2)]
    stones = admins[1].collection
    assert find_numbered(Campaign.objects, stones, "1") == Campaign.objects.get(collection=stones)
    for odd in (0, -1, 2, None, "x", "\u0661", "1e0", 1 << 40, "9" * 30):
        assert find_numbered(Campaign.objects, stones, odd) is None


def test_the_pages_of_a_second_collection_speak_of_its_first(admins: tuple[Membership, Membership]) -> None:
    client = Client()
    client.force_login(admins[1].user)
    page = client.get("/c/stones/campaigns/").content.decode()
    assert 'id="campaign-1"' in page and "campaign-2" not in page
    assert client.post("/c/stones/campaigns/1/pause/")["Location"] == "/c/stones/campaigns/#campaign-1"
    assert Campaign.objects.get(collection__name="stones").state == "paused"
    assert Campaign.objects.filter(collection__name="birds", state="paused").count() == 0
    assert "<h1>Ledger of campaign 1" in client.get("/c/stones/campaigns/1/ledger/").content.decode()
    csv = client.get("/c/stones/campaigns/1/ledger.csv")
    assert 'filename="stones-campaign-1-ledger.csv"' in csv["Content-Disposition"]
    assert client.get("/c/stones/pairs/?campaign=1&state=open").status_code == 200
    assert 'href="/c/stones/import/1/"' in client.get("/c/stones/import/").content.decode()
    assert "<span>1</span>" in client.get("/c/stones/import/1/").content.decode()
    assert bring(client, "stones", {"docs.csv": "doc_id,text\nd1,a\n"}).number == 2
    log = client.get("/c/stones/audit-log/").content.decode()
    assert 'href="/c/stones/campaigns/#campaign-1">Campaign 1</a>' in log and "Export 1</a>" in log


def test_a_number_of_another_collection_is_not_found(admins: tuple[Membership, Membership]) -> None:
    client = Client()
    client.force_login(admins[1].user)
    for path in ("campaigns/2/ledger/", "import/2/", "exports/2/manifest.json", "pairs/?campaign=2", "?campaign=2",
                 "training/jobs/2/"):  # fmt: skip
        assert client.get(f"/c/stones/{path}").status_code == 404, path
        assert client.get(f"/c/birds/{path}").status_code == 404, path
    for path in (
        "campaigns/2/cancel/",
        "import/2/cancel/",
        "training/jobs/2/cancel/",
        "audits/2/to-people/?route=r1.m5.y",
    ):
        assert client.post(f"/c/stones/{path}").status_code == 404, path
    assert not Campaign.objects.filter(state="cancelled").exists()


def test_commands_take_and_print_the_number(admins: tuple[Membership, Membership]) -> None:
    status = call("status", "stones", "--campaign", "1", "--json").json
    assert (status["collection"], status["campaign"], status["policy"]) == ("stones", 1, "human")
    assert call("campaign", "stones", "pause").out.startswith("campaign 1 is paused")
    assert call("ledger", "stones", "--campaign", "1", "--json").json["campaign"] == 1
    refused = call("status", "stones", "--campaign", "2")
    assert (refused.code, refused.err.strip()) == (2, "stones has no campaign 2")


def test_the_api_lists_and_finds_by_the_number(client: Client, admins: tuple[Membership, Membership]) -> None:
    tokens = {admin.collection.name: make_token(admin.user, None, name="t", scopes=("read",), days=1)[1]
              for admin in admins}  # fmt: skip

    def read(collection: str, path: str, of: str = "") -> Any:
        headers = {"Authorization": f"Bearer {tokens[of or collection]}"}
        return client.get(f"/api/v1/collections/{collection}/{path}", headers=headers)

    for kind in ("campaigns", "imports", "exports", "trainings"):
        assert [one["number"] for one in read("stones", kind).json()["items"]] == [1], kind
        first = read("birds", f"{kind}?limit=1").json()
        assert (first["items"][0]["number"], first["next"]) == (1, 1), kind
        assert [one["number"] for one in read("birds", f"{kind}?after=1").json()["items"]] == [2], kind
        assert read("birds", f"{kind}?after={(1 << 63) - 1}").json()["items"] == [], kind
        assert read("stones", f"{kind}/1").status_code == 200
        for path, of in ((f"{kind}/2", "stones"), (f"{kind}/{1 << 62}", "stones"), (f"{kind}/1", "birds")):
            assert read("stones", path, of).status_code == 404, (path, of)
    assert read("stones", "campaigns/1").json()["status"]["campaign"] == 1


def test_a_number_is_not_given_again_and_goes_with_its_collection(admins: tuple[Membership, Membership]) -> None:
    alice, bob = admins
    FileImport.objects.get(collection=alice.collection, number=2).delete()
    assert make_each(alice)[1].number == 3, "a page that is still open must not start another import"
    deleted = delete_collection(bob.collection)
    assert "last numbers" not in deleted and not LastNumber.objects.filter(collection=bob.collection_id).exists()


@pytest.mark.django_db(transaction=True)
def test_rows_that_are_made_at_once_get_numbers_of_their_own() -> None:
    alice = make_member(make_collection("birds"), "alice", Role.ADMIN)
    make_pair(alice.collection)
    token = make_token(alice.user, None, name="t", scopes=("read", "manage"), days=1)[1]
    gate, codes = threading.Barrier(6), []

    def make(place: int) -> None:
        gate.wait()
        try:
            if place % 2:
                make_each(alice)
            else:  # In a transaction of one view (REPEATABLE READ), which sees no number that was given meanwhile.
                headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": str(place)}
                path, body = "/api/v1/collections/birds/exports", {"format": "csv"}
                codes.append(Client().post(path, body, content_type="application/json", headers=headers).status_code)
        finally:
            connection.close()

    threads = [threading.Thread(target=make, args=[place]) for place in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [201, 201, 201]
    assert sorted(Snapshot.objects.values_list("number", flat=True)) == [1, 2, 3, 4, 5, 6]
    for kind in (Campaign, FileImport, Job):
        assert sorted(kind.objects.values_list("number", flat=True)) == [1, 2, 3]


def test_existing_rows_are_numbered_in_their_order_and_what_named_them_follows(
    admins: tuple[Membership, Membership],
) -> None:
    """The statements of the migrations, on tables as the release before left them."""
    birds = admins[0].collection
    campaigns, exports = (list(kind.objects.filter(collection=birds).order_by("pk")) for kind in (Campaign, Snapshot))
    (older, newer), file_import = campaigns, FileImport.objects.filter(collection=birds).latest("pk")
    view = SavedView.objects.create(
        user=admins[0].user, collection=birds, name="v", query=f"state=open&campaign={newer.pk}&sort=state"
    )
    Computed.objects.create(collection=birds, values={"audits": {"campaign": newer.pk}, "policies": {}, "kappas": []})
    record(admins[0].user, "campaign.control", birds, campaign=newer.pk, what="pause")
    record(admins[0].user, "import.files", birds, number=file_import.pk, files=[])
    record(admins[0].user, "training.control", birds, job=Job.objects.filter(collection=birds).latest("pk").pk)
    record(admins[0].user, "export.made", birds, snapshot=exports[1].pk, format="csv")
    judging = importlib.import_module("judges.migrations.0030_numbers")
    training = importlib.import_module("training.migrations.0007_numbers")
    api = importlib.import_module("api.migrations.0003_numbers")
    annotation = importlib.import_module("annotation.migrations.0037_numbers")
    LastNumber.objects.all().delete()
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for table in ("judges_campaign", "annotation_snapshot", "annotation_fileimport", "training_job"):
            cursor.execute(f"UPDATE {table} SET number = 1000000 + id")
        cursor.execute("UPDATE corpus_exportrecord SET number = 0")
        cursor.execute(judging.NUMBER_ROWS)
        cursor.execute(training.NUMBER_ROWS)
        for table in ("annotation_fileimport", "annotation_snapshot"):
            cursor.execute(annotation.NUMBER_ROWS.format(table=table))
        for statements in (annotation.RENAME, annotation.VIEWS):
            cursor.execute(annotation.rename(statements, "number", "id"))
        cursor.execute(api.rename("number", "id"))
        cursor.execute(annotation.FIGURES)
        cursor.execute(annotation.RECORDS)
    for kind in KINDS:
        rows: Any = kind.objects.order_by("pk")
        assert list(rows.values_list("collection__name", "number")) == [("birds", 1), ("stones", 1), ("birds", 2)]
    assert [row.number for row in make_each(admins[0])] == [3, 3, 3, 3]
    view.refresh_from_db()
    assert view.query == "state=open&campaign=2&sort=state"
    assert Computed.objects.get().values == {"audits": None, "kappas": []}
    entries = AuditEntry.objects.filter(collection=birds).order_by("pk")
    assert entries.get(act="campaign.control").details == {"campaign": 2, "what": "pause"}
    assert entries.get(act="training.control").details == {"job": 2}
    assert entries.get(act="import.files").details["number"] == 2
    assert [one.details["snapshot"] for one in entries.filter(act="export.made")][-2:] == [2, 3]
    assert list(ExportRecord.objects.order_by("export").values_list("number", flat=True)) == [1, 1, 2, 3]
    assert older.pk != 1 or newer.pk != 2, "the test would show nothing"
