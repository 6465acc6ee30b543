"""Job `generate`: base and tuned model write on the dev split, killed and resumed; the measures in evaluation.json."""

import json
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

import torch

from corpus.errors import BadInput
from tests.training.trainers.learnable import export
from training.published.margins import generate_answers
from training.published.tiny_bases import tiny_base
from training.recipes import data, rendering
from training.recipes.job_folder import JobFolder, TrainingCancelled
from training.trainers import outputs_job
from training.trainers.outputs_job import OutputWriter, write_outputs


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A base and an export."""
    folder = tmp_path_factory.mktemp("outputs")
    return tiny_base(folder / "base"), tiny_base(folder / "tuned", seed=4), export(folder / "data", queries=2, dev=4)


def job(folder, made, **changes):
    """Both models write at most 12 tokens about 20 rows."""
    base, tuned, data = made
    one = JobFolder(folder)
    models = {"base": str(base), "tuned": str(tuned)}
    request = {"kind": "generate", "models": models, "data": str(data), "limit": 20, "max_new_tokens": 12}
    one.write_request(request | changes)
    return one


def test_both_models_are_measured_on_the_same_rows_also_by_a_job_that_was_cancelled(made, tmp_path):
    one = job(tmp_path, made)
    result = write_outputs(one, lambda: False)
    assert result["rows"] == 20 and set(result["outputs"]) == {"base", "tuned"}
    kept = json.loads((tmp_path / "evaluation.json").read_text())
    assert kept == result["outputs"] and kept["base"]["words"] == "tiny model, CPU"
    assert kept["base"]["label_match"] is not None and kept["base"]["rows"] == 20
    lines = [json.loads(line) for line in (tmp_path / "tuned.outputs.jsonl").read_text().splitlines()]
    assert len(lines) == 20 and all(line["output"] for line in lines)
    assert kept["tuned"]["cut"] == sum(line.get("finish_reason") == "length" for line in lines) > 0
    assert one.state["steps"] == one.state["total"] == 40
    # A cancelled job goes on where it was.
    one = job(tmp_path / "cut", made)
    with pytest.raises(TrainingCancelled):
        write_outputs(one, lambda: True)
    assert len((tmp_path / "cut" / "base.outputs.jsonl").read_text().splitlines()) == 16
    with (tmp_path / "cut" / "base.outputs.jsonl").open("a") as file:
        file.write('{"query_id": "torn')
    assert write_outputs(one, lambda: False) == result


def test_all_rows_of_the_dev_split_are_written_about(made, tmp_path, monkeypatch):
    rows = [*data.read_training_set(made[2]).dev] * 40
    monkeypatch.setattr(outputs_job.data, "read_training_set", lambda folder: SimpleNamespace(dev=rows))
    monkeypatch.setattr(
        outputs_job,
        "_write_model_outputs",
        lambda folder, writer, name, chosen, *rest: [{"output": "no"}] * len(chosen),
    )
    assert write_outputs(job(tmp_path, made, limit=None), lambda: False)["rows"] == len(rows) > 200


@pytest.mark.parametrize("shape", ["qwen3", "qwen3.5"])
def test_answers_of_a_batch_are_those_of_single_prompts(shape, tmp_path):
    writer = OutputWriter(tiny_base(tmp_path, shape=shape), "cpu", 8)
    scorer = writer.scorer
    rows = scorer.prompt.encode(scorer.tokenizer, [("q", "word " * count, "") for count in (1, 30, 7)])
    given = (scorer.model, scorer.tokenizer)
    together = generate_answers(*given, rows, max_new_tokens=8)
    alone = [generate_answers(*given, [one], max_new_tokens=8)[0] for one in rows]
    assert together == alone and all(one.text for one in together)


def test_an_answer_begins_with_what_the_score_reads(made):
    base, _, _ = made
    scorer = OutputWriter(base, "cpu", 1).scorer
    text = rendering.QUORUM.render("q", "d")
    ids = scorer.tokenizer(text, return_tensors="pt", add_special_tokens=False)
    with torch.no_grad():
        first = int(scorer.model(**ids).logits[0, -1].argmax())
    rows = scorer.prompt.encode(scorer.tokenizer, [("q", "d", "")])
    found = generate_answers(scorer.model, scorer.tokenizer, rows, max_new_tokens=1)
    assert found == [(scorer.tokenizer.decode([first], skip_special_tokens=True), True)]


def test_encoders_and_sets_without_a_dev_split_are_refused(made, tmp_path):
    with pytest.raises(BadInput, match="is an encoder"):
        write_outputs(job(tmp_path / "one", made, models={"base": "tiny:encoder"}), lambda: False)
    bare = export(tmp_path / "bare", queries=1, dev=1)
    manifest = json.loads((bare / "manifest.json").read_text())
    manifest["files"] = manifest["files"][:1]
    (bare / "manifest.json").write_text(json.dumps(manifest))
    (bare / "dev.jsonl").unlink()
    with pytest.raises(BadInput, match="dev split"):
        write_outputs(job(tmp_path / "two", made, data=str(bare)), lambda: False)
