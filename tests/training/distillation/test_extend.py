"""Recipe `prism-extend`: a reranker teaches itself to write and keeps its order, after labels and few texts (6.3)."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from scipy.stats import spearmanr
from sentence_transformers import CrossEncoder
from sklearn.metrics import roc_auc_score as auc
from transformers import AutoTokenizer, Qwen3ForSequenceClassification

from corpus.errors import BadInput
from tests.training.trainers.learnable import OTHER, RELEVANT, RULE
from tests.training_sets import ask, write_export, write_set
from training.distillation import extend
from training.distillation.extend import PrismExtend
from training.published.margins import AnswerHead
from training.published.opening import open_scorer
from training.published.protocol import ServingRequest
from training.published.publication import chat_template, sentence_transformers_files
from training.published.tiny_bases import tiny_base
from training.recipes import data, table
from training.recipes.data import SFT, thin_texts
from training.recipes.job_folder import JobFolder, TrainingCancelled, read_lines
from training.recipes.rendering import PROMPTS
from training.trainers.callback import JobCallback
from training.trainers.prism import PrismRecipe, label_states
from training.trainers.recipe import TrainingTask
from training.trainers.training import train_model

torch.set_num_threads(1)
OWN = PROMPTS["qwen3-reranker"]


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A tiny base of random weights, asked as Qwen3-Reranker is, and a set without any score."""
    folder = tmp_path_factory.mktemp("extend")
    rows = write_set(folder / "set", queries=10, revised_score=None)
    return tiny_base(folder / "base", hidden=32), rows


def make_task(parts: tuple[Path, Path], **options: Any) -> TrainingTask:
    given = {"preset": "tiny", "max_length": 384, "lora_rank": 4, "max_steps": 3, **options}
    found, chosen = data.read_training_set(parts[1]), table.recipe_options("prism-extend", given)
    return TrainingTask("prism-extend", parts[0], "tiny", found, chosen, "cpu", True)


def teach(task: TrainingTask, folder: Path) -> tuple[PrismExtend, list[float]]:
    folder.mkdir(exist_ok=True)
    recipe = PrismExtend(task)
    return recipe, recipe.teacher_scores(JobFolder(folder), lambda: False)


def test_a_base_that_does_not_rank_by_yes_and_no_or_is_asked_as_we_do_is_refused(parts, tmp_path):
    """G3."""
    with pytest.raises(BadInput, match=r"base .* prompt quorum"):
        PrismExtend(make_task(parts, teacher_prompt="quorum"))
    task = make_task(parts)
    config = json.loads((parts[0] / "config.json").read_text())
    headed = Qwen3ForSequenceClassification.from_pretrained(parts[0], num_labels=1)
    headed.save_pretrained(tmp_path / "headed")
    AutoTokenizer.from_pretrained(parts[0]).save_pretrained(tmp_path / "headed")
    with pytest.raises(BadInput, match=r"headed .* neither yes nor"):
        PrismExtend(replace(task, base=tmp_path / "headed"))
    silent = tiny_base(tmp_path / "silent", hidden=32)
    (silent / "config.json").write_text(json.dumps({**config, "quorum_tiny": False}))
    with pytest.raises(BadInput, match=r"silent .* one of quorum, "):
        PrismExtend(replace(make_task(parts, teacher_prompt=""), base=silent))


def test_the_teachers_scores_are_those_of_cross_encoder_on_the_base(parts, tmp_path):
    """G2: rendered by the base's own template and scored by the library, one pair at a time in fp32."""
    task = make_task(parts)
    recipe, scores = teach(task, tmp_path / "job")
    base = tiny_base(tmp_path / "base", hidden=32)
    (base / "chat_template.jinja").write_text(chat_template(OWN.render))
    files = sentence_transformers_files("causal", recipe.yes_id, recipe.no_id, {})
    for name, text in files.items():
        (base / name).parent.mkdir(exist_ok=True)
        (base / name).write_text(text)
    model = CrossEncoder(str(base))
    rows = [*task.data.train, *task.data.dev]
    wanted = [float(model.predict([(row.query, row.document)], batch_size=1)[0]) for row in rows]
    assert scores == pytest.approx(wanted, abs=1e-6) and len({round(one, 5) for one in scores}) > 30
    # The base says itself how it is asked, so no option has to.
    own, again = teach(replace(make_task(parts, teacher_prompt=""), base=base), tmp_path / "own")
    assert own.teacher.name == "its own template" and again == pytest.approx(wanted, abs=1e-6)


def test_the_student_without_its_adapter_and_with_the_teachers_prompt_is_the_teacher(parts, tmp_path):
    """G8: the same tokens through the pass that trains; with our prompt the margins are others."""
    task = make_task(parts, prompt="qwen3-reranker", teacher_prompt="quorum")
    recipe, _ = teach(task, tmp_path / "a")
    other, scores = teach(make_task(parts), tmp_path / "b")
    lines = read_lines(tmp_path / "b" / "teacher.jsonl")[1:]
    chosen = [replace(row, sft=False, ids=row.ids[: row.start]) for row in recipe.rows[:6]]
    head = AnswerHead(recipe.model, recipe.yes_id, recipe.no_id)
    with torch.no_grad(), recipe.model.disable_adapter():
        first = head.margins(label_states(recipe.model, chosen, 0))
    assert first == pytest.approx([line["margin"] for line in lines[:6]], abs=1e-6)
    ours = other.prompt.margins(other.model, other.tokenizer, task.data.train[:6])
    assert ours != pytest.approx(first, abs=1e-4) and len(scores) == 60


def test_scores_are_asked_once_and_kept_through_cancelling_and_resuming(parts, tmp_path, monkeypatch):
    monkeypatch.setattr(extend, "CHUNK", 20)
    _, whole = teach(make_task(parts), tmp_path / "whole")
    (tmp_path / "job").mkdir()
    recipe, folder, asked = PrismExtend(make_task(parts)), JobFolder(tmp_path / "job"), iter([False, True])
    with pytest.raises(TrainingCancelled):
        recipe.teacher_scores(folder, lambda: next(asked))
    kept = (folder.path / "teacher.jsonl").read_text()
    assert kept.count("\n") == 21
    with (folder.path / "teacher.jsonl").open("a") as file:
        file.write('{"torn')  # By a kill.
    count = []
    monkeypatch.setattr(recipe, "_own_margins", lambda rows, own=recipe._own_margins: count.extend(rows) or own(rows))
    assert recipe.teacher_scores(folder, lambda: False) == pytest.approx(whole, abs=1e-6) and len(count) == 40
    assert (folder.path / "teacher.jsonl").read_text().startswith(kept)
    assert recipe.teacher_scores(folder, lambda: pytest.fail("asked again")) == pytest.approx(whole, abs=1e-6)
    with pytest.raises(BadInput, match=r"teacher\.jsonl .*another set"):
        PrismExtend(make_task(parts, teacher_prompt="prism")).teacher_scores(folder, lambda: False)


def test_the_teacher_does_not_move_while_the_student_trains(parts, tmp_path):
    """G1: what every step learns from is what the frozen base says, at the last step as at the first."""
    folder = JobFolder(tmp_path)
    recipe = PrismExtend(make_task(parts, max_steps=6, evaluate_every=2, learning_rate=0.01))
    assert all(row.point and row.teacher == 0.0 for row in recipe.rows[:]) and len(recipe.rows) == 48, "G5"
    before, seen = recipe.teacher_scores(folder, lambda: False), []
    text = (tmp_path / "teacher.jsonl").read_text()
    forward = recipe.forward

    def watch(numbers: Any) -> Any:
        seen.extend((number, recipe.rows[number].teacher) for number in numbers)
        return forward(numbers)

    recipe.forward = watch  # type: ignore[method-assign]
    recipe.train(folder, lambda: False)
    assert all(teacher == before[number] for number, teacher in seen) and len(seen) == 48
    assert (tmp_path / "teacher.jsonl").read_text() == text
    rows = recipe.task.data.train[:4]
    margins = [line["margin"] for line in read_lines(tmp_path / "teacher.jsonl")[1:5]]
    assert recipe._own_margins(rows) == pytest.approx(margins, abs=1e-6)
    moved = recipe.prompt.margins(recipe.model, recipe.tokenizer, rows)
    with recipe.model.disable_adapter():
        assert moved != pytest.approx(recipe.prompt.margins(recipe.model, recipe.tokenizer, rows), abs=1e-3)
    # What the dev split is measured against, too, is what the base says.
    assert [row.teacher for row in recipe.task.data.dev] == before[48:]
    assert JobCallback(folder, recipe.task, lambda: False, recipe.dev_margins).task.data.teacher == "base"


TARGET = "<contribution>what is returned</contribution>\n<evidence>it returns</evidence>"
MOST = 6  # Words of each document that say what is returned, or what is raised.


def test_a_share_of_the_texts_is_learned_the_same_ones_each_time_and_every_score(tmp_path):
    rows = data.read_training_set(write_set(tmp_path / "set", queries=100)).train
    thin = thin_texts(rows, 0.1, seed=0)
    texts = [row.doc_id for row in thin if SFT in row.losses]
    assert 20 <= len(texts) <= 76  # 48 expected of 480; outside with a chance below 1e-4
    assert thin == thin_texts(rows, 0.1, seed=0) != thin_texts(rows, 0.1, seed=1)
    few = [row.doc_id for row in thin_texts(rows[:40], 0.1, seed=0) if SFT in row.losses]
    assert few == [name for name in texts if name in {row.doc_id for row in rows[:40]}]
    assert all(data.POINT in row.losses for row in thin)
    assert thin_texts(rows, 1.0, seed=0) == rows and not any(SFT in row.losses for row in thin_texts(rows, 0, seed=0))
    found = data.read_training_set(write_set(tmp_path / "few", queries=30))
    chosen = table.recipe_options("prism", {"preset": "tiny", "max_length": 384, "lora_rank": 4, "sft_share": 0.2})
    base = tiny_base(tmp_path / "base", hidden=32)
    recipe = PrismRecipe(TrainingTask("prism", base, "tiny", found, chosen, "cpu", True))
    counts = recipe.counts(range(len(recipe.rows)))
    assert counts["point"] == 144 and 10 <= counts["sft"] <= 50


def graded_rows(queries: range) -> list[dict[str, Any]]:
    """Documents in which 0 to 6 words say what is returned: so much is their score; from 4 on they are relevant."""
    draw, rows = random.Random(queries.start), []
    for query in queries:
        for count in range(MOST + 1):
            words = [draw.choice(RELEVANT) for _ in range(count)] + [draw.choice(OTHER) for _ in range(MOST - count)]
            draw.shuffle(words)
            label = count > MOST / 2
            rows.append({
                "query": f"what does it return {query}", "document": " ".join(words), "instruction": RULE,
                "loss_type": "point-wise;sft", "annotated_label": "yes" if label else "no",
                "revised_score": float(label), "contribution_evidence": TARGET if label else "",
                "query_id": f"q{query}", "doc_id": f"d{count}",
            })  # fmt: skip
    return rows


@pytest.mark.weekly
def test_a_base_learns_to_rank_from_labels_and_then_to_write_without_losing_its_order(tmp_path):
    splits = (graded_rows(queries) for queries in (range(50), range(1000, 1020)))
    rows = write_export(tmp_path / "set", "prism", *splits, options={"teacher": "labels"})
    base = tiny_base(tmp_path / "base")
    first = {"prompt": "qwen3-reranker", "sft_share": 0.1, "epochs": 4, "learning_rate": 0.003}
    train_model(ask(tmp_path / "rank", "prism", rows, str(base), **first), lambda: False)
    ranker = tmp_path / "rank" / "out"
    second = {"epochs": 6, "learning_rate": 0.003}
    train_model(ask(tmp_path / "write", "prism-extend", rows, str(ranker), **second), lambda: False)
    # G4: the card has the hashes of both prompts, and the base as it was asked: with its own.
    record = json.loads((tmp_path / "write" / "out" / "reranker.json").read_text())
    ours, theirs = record["prompt_sha256"], record["teacher_prompt_sha256"]
    assert (ours, theirs) == (PROMPTS["quorum"].sha256, PROMPTS["qwen3-reranker"].sha256)
    card = (tmp_path / "write" / "out" / "README.md").read_text()
    assert f"| teacher prompt | {theirs} |" in card and f"| student prompt | {ours} |" in card
    assert record["teacher"] == "base" and record["evaluation"]["base"]["auc"] > 0.95
    dev = data.read_training_set(rows).dev
    stages = [open_scorer(folder) for folder in (base, ranker, tmp_path / "write" / "out")]
    margins = [[one.margins(row.query, [row.document], row.instruction)[0] for row in dev] for one in stages]
    labels = [row.label for row in dev]
    found = [auc(labels, some) for some in margins]
    kept = spearmanr(margins[1], margins[2]).statistic
    relevant = [row for row in dev if row.doc_id == f"d{MOST}"][:5]
    requests = [ServingRequest(row.query, [row.document], row.instruction) for row in relevant]
    written = [sum(one.write(request, 40)[0].text == f"yes\n{TARGET}" for request in requests) for one in stages]
    print(f"AUC {found}, order of both stages {kept:.3f}, written {written} of 5")
    assert found[1] > 0.95 and found[1] > found[0] + 0.2, found
    assert found[2] > found[1] - 0.02 and kept > 0.8, (found, kept)
    assert written[2] >= 3 and written[0] == 0, written
