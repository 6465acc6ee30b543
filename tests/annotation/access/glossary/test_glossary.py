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


@pytest.fixture
def admin() -> Client:
    return client_of(make_member(make_collection("birds"), "alice", Role.ADMIN))


def test_every_promised_term_has_an_anchor_and_a_meaning_and_a_visitor_has_to_sign_in(admin: Client):
    page = admin.get("/glossary/").text
    assert set(TERMS) == PROMISED
    assert [key for key in PROMISED if not re.search(rf'id="{key}"><dt>[^<]+</dt><dd>[^<]{{30,}}</dd>', page)] == []
    assert Client().get("/glossary/").status_code == 302


def test_the_menu_and_the_main_page_of_a_term_lead_to_its_meaning(admin: Client):
    assert 'href="/glossary/"' in admin.get("/accounts/").text
    pages = {"policies": "policy", "panel": "panel", "quality": "route", "qrels": "qrels", "hole_fillings": "hole"}
    for address, key in {**pages, "aspects": "aspect"}.items():
        assert f'href="/glossary/#{key}"' in admin.get(reverse(address, args=["birds"])).text
