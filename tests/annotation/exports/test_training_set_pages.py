"""The exports page makes training sets, and the statistics page says what there is to make them of."""

import json
from hashlib import sha256
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from annotation.data.statistics import statistics_of
from annotation.exports.forms import keep_upload
from annotation.models import Role
from annotation.models.snapshots import Snapshot
from corpus.models import Label, Pair
from judges.models import Campaign, Work
from tests.evidence import make_campaign, make_judge
from tests.factories import make_collection, make_item, make_member
from tests.reading import flat

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def var(settings, tmp_path):
    settings.VAR = tmp_path
    return tmp_path


@pytest.fixture(autouse=True)
def admin(client, books):
    client.force_login(make_member(books, "alice", Role.ADMIN).user)


DEFAULTS = {"format": "prism", "teacher": "votes"}
HOME = "/c/books/exports/"


def post(client, **values):
    return client.post(reverse("make_export", args=["books"]), {**DEFAULTS, **values})


def test_alice_makes_a_training_set_and_downloads_its_files(client):
    response = post(client)
    snapshot = Snapshot.objects.get()
    assert response["Location"].endswith(f"#export-{snapshot.number}"), "which is far below the form"
    assert (snapshot.state, snapshot.format) == ("ready", "prism")
    page = flat(client.get(HOME).text)
    assert "train: 27 rows from 9 queries" in page and "dev: 3 rows from 1 " in page
    response = client.get(reverse("export_file", args=["books", snapshot.number, "train.jsonl"]))
    data = b"".join(response.streaming_content)
    assert len(data.splitlines()) == 27 and sha256(data).hexdigest() in page

    post(client, format="beir")
    number = Snapshot.objects.latest("pk").number
    response = client.get(reverse("export_file", args=["books", number, "qrels/train.tsv"]))
    assert b"".join(response.streaming_content).startswith(b"query-id\tcorpus-id\tscore\n")
    assert f"books-{number}-qrels-train.tsv" in response["Content-Disposition"]
    assert client.get(reverse("export_file", args=["books", number, "../../secret"])).status_code == 404


def test_the_page_offers_votes_unless_there_are_scores(client):
    assert '<option value="votes" selected>' in client.get(HOME).text
    Pair.objects.update(teacher_score=0.5)
    assert '<option value="scores" selected>' in client.get(HOME).text


def test_what_is_refused_keeps_the_form_and_a_one_sided_set_is_made_when_asked_for(client):
    for values, words in (
        ({"split": "1.4", "negatives": "0"}, ("Nothing was created", 'value="1.4"')),
        ({"format": "trl", "seed": "5"}, ("10 pairs left out: relevant", 'value="5"', 'value="trl" checked')),
    ):
        response = post(client, **values)
        assert response.status_code == 422 and all(word in response.text for word in words)
    assert not Snapshot.objects.exists()
    assert post(client, format="trl", allow_incomplete="on").status_code == 302
    assert "10 pairs: relevant" in client.get(HOME).text


RUN = b"q0 Q0 d5-1 1 9.5 bm25\nq0 Q0 d6-1 2 9.0 bm25\n"


def test_a_run_that_is_uploaded_gives_hard_negatives(client, var):
    assert post(client, run=SimpleUploadedFile("bm25.run", RUN), ranks="1-2", teacher="labels").status_code == 302
    manifest = Snapshot.objects.get().manifest
    assert manifest["counts"]["assumed"] + sum(manifest["counts"]["left_out"].values()) >= 2
    assert manifest["options"]["run"]["name"] == "bm25.run"
    assert str(var) not in json.dumps(manifest)
    response = post(client, run=SimpleUploadedFile("no.run", b"this is no run\n"))
    assert response.status_code == 422 and "no.run, line 1: 4 columns" in response.text


def test_a_run_whose_upload_broke_off_is_not_taken_for_a_whole_one(books, monkeypatch):
    def break_off():
        yield RUN[:12]
        raise OSError("no room")

    run = SimpleUploadedFile("bm25.run", RUN)
    chunks = iter([[RUN], break_off()])
    monkeypatch.setattr(run, "chunks", lambda: next(chunks))
    with pytest.raises(OSError, match="no room"):
        keep_upload(books, run, "run")
    monkeypatch.undo()
    run.seek(0)
    assert Path(keep_upload(books, run, "run")).read_bytes() == RUN


def test_a_balanced_set_shows_its_cells_before_and_after(client):
    post(client, balance="on")
    page = client.get(HOME).text
    assert "entropy 0.918 before" in page
    assert "score before balancing" in page and "score after balancing" in page
    chart = f"{HOME}?chart=balance-{Snapshot.objects.get().number}-before&as=csv"
    assert client.get(chart).text.splitlines()[2].endswith(",9,0,0,0,0,0,0,0")
    assert client.get(f"{chart}x").status_code == 404


def test_statistics_say_what_there_is_and_of_an_empty_collection_no_means(client, django_assert_max_num_queries):
    with django_assert_max_num_queries(20):
        page = flat(client.get(reverse("statistics", args=["books"])).text)
    for words in (
        "<dt>Documents</dt><dd>30 (22.0 words each on average)</dd>",
        "<dt>Queries</dt><dd>10 (5.0 words each on average)</dd>",
        "1.00 per query; 10 queries have answers",
        "30 pairs; 3.0 documents per query",
        "labelled by judges",
    ):
        assert words in page
    make_member(make_collection("empty"), "alice", Role.ADMIN)
    page = flat(client.get(reverse("statistics", args=["empty"])).text)
    assert "No pair is judged" in page and "<dt>Documents</dt><dd>0</dd>" in page


def test_the_funnel_follows_the_rounds_of_a_debate(books):
    Campaign.objects.update(state="cancelled")
    Label.objects.all().delete()
    campaign = make_campaign(books, [make_judge("debater")], policy="debate")
    for place, pair in enumerate(Pair.objects.filter(collection=books)):
        agreed = 1 if place < 20 else 2 if place < 25 else None
        state = "labelled" if agreed else "escalated"
        Work.objects.create(campaign=campaign, pair=pair, state=state, agreed_in_round=agreed)
        if agreed:
            Label.objects.create(pair=pair, grade=place % 2, origin="debate")
        else:
            make_item(pair)
    steps = {step["words"]: (step["pairs"], step["share"]) for step in statistics_of(books)["funnel"]}
    pairs = {"judged": 30, "agreed in round 1": 20, "undecided after round 1": 10, "undecided after round 2": 5}
    for words, number in (pairs | {"sent to people": 5}).items():
        assert steps[words] == (number, number / 30), words
