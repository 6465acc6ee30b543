"""The pages of agreement and exports: what admins see, ask for, make and download."""

import csv
import json
import time
from datetime import timedelta
from hashlib import sha256
from io import StringIO
from pathlib import Path

import pytest
from django.utils import timezone

from annotation.exports import listing
from annotation.exports.formats import FORMATS
from annotation.exports.snapshots import begin, fill
from annotation.models import Role, Snapshot
from annotation.tasks import make_snapshot
from corpus.processes import spawn, stop
from judges.fleet import worker_command
from tests.evidence import make_assessor, make_campaign, make_judge, make_judgment, make_label, make_votes
from tests.factories import make_collection, make_document, make_item, make_member, make_pair, make_query, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def var(settings, tmp_path):
    """Exports of these tests lie in a folder of their own."""
    settings.VAR = tmp_path


@pytest.fixture
def books():
    return make_collection("books")


@pytest.fixture
def charlie(books, client):
    """An admin of the collection, signed in."""
    member = make_member(books, "charlie", Role.ADMIN)
    client.force_login(member.user)
    return member


def judged(collection, pairs=6):
    """Three judges and Alice on some pairs; the judges differ on every third."""
    judges = [make_judge(f"judge-{n}") for n in range(3)]
    campaign, alice = make_campaign(collection, judges), make_assessor(collection, "alice")
    for n in range(pairs):
        pair = make_pair(collection)
        make_votes(campaign, pair, judges, [n % 2, n % 2, int(n % 3 == 0)])
        make_judgment(pair, alice, n % 2)
        make_label(pair, n % 2, "people")
    return campaign


def page(client, name, query=""):
    response = client.get(f"/c/books/{name}/{query}")
    assert response.status_code == 200
    return response.content.decode()


# Agreement


def test_a_collection_without_grades_says_what_is_needed(client, books, charlie):
    assert "Nobody has graded a pair yet" in page(client, "agreement")


def test_the_page_shows_every_measure_with_its_interval_and_population(client, books, charlie):
    judged(books, pairs=12)
    text = page(client, "agreement")
    assert "4 assessors gave grades to 12 pairs (all pairs); 46% of their grades say relevant." in text
    assert "Krippendorff&#x27;s alpha</th>" in text.replace("<br>", "</th>") and "Fleiss&#x27; kappa" in text
    assert "95% interval" in text
    assert "judge-0 and alice: 1.00 (95% interval 1.00 to 1.00), over 12 pairs" in text


def test_a_cell_opens_the_pairs_where_the_two_differ(client, books, charlie):
    judged(books)
    assert '/c/books/agreement/two/?a=judge-0&amp;b=judge-2&amp;cell=disagree"' in page(client, "agreement")


def test_undefined_is_said_with_its_reason(client, books, charlie):
    alice, bob = make_assessor(books, "alice"), make_assessor(books, "bob")
    for _ in range(3):
        pair = make_pair(books)
        make_judgment(pair, alice, 1)
        make_judgment(pair, bob, 1)
    text = page(client, "agreement")
    assert "undef." in text
    assert "undefined, every grade is the same" in text
    assert "nan" not in text.lower().replace("pairs of assessors", "")


def test_assessors_without_a_common_pair_have_a_cell_that_says_so(client, books, charlie):
    make_judgment(make_pair(books), make_assessor(books, "alice"), 1)
    make_judgment(make_pair(books), make_assessor(books, "bob"), 1)
    assert "no pairs" in page(client, "agreement")


def test_the_reference_enters_when_it_is_ticked(client, books, charlie):
    judged(books)
    make_judgment(books.pair_set.first(), make_assessor(books, "qrels", "reference"), 1)
    assert "qrels" in page(client, "agreement")
    assert 'scope="row">qrels' not in page(client, "agreement")
    assert 'scope="row">qrels' in page(client, "agreement", "?a=qrels&a=alice")


def test_the_population_of_escalated_pairs_is_named(client, books, charlie):
    judged(books)
    make_item(books.pair_set.first())
    text = page(client, "agreement", "?population=escalated")
    assert "gave grades to 1 pairs (escalated pairs only)" in text
    assert "cell=disagree%3Aescalated" in text


def test_a_judges_yes_and_grades_of_a_longer_scale_are_compared_as_relevant_or_not(client):
    graded = make_collection("books", grades=3)
    client.force_login(make_member(graded, "charlie", Role.ADMIN).user)
    judge, pair = make_judge("judge-1"), make_pair(graded)
    make_votes(make_campaign(graded, [judge]), pair, [judge], [1])
    make_judgment(pair, make_assessor(graded, "alice"), 3)
    assert "cell=disagree%3A1" in page(client, "agreement")
    given = page(client, "agreement", "?grades=given")
    assert 'cell=disagree"' in given and "Krippendorff&#x27;s alpha, interval" in given


def test_queries_with_and_without_answers_are_not_mixed_without_saying_so(client, books, charlie):
    judged(books)
    assert "by another prompt" not in page(client, "agreement")
    make_query(books, answers=[])
    assert "1 of 7 queries have no answers" in page(client, "agreement")


def test_nonsense_in_the_address_falls_back(client, books, charlie):
    judged(books)
    assert page(client, "agreement", "?a=nobody&population=x&measure=__class__&grades=9").count("heat-") > 5


def test_the_table_downloads_as_csv_and_runs_no_formula(client, books, charlie):
    judged(books)
    evil = make_assessor(books, "=cmd()")
    make_judgment(books.pair_set.first(), evil, 1)
    response = client.get("/c/books/agreement/table.csv?a=judge-0&a=judge-2&a=%3Dcmd()")
    rows = list(csv.DictReader(StringIO(response.content.decode())))
    assert response["Content-Type"].startswith("text/csv")
    assert [(row["a"], row["b"], row["n"]) for row in rows] == [
        ("'=cmd()", "judge-0", "1"),
        ("'=cmd()", "judge-2", "1"),
        ("judge-0", "judge-2", "6"),
    ]
    assert float(rows[2]["percent"]) == 0.5
    assert rows[0]["kappa"] == "" or float(rows[0]["kappa"]) == 0


def test_the_number_of_queries_does_not_grow_with_assessors_or_pairs(
    client, books, charlie, django_assert_max_num_queries
):
    judged(books, pairs=12)
    page(client, "agreement")
    with django_assert_max_num_queries(10):
        page(client, "agreement")


def test_thirty_three_assessors_fit_the_page(client, books, charlie):
    judges = [make_judge(f"judge-{n:02}") for n in range(33)]
    campaign = make_campaign(books, judges)
    for n in range(3):
        make_votes(campaign, make_pair(books), judges, [(n + k) % 2 for k in range(33)])
    assert page(client, "agreement").count('<th scope="col"><span>judge-') == 33


# Exports


def make(client, **values):
    response = client.post("/c/books/exports/make/", values)
    assert (response.status_code, response["Location"]) == (302, "/c/books/exports/")
    return Snapshot.objects.order_by("-pk").first()


def test_without_exports_the_page_says_so(client, books, charlie):
    text = page(client, "exports")
    assert "No export yet" in text and "No pair has a label yet" in text


def test_an_admin_makes_an_export_and_downloads_its_files(client, books, charlie):
    judged(books)
    snapshot = make(client, format="csv")
    assert (snapshot.state, snapshot.made_by) == ("ready", charlie.user)
    text = page(client, "exports")
    digest = snapshot.manifest["files"][0]["sha256"]
    assert digest in text and "6 of 6 pairs had a label" in text
    response = client.get(f"/c/books/exports/{snapshot.pk}/labels.csv")
    body = b"".join(response.streaming_content)
    assert sha256(body).hexdigest() == digest
    assert response["Content-Disposition"] == f'attachment; filename="books-{snapshot.pk}-labels.csv"'
    manifest = b"".join(client.get(f"/c/books/exports/{snapshot.pk}/manifest.json").streaming_content)
    assert json.loads(manifest) == snapshot.manifest


def test_labels_can_be_limited_to_their_origin(client, books, charlie):
    judged(books, pairs=2)
    make_label(make_pair(books), 1, "debate")
    assert make(client, format="qrels", origin=["people"]).manifest["counts"]["origins"] == {"people": 2}
    assert make(client, format="qrels", origin=["people", "debate"]).manifest["filters"]["origins"] is None
    assert make(client, format="judgments", origin=["people"]).state == "ready"


def test_an_unknown_format_makes_nothing(client, books, charlie):
    assert make(client, format="xml") is None
    assert "Choose a format" in page(client, "exports")


def test_a_get_makes_nothing(client, books, charlie):
    assert client.get("/c/books/exports/make/").status_code == 405


@pytest.mark.parametrize("file", ["../secret", "secret_key", "..%2f..%2fsecret_key", ".labels.csv.part", "qrels.txt"])
def test_only_files_of_the_manifest_are_served(client, books, charlie, file, settings):
    (settings.VAR / "secret_key").write_text("mine")
    snapshot = make(client, format="csv")
    (Path(snapshot.folder) / "secret_key").write_text("mine")
    assert client.get(f"/c/books/exports/{snapshot.pk}/{file}").status_code == 404


def test_files_of_another_collection_or_of_the_command_line_are_not_served(client, books, charlie, tmp_path):
    theirs = fill(begin(collection=make_collection("films"), form=FORMATS["csv"]))
    written = fill(begin(collection=books, form=FORMATS["csv"], folder=tmp_path / "elsewhere"))
    assert (tmp_path / "elsewhere" / "labels.csv").is_file()
    assert client.get(f"/c/books/exports/{theirs.pk}/labels.csv").status_code == 404
    assert client.get(f"/c/books/exports/{written.pk}/labels.csv").status_code == 404
    assert "Made on the command line" in page(client, "exports")


@pytest.mark.parametrize("name", list(FORMATS))
def test_every_format_is_made_and_listed(client, books, charlie, name):
    judged(books)
    assert make(client, format=name).state == "ready"
    assert FORMATS[name].file in page(client, "exports")


def test_a_large_export_is_left_to_a_worker_and_shows_how_far_it_is(
    client, books, charlie, monkeypatch, django_capture_on_commit_callbacks
):
    judged(books)
    queued = []
    monkeypatch.setattr(listing, "LARGE", 5)
    monkeypatch.setattr(listing, "queue", queued.append)
    assert make(client, format="csv").state == "ready", "nobody else is there to make it"
    monkeypatch.setattr(listing.wakeups, "live_workers", lambda: ["one"])
    with django_capture_on_commit_callbacks(execute=True):
        snapshot = make(client, format="qrels")
    assert queued == [snapshot.pk]
    assert "Waiting for a worker" in page(client, "exports")
    listing.tell_progress(snapshot.pk, 120_000)
    asked = client.get("/c/books/exports/", headers={"HX-Request": "true"})
    assert asked.status_code == 200 and "120,000 rows written" in asked.content.decode()
    make_snapshot(snapshot.pk)
    make_snapshot(snapshot.pk)
    done = client.get("/c/books/exports/", headers={"HX-Request": "true"})
    assert done.status_code == 286 and "every 5s" not in done.content.decode()
    assert "<html" not in done.content.decode()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_real_worker_makes_it(instance, books):
    judged(books)
    worker = spawn(worker_command(1), instance)
    snapshot = begin(collection=books, form=FORMATS["qrels"])
    try:
        listing.queue(snapshot.pk)
        end = time.monotonic() + 60
        while snapshot.state == "making" and time.monotonic() < end:
            time.sleep(0.2)
            snapshot.refresh_from_db()
    finally:
        stop([worker])
    assert snapshot.state == "ready", snapshot.error
    assert len((Path(snapshot.folder) / "qrels.txt").read_text().splitlines()) == 6


def test_an_export_that_nobody_makes_is_called_interrupted(client, books, charlie):
    long_ago = timezone.now() - timedelta(hours=1)
    Snapshot.objects.create(collection=books, format="csv", folder="x", state="making", created_at=long_ago)
    assert "interrupted" in page(client, "exports")


def test_a_failed_export_says_why(client, books, charlie, monkeypatch):
    def full(*args):
        raise OSError("No space left on device")

    monkeypatch.setattr("annotation.exports.snapshots.rows_of", full)
    make(client, format="csv")
    text = page(client, "exports")
    assert "No space left on device" in text and "failed" in text


def test_the_list_of_exports_takes_the_same_queries_for_one_as_for_many(
    client, books, charlie, django_assert_max_num_queries
):
    for _ in range(4):
        make(client, format="csv")
    with django_assert_max_num_queries(7):
        page(client, "exports")


@pytest.mark.parametrize("role", [Role.ANNOTATOR, Role.ADJUDICATOR])
@pytest.mark.parametrize("address", ["agreement/", "agreement/table.csv", "exports/", "exports/1/labels.csv"])
def test_reports_are_for_admins(client, books, role, address):
    client.force_login(make_member(books, "alice", role).user)
    assert client.get(f"/c/books/{address}").status_code == 403
    client.force_login(make_user("bob"))
    assert client.get(f"/c/books/{address}").status_code == 404


def test_names_and_texts_are_escaped(client, books, charlie):
    for name in ("<script>alert(1)</script>", "bob"):
        make_judgment(make_pair(books, document=make_document(books)), make_assessor(books, name), 1)
    text = page(client, "agreement")
    assert "<script>alert(1)" not in text and "&lt;script&gt;alert(1)" in text
