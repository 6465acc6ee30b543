"""What a model wrote, measured by rule; on its page an admin lets base and model write, and sees how well they did."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from annotation.models import AuditEntry, Role
from corpus.models import Collection
from jobs.models import BackgroundJob
from judges.models import Work
from tests.engine_parts import collection_of, pairs_of
from tests.factories import make_member
from tests.training.jobs.test_training_pages import finished
from training.jobs import graded_outputs, inputs, lifecycle, outcomes, outputs
from training.jobs.outputs import measure_outputs
from training.models import Job, Model
from training.recipes.data import Example
from training.recipes.job_folder import JobFolder
from training.tasks import judge_outputs

DOCUMENT = "The tower was finished on 12 May 1931 and is 381 metres high; it has 102 floors and many lifts inside."
GOOD = (
    "yes\n<contribution>It gives the height of the tower.</contribution>\n<evidence>It is 381 metres high.</evidence>"
)
WRONG = GOOD.replace("381 metres high", "318 metres, 102 floors")


def words(text):
    """A count that can be checked by eye."""
    return len(text.split())


def test_a_hand_worked_set():
    rows = [Example("how high is the tower", DOCUMENT, "", label) for label in (1, 1, 1, 0, 0, None)]
    texts = [GOOD, WRONG, "no", "no", "no, it does not", "yes"]
    found = measure_outputs(rows, texts, words, words="tiny model, CPU")
    assert found["label_match"] == pytest.approx(4 / 5)  # the third is wrong, the last has no label
    assert found["format"] == pytest.approx((1 + 1 + 1 + 1 + 0 + 0.4) / 6)
    assert found["fidelity"] == pytest.approx((1 + 1 / 2) / 2)
    assert found["language"] == 1.0
    assert found["points"] == [[21, 5], [21, 6]]
    assert found["compression"] == pytest.approx({"p10": 5.1 / 21, "median": 5.5 / 21, "p90": 5.9 / 21})
    assert (found["yes_yes"], found["with_fields"], found["said_yes"], found["labelled"]) == (2, 2, 3, 5)
    assert found["reasons"] == {} and found["words"] == "tiny model, CPU"


def test_what_is_not_readable_is_measured_as_such_and_evidence_of_what_is_not_relevant_counts_for_compression():
    found = measure_outputs([Example("q", DOCUMENT, "", 1)], ["the the the"], words)
    assert (found["label_match"], found["format"]) == (0.0, 0.0)
    assert found["fidelity"] is None and found["language"] is None and found["compression"]["median"] is None
    assert set(found["reasons"]) == {"fidelity", "fidelity_prism", "language", "compression"}
    found = measure_outputs([Example("q", DOCUMENT, "", 0)], [GOOD], words)
    assert found["points"] == [[21, 5]] and found["with_fields"] == 0 and found["fidelity"] is None


pytestmark = pytest.mark.django_db


def test_alice_lets_base_and_model_write(alice, model):
    page = alice.get(f"/c/birds/training/models/{model.pk}/").text
    assert "Measure written texts" in page and "No gain shown: p = 0.4" in page
    address = f"/c/birds/training/models/{model.pk}/generate/"
    refused = alice.post(address, {"precision": "fp8", "max_new_tokens": 0}, follow=True).text
    assert "Precision: " in refused and "Longest text (tokens): " in refused
    assert not Job.objects.filter(kind=Job.Kind.GENERATE).exists()
    alice.post(address, {"precision": "bf16", "max_new_tokens": 64})
    job = Job.objects.get(kind=Job.Kind.GENERATE)
    asked = JobFolder(Path(job.folder)).job
    assert asked["models"] == {"base": "tiny:qwen3", "tuned": model.folder} and asked["kind"] == "generate"
    assert (asked["precision"], asked["max_new_tokens"]) == ("bf16", 64)
    inputs.write_inputs(job, JobFolder(Path(job.folder)))  # needs nothing of the database
    assert not (Path(job.folder) / inputs.PAIRS).exists()
    # An encoder writes nothing.
    Model.objects.update(recipe="cross-encoder")
    page = alice.get(f"/c/birds/training/models/{model.pk}/").text
    assert "Measure written texts" not in page and "/evaluate/" in page


def test_the_jobs_page_shows_both_sides_reasons_and_the_scatter(alice, birds, tmp_path):
    rows = [Example("how high", "The tower is 381 metres high and has 102 floors.", "", 1)]
    good = "yes\n<contribution>It gives the height.</contribution>\n<evidence>It is 381 metres high.</evidence>"
    sides = {"base": "the the", "tuned": good}
    found = {
        name: outputs.measure_outputs(rows, [text], lambda text: len(text.split())) for name, text in sides.items()
    }
    job = finished(birds, tmp_path, kind="generate", rows=1, outputs=found)
    (Path(job.folder) / "evaluation.json").write_text("{}")
    assert outcomes.store_outcome(job, JobFolder(Path(job.folder)))["rows"] == 1
    address = f"/c/birds/training/jobs/{job.number}/"
    page = alice.get(address).text
    assert "for 1 rows" in page and "(tiny model, CPU)" in page
    assert "Format score" in page and "Base: entity fidelity" not in page and "Base: Entity fidelity" in page
    assert "<svg" in page and "1 rows with evidence; " in page
    assert alice.get(address, {"chart": "evidence", "as": "csv"}).status_code == 200
    assert b"".join(alice.get(f"{address}files/evaluation.json").streaming_content) == b"{}"


@pytest.fixture
def model(birds: Collection, tmp_path: Path) -> Model:
    """A published prism model, whose folder is there."""
    (tmp_path / "nowhere").mkdir()
    (tmp_path / "nowhere" / "reranker.json").write_text("{}")
    return lifecycle.publish_model(finished(birds, tmp_path, gain={"words": "no gain shown: p = 0.4"}))


@pytest.fixture
def written(instance, settings, tmp_path) -> Job:
    """A finished job of two models: one wrote texts for every relevant row, the other for none."""
    settings.VAR = tmp_path
    pairs = pairs_of(collection_of(3))
    books = pairs[0].collection
    texts = "yes\n<contribution>It says what mapping maps.</contribution>\n<evidence>Mapping maps values.</evidence>"
    rows = [Example(p.query.text, p.document.text, "", int(n < 2)) for n, p in enumerate(pairs)]
    found = {side: outputs.measure_outputs(rows, ["no"] * 3, len) for side in ("base", "tuned")}
    job = finished(books, tmp_path, kind="generate", rows=3, outputs=found)
    for side, answers in {"base": ["no", "no", "no"], "tuned": [texts, texts, "no"]}.items():
        lines = []
        for n, p in enumerate(pairs):
            ids = {"query_id": p.query.external_id, "doc_id": p.document.external_id}
            lines.append({**ids, "label": int(n < 2), "output": answers[n]})
        (Path(job.folder) / f"{side}.outputs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return job


@pytest.mark.django_db(transaction=True)
def test_a_judge_scores_every_row_that_both_models_wrote(written, client, monkeypatch):
    client.force_login(make_member(written.collection, "alice", Role.ADMIN).user)
    address = reverse("training_job", args=["books", written.number])
    monkeypatch.setattr("jobs.workers.live_workers", lambda *_: 0)
    page = client.get(address).text
    assert "disabled aria-describedby" in page and "No worker" in page
    monkeypatch.setattr("jobs.workers.live_workers", lambda *_: 1)
    sent: list[Any] = []
    send = SimpleNamespace(send_task=lambda name, *, args, **_more: sent.append((name, args)))
    monkeypatch.setattr("jobs.notifications.message_sender", lambda: send)
    assert "At most 4 calls." in client.get(address).text
    asked = {"judge": "offline-measurer", "budget": "2"}
    said = client.post(reverse("judge_outputs", args=["books", written.number]), asked, follow=True).text
    assert "offline-measurer is scoring" in said
    assert sent == [(graded_outputs.TASK, [])]
    again = client.post(reverse("judge_outputs", args=["books", written.number]), asked, follow=True).text
    assert "already in progress" in again
    BackgroundJob.objects.update(state="running", lease_until=timezone.now())  # whoever took it is gone
    judge_outputs()
    written.refresh_from_db()
    sides = written.result["judged"]["sides"]
    assert (sides["tuned"]["rows"], sides["tuned"]["scored"], sides["tuned"]["without_scores"]) == (3, 2, 0)
    assert (sides["base"]["rows"], sides["base"]["scored"], sides["base"]["language"]) == (3, 0, None)
    assert Work.objects.count() == 2, "a row without texts is not asked about"
    page = client.get(address).text
    for title in graded_outputs.TITLES.values():
        assert title.replace("'", "&#x27;") in page
    assert "tuned: 2 of 3 rows scored; 0 " in page
    wrong = client.post(reverse("judge_outputs", args=["books", written.number]), {"judge": "nobody"}, follow=True).text
    assert "Choose a judge" in wrong
    assert AuditEntry.objects.filter(act="training.control").count() == 1
