"""The page of a search endpoint: its runs over time, the newest beside the one before, and what has no label."""

import re
from datetime import UTC, datetime

import pytest
from django.utils import timezone, translation

from annotation.models import Role, User
from api.tokens import make_token
from benchmark.endpoint_history import selectors
from benchmark.models import Filling, Report, Run, SearchEndpoint
from benchmark.qrels import versions
from benchmark.report.naming import describe_outdated
from corpus.importing.returned_documents import ReturnedDocument, store_returned
from corpus.models import Item, Label, Pair
from tests.called import call
from tests.factories import client_of, make_collection, make_member, make_pair, make_query
from tests.rankings import make_run

pytestmark = pytest.mark.django_db
HERE = "/c/shop/benchmark/search/shop/"
QUERIES = [f"q{number}" for number in range(6)]


@pytest.fixture
def collection():
    """A collection of queries; documents come with the runs."""
    SearchEndpoint.objects.create(name="shop", kind="http")
    collection = make_collection("shop")
    for name in QUERIES:
        make_query(collection, f"text of {name}", external_id=name)
    return collection


@pytest.fixture
def charlie(collection):
    return client_of(make_member(collection, "charlie", Role.ADMIN))


def run_of(collection, name, ranked, texts=None, endpoint="shop"):
    """A finished run as the maker leaves it, its documents in the collection."""
    returned = {document for documents in ranked.values() for document in documents}
    store_returned(collection, [ReturnedDocument(name, "", (texts or {}).get(name, "text"), {}) for name in returned])
    run = make_run(collection, name, ranked)
    Run.objects.filter(pk=run.pk).update(
        kind="search", recipe={"endpoint": endpoint, "settings": {"base_url": "http://x"}}
    )
    run.refresh_from_db()
    return run


def label(collection, grades):
    """Label pairs by ids: query -> document -> grade."""
    queries = {query.external_id: query for query in collection.query_set.all()}
    documents = {document.external_id: document for document in collection.document_set.filter(is_current=True)}
    for query, graded in grades.items():
        for document, grade in graded.items():
            pair = make_pair(collection, queries[query], documents[document])
            Label.objects.create(pair=pair, grade=grade, origin="people")


def judge_all_alike(collection, documents=("d1",)):
    """The first of these documents is relevant to every query, the others are not; a version has that."""
    label(collection, {query: {name: int(name == documents[0]) for name in documents} for query in QUERIES})
    versions.labels_version(collection)


def compute(client, endpoint="shop"):
    return client.post("/c/shop/benchmark/compute/", {"endpoint": endpoint})


def test_pairs_without_a_label_are_counted_with_those_of_earlier_texts(collection):
    run = run_of(collection, "a", {"q0": ["d1", "d2", "d3"], "q1": ["d1"]})
    label(collection, {"q0": {"d1": 1, "d2": 0}})
    assert selectors.count_unlabelled(collection, run) == {"unlabelled": 2, "outdated": 0, "qrels": None}
    version = versions.labels_version(collection)
    assert selectors.count_unlabelled(collection, run) == {"unlabelled": 2, "outdated": 0, "qrels": version}
    Label.objects.all().delete()
    assert selectors.count_unlabelled(collection, run)["unlabelled"] == 2, "what the qrels grade is judged"
    run = run_of(collection, "b", {"q0": ["d1", "d2"], "q1": ["d1"]}, texts={"d1": "another text"})
    label(collection, {})
    assert selectors.count_unlabelled(collection, run)["unlabelled"] == 2
    old = Pair.objects.get(query__external_id="q0", document__external_id="d1")
    Label.objects.create(pair=old, grade=1, origin="people")
    assert selectors.count_unlabelled(collection, run)["outdated"] == 1


def test_the_newest_run_stands_beside_the_one_before(collection, charlie):
    good, bad = {key: ["d1", "d2", "d3"] for key in QUERIES}, {key: ["d3", "d2", "d1"] for key in QUERIES}
    first, second = run_of(collection, "monday", bad), run_of(collection, "tuesday", good)
    run_of(collection, "elsewhere", good, endpoint="other")
    judge_all_alike(collection, ("d1", "d2", "d3"))
    answer = charlie.get(HERE)
    assert answer.context["comparison"] is None and 'name="endpoint" value="shop"' in answer.text
    refused = compute(charlie, "a/b")
    assert refused.status_code == 422 and 'action="/c/shop/benchmark/compute/"' in refused.text
    assert "Search endpoint not found." in refused.text and not Report.objects.exists()
    assert compute(charlie)["Location"] == HERE
    Run.objects.update(created_at=datetime(2026, 3, 1, 22, 30, tzinfo=UTC))
    with timezone.override("Asia/Shanghai"):
        context, _files = selectors.history_page(collection, "shop")
    picture = f"{context['chart'].svg} {context['chart'].rows}"
    assert "2026-03-02" in picture and "2026-03-01" not in picture, "the days are the reader's"
    context = charlie.get(HERE).context
    assert [row["run"] for row in context["rows"]] == [second, first]
    comparison = context["comparison"]
    assert (comparison["newest"], comparison["before"]) == (second, first)
    measure = comparison["measures"][0]
    assert (measure["label"], measure["new"], measure["old"]) == ("nDCG@3", 1.0, 0.5)
    assert measure["value"] == 0.5 and measure["low"] <= 0.5 <= measure["high"]
    assert context["chart"].is_drawn and "from 0.5000 to 1.0000" in context["chart"].summary
    csv = charlie.get(f"{HERE}?table=runs&as=csv").text.splitlines()
    assert len(csv) == 3 and csv[1].startswith("tuesday,") and ",1.0," in csv[1]
    assert charlie.get(f"{HERE}?chart=history&as=svg").status_code == 200


def test_pages_and_the_command_name_runs_whose_documents_have_a_newer_text(collection, charlie):
    """Judgments of the newer text do not count for the run that returned the earlier one: its values fall."""
    ranked = {key: ["d1", "d2", "d3"] for key in QUERIES}
    first = run_of(collection, "monday", ranked)
    judge_all_alike(collection, ("d1", "d2", "d3"))
    compute(charlie)
    words = "newer text, whose judgments do not count for the run: monday 1."
    addresses = ("/c/shop/benchmark/", HERE, "/c/shop/benchmark/report/")
    assert not any("newer text" in charlie.get(address).text for address in addresses)
    second = run_of(collection, "tuesday", ranked, texts={"d1": "another text"})
    run_of(collection, "elsewhere", {key: ["d2"] for key in QUERIES}, endpoint="other")
    Run.objects.filter(name="elsewhere").update(depth=3)
    judge_all_alike(collection)
    printed = call("report", "shop", "--k", 3, "--before", 2, "--after", 2)
    assert words in printed.out, printed.err
    compute(charlie)
    for address in (*addresses[:2], f"/c/shop/benchmark/compare/?a={second.pk}&b={first.pk}"):
        assert words in " ".join(charlie.get(address).text.split()), address
    assert charlie.get(addresses[0]).context["board"]["rows"][-1]["values"]["ndcg"] == 0
    token = make_token(User.objects.get(username="charlie"), collection, name="test", scopes=("read",), days=1)[1]
    headers = {"Authorization": f"Bearer {token}"}
    systems = charlie.get("/api/v1/collections/shop/leaderboard", headers=headers).json()["systems"]
    assert {system["name"]: system["outdated"] for system in systems} == {"tuesday": 0, "elsewhere": 0, "monday": 1}
    outdated = [{"name": "monday", "outdated": 1}]
    with translation.override("zh-hans"):
        assert "monday 1" in describe_outdated(outdated) and "newer" not in describe_outdated(outdated * 7)
    assert "and 2 more runs" in describe_outdated(outdated * 7)
    assert describe_outdated([{"name": "stored earlier"}, {"name": "monday", "outdated": 0}]) == ""


def test_what_is_new_is_judged_in_two_clicks(collection, charlie):
    run_of(collection, "monday", {key: ["d1"] for key in QUERIES})
    judge_all_alike(collection)
    run_of(collection, "tuesday", {key: ["d1", "d2"] for key in QUERIES})
    page = charlie.get(HERE)
    assert page.context["unlabelled"] == len(QUERIES)
    form = re.search(r'action="/c/shop/benchmark/hole-filling/"(.*?)</form>', page.text, re.S)[1]
    fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form))
    fields.pop("csrfmiddlewaretoken", None)
    assert fields == {"runs": "tuesday", "depth": "2", "qrels": "1"}
    estimate = charlie.post("/c/shop/benchmark/hole-filling/", {**fields, "policy": "people"})
    assert estimate.status_code == 200 and estimate.context["preview"]["candidates"] == len(QUERIES)
    charlie.post("/c/shop/benchmark/hole-filling/", {**dict(estimate.context["hidden"]), "confirm": "1"})
    assert set(Item.objects.values_list("pair__document__external_id", flat=True)) == {"d2"}
    assert [run.name for run in Filling.objects.get().runs.all()] == ["tuesday"]
    Run.objects.update(depth=1001)
    page = charlie.get(HERE).text
    assert 'name="depth" value="1000"' in page and "depth=1000#new" in page and "depth=1001" not in page
    assert "first 1,000 documents of each query" in page


def test_a_collection_of_queries_alone_is_judged_from_its_first_run(collection, charlie):
    run_of(collection, "monday", {key: ["d1", "d2"] for key in QUERIES})
    assert charlie.get(HERE).context["unlabelled"] == 12
    sent = {"runs": "monday", "depth": "2", "policy": "people"}
    assert charlie.post("/c/shop/benchmark/hole-filling/", sent).context["preview"]["candidates"] == 12
    charlie.post("/c/shop/benchmark/hole-filling/", {**sent, "confirm": "1"})
    assert Item.objects.count() == Pair.objects.count() == 12
    run_of(collection, "tuesday", {key: ["d2", "d1"] for key in QUERIES})
    compute(charlie)
    context = charlie.get(HERE).context
    assert context["comparison"] is None and context["chart"] is None, "zeros without a judgment say nothing"
    for query, runs, depth in (
        ("?runs=tuesday&depth=20", ["tuesday"], "20"),
        ("?runs=gone&depth=x", ["monday", "tuesday"], 10),
        ("", ["monday", "tuesday"], 10),
    ):
        form = charlie.get(f"/c/shop/benchmark/hole-filling/{query}").context["fill"]
        assert (form["runs"].value(), form["depth"].value()) == (runs, depth), "it begins with what its address names"


def test_runs_of_a_deleted_endpoint_stay_lead_to_its_page_and_show_viewers_no_address(collection, charlie):
    run = run_of(collection, "monday", {"q0": ["d1"]})
    SearchEndpoint.objects.update(is_deleted=True)
    page, here = charlie.get(HERE), f"/c/shop/benchmark/runs/{run.pk}/"
    assert page.status_code == 200 and "type=search" not in page.text
    assert HERE in charlie.get(here).text and HERE in charlie.get("/c/shop/benchmark/").text
    assert charlie.get("/c/shop/benchmark/search/nowhere/").status_code == 404
    bob = client_of(make_member(collection, "bob", Role.VIEWER))
    assert "http://x" in charlie.get(here).text
    assert not any("http://x" in bob.get(address).text for address in (here, f"{here}?table=cost&as=csv"))
    page = bob.get(HERE).text
    assert 'action="/c/shop/' not in page and 'id="judge-h"' not in page
    Run.objects.all().delete()
    assert charlie.get(HERE).status_code == 404


def test_the_form_of_a_run_from_your_search(collection, charlie):
    make = "/c/shop/benchmark/runs/make/?type=search"
    form = charlie.get(make).context["form"]
    name = form["name"].value()
    assert name.startswith("shop-") and form["depth"].value() == "20"
    assert [value for value, _title in form.fields["endpoint"].choices] == ["shop"]
    assert charlie.get(f"{make}&name=bm25&depth=100").context["form"]["depth"].value() == "20"
    sent = charlie.post(make, {"name": name, "depth": "20", "endpoint": "shop"})
    run = Run.objects.get()
    assert sent["Location"].endswith(f"/runs/{run.pk}/") and (run.kind, run.depth) == ("search", 20)
    assert charlie.get(make).context["form"]["name"].value() == f"{name}-2"
    SearchEndpoint.objects.create(name="other", kind="http")
    assert charlie.get(make).context["form"]["name"].value() == ""
    assert charlie.get(f"{make}&endpoint=other").context["form"]["name"].value().startswith("other-")
    refused = charlie.post(make, {"name": "x", "depth": "20", "endpoint": "gone"})
    assert refused.status_code == 422 and refused.context["form"].errors["endpoint"]
    SearchEndpoint.objects.update(is_deleted=True)
    page = charlie.get(make)
    assert page.context["form"].lacks == "endpoint" and "disabled" in page.content.decode()
