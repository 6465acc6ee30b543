"""The glossary: for anybody signed in, reached from the menu and from the first use of a word on its page."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from annotation.access.glossary.terms import TERMS
from annotation.models import Role
from tests.factories import client_of, make_collection, make_member

pytestmark = pytest.mark.django_db
PROMISED = {
    "panel", "policy", "route", "arm", "canary", "outcome", "escalated", "lease", "hole", "qrels", "hole-at-k",
    "teacher", "contribution", "self-check", "aspect", "ledger", "rubric", "campaign", "debate", "vote",
}  # fmt: skip


def signed_in(collection) -> Client:
    return client_of(make_member(collection, "alice", Role.ADMIN))


def test_every_promised_term_has_an_anchor_and_a_meaning():
    page = signed_in(make_collection("birds")).get("/glossary/").content.decode()
    assert set(TERMS) == PROMISED
    assert [key for key in PROMISED if not re.search(rf'id="{key}"><dt>[^<]+</dt><dd>[^<]{{30,}}</dd>', page)] == []


def test_the_menu_leads_to_the_glossary_and_a_visitor_has_to_sign_in():
    client = signed_in(make_collection("birds"))
    assert 'href="/glossary/"' in client.get("/accounts/").content.decode()
    assert Client().get("/glossary/").status_code == 302


@pytest.mark.parametrize(
    ("address", "keys"),
    [
        ("policies", ["policy"]),
        ("panel", ["panel"]),
        ("quality", ["route"]),
        ("qrels", ["qrels"]),
        ("hole_fillings", ["hole"]),
        ("aspects", ["aspect"]),
    ],
)
def test_the_main_page_of_a_term_leads_to_its_meaning(address: str, keys: list[str]):
    collection = make_collection("birds")
    page = signed_in(collection).get(reverse(address, args=["birds"])).content.decode()
    for key in keys:
        assert f'href="/glossary/#{key}"' in page
