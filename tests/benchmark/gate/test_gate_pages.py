"""The gate's pages, its operation, and its shared page."""

import json

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from junitparser import JUnitXml

from annotation.models import AuditEntry, Role
from benchmark.gate import selectors
from benchmark.models import Filling, Gate
from judges.panels.offline_panel import ensure_offline
from tests.annotation.home.sharing.test_sharing import make_link
from tests.api.conftest import call as call
from tests.benchmark.gate.test_gate import books as books
from tests.benchmark.gate.test_gate import decide
from tests.factories import client_of, make_member

pytestmark = pytest.mark.django_db
HOME = "/c/books/benchmark/gate/"
FORM = {"run": "open", "against": "old", "measures": "nDCG@3", "max_drop": "0.01", "confidence": "0.95"}
FORM |= {"weights": "plain"}


@pytest.fixture
def charlie(books):
    return make_member(books, "charlie", Role.ADMIN)


def test_the_form_tells_a_verdict_and_the_page_keeps_the_history(charlie):
    client = client_of(charlie)
    page = client.get(HOME).text
    # The newest run beside the one before it, to a depth that both have.
    assert '<option value="open" selected>' in page and '<option value="bad" selected>' in page
    assert 'value="nDCG@3"' in page
    assert client.post(f"{HOME}decide/", FORM)["Location"] == f"{HOME}1/"
    page = client.get(f"{HOME}1/").text
    assert 'class="badge warn"' in page and "chart-svg" in page and f'action="{HOME}1/judge/"' in page
    assert "over all ways to judge them" in page
    decide(charlie.collection, "bad")
    history, second = client.get(HOME).text, client.get(f"{HOME}2/").text
    assert f'href="{HOME}2/"' in history and f'href="{HOME}1/"' in history
    # Queries that lost most, each with both runs beside it; no bars of unjudged documents.
    assert "?run=bad&amp;run=old" in second and "over all ways to judge them" not in second
    assert client.get(f"{HOME}3/").status_code == 404


def test_the_page_reads_no_more_verdicts_than_it_shows_and_the_table_has_all(charlie, monkeypatch):
    """A verdict's document is some kilobytes, and a nightly gate has hundreds of them."""
    monkeypatch.setattr(selectors, "SHOWN", 2)
    for run in ("same", "bad", "same"):
        decide(charlie.collection, run)
    client = client_of(charlie)
    with CaptureQueriesContext(connection) as statements:
        page = client.get(HOME)
    reading = [row["sql"] for row in statements if '"benchmark_gate"."result"' in row["sql"]]
    assert len(reading) == 1 and reading[0].endswith("LIMIT 2") and "benchmark_filling" not in reading[0]
    assert [row["gate"].number for row in page.context["gates"]] == [3, 2]
    context, _tables = selectors.gates_page(charlie.collection)
    assert [row["gate"].number for row in context["gates"]] == [3, 2], "as a shared link reads it"
    lines = client.get(f"{HOME}?table=gates&as=csv").text.splitlines()
    assert [line.split(",")[0] for line in lines] == ["gate", "3", "2", "1"]


@pytest.mark.parametrize(
    "wrong", [{"against": "open"}, {"run": "nobody"}, {"measures": "nonsense"}, {"max_drop": "2"}, {"qrels": "77"}]
)
def test_wrong_input_keeps_the_form(charlie, wrong):
    answer = client_of(charlie).post(f"{HOME}decide/", {**FORM, "measures": "P@1 RR", **wrong})
    assert answer.status_code == 422 and 'role="alert"' in answer.text
    assert wrong.get("measures", "P@1 RR") in answer.text
    assert not Gate.objects.exists() and not AuditEntry.objects.filter(act="gate.decided").exists()


def test_a_verdict_is_downloaded_in_three_forms(charlie):
    client = client_of(charlie)
    decide(charlie.collection, "bad")

    def file(kind: str) -> str:
        return b"".join(client.get(f"{HOME}1/?file={kind}")).decode()

    assert file("md").startswith("## ")
    assert JUnitXml.fromstring(file("xml").encode()).failures == 1
    assert json.loads(file("json"))["verdict"] == "fail"
    assert client.get(f"{HOME}1/?file=exe").status_code == 404
    assert client.get(f"{HOME}1/?chart=gate&as=svg")["Content-Type"].startswith("image/svg")
    assert client.get(f"{HOME}?table=gates&as=csv").text.count("\n") == 2


def test_what_decides_is_judged_after_an_estimate(charlie):
    ensure_offline()
    client = client_of(charlie)
    decide(charlie.collection, "open")
    form = {"policy": "people"}
    estimate = client.post(f"{HOME}1/judge/", form)
    assert "<strong>24</strong>" in estimate.text and not Filling.objects.exists()
    assert client.post(f"{HOME}1/judge/", {**form, "confirm": "1"})["Location"] == f"{HOME}1/"
    filling = Filling.objects.get()
    assert len(filling.pairs) == 24 and Gate.objects.get().filling == filling
    page = client.get(f"{HOME}1/").text
    assert f"/c/books/benchmark/hole-filling/{filling.number}/" in page
    assert client.post(f"{HOME}1/again/")["Location"] == f"{HOME}2/"
    by_judges = {"policy": "single", "panel": "offline"}
    assert client.post(f"{HOME}2/judge/", by_judges).status_code == 200
    refused = client.post(f"{HOME}2/judge/", {**by_judges, "budget": "-1"})
    assert refused.status_code == 422 and Filling.objects.count() == 1
    decide(charlie.collection, "bad")
    assert client.post(f"{HOME}3/judge/", {**form, "confirm": "1"}).status_code == 422


def test_the_history_is_shared_by_a_link(charlie):
    link = make_link(charlie, "gate")
    assert Client().get(f"/shared/{link.token}/").status_code == 200
    decide(charlie.collection, "bad")
    page = Client().get(f"/shared/{link.token}/").text
    assert 'class="badge danger"' in page and "<form" not in page and 'href="/c/' not in page


def test_the_operation_tells_a_verdict_has_what_decides_judged_and_lists(call, charlie):
    ensure_offline()
    path, body = "collections/books/gates", {"run": "open", "against": "old", "measures": "nDCG@3"}
    made = call(charlie.user, "POST", path, {**body, "judge": True, "budget": 5})
    assert made.status_code == 201
    gate = made.json()
    assert (gate["verdict"], gate["deciding_pairs"], gate["number"], gate["filling"]) == ("cannot_tell", 24, 1, 1)
    assert Filling.objects.get().campaign is not None
    assert call(charlie.user, "POST", path, {**body, "run": "same"}).json()["verdict"] == "pass"
    assert [row["verdict"] for row in call(charlie.user, "GET", path).json()["items"]] == ["cannot_tell", "pass"]
    for wrong, option in (({"run": "old"}, "against"), ({"measures": "x"}, "measures"), ({"budget": 5}, "budget")):
        refused = call(charlie.user, "POST", path, {**body, **wrong})
        assert refused.status_code == 422 and [row["option"] for row in refused.json()["errors"]] == [option]
    assert Gate.objects.count() == 2
