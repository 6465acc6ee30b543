"""A collection's first steps: title and files, who judges, first campaign; the offline trial never comes first."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from annotation.models import AuditEntry, Membership, Role
from annotation.models.imports import FileImport
from corpus.models import Collection, Item
from judges.models import Campaign
from tests.evidence import make_judge
from tests.factories import client_of, make_collection, make_member, make_pair, make_query, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def olga() -> Client:
    client = Client()
    client.force_login(make_user("olga", is_owner=True))
    return client


def page(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200
    return response.content.decode()


def begin(client: Client, title: str, name: str = "") -> str:
    values = {"title": title, "name": name, "grades": "1"}
    return str(client.post("/collections/new/", values)["Location"])


def test_the_name_is_made_from_the_title_and_numbered_where_it_is_taken(olga: Client) -> None:
    for title, name in (("Birds of Äland", "birds-of-aland"), ("鸟类", "collection"), ("--", "collection-2")):
        assert begin(olga, title) == f"/c/{name}/import/"
    assert begin(olga, "Birds of Äland") == "/c/birds-of-aland-2/import/"
    assert begin(olga, "鸟类", "own") == "/c/own/import/"
    assert olga.post("/collections/new/", {"title": "", "grades": "1"}).status_code == 422


def test_title_and_files_are_one_form_whose_maker_may_judge(olga: Client) -> None:
    file = SimpleUploadedFile("rows.csv", b"query,document\nWhy?,Because.\n")
    response = olga.post("/collections/new/", {"title": "Birds", "grades": "1", "files": [file]})
    row = FileImport.objects.get()
    assert response["Location"] == f"/c/birds/import/{row.number}/"
    assert [file["name"] for file in row.files] == ["rows.csv"]
    assert Membership.objects.get(collection__name="birds").role == Role.ADMIN
    empty = SimpleUploadedFile("empty.csv", b"")
    refused = olga.post("/collections/new/", {"title": "Fish", "grades": "1", "files": [empty]}, follow=True)
    assert Collection.objects.filter(name="fish").exists() and refused.status_code == 200
    from_log = olga.post("/collections/new/", {"title": "Shop", "grades": "1", "log": "1"})
    assert from_log["Location"] == "/c/shop/import/query-log/"


def test_the_offline_trial_is_said_to_be_weak_never_primary_and_gone_once_there_is_a_model(olga: Client) -> None:
    collection = make_collection("birds")
    make_pair(collection)
    shown = page(client_of(make_member(collection, "charlie", Role.ADMIN)), "/c/birds/")
    assert "An owner of this site" in shown and "Add a model" not in shown, "an admin may add none"
    for has_model in (False, True):
        shown = page(olga, "/c/birds/")
        primary = shown.partition('class="button primary"')[2].partition("</a>")[0]
        assert shown.count("button primary") == 1
        assert primary.endswith("Start a campaign" if has_model else "Add a model")
        assert ("Try offline" in shown) is ("only compare words" in shown) is not has_model
        if not has_model:
            make_judge("mine")


def test_judging_by_hand_sends_each_unlabelled_pair_once_and_makes_the_owner_a_member(olga: Client) -> None:
    collection = make_collection("birds")
    response = olga.post("/c/birds/judge-by-hand/", follow=True)
    assert response.redirect_chain[-1][0] == "/c/birds/" and b"at least one pair" in response.content
    for text in ("Why?", "How?"):
        make_pair(collection, make_query(collection, text))
    for _ in range(2):
        assert olga.post("/c/birds/judge-by-hand/")["Location"] == "/c/birds/judge/?start"
    assert list(Item.objects.values_list("state", "overlap")) == [("open", 1)] * 2
    assert set(AuditEntry.objects.values_list("act", flat=True)) >= {"member.joined", "pairs.sent"}
    judged = olga.post("/c/birds/judge/next/", follow=True)
    assert b"Why?" in judged.content or b"How?" in judged.content


def test_pages_of_the_first_steps_say_which_one_they_are_until_the_first_campaign(olga: Client) -> None:
    collection = make_collection("birds")
    make_pair(collection)
    steps = {"import": "Title and files", "models": "Who judges", "campaigns": "First campaign"}
    for path, step in steps.items():
        shown = page(olga, f"/c/birds/{path}/")
        assert step in shown.partition('<li aria-current="step">')[2].partition("</li>")[0]
    Campaign.objects.create(collection=collection, policy="single", panel="offline")
    assert not any("first-steps" in page(olga, f"/c/birds/{path}/") for path in steps)
