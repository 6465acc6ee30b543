"""Reports in the database: asked for once, made once, on everything that they depend on."""

import json

import numpy as np
import pytest

from annotation.models import Role
from benchmark.measures.aspects import evaluate_aspects
from benchmark.measures.rankings import evaluate_run
from benchmark.models import Qrels, Report, ReportValues, Run
from benchmark.qrels.reading import ReadQrel, load_named
from benchmark.qrels.versions import store_version
from benchmark.report import reports, tabling
from benchmark.report.reports import measure_following
from benchmark.runs.rankings import as_run
from corpus.aspects.exchange import import_aspects
from corpus.aspects.files import read_aspects
from corpus.errors import BadInput
from corpus.models import Collection, Query
from jobs import leases
from jobs.models import JobState
from tests import factories
from tests.called import call
from tests.large_report import large_report
from tests.rankings import make_next_report, make_run, make_texts
from tests.speed import slowness
from tools.bench.report_s import memory_mb, timed

pytestmark = pytest.mark.django_db


class World:
    """Two queries, four documents, two runs, and qrels before and after one hole was filled."""

    def __init__(self) -> None:
        texts = {name: f"Text {name}." for name in "abcd"}
        self.collection: Collection = make_texts("", texts, {"q1": "Query 1", "q2": "Query 2"}, grades=3)
        self.queries: list[Query] = list(self.collection.query_set.order_by("pk"))
        self.keys: dict[str, int] = dict(self.collection.document_set.values_list("external_id", "pk"))
        self.one = self.run("one", ["ab", "cd"])
        self.two = self.run("two", ["ba", ""])
        self.before = self.qrels({"q1": {"a": 1}, "q2": {"c": 2}})
        self.after = self.qrels({"q1": {"a": 1, "b": 3}, "q2": {"c": 2, "d": 0}}, Qrels.Kind.FILLED)

    def run(self, name: str, ranked: list[str]) -> Run:
        run = make_run(self.collection, name, {f"q{n}": names for n, names in enumerate(ranked, 1) if names})
        Run.objects.filter(pk=run.pk).update(depth=0)  # of any depth
        run.refresh_from_db()
        return run

    def qrels(self, grades: dict[str, dict[str, int]], kind: str = Qrels.Kind.ORIGINAL) -> Qrels:
        rows = {}
        for query in self.queries:
            pairs = sorted((self.keys[name], grade) for name, grade in grades[query.external_id].items())
            keys, values = np.array(pairs).T
            rows[query.pk] = ReadQrel(keys.astype(np.int64), values.astype(np.int16), ["original"] * len(keys))
        return store_version(self.collection, kind, rows, by="alice")

    def ask(self, **options: int) -> Report:
        return reports.request_report(self.collection, self.before, self.after, [self.one, self.two], **options)


def test_a_report_is_asked_for_once_and_made_by_whoever_takes_it_up():
    world = World()
    assert reports.find_report(world.collection, world.before, world.after, [world.one, world.two]) is None
    report = world.ask()
    assert report.state == JobState.WAITING and world.ask().pk == report.pk
    assert make_next_report() and not make_next_report()
    report.refresh_from_db()
    assert report.state == JobState.READY and report.ended_at
    assert reports.find_report(world.collection, world.before, world.after, [world.two, world.one]) == report
    assert world.ask(k=2).pk != report.pk
    assert Report.objects.count() == 2


def test_the_figures_by_hand():
    """One: a b / c d. Two: b a / nothing for q2. After filling, b is relevant with grade 3."""
    world = World()
    result = reports.ensure_report(world.collection, world.before, world.after, [world.one, world.two], k=2).result
    assert result["queries"] == [query.pk for query in world.queries]
    assert result["judged"] == {"before": 2, "after": 4} and result["relevant"] == {"before": 2, "after": 3}
    assert result["holes"] == 1
    one, two = result["systems"]
    assert (one["name"], one["missing"], two["name"], two["missing"]) == ("one", 0, "two", 1)
    assert one["values"]["hole"]["after"] == two["values"]["hole"]["after"] == pytest.approx((1 / 2 + 0) / 2)
    assert one["values"]["unjudged"] == pytest.approx({"before": 0.5, "after": 0.0, "change": -0.5})
    assert two["values"]["hit"]["before"] == two["values"]["hit"]["after"] == 0.5
    assert two["values"]["recall"]["after"] == 0.5
    # One on q1 after: (1 + 3 / log2 3) / (3 + 1 / log2 3); before: 1. On q2: 1 both times.
    discount = 1 / np.log2(3)
    assert one["values"]["ndcg"]["after"] == pytest.approx(((1 + 3 * discount) / (3 + discount) + 1) / 2)
    assert one["values"]["ndcg"]["before"] == 1
    assert two["values"]["ndcg"]["before"] == pytest.approx(discount / 2)
    assert [one["values"]["ndcg"]["rank_after"], two["values"]["ndcg"]["rank_after"]] == [1, 2]
    before, after = reports.query_values(Report.objects.get(), world.two, "ndcg")
    assert before == pytest.approx([discount, 0]) and after == pytest.approx([1, 0])
    assert ReportValues.objects.get(run=world.one, measure="hole").before == []


def test_what_a_report_depends_on_makes_another_one():
    world = World()
    first, runs = world.ask(), [world.one, world.two]
    assert reports.request_report(world.collection, world.before, world.after, runs[:1]).pk != first.pk
    safe = reports.ensure_report(world.collection, world.before, world.before, runs, k=2)
    assert safe.pk != first.pk and safe.result["holes"] == 0 and safe.result["verdict"]["key"] == "few"
    assert {one["run"] for one in safe.result["safety"]["systems"]} == {run.pk for run in runs}, "how safe the order is"
    Collection.objects.filter(pk=world.collection.pk).update(relevant_from=2)
    world.collection.refresh_from_db()
    assert world.ask().pk != first.pk


def test_a_report_that_was_cancelled_meanwhile_writes_nothing(monkeypatch):
    world = World()
    report = world.ask()
    row = leases.claim(Report, pk=report.pk)
    assert row is not None
    leases.cancel(report)
    reports.make_report(row)
    report.refresh_from_db()
    assert report.state == JobState.CANCELLED and report.result is None
    assert not ReportValues.objects.exists()
    assert world.ask().state == JobState.WAITING


def test_runs_that_cannot_be_measured_are_refused():
    world = World()
    stranger = World()
    unready = Run.objects.create(collection=world.collection, name="three", kind=Run.Kind.BM25)
    shallow = Run.objects.create(
        collection=world.collection, name="four", kind=Run.Kind.BM25, state=JobState.READY, depth=5
    )
    for runs, words in (
        ([], "at least one run"),
        ([stranger.one], "has no run one"),
        ([unready], "three is not ready"),
        ([shallow], "returns only 5 documents"),
    ):
        with pytest.raises(BadInput, match=words):
            reports.request_report(world.collection, world.before, world.after, runs)
    with pytest.raises(BadInput, match=f"belong to {world.collection.name}"):
        reports.request_report(world.collection, stranger.before, world.after, [world.one])
    assert not Report.objects.exists()


def test_aspects_of_the_collection_join_the_report_and_are_those_of_evaluate(tmp_path):
    """q1: heat (5) in a and b, snow (3) in b alone. q2: flow (1) in c. The newest aspects make another report."""
    world = World()
    rows = [("q1", "a1", "Heat", 5, ["a", "b"]), ("q1", "a2", "Snow", 3, ["b"]), ("q2", "a1", "Flow", 1, ["c"])]
    fields = ("query_id", "aspect_id", "text", "importance", "doc_ids")
    lines = [dict(zip(fields, row, strict=True), rationale="Why.") for row in rows]
    (tmp_path / "aspects").write_text("".join(json.dumps(line) + "\n" for line in lines))
    without = world.ask(k=2)
    import_aspects(world.collection, tmp_path / "aspects")
    report = reports.ensure_report(world.collection, world.before, world.after, [world.one, world.two], k=2)
    assert report.pk != without.pk
    assert report.result["aspects"] == {"queries": [query.pk for query in world.queries], "k": 2}
    names = {"alpha_ndcg": "alpha-nDCG@2", "alpha_ndcg_one": "alpha-nDCG-one@2", "a_recall": "A-Recall@2"}
    names["a_recall_one"] = "A-Recall-one@2"
    for system, run in zip(report.result["systems"], (world.one, world.two), strict=True):
        theirs = evaluate_aspects(read_aspects(tmp_path / "aspects"), as_run(run), ["alpha-nDCG@2", "A-Recall@2"])
        for key, name in names.items():
            assert system["values"][key]["after"] == pytest.approx(theirs.means[name]), name
            assert reports.query_values(report, run, key)[1] == pytest.approx(list(theirs.per_query[name].values()))
    one = report.result["systems"][0]["values"]
    assert one["a_recall"]["after"] == 1 and one["a_recall_one"]["after"] == pytest.approx((5 / 8 + 1) / 2)


def test_measures_of_aspects_cut_where_they_are_asked_to(tmp_path):
    """nDCG at 1, and alpha-nDCG and A-Recall at 2: as in the paper, whose cut for them is 25."""
    world = World()
    line = {"query_id": "q1", "aspect_id": "heat", "text": "Heat", "rationale": "", "importance": 5, "doc_ids": ["b"]}
    (tmp_path / "aspects").write_text(json.dumps(line) + "\n")
    import_aspects(world.collection, tmp_path / "aspects")
    runs = [world.one, world.two]
    report = reports.ensure_report(world.collection, world.before, world.after, runs, k=1, aspects_k=2)
    assert report.options["aspects_k"] == 2 and report.result["aspects"]["k"] == 2
    assert [one["values"]["a_recall"]["after"] for one in report.result["systems"]] == [1, 1]
    plain = reports.ensure_report(world.collection, world.before, world.after, runs, k=1)
    assert plain.pk != report.pk and plain.result["systems"][0]["values"]["a_recall"]["after"] == 0
    table = tabling.aspects_table(report.result)
    assert table is not None and table.header[1] == "alpha-nDCG@2" and "nDCG@1" in table.header
    printed = call("report", world.collection.name, "--before", 1, "--k", 1, "--aspects-k", 2, "--json")
    assert printed.json["report"] == report.number
    refused = call("report", world.collection.name, "--aspects-k", 0)
    assert refused.code == 2 and "--aspects-k: " in refused.err


def test_p_mrr_of_stored_runs_takes_what_a_version_of_the_qrels_made_irrelevant():
    """c was relevant and is not: run one has it at rank 1 of q2, run two lacks q2: rank 1 of an empty ranking."""
    world = World()
    after = world.qrels({"q1": {"a": 1}, "q2": {"c": 0}}, Qrels.Kind.IMPORTED)
    third = world.run("third", ["ab", "dac"])
    assert measure_following(world.one, third, world.before, after)["value"] == pytest.approx(1 - 1 / 3)
    assert measure_following(third, world.two, world.before, after)["missing"] == ["q2"]
    with pytest.raises(BadInput, match="became irrelevant"):
        measure_following(world.one, third, world.before, world.after)


def test_the_command_prints_the_report_and_writes_its_tables(tmp_path):
    name = World().collection.name
    told = call("report", name, "--before", 1, "--k", 2, "--out", tmp_path / "tables", "--json")
    found = told.json
    assert (found["before"], found["after"]) == (1, 2)
    assert found["result"]["holes"] == 1 and [one["name"] for one in found["result"]["systems"]] == ["one", "two"]
    assert "2 queries, 1 of them" in told.err and "; 1 holes" in told.err
    assert "the 1 common queries" in told.err and "1 queries missing" in told.err
    assert "two                        0.6309   1.0000  +0.3691" in told.err, "q2, which it lacks, is not counted"
    keys = {"leaderboard", "measures", "changes-ndcg", "changes-ndcg-all", "growth", "marginal"}
    files = {path.name for path in (tmp_path / "tables").iterdir()}
    assert files == {f"{key}.{end}" for key in keys for end in ("csv", "tex")}
    refused = call("report", name, "--runs", "one", "nobody")
    assert refused.code == 2 and refused.err.startswith("--runs: ") and "nobody" in refused.err


def test_the_report_says_what_a_hybrid_took_its_scores_for():
    world = World()
    recipe = {"method": "minmax", "run": "two", "scores": "margins"}
    Run.objects.filter(pk=world.one.pk).update(kind=Run.Kind.HYBRID, recipe=recipe)
    told = call("report", world.collection.name, "--k", 2).out
    assert told.count("two: log odds; ") == told.count("scores of") == 1, "the other is no hybrid"
    client = factories.client_of(factories.make_member(world.collection, "boss", Role.ADMIN))
    page = client.get(f"/c/{world.collection.name}/benchmark/report/{Report.objects.get().number}/").text
    assert "two: log odds" in page


def test_runs_that_are_too_shallow_are_named_and_runs_are_listed():
    world = World()
    name = world.collection.name
    Run.objects.update(depth=2)
    said = call("report", name, "--k", 50)
    assert said.code == 2 and said.err.startswith("--k: ") and "(one 2, two 2)" in said.err
    Run.objects.filter(pk=world.one.pk).update(depth=100)
    said = call("report", name, "--k", 50, "--json")
    assert said.code == 0 and ": two\n" in said.err
    listed = [tuple(one.values())[:4] for one in call("runs", name, "list", "--json").json["runs"]]
    assert listed == [("one", "imported", "ready", 100), ("two", "imported", "ready", 2)]
    assert call("runs", name, "list").out.startswith("one: imported, ready")
    incomplete = call("runs", name, "export", "one")
    assert incomplete.code == 2 and f"runs {name} export RUN" in incomplete.err


@pytest.mark.weekly
def test_a_large_report_keeps_to_its_seconds_and_memory_and_to_ir_measures():
    """A fifth of the size that tools/bench/report_s.py measures."""
    large = large_report(25, 730, documents=5_000)
    held = memory_mb()  # this process may have trained a model before
    found = timed(large, large.after)
    assert found["value"] < 30 * slowness() and found["peak_mb"] - held < 300
    systems = {row["run"]: row["values"] for row in Report.objects.get().result["systems"]}
    for version, when in ((large.before, "before"), (large.after, "after")):
        for run in large.runs[::12]:
            theirs = evaluate_run(load_named(version), as_run(run), "nDCG@10 R@10 Success@10").means
            ours = [systems[run.pk][key][when] for key in ("ndcg", "recall", "hit")]
            assert ours == pytest.approx(list(theirs.values())), run.name
