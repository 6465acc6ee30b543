"""The four losses on a page: which models go together, what is ranked, the table and its files."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from annotation.models import AuditEntry
from corpus.models import Collection, Label, Query
from jobs import leases
from tests.factories import make_collection, make_document, make_pair, make_query
from tests.rankings import make_run
from tests.training.distillation.test_comparison import write_record
from tests.training_sets import write_set
from training.comparisons.losses import begin_comparison
from training.jobs import lifecycle, outcomes
from training.jobs.inputs import PAIRS, write_inputs
from training.jobs.supervisor import supervise_job
from training.models import Job, Model
from training.recipes.job_folder import JobFolder, read_lines
from training.recipes.table import LOSSES

pytestmark = pytest.mark.django_db
FOUR = LOSSES["ablation"]
ADDRESS = "/c/birds/training/compare/"


def make_birds() -> Collection:
    """The dev queries of the set that `publish` names: four of six documents each, of which three are relevant."""
    birds = make_collection("birds", lab=True)
    for number in range(16, 20):
        query = make_query(birds, f"what is a key number {number}", external_id=f"q{number}")
        for place in range(6):
            document = make_document(birds, f"The key {place} of {number}.", external_id=f"d{number}-{place}")
            Label.objects.create(pair=make_pair(birds, query, document), grade=place % 2, origin="people")
    return birds


@pytest.fixture
def birds() -> Collection:
    return make_birds()


def publish(birds: Collection, folder: Path, losses: tuple[str, ...] = FOUR, **record: Any) -> list[Model]:
    """Models of the recipe ablation as their trainings published them."""
    rows = Path(settings.VAR) / "exports" / "birds" / "losses"
    if not rows.exists():
        write_set(rows)
    made = []
    for loss in losses:
        out = write_record(folder / loss, loss, **record)
        options = {"recipe": "ablation", "base": "tiny:qwen3", "data": str(rows), "out": str(out),
                   "options": {"preset": "tiny", "loss": loss}}  # fmt: skip
        job = lifecycle.begin_job(kind="train", options=options, collection=birds)
        Job.objects.filter(pk=job.pk).update(state="finished", words="tiny model, CPU")
        job.refresh_from_db()
        made.append(lifecycle.publish_model(job))
    return made


def start(alice: Client, group: Model, run: str = "") -> Job:
    answer = alice.post(f"{ADDRESS}losses/", {"group": group.pk, "run": run})
    job = Job.objects.latest("pk")
    assert answer.status_code == 302 and answer["Location"] == f"/c/birds/training/jobs/{job.number}/"
    assert job.kind == "losses"
    assert AuditEntry.objects.latest("pk").details == {"job": job.number, "what": "losses"}
    return job


def test_a_loss_that_was_not_trained_is_named_and_nothing_is_compared(
    alice: Client, birds: Collection, tmp_path: Path
) -> None:
    assert "Losses of distillation" not in alice.get(ADDRESS).content.decode()
    first, *_ = publish(birds, tmp_path, FOUR[:2])
    page = alice.get(ADDRESS).content.decode()
    assert ": point+list, point+list+rank" in page
    assert "Compare the losses" not in page
    answer = alice.post(f"{ADDRESS}losses/", {"group": first.pk})
    assert answer.status_code == 422 and not Job.objects.filter(kind="losses").exists()


def test_relevant_documents_are_ranked_whatever_the_run_says(alice: Client, birds: Collection, tmp_path: Path) -> None:
    first, *_ = publish(birds, tmp_path)
    run = make_run(birds, "first", {f"q{number}": [f"d{number}-0", f"d{number}-1"] for number in range(16, 20)})
    job = start(alice, first, str(run.pk))
    assert job.options["models"] == {"base": "tiny:qwen3"} | {loss: str(tmp_path / loss) for loss in FOUR}
    folder = JobFolder(Path(job.folder))
    write_inputs(job, folder)
    lines = read_lines(folder.path / "pairs.jsonl")
    assert [line["query_id"] for line in lines] == ["q16", "q17", "q18", "q19"]
    assert [one["doc_id"] for one in lines[0]["documents"]] == ["d16-0", "d16-1", "d16-3", "d16-5"]


def compare(birds: Collection, folder: Path) -> Job:
    """A finished comparison: the base ranks relevant documents last, the losses rank them first."""
    models = dict(zip(FOUR, publish(birds, folder), strict=True))
    job = begin_comparison(collection=birds, models=models, run="", user="alice")
    made = JobFolder(Path(job.folder))
    write_inputs(job, made)
    for place, name in enumerate(job.options["models"]):
        scored = [_score(line, place) for line in read_lines(made.path / "pairs.jsonl")]
        (made.path / f"{name}.scores.jsonl").write_text("".join(json.dumps(one) + "\n" for one in scored))
    job.result = {"queries": 4}
    result = outcomes.store_outcome(job, made)
    Job.objects.filter(pk=job.pk).update(state="finished", words="tiny model, CPU", result=result)
    job.refresh_from_db()
    return job


def test_the_table_has_four_rows_against_the_base_and_comes_as_csv_latex_and_json(
    alice: Client, birds: Collection, tmp_path: Path
) -> None:
    job = compare(birds, tmp_path)
    address = f"/c/birds/training/jobs/{job.number}/"
    for page in (alice.get(address).content.decode(), alice.get(ADDRESS).content.decode()):
        assert all(f'<th scope="row">{name}</th>' in page for name in ("base", *FOUR))
        assert "4 dev queries" in page and "(tiny model, CPU)" in page and "Change from the base" in page
        assert "For reference only" in " ".join(page.split()) and "+2.26 to +2.48" in page
    table = b"".join(alice.get(f"{address}files/ablation.csv").streaming_content).decode()
    rows = list(csv.DictReader(table.splitlines()))
    assert [row["loss"] for row in rows] == list(FOUR)
    for row in rows:
        assert float(row["delta"]) == pytest.approx(float(row["nDCG@10"]) - float(row["base"]))
        assert float(row["low (95%)"]) <= float(row["delta"]) <= float(row["high (95%)"])
    assert float(rows[0]["delta"]) > 0
    latex = b"".join(alice.get(f"{address}files/ablation.tex").streaming_content).decode()
    found = json.loads(b"".join(alice.get(f"{address}files/ablation.json").streaming_content))
    assert r"\begin{tabular}" in latex and found == job.result["losses"]


def _score(line: dict[str, Any], place: int) -> dict[str, Any]:
    """The base ranks what is relevant (an odd number at the end of an id) last, the losses first."""
    names = [one["doc_id"] for one in line["documents"]]
    margins = [(1.0 if place else -1.0) * (int(name[-1]) % 2) for name in names]
    return {"query_id": line["query_id"], "doc_ids": names, "margins": margins}


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_four_models_are_scored_by_the_trainer_itself(alice: Client, birds: Collection, tmp_path: Path) -> None:
    """Models of random weights: what counts is the way from the form to the table."""
    pytest.importorskip("torch")
    from tests.tiny_models import tiny
    from training.recipes.rendering import QUORUM

    for number, loss in enumerate(FOUR):
        _, yes_id, no_id = tiny(tmp_path / loss, "qwen3", seed=number)
    record = {"kind": "causal", "prompt": QUORUM.text, "prompt_sha256": QUORUM.sha256, "yes_id": yes_id,
              "no_id": no_id, "max_length": 320}  # fmt: skip
    first, *_ = publish(birds, tmp_path, **record)
    job = start(alice, first)
    Job.objects.filter(state="queued").exclude(pk=job.pk).update(state="cancelled")
    claimed = leases.claim(Job, device="cpu")
    assert claimed is not None and claimed.pk == job.pk
    supervise_job(claimed, lambda: False)
    job.refresh_from_db()
    assert job.state == "finished", job.error
    assert [one["loss"] for one in job.result["losses"]["losses"]] == list(FOUR) and job.result["queries"] == 4
    assert job.words == "tiny model, CPU"


def test_what_a_query_excludes_is_ranked_by_nobody(alice: Client, birds: Collection, tmp_path: Path) -> None:
    """As in stored runs: with a document that no system may return no ranking is measured (docs/workshop.md)."""
    first, *_ = publish(birds, tmp_path)
    Query.objects.filter(external_id="q16").update(metadata={"excluded_ids": ["d16-0", "d16-2"]})
    job = start(alice, first, "")
    folder = JobFolder(Path(job.folder))
    write_inputs(job, folder)
    lines = {line["query_id"]: {one["doc_id"] for one in line["documents"]} for line in read_lines(folder.path / PAIRS)}
    assert not {"d16-0", "d16-2"} & lines["q16"] and {"d16-1", "d17-0", "d17-2"} <= lines["q16"]
    assert {"d16-0", "d16-2"} <= lines["q17"]
