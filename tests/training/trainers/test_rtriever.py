"""Recipe `rtriever`: its loss by hand, draws, frozen words, cached batches, a gain, a folder that others read alike."""

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

from benchmark.measures.rankings import compare_runs, evaluate_run
from corpus.errors import BadInput
from tests import training_sets
from tests.instances import PATIENCE
from tests.training.recipes.test_bundles import row, write
from tests.training.serving.test_rerank_service import ask as send
from training.published.embedder import open_embedder, read_query_prefix
from training.published.opening import open_scorer
from training.published.tiny_bases import tiny_encoder
from training.recipes.bundles import Bundle, Passage
from training.recipes.job_folder import JobFolder, TrainingCancelled
from training.recipes.table import recipe_options
from training.serving.served_model import ServedModel
from training.trainers.contrastive import InBatchLoss, find_false_negatives
from training.trainers.rtriever import EmbedderTrained, load_embedder, published_length
from training.trainers.training import open_recipe, prepare_task, train_model

torch.set_num_threads(1)


class Lookup(torch.nn.Module):
    """A model whose vectors are its weights, so that a loss is seen without anything around it."""

    def __init__(self, vectors: Any, dropout: float = 0.0) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(vectors.clone())
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        vectors = self.dropout(self.table[features["input_ids"][:, 0]])
        return {"sentence_embedding": torch.nn.functional.normalize(vectors, dim=1)}

    def __getitem__(self, place: int) -> torch.nn.Module:
        return self


def bundles_of(size: int) -> list[Bundle]:
    return [Bundle(f"q{n}", f"q{n}", (Passage(f"p{n}", f"p{n}"),), (Passage(f"n{n}", f"n{n}"),)) for n in range(size)]


def batch_of(size: int) -> tuple[list[dict[str, Any]], Any]:
    ids = torch.arange(3 * size).reshape(3, size, 1)
    features = [{"input_ids": one, "attention_mask": torch.ones_like(one)} for one in ids]
    return features, torch.tensor([[n, 0, 0] for n in range(size)])


def loss_of(vectors: Any, temperature: float, *, dropout: float = 0.0, bundles: Any = None, **options: Any) -> Any:
    """The loss, and the gradient of every vector; vectors: queries, then positives, then negatives."""
    size = len(vectors) // 3
    model = Lookup(vectors, dropout)
    loss = InBatchLoss(model, bundles or bundles_of(size), temperature=temperature, **options)(*batch_of(size))
    loss.backward()
    return float(loss.detach()), model.table.grad


HAND = torch.tensor([[1.0, 0], [0, 1], [0.8, 0.6], [0.6, 0.8], [0.6, 0.8], [1, 0]])


@pytest.mark.parametrize(("temperature", "expected"), [(1.0, 1.267285), (0.02, 5.346608)])
def test_two_queries_by_hand(temperature, expected):
    assert loss_of(HAND.double(), temperature)[0] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("size", [2, 5, 16])
def test_it_is_cross_entropy_over_all_documents_of_the_batch_and_the_librarys_own_loss(size):
    torch.manual_seed(size)
    vectors = torch.nn.functional.normalize(torch.randn(3 * size, 8, dtype=torch.float64), dim=1)
    plain = torch.nn.functional.cross_entropy(vectors[:size] @ vectors[size:].T / 0.02, torch.arange(size))
    assert loss_of(vectors, 0.02)[0] == pytest.approx(float(plain), abs=1e-9)
    model = Lookup(vectors.float())
    theirs = MultipleNegativesRankingLoss(model, scale=50.0)(*batch_of(size))
    assert loss_of(vectors.float(), 0.02)[0] == pytest.approx(float(theirs.detach()), abs=1e-6)


@pytest.mark.parametrize("mask", [False, True])
def test_without_negatives_of_their_own_queries_have_those_of_the_batch(mask):
    figures: dict[str, Any] = {}
    features, labels = batch_of(4)
    torch.manual_seed(4)
    vectors = torch.nn.functional.normalize(torch.randn(12, 8, dtype=torch.float64), dim=1)
    loss = InBatchLoss(Lookup(vectors), bundles_of(4), temperature=0.05, mask=mask, note=figures.update)
    plain = torch.nn.functional.cross_entropy(vectors[:4] @ vectors[4:8].T / 0.05, torch.arange(4))
    assert float(loss(features[:2], labels).detach()) == pytest.approx(float(plain), abs=1e-9)
    assert figures["chunks"] == 2 and "negative_similarity" not in figures


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("chunk", [1, 2, 3, 7])
def test_chunks_never_change_the_gradient(chunk, dropout):
    torch.manual_seed(0)
    vectors = torch.randn(21, 8)
    if not dropout:
        whole, cut = loss_of(vectors, 0.1), loss_of(vectors, 0.1, token_budget=chunk)
        assert cut[0] == pytest.approx(whole[0], abs=1e-6)
        assert torch.allclose(cut[1], whole[1], atol=1e-6)
        return
    # With dropout the second pass must draw what the first one drew: the gradient is that of one graph of both.
    torch.manual_seed(1)
    found = loss_of(vectors, 0.1, dropout=dropout, token_budget=chunk)
    torch.manual_seed(1)
    model = Lookup(vectors, dropout)
    features, _ = batch_of(7)
    parts = [
        torch.cat([model({"input_ids": piece})["sentence_embedding"] for piece in one["input_ids"].split(chunk)])
        for one in features
    ]
    plain = torch.nn.functional.cross_entropy(parts[0] @ torch.cat(parts[1:]).T / 0.1, torch.arange(7))
    plain.backward()
    assert found[0] == pytest.approx(float(plain.detach()), abs=1e-5)
    assert torch.allclose(found[1], model.table.grad, atol=1e-5)


def test_equal_queries_are_not_compared_with_each_other():
    """The gradient is that of the formula without query-query and document-document terms (autograd of it)."""
    torch.manual_seed(3)
    vectors = torch.randn(12, 6, dtype=torch.float64)
    vectors[1] = vectors[0]
    table = vectors.clone().requires_grad_()
    unit = torch.nn.functional.normalize(table, dim=1)
    torch.nn.functional.cross_entropy(unit[:4] @ unit[4:].T / 0.05, torch.arange(4)).backward()
    assert torch.allclose(loss_of(vectors, 0.05)[1], table.grad, atol=1e-9)


def test_false_negatives_are_counted_and_have_no_weight_only_where_masked():
    """Query 0 has the drawn positive of query 1 among its own positives, by text."""
    bundles = bundles_of(2)
    bundles[0] = Bundle("q0", "q0", (Passage("p0", "p0"), Passage("other-id", "p1")), bundles[0].negatives)
    blocked = find_false_negatives(bundles, [[0, 0, 0], [1, 0, 0]], [[0, 0, 0], [1, 0, 0]])
    assert blocked.tolist() == [[False, True, False, False], [False] * 4]
    told: dict[str, Any] = {}
    vectors = HAND.double()
    kept = loss_of(vectors, 1.0, bundles=bundles, note=told.update)
    masked = loss_of(vectors, 1.0, bundles=bundles, mask=True, note=lambda **figures: None)
    assert told["false_negatives"] == 1 and kept[0] == pytest.approx(1.267285, abs=1e-6)
    first = -torch.log_softmax(torch.tensor([0.8, 0.6, 1.0], dtype=torch.float64), 0)[0]
    assert masked[0] == pytest.approx((float(first) + 1.184196) / 2, abs=1e-6)


def test_the_figures_of_a_step_are_told():
    told: dict[str, Any] = {}
    loss_of(HAND, 0.02, token_budget=1, note=told.update)
    assert (told["chunks"], told["tokens"], told["in_batch_accuracy"]) == (6, 6, 0.5)
    assert (told["positive_similarity"], told["negative_similarity"]) == (0.8, 0.3)


def ask(folder: Path, rows: Path, base: str = "tiny:qwen3", **options: Any) -> JobFolder:
    return training_sets.ask(folder, "rtriever", rows, base, **options)


def several(number: int) -> dict[str, Any]:
    """A bundle of three positives and two negatives."""
    sides = {
        side: [{"doc_id": f"{side}{number}-{at}", "text": f"{side} {number} {'x' * at}"} for at in range(count)]
        for side, count in (("positives", 3), ("negatives", 2))
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
def test_a_batch_of_768_is_one_step_on_a_cpu_and_the_job_says_in_how_many_chunks(tmp_path, monkeypatch):
    """As many queries at once as in the paper, embedded 2,048 tokens at a time."""
    seen = watch_labels(monkeypatch)
    rows = write(tmp_path / "set", [row(n) for n in range(768)])
    folder = ask(tmp_path, rows, epochs=1, batch=768, max_length=32, token_budget=2048, max_steps=1)
    train_model(folder, lambda: False)
    assert [len(step) for step in seen] == [768]
    (line,) = [line for line in folder.read_metrics() if "loss" in line]
    assert line["chunks"] >= line["tokens"] // 2048 > 1


@pytest.mark.slow
def test_no_query_is_twice_in_a_batch_and_a_resumed_training_draws_the_same(tmp_path, monkeypatch):
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
def test_words_are_frozen_and_every_linear_layer_has_an_adapter(base, tmp_path):
    """B7, B10: a causal base is pooled by its last token, an encoder by the mean."""
    rows = write(tmp_path / "set", [several(n) for n in range(16)])
    folder = ask(tmp_path, rows, base, epochs=2, batch=8)
    recipe = open_recipe(prepare_task(folder, folder.job))
    body: Any = recipe.model[0].model
    inner = body.get_base_model() if hasattr(body, "get_base_model") else body
    before = inner.get_input_embeddings().weight.detach().clone()
    step, _ = recipe.train(folder, lambda: False)
    assert torch.equal(inner.get_input_embeddings().weight, before)
    parts = {name: part for name, part in inner.named_modules() if "lora_" not in name and ".base_layer" not in name}
    linear = {name for name, part in parts.items() if isinstance(part, torch.nn.Linear) and "pooler" not in name}
    adapted = {name for name, part in parts.items() if hasattr(part, "lora_A")}
    assert (
        adapted >= linear and all(isinstance(parts[name].base_layer, torch.nn.Linear) for name in adapted) and adapted
    )
    changed = [name for name, value in inner.named_parameters() if value.requires_grad]
    assert changed and all("lora_" in name for name in changed)
    kept = load_file(folder.checkpoint(step) / "adapter_model.safetensors")
    assert kept and not any("embed" in name.lower() or "norm" in name.lower() for name in kept)
    assert recipe.record()["embedder"]["pooling"] == ("last" if base == "tiny:qwen3" else "mean")


@pytest.mark.slow
def test_documents_have_no_prefix_and_what_is_too_long_is_cut_in_the_published_folder(tmp_path):
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


def test_a_training_on_shorter_texts_does_not_shorten_the_published_model(tmp_path):
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
def test_a_tuned_model_finds_what_other_words_say_and_its_base_does_not(tmp_path):
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


@pytest.mark.weekly
def test_a_training_of_two_processes_has_the_losses_of_one(tmp_path):
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


@pytest.mark.slow
@pytest.mark.parametrize("base", ["tiny:qwen3", "tiny:encoder"])
def test_it_trains_and_publishes_an_embedder_that_both_read_alike(tmp_path, base):
    rows = write(tmp_path / "set", [row(n) for n in range(20)], tuple(row(n) for n in range(100, 104)))
    out = tmp_path / "out"
    found = train_model(ask(tmp_path, rows, base, epochs=2, batch=8), lambda: False)
    assert found["merge_difference"] < 1e-5 and found["loss_last"] < found["loss_first"]
    texts, prefix = ["a question", "another one " * 200], read_query_prefix(out)
    assert bool(prefix) == (base == "tiny:qwen3")
    ours, _ = open_embedder(out).encode([prefix + text for text in texts])
    theirs = SentenceTransformer(str(out)).encode(texts, prompt_name="query")
    assert ours == pytest.approx(theirs, abs=1e-5)
    body = {"input": [prefix + text for text in texts]}
    status, answer = send(ServedModel("out", open_embedder(out)), body)
    assert status == 200 and [one["embedding"] for one in answer["data"]] == pytest.approx(theirs, abs=1e-5)
    with pytest.raises(BadInput, match=r"out .* embedding model"):
        open_scorer(out)
    card = (out / "README.md").read_text()
    assert "An embedding model" in card and "CrossEncoder" not in card
