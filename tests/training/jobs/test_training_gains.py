"""Whether training helped: compared with its base and with the run it would rerank; the sentence that pages show."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from benchmark.measures.rankings import compare_runs, evaluate_run
from corpus.models import Collection
from tests.rankings import make_run
from tests.training.comparisons.test_losses import make_birds
from tests.training_sets import write_set
from training.jobs import lifecycle
from training.jobs.first_stage import FirstStage, read_first_stage
from training.jobs.inputs import PAIRS, write_inputs
from training.jobs.significance import RANDOM_HEAD, TOO_FEW, compare_models, gain_verdict
from training.models import Job, Model
from training.recipes.job_folder import JobFolder


def test_the_verdict_says_gain_loss_or_not_shown_and_too_few_queries_show_nothing():
    base = {f"q{place}": 0.4 for place in range(40)}
    better = compare_models(base, {query: 0.6 for query in base})
    assert better["shown"] and better["difference"] == pytest.approx(0.2)
    assert better["words"] == "gain: nDCG@10 +0.200 over 40 queries, p < 0.0001"
    worse = compare_models(base, {query: 0.3 for query in base})
    assert not worse["shown"] and worse["words"].startswith("worse than its base: nDCG@10 -0.100")
    verdict = gain_verdict("nDCG@10", 0.01, 0.4, 30)
    assert verdict.startswith("no gain shown: ") and verdict.endswith("p = 0.4 (nDCG@10 +0.010 over 30 queries)")
    few = compare_models({"a": 0.0, "b": 0.0}, {"a": 1.0, "b": 1.0})
    assert not few["shown"]
    assert few["words"] == f"no gain shown: {TOO_FEW} dev queries to test it (2, nDCG@10 +1.000)"
    assert "not measured" in compare_models({}, {"a": 1.0})["words"]


def spread(mean: float, queries: int = 40) -> dict[str, float]:
    """Values around a mean, as those of queries are."""
    return {f"q{place}": mean + (place % 5 - 2) / 50 for place in range(queries)}


def test_a_model_below_what_it_would_rerank_is_not_to_be_used_whatever_it_gains_over_its_base():
    found = compare_models(spread(0.2), spread(0.3), first=spread(0.47), first_stage="BM25")
    paired = compare_runs("nDCG@10", spread(0.3), spread(0.47))
    assert found["words"] == (
        f"ranks below BM25 (-0.170, 95% {paired.low:+.3f} to {paired.high:+.3f}): do not use it; "
        "gain: nDCG@10 +0.100 over 40 queries, p < 0.0001"
    )
    assert not found["shown"] and (found["low"], found["high"]) == pytest.approx((0.1, 0.1))
    assert found["first_stage"] == {
        "name": "BM25", "mean": pytest.approx(0.47), "difference": pytest.approx(-0.17),
        "low": paired.low, "high": paired.high, "p": paired.p,
    }  # fmt: skip


def test_a_gain_over_a_random_head_is_no_gain():
    alone = compare_models(spread(0.1), spread(0.3), random_head=True)
    assert not alone["shown"] and alone["words"] == (
        "no gain shown: its base has a random head, which is no yardstick (40 queries)"
    )
    above = compare_models(spread(0.1), spread(0.5), first=spread(0.4), first_stage="run dense", random_head=True)
    assert above["shown"] and above["words"].startswith("ranks above run dense (+0.100, 95% +")
    below = compare_models(spread(0.1), spread(0.3), first=spread(0.4), random_head=True)
    assert not below["shown"] and RANDOM_HEAD in below["words"]


def test_where_the_first_stage_is_not_shown_to_be_beaten_the_verdict_says_so():
    found = compare_models(spread(0.2), spread(0.4), first=spread(0.4))
    assert found["shown"] and found["words"].endswith("above BM25 (+0.000, 95% +0.000 to +0.000)")
    assert found["words"].rpartition("; ")[2].startswith("not shown ")
    few = compare_models(spread(0.2, 4), spread(0.4, 4), first=spread(0.9, 4))
    assert "too few" in few["words"] and "BM25" not in few["words"] and not few["shown"]


def first_stage(queries: int, grades: dict[str, int]) -> FirstStage:
    """Queries of three documents each, in the order of their names."""
    documents = [{"doc_id": f"d{place}", "text": f"text {place}", "score": 9.0 - place} for place in range(3)]
    lines = [{"query_id": f"q{n}", "query": "?", "instruction": "", "documents": documents} for n in range(queries)]
    return FirstStage("BM25", lines, {f"q{n}": grades for n in range(queries)})


def test_three_orders_of_the_same_documents_are_measured_as_ir_measures_does():
    stage = first_stage(6, {"d1": 2, "d2": 0})
    assert [row.query_id + row.doc_id for row in stage.rows[:4]] == ["q0d0", "q0d1", "q0d2", "q1d0"]
    found = stage.compare([0.0, 0.0, 1.0] * 6, [0.0, 1.0, 0.0] * 6)
    own = evaluate_run(stage.qrels, {f"q{n}": {"d0": 9.0, "d1": 8.0, "d2": 7.0} for n in range(6)}, ["nDCG@10"])
    assert found["measures"]["BM25"]["nDCG@10"] == own.means["nDCG@10"] == pytest.approx(0.6309, abs=1e-4)
    assert found["measures"]["tuned"]["nDCG@10"] == 1.0 and found["measures"]["base"]["RR@10"] == 0.5
    pairs = [(row["one"], row["other"]) for row in found["compared"] if row["measure"] == "nDCG@10"]
    assert pairs == [("base", "BM25"), ("tuned", "BM25"), ("tuned", "base")]
    assert found["queries"] == 6 and found["depth"] == 20


@pytest.fixture
def birds(db: None) -> Collection:
    return make_birds()


def start(birds: Collection | None, run: dict[str, str] | None = None, **options: Any) -> tuple[Job, JobFolder]:
    """A training on a set whose dev split is the collection's queries; `run`: as the set's manifest has it."""
    rows = write_set(Path(settings.VAR) / "exports" / "birds" / f"set-{Job.objects.count()}")
    manifest = json.loads((rows / "manifest.json").read_text())
    manifest["options"]["run"] = run
    (rows / "manifest.json").write_text(json.dumps(manifest))
    training = {"recipe": "prism", "data": rows, "base": "tiny:qwen3", "out": None, "option_values": {}}
    job = lifecycle.begin_training(**training, collection=birds, **options)
    folder = JobFolder(Path(job.folder))
    write_inputs(job, folder)
    return job, folder


def test_the_run_that_gave_a_sets_negatives_is_compared_with_else_bm25_on_the_dev_queries(birds):
    _, folder = start(birds)
    stage = read_first_stage(folder)
    assert stage is not None and stage.name == "BM25"
    assert [line["query_id"] for line in stage.lines] == ["q16", "q17", "q18", "q19"]
    assert len(stage.lines[0]["documents"]) == 20 and stage.qrels["q16"]["d16-1"] == 1
    make_run(birds, "dense", {f"q{number}": [f"d{number}-0", f"d{number}-1"] for number in range(16, 20)})
    _, folder = start(birds, {"name": "dense.run", "sha256": "0"})
    stage = read_first_stage(folder)
    assert stage is not None and stage.name == "run dense"
    assert [one["doc_id"] for one in stage.lines[0]["documents"]] == ["d16-0", "d16-1"]
    _, folder = start(birds, {"name": "other.run", "sha256": "0"})
    assert (found := read_first_stage(folder)) is not None and found.name == "BM25"


def test_a_set_from_elsewhere_and_a_point_of_a_curve_are_compared_with_their_base_alone(birds):
    subset = {"points": [10], "labels": 10, "order": "time", "seed": 0}
    for job, folder in (start(None), start(birds, subset=subset)):
        assert not (folder.path / PAIRS).exists() and read_first_stage(folder) is None, job.options


def test_job_and_model_show_first_stage_base_and_model_side_by_side(birds, alice):
    job, _folder = start(birds)
    stage = first_stage(12, {"d0": 1, "d1": 0})
    orders = stage.compare([0.0, 0.0, 1.0] * 12, [0.0, 1.0, 0.5] * 12, random_head=True)
    first, base, tuned = (orders["per_query"][name]["nDCG@10"] for name in ("BM25", "base", "tuned"))
    gain = compare_models(base, tuned, first=first, random_head=True)
    kept = {name: value for name, value in orders.items() if name != "per_query"} | {"choosing": False}
    job.result = {"gain": gain, "rankings": kept, "evaluation": {"base": {"auc": 0.5}}}
    job.state, job.words = "finished", "CPU"
    job.save()
    model = lifecycle.publish_model(job)
    assert Model.objects.get().summary["rankings"]["queries"] == 12
    for address in (f"jobs/{job.number}", f"models/{model.pk}"):
        page = alice.get(f"/c/birds/training/{address}/").content.decode()
        assert "Ranks below BM25 (-0.500, 95% -0.500 to -0.500): do not use it" in page, address
        assert "12 dev queries" in page and "random head" in page and "tuned vs BM25" in " ".join(page.split())
        assert 'class="notice warn"' in page, address
        assert "fewer assumed negatives" in page
