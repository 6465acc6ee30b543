"""The gate over stored runs: verdicts, refusals, the judging of what decides, and its files."""

from typing import Any

import pytest
from junitparser import Error, Failure, JUnitXml

from actions.services import Actor
from annotation.models import AuditEntry
from benchmark.gate import services
from benchmark.gate.options import GateOptions
from benchmark.gate.summary import as_junit, as_markdown
from benchmark.models import Gate, Qrels
from corpus.errors import BadOption
from corpus.models import Collection, Label, Pair, Query
from tests.called import call
from tests.factories import make_document, make_pair
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
    ended = call("gate", "books", *usual, *arguments)
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
