"""Recipe `rtriever` while it trains: draws, frozen words, cached batches, two processes, a gain."""

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import load_file  # noqa: E402
from sentence_transformers import SentenceTransformer  # noqa: E402

from benchmark.measures.rankings import compare_runs, evaluate_run  # noqa: E402
from corpus.errors import BadInput  # noqa: E402
from tests import training_sets  # noqa: E402
from tests.instances import PATIENCE  # noqa: E402
from tests.training.recipes.test_bundles import row, write  # noqa: E402
from training.published.embedder import open_embedder  # noqa: E402
from training.published.tiny_bases import tiny_encoder  # noqa: E402
from training.recipes.job_folder import JobFolder, TrainingCancelled  # noqa: E402
from training.recipes.table import RetrieverOptions, recipe_options  # noqa: E402
from training.trainers.contrastive import InBatchLoss  # noqa: E402
from training.trainers.rtriever import EmbedderTrained, load_embedder, published_length  # noqa: E402
from training.trainers.training import open_recipe, prepare_task, train_model  # noqa: E402

torch.set_num_threads(1)


def ask(folder: Path, rows: Path, base: str = "tiny:qwen3", **options: Any) -> JobFolder:
    return training_sets.ask(folder, "rtriever", rows, base, **options)


def several(number: int) -> dict[str, Any]:
    """A bundle of three positives and two negatives."""
    texts = {"positives": 3, "negatives": 2}
    sides = {
        side: [{"doc_id": f"{side}{number}-{at}", "text": f"{side} {number} {'x' * at}"} for at in range(count)]
        for side, count in texts.items()
    }
    return row(number, **sides)


def watch_labels(monkeypatch: pytest.MonkeyPatch) -> list[list[list[int]]]:
    """The labels of every step: (place of the bundle, of its positive, of its negative) for each query."""
    seen: list[list[list[int]]] = []
    forward = InBatchLoss.forward

    def keep(self: Any, features: Any, labels: Any) -> Any:
        seen.append(labels.tolist())
        return forward(self, features, labels)

    monkeypatch.setattr(InBatchLoss, "forward", keep)
    return seen


def after(steps: int, folder: JobFolder) -> Callable[[], bool]:
    return lambda: sum("loss" in line for line in folder.read_metrics()) >= steps


def losses(folder: JobFolder) -> list[float]:
    return [line["loss"] for line in folder.read_metrics() if "loss" in line]


@pytest.mark.slow
def test_a_batch_of_768_is_one_step_on_a_cpu_and_the_job_says_in_how_many_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many queries at once as in the paper, embedded 2,048 tokens at a time."""
    seen = watch_labels(monkeypatch)
    rows = write(tmp_path / "set", [row(n) for n in range(768)])
    folder = ask(tmp_path, rows, epochs=1, batch=768, max_length=32, token_budget=2048, max_steps=1)
    train_model(folder, lambda: False)
    assert [len(step) for step in seen] == [768]
    (line,) = [line for line in folder.read_metrics() if "loss" in line]
    assert line["chunks"] >= line["tokens"] // 2048 > 1


@pytest.mark.slow
def test_no_query_is_twice_in_a_batch_and_a_resumed_training_draws_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B6."""
    rows = write(tmp_path / "set", [several(n) for n in range(16)])
    options = {"epochs": 5, "batch": 8, "checkpoint_every": 2}
    seen = watch_labels(monkeypatch)
    whole = ask(tmp_path / "whole", rows, **options)
    train_model(whole, lambda: False)
    wanted = list(seen)
    assert len(wanted) == 10 and all(len({one[0] for one in step}) == 8 for step in wanted)
    assert all(sorted(one[0] for one in wanted[at] + wanted[at + 1]) == list(range(16)) for at in range(0, 10, 2))
    of_first = [(one[1], one[2]) for step in wanted for one in step if one[0] == 0]
    assert len(of_first) == 5 and len(set(of_first)) > 1  # Once in each epoch, drawn anew.
    seen.clear()
    parted = ask(tmp_path / "parted", rows, **options)
    with pytest.raises(TrainingCancelled):
        train_model(parted, after(5, parted))
    before = len(seen)
    train_model(parted, lambda: False)
    assert seen == wanted and before < 10
    assert losses(parted) == pytest.approx(losses(whole), abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("base", ["tiny:qwen3", "tiny:encoder"])
def test_words_are_frozen_and_every_linear_layer_has_an_adapter(base: str, tmp_path: Path) -> None:
    """B7, B10: a causal base is pooled by its last token, an encoder by the mean."""
    rows = write(tmp_path / "set", [several(n) for n in range(16)])
    folder = ask(tmp_path, rows, base, epochs=2, batch=8)
    recipe = open_recipe(prepare_task(folder, folder.job))
    body: Any = recipe.model[0].model
    inner = body.get_base_model() if hasattr(body, "get_base_model") else body
    before = inner.get_input_embeddings().weight.detach().clone()
    step, _ = recipe.train(folder, lambda: False)
    assert torch.equal(inner.get_input_embeddings().weight, before)
    linear, adapted = set(), set()
    for name, part in inner.named_modules():
        if isinstance(part, torch.nn.Linear) and "lora_" not in name and ".base_layer" not in name:
            linear.add(name)
        if hasattr(part, "lora_A"):
            adapted.add(name)
            assert isinstance(part.base_layer, torch.nn.Linear), name
    assert adapted and not {name for name in linear - adapted if "pooler" not in name}
    changed = [name for name, value in inner.named_parameters() if value.requires_grad]
    assert changed and all("lora_" in name for name in changed)
    kept = load_file(folder.checkpoint(step) / "adapter_model.safetensors")
    assert kept and not any("embed" in name.lower() or "norm" in name.lower() for name in kept)
    assert recipe.record()["embedder"]["pooling"] == ("last" if base == "tiny:qwen3" else "mean")


@pytest.mark.slow
def test_documents_have_no_prefix_and_what_is_too_long_is_cut_in_the_published_folder(tmp_path: Path) -> None:
    """B8."""
    rows = write(tmp_path / "set", [several(n) for n in range(16)])
    train_model(ask(tmp_path, rows, epochs=1, batch=8, max_length=64), lambda: False)
    model = SentenceTransformer(str(tmp_path / "out"))
    assert model.max_seq_length == 64
    text, long = "a document", "a document " * 300
    assert model.encode(text, prompt_name="document") == pytest.approx(model.encode(text), abs=1e-6)
    assert model.encode(text, prompt_name="query") != pytest.approx(model.encode(text), abs=1e-3)
    assert model.encode(long) == pytest.approx(model.encode(long + "and another end"), abs=1e-6)
    assert recipe_options("rtriever", {"preset": "paper"}).max_length == 2048


def test_a_training_on_shorter_texts_does_not_shorten_the_published_model(tmp_path: Path) -> None:
    base = tiny_encoder(tmp_path / "base")
    (base / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 256}))
    rows = write(tmp_path / "set", [several(n) for n in range(8)])
    folder = ask(tmp_path, rows, str(base), max_length=64, lora_rank=0)
    task = prepare_task(folder, folder.job)
    load_embedder(base, task.options, "cpu").save(str(tmp_path / "checkpoint"))
    EmbedderTrained(task, tmp_path / "checkpoint").write(tmp_path / "out")
    assert SentenceTransformer(str(tmp_path / "out")).max_seq_length == 256
    assert open_embedder(tmp_path / "out").length == 256
    assert published_length(base, 384) == 384 and published_length(tmp_path / "out", 64) >= 64


QUERY_WORDS = ("list", "string", "number", "module", "loop", "file", "function", "class")
DOCUMENT_WORDS = ("returns", "order", "names", "left", "right", "body", "value", "error")


def other_words(number: int, draw: random.Random) -> dict[str, Any]:
    """A query names a thing by one word, its document by another that no query has."""
    thing = number % len(QUERY_WORDS)
    others = [word for word in DOCUMENT_WORDS if word != DOCUMENT_WORDS[thing]]
    texts = {"positives": [DOCUMENT_WORDS[thing]], "negatives": draw.sample(others, 2)}
    sides = {
        side: [{"doc_id": f"d{DOCUMENT_WORDS.index(one)}", "text": f"it {one}"} for one in words]
        for side, words in texts.items()
    }
    query = f"{draw.choice(['a', 'the', 'my', 'one'])} {QUERY_WORDS[thing]}"
    return {"query_id": f"q{number}", "query": query, **sides}


@pytest.mark.slow
def test_a_tuned_model_finds_what_other_words_say_and_its_base_does_not(tmp_path: Path) -> None:
    """B9: over the whole toy corpus, on queries that were no part of the training."""
    draw = random.Random(0)
    train, dev = ([other_words(n, draw) for n in numbers] for numbers in (range(96), range(1000, 1064)))
    rows = write(tmp_path / "set", train, tuple(dev))
    folder = ask(tmp_path, rows, "tiny:encoder", epochs=10, batch=8)
    train_model(folder, lambda: False)
    corpus = [f"it {word}" for word in DOCUMENT_WORDS]
    qrels = {one["query_id"]: {passage["doc_id"]: 1 for passage in one["positives"]} for one in dev}
    values = []
    for model in (open_recipe(prepare_task(folder, folder.job)).model, SentenceTransformer(str(tmp_path / "out"))):
        queries = model.encode([one["query"] for one in dev], prompt_name="query")
        found = queries @ model.encode(corpus).T
        run = {
            one["query_id"]: {f"d{place}": float(score) for place, score in enumerate(scores)}
            for one, scores in zip(dev, found, strict=True)
        }
        values.append(evaluate_run(qrels, run, ["nDCG@10"]).per_query["nDCG@10"])
    found = compare_runs("nDCG@10", values[1], values[0])
    assert found.difference > 0 and found.low > 0 and found.p < 0.05, found


def test_paper_has_the_papers_figures() -> None:
    """B12."""
    chosen = recipe_options("rtriever", {"preset": "paper"})
    assert isinstance(chosen, RetrieverOptions)
    assert (chosen.lora_rank, chosen.lora_alpha, chosen.lora_targets) == (16, 32, "all-linear")
    assert (chosen.learning_rate, chosen.warmup_ratio, chosen.epochs, chosen.batch) == (1e-5, 0.05, 5.0, 768)
    assert (chosen.max_length, chosen.temperature, chosen.mask_false_negatives) == (2048, 0.02, False)
    with pytest.raises(BadInput, match=r"Temperature .* 0"):
        recipe_options("rtriever", {"temperature": 0.0})


@pytest.mark.weekly
def test_a_training_of_two_processes_has_the_losses_of_one(tmp_path: Path) -> None:
    """The same queries a step, shared, and so the same weights at every step."""
    rows = write(tmp_path / "set", [several(n) for n in range(16)])
    found = []
    for size in (1, 2):
        folder = ask(tmp_path / str(size), rows, epochs=3, batch=8, processes=size)
        args = [sys.executable, "-m", "training.trainer", str(folder.path)]
        done = subprocess.run(args, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stderr + json.dumps(folder.state)
        found.append(losses(folder))
    assert len(found[0]) == 6 and found[1] == pytest.approx(found[0], abs=1e-4)
