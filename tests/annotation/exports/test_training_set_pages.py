"""The exports page makes training sets, and the statistics page says what there is to make them of."""

import json
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from annotation.exports.forms import keep_upload
from annotation.models import Role
from annotation.models.snapshots import Snapshot
from corpus.models import Pair
from tests.evidence import make_judge
from tests.factories import make_collection, make_member
from tests.judged_books import make_books
from tests.reading import flat

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def var(settings, tmp_path):
    settings.VAR = tmp_path
    return tmp_path


@pytest.fixture
def books(client):
    books = make_books()
    client.force_login(make_member(books, "alice", Role.ADMIN).user)
    return books


DEFAULTS = {"format": "prism", "teacher": "votes"}


def post(client, **values):
    return client.post(reverse("make_export", args=["books"]), {**DEFAULTS, **values})


def test_alice_makes_a_training_set_and_downloads_its_files(client, books):
    response = post(client)
    snapshot = Snapshot.objects.get()
    assert response["Location"].endswith(f"#export-{snapshot.number}"), "which is far below the form"
    assert (snapshot.state, snapshot.format) == ("ready", "prism")
    page = flat(client.get(reverse("exports", args=["books"])).content.decode())
    assert "train: 27 rows from 9 queries" in page and "dev: 3 rows from 1 " in page
    response = client.get(reverse("export_file", args=["books", snapshot.number, "train.jsonl"]))
    assert len(b"".join(response.streaming_content).splitlines()) == 27


def test_a_file_in_a_folder_of_the_set_downloads_too(client, books):
    post(client, format="beir")
    snapshot = Snapshot.objects.get()
    response = client.get(reverse("export_file", args=["books", snapshot.number, "qrels/train.tsv"]))
    assert b"".join(response.streaming_content).startswith(b"query-id\tcorpus-id\tscore\n")
    assert f"books-{snapshot.number}-qrels-train.tsv" in response["Content-Disposition"]
    assert client.get(reverse("export_file", args=["books", snapshot.number, "../../secret"])).status_code == 404


def test_the_page_offers_votes_unless_there_are_scores(client, books):
    page = client.get(reverse("exports", args=["books"])).content.decode()
    assert '<option value="votes" selected>' in page
    Pair.objects.filter(collection=books).update(teacher_score=0.5)
    page = client.get(reverse("exports", args=["books"])).content.decode()
    assert '<option value="scores" selected>' in page


def test_a_one_sided_set_is_refused_in_the_form_and_made_when_asked_for(client, books):
    response = post(client, format="trl", seed="5")
    assert response.status_code == 422
    page = response.content.decode()
    assert "10 pairs left out: relevant" in page
    assert 'value="5"' in page and 'value="trl" checked' in page
    assert not Snapshot.objects.exists()
    assert post(client, format="trl", allow_incomplete="on").status_code == 302
    page = client.get(reverse("exports", args=["books"])).content.decode()
    assert "10 pairs: relevant" in page


def test_wrong_options_are_marked_and_nothing_is_made(client, books):
    response = post(client, split="1.4", negatives="0")
    assert response.status_code == 422
    page = response.content.decode()
    assert "Nothing was created" in page and 'value="1.4"' in page
    assert not Snapshot.objects.exists()


def test_a_run_that_is_uploaded_gives_hard_negatives(client, books, var):
    run = SimpleUploadedFile("bm25.run", b"q0 Q0 d5-1 1 9.5 bm25\nq0 Q0 d6-1 2 9.0 bm25\n")
    assert post(client, run=run, ranks="1-2", teacher="labels").status_code == 302
    manifest = Snapshot.objects.get().manifest
    assert manifest["counts"]["assumed"] + sum(manifest["counts"]["left_out"].values()) >= 2
    assert manifest["options"]["run"]["name"] == "bm25.run"
    assert str(var) not in json.dumps(manifest)
    wrong = SimpleUploadedFile("no.run", b"this is no run\n")
    response = post(client, run=wrong)
    assert response.status_code == 422
    assert "no.run, line 1: 4 columns" in response.content.decode()


def test_a_run_whose_upload_broke_off_is_not_taken_for_a_whole_one(books, var, monkeypatch):
    run = SimpleUploadedFile("bm25.run", b"q0 Q0 d5-1 1 9.5 bm25\nq0 Q0 d6-1 2 9.0 bm25\n")
    whole, chunks = run.read(), iter([[b"q0 Q0 d5-1 1 9.5 bm25\nq0 Q0 d6-1 2 9.0 bm25\n"], _broken_off(run)])
    monkeypatch.setattr(run, "chunks", lambda: next(chunks))
    with pytest.raises(OSError, match="no room"):
        keep_upload(books, run, "run")
    monkeypatch.undo()
    run.seek(0)
    assert Path(keep_upload(books, run, "run")).read_bytes() == whole


def _broken_off(run):
    yield b"q0 Q0 d5-1 1"
    raise OSError("no room")


def test_a_balanced_set_shows_its_cells_before_and_after(client, books):
    post(client, balance="on")
    page = client.get(reverse("exports", args=["books"])).content.decode()
    assert "entropy 0.918 before" in page
    assert "score before balancing" in page and "score after balancing" in page
    chart = f"{reverse('exports', args=['books'])}?chart=balance-{Snapshot.objects.get().number}-before&as=csv"
    assert client.get(chart).content.decode().splitlines()[2].endswith(",9,0,0,0,0,0,0,0")
    assert client.get(f"{chart}x").status_code == 404


def test_statistics_say_what_there_is_and_the_funnel_ends_in_labels(client, books, django_assert_max_num_queries):
    with django_assert_max_num_queries(20):
        page = flat(client.get(reverse("statistics", args=["books"])).content.decode())
    for words in (
        "<dt>Documents</dt><dd>30 (22.0 words each on average)</dd>",
        "<dt>Queries</dt><dd>10 (5.0 words each on average)</dd>",
        "1.00 per query; 10 queries have answers",
        "30 pairs; 3.0 documents per query",
        "labelled by judges",
    ):
        assert words in page


def test_statistics_of_an_empty_collection_have_no_means(client):
    empty = make_collection("empty")
    client.force_login(make_member(empty, "alice", Role.ADMIN).user)
    page = flat(client.get(reverse("statistics", args=["empty"])).content.decode())
    assert "No pair is judged" in page
    assert "<dt>Documents</dt><dd>0</dd>" in page


def test_the_funnel_follows_the_rounds_of_a_debate(books):
    from annotation.data.statistics import statistics_of
    from corpus.models import Label, Pair
    from judges.models import Campaign, Work
    from tests.evidence import make_campaign
    from tests.factories import make_item

    Campaign.objects.update(state="cancelled")
    Label.objects.all().delete()
    campaign = make_campaign(books, [make_judge("debater")], policy="debate")
    for place, pair in enumerate(Pair.objects.filter(collection=books)):
        agreed = 1 if place < 20 else 2 if place < 25 else None
        Work.objects.create(
            campaign=campaign, pair=pair, state="labelled" if agreed else "escalated", agreed_in_round=agreed
        )
        if agreed:
            Label.objects.create(pair=pair, grade=place % 2, origin="debate")
        else:
            make_item(pair)
    steps = {step["words"]: (step["pairs"], step["share"]) for step in statistics_of(books)["funnel"]}
    assert steps["judged"] == (30, 1.0)
    assert steps["agreed in round 1"] == (20, 20 / 30)
    assert steps["undecided after round 1"] == (10, 10 / 30)
    assert steps["undecided after round 2"] == (5, 5 / 30)
    assert steps["sent to people"] == (5, 5 / 30)
