"""Agreement of many assessors: sparse counts, stored figures, lists and clusters in place of a matrix."""

import json

import numpy as np
import pytest
from django.test import Client, TestCase
from django.utils import timezone

from annotation.agreement import cached_results
from annotation.agreement.clusters import cluster_assessors
from annotation.agreement.grade_matrix import GradeMatrix, known_assessors
from annotation.agreement.measures import MANY, Statistic, compute_measures
from annotation.agreement.report import AgreementReport, AssessorCounts
from annotation.models import Role, StoredResult
from annotation.tasks import compute_agreement
from annotation.templatetags.reports import few
from corpus.models import Collection
from jobs.leases import MOST_ATTEMPTS
from jobs.models import BackgroundJob
from tests.called import call
from tests.crowd import judged_by_many, votes_of
from tests.factories import client_of, make_collection, make_member


def matrix_of(assessors: int, items: int, each: int):
    grades = np.full((assessors, items), -1)
    for who, item, grade in votes_of(assessors, items, each):
        grades[who, item] = grade
    return grades


def sees(collection: Collection) -> Client:
    return client_of(make_member(collection, "charlie", Role.ADMIN))


# Sparse counts


def test_sparse_counts_give_what_products_of_whole_rows_give(monkeypatch):
    random = np.random.default_rng(3)
    grades = np.where(random.random((12, 300)) < 0.3, random.integers(0, 4, (12, 300)), -1)
    monkeypatch.setattr("annotation.agreement.measures.SPARSE", 1_000_000)
    whole = compute_measures(grades, bootstrap=50)
    monkeypatch.setattr("annotation.agreement.measures.SPARSE", 0)
    sparse = compute_measures(grades, bootstrap=50)
    for one, other in zip([*whole.pairwise, *whole.majority], [*sparse.pairwise, *sparse.majority], strict=True):
        assert (one.a, one.b, one.n) == (other.a, other.b, other.n)
        for name in ("kappa", "kappa_linear", "kappa_quadratic", "percent"):
            mine, theirs = getattr(one, name), getattr(other, name)
            assert theirs.value == pytest.approx(mine.value, abs=1e-9)
            assert (theirs.low, theirs.high) == pytest.approx((mine.low, mine.high), abs=1e-4)


def test_resamples_in_many_blocks_give_the_same_intervals(monkeypatch):
    grades = matrix_of(9, 60, 4)
    at_once = compute_measures(grades, bootstrap=80, seed=2)
    monkeypatch.setattr("annotation.agreement.measures.CELLS", 32 * 80 * 5)  # five couples at a time
    monkeypatch.setattr("annotation.agreement.resampling.CELLS", 60 * 10)  # ten resamples at a time
    blocks = compute_measures(grades, bootstrap=80, seed=2)
    for one, other in zip(at_once.pairwise, blocks.pairwise, strict=True):
        assert (one.kappa.value, one.kappa.low, one.kappa.high) == pytest.approx(
            (other.kappa.value, other.kappa.low, other.kappa.high), nan_ok=True
        )


def test_of_many_assessors_only_couples_who_met_are_listed():
    few, many = (matrix_of(n, 30, 3) for n in (MANY, MANY + 1))
    assert len(compute_measures(few).pairwise) == MANY * (MANY - 1) // 2
    found = compute_measures(many)
    assert all(pair.n for pair in found.pairwise)
    assert len(found.pairwise) + found.apart == (MANY + 1) * MANY // 2 and found.apart > 0


# The page


@pytest.fixture
def crowd(db):
    """45 people, three on each of 150 pairs."""
    collection = make_collection("crowd")
    judged_by_many(collection, 45, 150, 3)
    return collection


def test_above_forty_assessors_there_are_lists_and_clusters_and_no_matrix(crowd):
    client = sees(crowd)
    page = client.get("/c/crowd/quality/")
    assert "Clusters" in page.text and 'class="table-scroll tall matrix"' not in page.text
    couples = page.context["couples"]
    assert [pair.n for pair, _ in couples["rows"]] == sorted((pair.n for pair, _ in couples["rows"]), reverse=True)
    assert len(couples["rows"]) == 50 and couples["page"].paginator.num_pages > 1
    turned = client.get("/c/crowd/quality/?sort=kappa").context["couples"]
    values = [pair.kappa.value for pair, _ in turned["rows"]]
    assert values == sorted(values) and values[0] < 0
    names = [one.name for one, *_ in client.get("/c/crowd/quality/?by=name").context["assessors"]["rows"]]
    assert names == [f"worker-{n:03}" for n in range(45)]
    assert client.get("/c/crowd/quality/?sort=nonsense&page=99&by=-x").status_code == 200
    assert client.get("/c/crowd/agreement/table.csv").status_code == 200


def test_clusters_are_those_who_agree_with_each_other():
    random = np.random.default_rng(1)
    truth, other = random.integers(0, 2, (2, 200))
    noisy = [np.where(random.random(200) < 0.05, 1 - side, side) for side in [truth] * 5 + [other] * 3]
    grades = np.array([*noisy, random.integers(0, 2, 200)])
    people = tuple(AssessorCounts(f"p{n}", "person", 200, int(row.sum())) for n, row in enumerate(grades))

    def clusters(grades):
        matrix = GradeMatrix((), np.arange(grades.shape[1]), grades.astype(np.int16))
        return cluster_assessors(AgreementReport("x", None, "all", people, compute_measures(grades), matrix))

    found = clusters(grades)
    assert [set(one["members"]) for one in found] == [{0, 1, 2, 3, 4}, {5, 6, 7}]
    assert found[0]["within"]["value"] > 0.7 and abs(found[0]["outside"]["value"]) < 0.2
    assert found[0]["within"]["n"] >= 30 and found[0]["within"]["low"] is None, "of many pairs no interval is shown"
    within = clusters(grades[:, :20])[0]["within"]
    assert within["n"] == 20 and within["low"] < within["value"] < within["high"] < 1, "of few pairs one is"
    assert few(Statistic(**within)).startswith(' <span class="muted small">0.')


def test_above_a_size_a_worker_measures_and_the_page_shows_what_is_stored(crowd, monkeypatch):
    monkeypatch.setattr(cached_results, "GRADES_OF_MANY", 100)
    monkeypatch.setattr("jobs.workers.live_workers", lambda *_: [object()])
    sent: list[list[int]] = []

    class Messenger:
        def send_task(self, name, args, **options):
            assert name == cached_results.AGREEMENT.task
            sent.append(args)

    monkeypatch.setattr("jobs.notifications.message_sender", Messenger)
    client = sees(crowd)
    assert "Not computed yet" in client.get("/c/crowd/quality/").text and not StoredResult.objects.exists()
    with TestCase.captureOnCommitCallbacks(execute=True):
        assert client.post("/c/crowd/agreement/measure/").status_code == 302
    assert client.get("/c/crowd/quality/").context["found"].asked
    compute_agreement(*sent[0])
    row = StoredResult.objects.get()
    assert "worker-0" not in json.dumps(row.values) + json.dumps(row.options), "it names nobody"

    def never(*args, **options):
        raise AssertionError("the page measures nothing")

    monkeypatch.setattr(cached_results, "compute_figures", never)
    page = client.get("/c/crowd/quality/")
    assert "As of" in page.text and "worker-0" in page.text and page.context["couples"]["page"].paginator.count > 300
    assert len(client.get("/c/crowd/agreement/table.csv").text.splitlines()) > 300
    assert "Not computed yet" in client.get("/c/crowd/quality/?population=escalated").text, "another choice"
    couples = make_collection("couples")
    judged_by_many(couples, 150, 60, 50)
    monkeypatch.undo()
    monkeypatch.setattr(cached_results, "compute_figures", never)
    page = client_of(make_member(couples, "dora", Role.ADMIN)).get("/c/couples/quality/")
    assert "Not computed yet" in page.text, "few grades, but 11,175 couples"


def test_why_measuring_failed_stands_on_the_page_until_it_succeeds(crowd, monkeypatch):
    """Measured by the page itself, and by a worker."""
    monkeypatch.setattr(cached_results, "COUPLES", 100)
    client, compute = sees(crowd), cached_results.compute_figures
    answer = client.get("/c/crowd/agreement/table.csv", follow=True)
    assert [str(one) for one in answer.context["messages"]] == ["Not computed yet"]

    def fails(*args, **options):
        raise FloatingPointError("<b>underflow</b>\nin a product")

    monkeypatch.setattr(cached_results, "compute_figures", fails)
    page = client.post("/c/crowd/agreement/measure/", follow=True)
    assert page.status_code == 200 and "Figures updated" not in page.text
    assert page.context["found"].failure and "&lt;b&gt;underflow&lt;/b&gt; in" in page.text, "on one line, escaped"
    assert "Compute</button>" in page.text
    monkeypatch.setattr(cached_results, "compute_figures", compute)
    page = client.post("/c/crowd/agreement/measure/", follow=True).text
    assert "Calculation failed" not in page and "As of" in page
    monkeypatch.setattr(cached_results, "compute_figures", fails)
    page = client.post("/c/crowd/agreement/measure/", follow=True).text
    assert "Calculation failed" in page and "As of" in page, "the figures of before stay"
    monkeypatch.setattr("jobs.workers.live_workers", lambda *_: [object()])
    client.post("/c/crowd/agreement/measure/")
    assert client.get("/c/crowd/quality/").context["found"].asked
    compute_agreement()
    found = client.get("/c/crowd/quality/").context["found"]
    assert found.failure and not found.asked
    # A worker that was ended while it measured.
    client.post("/c/crowd/agreement/measure/")
    BackgroundJob.objects.update(state="running", attempts=MOST_ATTEMPTS, lease_until=timezone.now())
    assert client.get("/c/crowd/quality/").context["found"].asked, "another takes it up"
    compute_agreement()
    page = client.get("/c/crowd/quality/")
    assert str(MOST_ATTEMPTS) in page.context["found"].failure and "/agreement/measure/" in page.text


def test_what_is_small_and_cannot_be_measured_says_so_on_its_pages(crowd, monkeypatch, caplog):
    """It is measured in the GET itself: a failure was a 500."""

    def fails(*args, **options):
        raise MemoryError

    for name in ("agreement.cached_results", "data.two_assessors", "management.commands.agreement"):
        monkeypatch.setattr(f"annotation.{name}.agreement_report", fails)
    monkeypatch.setattr("annotation.quality.label_quality.kappas.read_binary_votes", fails)
    client, here = sees(crowd), "/c/crowd/"
    names = [one.name for one in known_assessors(crowd)]
    monkeypatch.setattr(cached_results, "is_large", lambda *_: False)
    page = client.get(f"{here}quality/")
    assert page.status_code == 200 and page.context["found"].failure == "not enough memory"
    assert "Not computed yet" not in page.text and "too many grades" not in page.text
    two = client.get(f"{here}agreement/two/", {"a": names[0], "b": names[1]}, follow=True)
    others = [
        client.get(here + path, follow=True) for path in ("quality/over-time/", "members/", "agreement/table.csv")
    ]
    for answer in (two, *others):
        assert answer.status_code == 200 and "not enough memory" in answer.text
    assert "agreement of crowd" in caplog.text and "Traceback" in caplog.text
    found = call("agreement", "crowd")
    assert (found.code, found.out) == (1, "") and "not enough memory" in found.err


def test_stored_figures_are_those_that_would_be_measured_now(crowd, monkeypatch):
    client, shown = sees(crowd), []
    for largest in (1_000_000, 100):
        monkeypatch.setattr(cached_results, "GRADES_OF_MANY", largest)
        client.post("/c/crowd/agreement/measure/")
        page = client.get("/c/crowd/quality/")
        shown.append((page.context["summary"], [(p.a, p.b, p.kappa) for p, _ in page.context["couples"]["rows"]]))
        assert page.context["found"].stored is (largest == 100)
    assert shown[0] == shown[1]
