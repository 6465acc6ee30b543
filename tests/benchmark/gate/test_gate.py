"""The gate over stored runs: verdicts, refusals, the judging of what decides, its files, pages and operation."""

import json
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from junitparser import Error, Failure, JUnitXml

from actions.services import Actor
from annotation.models import AuditEntry, Role
from benchmark.gate import selectors, services
from benchmark.gate.options import GateOptions
from benchmark.gate.summary import as_junit, as_markdown
from benchmark.models import Filling, Gate, Qrels
from corpus.errors import BadOption
from corpus.models import Collection, Label, Pair, Query
from judges.panels.offline_panel import ensure_offline
from tests import called
from tests.annotation.home.sharing.test_sharing import make_link
from tests.api.conftest import call as call
from tests.factories import client_of, make_document, make_member, make_pair
from tests.rankings import make_run, make_texts

pytestmark = pytest.mark.django_db
ACTOR = Actor("charlie")
QUERIES = [f"q{number}" for number in range(12)]
GRADES = {query: {"a": 1, "b": 0, "c": 0} for query in QUERIES}
RANKED = {
    "old": ["a", "b", "c"],
    "same": ["a", "c", "b"],
    "bad": ["b", "c", "a"],
    # d and e are unjudged.
    "open": ["d", "e", "a"],
}


@pytest.fixture
def books():
    texts = {name: f"Text of {name}." for name in "abcde"}
    collection = make_texts("books", texts, {query: f"Question {query}?" for query in QUERIES}, GRADES)
    for name, ranked in RANKED.items():
        make_run(collection, name, dict.fromkeys(QUERIES, ranked))
    return collection


def decide(collection: Collection, run: str, against: str = "old", **options: Any) -> Gate:
    values = {"run": run, "against": against, "measures": "nDCG@3", **options}
    return services.decide_gate(ACTOR, collection, GateOptions.read(values))


def label_texts(collection: Collection, names: str, relevant: str) -> None:
    """People label the current documents of these names for each query."""
    for query in collection.query_set.all():
        for document in collection.document_set.filter(external_id__in=list(names), is_current=True):
            pair = make_pair(collection, query, document)
            Label.objects.create(pair=pair, grade=int(document.external_id in relevant), origin="people")


def label_deciding(gate: Gate, grade: int) -> None:
    """People say the same of every pair that decides."""
    pairs = Pair.objects.filter(pk__in=gate.filling.pairs) if gate.filling else []
    Label.objects.bulk_create(Label(pair=pair, grade=grade, origin="people") for pair in pairs)


def test_each_verdict_is_stored_with_what_the_contract_names(books):
    passed, failed, undecided = (decide(books, run) for run in ("same", "bad", "open"))
    assert [gate.verdict for gate in (passed, failed, undecided)] == ["pass", "fail", "cannot_tell"]
    assert [gate.number for gate in Gate.objects.order_by("pk")] == [1, 2, 3]
    result = failed.result
    assert {"verdict", "measures", "queries", "deciding_pairs", "reason"} <= result.keys()
    measure = result["measures"]["nDCG@3"]
    assert (measure["old"], measure["new"], measure["change"]) == (1.0, 0.5, -0.5)
    assert measure["low"] <= -0.5 <= measure["high"] < -measure["max_drop"] == -0.01
    assert (result["queries"], result["deciding_pairs"]) == (12, 0)
    assert len(result["losses"]["queries"]) == 10 and result["losses"]["queries"][0]["change"] == -0.5
    assert undecided.result["deciding_pairs"] == 24 and undecided.result["cause"] == "unjudged"
    entry = AuditEntry.objects.filter(act="gate.decided").latest("pk")
    assert entry.details["verdict"] == "cannot_tell" and entry.details["gate"] == 3


def test_queries_that_a_run_lacks_count_0_and_before_any_judgment_the_pairs_that_decide_are_counted(books):
    make_run(books, "half", dict.fromkeys(QUERIES[:6], RANKED["old"]))
    result = decide(books, "half").result
    assert result["measures"]["nDCG@3"]["new"] == 0.5 and result["missing"] == {"run": 6, "against": 0}
    bare = make_texts("bare", {"a": "Text.", "b": "Another text."}, dict.fromkeys(QUERIES, "Question?"))
    for document in "ab":
        make_run(bare, document, {query: [document] for query in QUERIES})
    gate = decide(bare, "a", against="b", measures="nDCG@1")
    assert (gate.verdict, gate.result["deciding_pairs"], gate.result["queries"]) == ("cannot_tell", 24, 12)


def test_documents_that_lost_their_labels_to_another_text_are_counted_and_named():
    """Labels are of a text: those of the new one do not count for a run that returned the earlier one."""
    shop = make_texts("shop", {name: f"Text of {name}." for name in "abc"}, {query: query for query in QUERIES})
    make_run(shop, "old", dict.fromkeys(QUERIES, RANKED["old"]))
    label_texts(shop, "abc", "a")
    make_run(shop, "same", dict.fromkeys(QUERIES, RANKED["same"]))
    gate = decide(shop, "same")
    assert gate.result["outdated"] == {"run": 0, "against": 0} and "changed since" not in as_markdown(gate.result)
    shop.document_set.filter(external_id="a").update(is_current=False)
    make_document(shop, "Another text of a.", external_id="a", version=2)
    label_texts(shop, "a", "a")
    make_run(shop, "later", dict.fromkeys(QUERIES, RANKED["old"]))
    gate = decide(shop, "later")
    assert gate.result["outdated"] == {"run": 0, "against": 1} and gate.result["measures"]["nDCG@3"]["old"] == 0
    assert "changed since: 0 documents of the new run, 1 of the old one" in as_markdown(gate.result)
    by_the_first = decide(shop, "later", qrels=1).result
    assert by_the_first["outdated"] == {"run": 0, "against": 0}, "the version of then has their labels"


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("run", {"run": "nobody"}),
        ("against", {"against": "of another collection"}),
        ("against", {"run": "old"}),
        ("measures", {"measures": "Judged@3"}),
        ("measures", {"measures": "nDCG@30"}),
        ("qrels", {"qrels": 99}),
        ("budget", {"budget": 5}),
        ("max_drop", {"max_drop": -0.1}),
    ],
)
def test_what_is_wrong_is_refused_by_its_option_and_nothing_is_written(books, option, values):
    other = make_texts("other", {"a": "Text."}, {"q": "Question?"})
    make_run(other, "of another collection", {"q": ["a"]})
    with pytest.raises(BadOption) as refused:
        decide(books, **{"run": "same", **values})
    assert [name for name, _sentence in refused.value.problems] == [option]
    assert not Gate.objects.exists() and not AuditEntry.objects.exists() and not Qrels.objects.exists()


def test_means_are_weighted_by_the_counts_of_a_query_log(books):
    with pytest.raises(BadOption):
        decide(books, "same", weights="counts")
    # The new run lost the only query that is asked often.
    make_run(books, "worse", {query: RANKED["bad" if query == "q0" else "old"] for query in QUERIES})
    Query.objects.filter(external_id="q0").update(metadata={"count": 1000})
    plain, weighted = (decide(books, "worse", weights=weights).result for weights in ("plain", "counts"))
    changes = [result["measures"]["nDCG@3"]["change"] for result in (plain, weighted)]
    assert changes == pytest.approx([-0.5 / 12, -0.5 * 1000 / 1011]) and weighted["without_count"] == 11


@pytest.mark.parametrize(("grade", "verdict"), [(1, "pass"), (0, "fail")])
def test_what_decides_is_judged_and_the_verdict_told_again(books, grade, verdict):
    gate = decide(books, "open", measures="P@3 RR", judge=True)
    assert gate.filling is not None and len(gate.filling.pairs) == gate.result["deciding_pairs"] == 24
    # Nobody has judged anything: nothing has changed.
    assert services.decide_again(ACTOR, gate).verdict == "cannot_tell"
    label_deciding(gate, grade)
    again = services.decide_again(ACTOR, gate)
    assert (again.verdict, again.result["deciding_pairs"]) == (verdict, 0)
    assert again.result["qrels"] == gate.result["qrels"] + 1 and Gate.objects.count() == 3


def test_labels_made_here_count_as_soon_as_they_are_made():
    collection = make_texts("labels", {name: f"Text of {name}." for name in "ab"}, {query: query for query in QUERIES})
    for name in ("ab", "ba"):
        make_run(collection, name, {query: list(name) for query in QUERIES})
    for document, verdict in (("a", "cannot_tell"), ("b", "fail")):
        label_texts(collection, document, "a")
        assert decide(collection, "ba", "ab", measures="nDCG@2").verdict == verdict


def test_the_files_of_a_verdict_are_read_by_others(books):
    for run, kind in (("same", None), ("bad", Failure), ("open", Error)):
        result = decide(books, run, measures="nDCG@3 P@1").result
        suites = JUnitXml.fromstring(as_junit(result).encode())
        (suite,) = suites
        assert [case.name for case in suite] == ["nDCG@3", "P@1"] and suites.tests == 2
        assert [[type(problem) for problem in case.result] for case in suite] == [[kind] if kind else []] * 2
        assert suites.failures == (2 if run == "bad" else 0)
        rows = [line for line in as_markdown(result).splitlines() if line.startswith("|")]
        assert len(rows) == 4 and len({row.count("|") for row in rows}) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "verdict"),
    [
        (["--run", "same"], 0, "pass"),
        (["--run", "bad"], 4, "fail"),
        (["--run", "open"], 3, "cannot_tell"),
        (["--run", "same", "--measures", "nonsense"], 2, None),
        (["--run", "same", "--junit", "/nowhere/at/all.xml"], 2, None),
    ],
)
def test_the_command_ends_with_the_code_of_its_verdict(books, tmp_path, arguments, code, verdict):
    markdown, junit = tmp_path / "gate.md", tmp_path / "gate.xml"
    usual = ("--against", "old", "--measures", "nDCG@3", "--json", "--markdown", markdown, "--junit", junit)
    ended = called.call("gate", "books", *usual, *arguments)
    assert ended.code == code and markdown.exists() == (code != 2) == Gate.objects.exists()
    if verdict:
        assert ended.json["verdict"] == verdict and JUnitXml.fromfile(str(junit)).tests == 1
    else:
        assert ended.out == ""


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_command_has_what_decides_judged_and_tells_again(manage, books):
    """Real workers and the offline panel: no pair stays undecided that judges label, and people get the rest."""
    ended = manage(
        "gate", "books", "--run", "open", "--against", "old", "--measures", "nDCG@3", "--judge", "--budget", "1",
        "--json", check=False,
    )  # fmt: skip
    document = ended.json
    assert ended.code in (0, 3, 4), ended.err
    first, again = Gate.objects.order_by("number")
    assert first.filling is not None and len(first.filling.pairs) == 24
    assert document["gate"] == again.number == 2 and document["deciding_pairs"] == again.result["deciding_pairs"] < 24
    assert document["qrels"] == first.result["qrels"] + 1


@pytest.mark.parametrize(("run", "of_judging"), [("same", False), ("bad", False), ("half open", True)])
def test_a_verdict_speaks_of_unjudged_documents_only_where_they_could_move_it(books, run, of_judging):
    # The second document of one query is unjudged, which decides nothing.
    make_run(books, "half open", {query: RANKED["old"] if query != "q0" else ["a", "d", "c"] for query in QUERIES})
    reason = decide(books, run, max_drop=0.3).result["reason"]
    assert ("however the unjudged documents are judged" in reason) == of_judging, reason


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


@pytest.mark.parametrize("wrong", [{"against": "open"}, {"measures": "nonsense"}, {"max_drop": "2"}])
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
