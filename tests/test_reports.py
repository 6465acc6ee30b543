"""Reports in the database: asked for once, made once, on everything that they depend on."""

import numpy as np
import pytest

from benchmark import claims
from benchmark.models import Progress, Qrels, Report, ReportValues, Run
from benchmark.qrels import store
from benchmark.qrels.reading import Row
from benchmark.rankings import Ranked
from benchmark.rankings import store as store_rankings
from benchmark.report import reports
from corpus.errors import BadInput
from corpus.models import Collection, Document, Query
from tests import factories

pytestmark = pytest.mark.django_db


class World:
    """Two queries, four documents, two runs, and qrels before and after one hole was filled."""

    def __init__(self) -> None:
        self.collection: Collection = factories.make_collection(grades=3)
        self.queries: list[Query] = [factories.make_query(self.collection, external_id=f"q{n}") for n in (1, 2)]
        self.documents: list[Document] = [
            factories.make_document(self.collection, external_id=name) for name in ("a", "b", "c", "d")
        ]
        self.one = self.run("one", ["ab", "cd"])
        self.two = self.run("two", ["ba", ""])
        self.before = self.qrels({"q1": {"a": 1}, "q2": {"c": 2}})
        self.after = self.qrels({"q1": {"a": 1, "b": 3}, "q2": {"c": 2, "d": 0}}, Qrels.Kind.FILLED)

    def key(self, name: str) -> int:
        return next(one.pk for one in self.documents if one.external_id == name)

    def run(self, name: str, ranked: list[str]) -> Run:
        run = Run.objects.create(collection=self.collection, name=name, kind=Run.Kind.IMPORTED, state=Progress.READY)
        found = {
            query.pk: Ranked([self.key(one) for one in names], [10.0 - at for at in range(len(names))])
            for query, names in zip(self.queries, ranked, strict=True)
            if names
        }
        store_rankings(run, found)
        return run

    def qrels(self, grades: dict[str, dict[str, int]], kind: str = Qrels.Kind.ORIGINAL) -> Qrels:
        rows = {}
        for query in self.queries:
            given = sorted((self.key(name), grade) for name, grade in grades[query.external_id].items())
            keys, values = zip(*given, strict=True)
            rows[query.pk] = Row(np.array(keys, np.int64), np.array(values, np.int16), ["original"] * len(keys))
        return store(self.collection, kind, rows, by="alice")

    def ask(self, **options: int) -> Report:
        return reports.ask(self.collection, self.before, self.after, [self.one, self.two], **options)


def test_a_report_is_asked_for_once_and_made_by_whoever_takes_it_up() -> None:
    world = World()
    assert reports.current(world.collection, world.before, world.after, [world.one, world.two]) is None
    report = world.ask()
    assert report.state == Progress.WAITING and world.ask().pk == report.pk
    assert reports.take_up() and not reports.take_up()
    report.refresh_from_db()
    assert report.state == Progress.READY and report.ended_at
    assert reports.current(world.collection, world.before, world.after, [world.two, world.one]) == report
    assert world.ask(k=2).pk != report.pk
    assert Report.objects.count() == 2


def test_the_figures_by_hand() -> None:
    """One: a b / c d. Two: b a / nothing for q2. After filling, b is relevant with grade 3."""
    world = World()
    result = reports.ensure(world.collection, world.before, world.after, [world.one, world.two], k=2).result
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
    before, after = reports.values(Report.objects.get(), world.two, "ndcg")
    assert before == pytest.approx([discount, 0]) and after == pytest.approx([1, 0])
    assert ReportValues.objects.get(run=world.one, measure="hole").before == []


def test_what_a_report_depends_on_makes_another_one() -> None:
    world = World()
    first = world.ask()
    assert reports.ask(world.collection, world.before, world.after, [world.one]).pk != first.pk
    assert reports.ask(world.collection, world.before, world.before, [world.one, world.two]).pk != first.pk
    Collection.objects.filter(pk=world.collection.pk).update(relevant_from=2)
    world.collection.refresh_from_db()
    assert world.ask().pk != first.pk


def test_before_and_after_being_one_version_says_how_safe_the_order_is() -> None:
    world = World()
    result = reports.ensure(world.collection, world.before, world.before, [world.one, world.two], k=2).result
    assert {one["run"] for one in result["safety"]["systems"]} == {world.one.pk, world.two.pk}
    assert result["holes"] == 0 and result["verdict"]["key"] == "few"


def test_a_report_that_was_cancelled_meanwhile_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    report = world.ask()
    row = claims.claim(Report, report.pk)
    assert row is not None
    claims.cancel(report)
    reports.make(row)
    report.refresh_from_db()
    assert report.state == Progress.CANCELLED and report.result is None
    assert not ReportValues.objects.exists()
    assert world.ask().state == Progress.WAITING


def test_runs_that_cannot_be_measured_are_refused() -> None:
    world = World()
    stranger = World()
    unready = Run.objects.create(collection=world.collection, name="three", kind=Run.Kind.BM25)
    shallow = Run.objects.create(
        collection=world.collection, name="four", kind=Run.Kind.BM25, state=Progress.READY, depth=5
    )
    for runs, words in (
        ([], "at least one run"),
        ([stranger.one], "has no run one"),
        ([unready], "three is not ready"),
        ([shallow], "holds 5 documents"),
    ):
        with pytest.raises(BadInput, match=words):
            reports.ask(world.collection, world.before, world.after, runs)
    with pytest.raises(BadInput, match="not those of"):
        reports.ask(world.collection, stranger.before, world.after, [world.one])
    assert not Report.objects.exists()
