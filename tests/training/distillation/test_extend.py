"""Recipe `prism-extend`: a reranker that teaches itself to write, and keeps its order."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from sentence_transformers import CrossEncoder  # noqa: E402
from transformers import AutoTokenizer, Qwen3ForSequenceClassification  # noqa: E402

from corpus.errors import BadInput  # noqa: E402
from tests.training_sets import write_set  # noqa: E402
from training.distillation import extend  # noqa: E402
from training.distillation.extend import PrismExtend  # noqa: E402
from training.published.margins import AnswerHead  # noqa: E402
from training.published.publication import chat_template, sentence_transformers_files  # noqa: E402
from training.published.tiny_bases import tiny_base  # noqa: E402
from training.recipes import data, table  # noqa: E402
from training.recipes.job_folder import JobFolder, TrainingCancelled, read_lines  # noqa: E402
from training.recipes.rendering import PROMPTS  # noqa: E402
from training.trainers.callback import JobCallback  # noqa: E402
from training.trainers.prism import label_states  # noqa: E402
from training.trainers.recipe import TrainingTask  # noqa: E402

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


def test_no_score_is_needed_and_another_teacher_than_the_base_is_refused(parts: tuple[Path, Path]) -> None:
    """G5."""
    recipe = PrismExtend(make_task(parts))
    assert all(row.point and row.teacher == 0.0 for row in recipe.rows[:]) and len(recipe.rows) == 48
    with pytest.raises(BadInput, match=r"Teacher .*'votes'"):
        table.recipe_options("prism-extend", {"teacher": "votes"})


def test_a_base_that_does_not_rank_by_yes_and_no_or_is_asked_as_we_do_is_refused(
    parts: tuple[Path, Path], tmp_path: Path
) -> None:
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


def test_the_teachers_scores_are_those_of_cross_encoder_on_the_base(parts: tuple[Path, Path], tmp_path: Path) -> None:
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


def test_the_student_without_its_adapter_and_with_the_teachers_prompt_is_the_teacher(
    parts: tuple[Path, Path], tmp_path: Path
) -> None:
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


def test_scores_are_asked_once_and_kept_through_cancelling_and_resuming(
    parts: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_the_teacher_does_not_move_while_the_student_trains(parts: tuple[Path, Path], tmp_path: Path) -> None:
    """G1: what every step learns from is what the frozen base says, at the last step as at the first."""
    folder = JobFolder(tmp_path)
    recipe = PrismExtend(make_task(parts, max_steps=6, evaluate_every=2, learning_rate=0.01))
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
    assert recipe._own_margins(recipe.task.data.train[:4]) == pytest.approx(
        [line["margin"] for line in read_lines(tmp_path / "teacher.jsonl")[1:5]], abs=1e-6
    )
    moved = recipe.prompt.margins(recipe.model, recipe.tokenizer, recipe.task.data.train[:4])
    with recipe.model.disable_adapter():
        assert moved != pytest.approx(
            recipe.prompt.margins(recipe.model, recipe.tokenizer, recipe.task.data.train[:4]), abs=1e-3
        )
    # What the dev split is measured against, too, is what the base says.
    assert [row.teacher for row in recipe.task.data.dev] == before[48:]
    assert JobCallback(folder, recipe.task, lambda: False, recipe.dev_margins).task.data.teacher == "base"
