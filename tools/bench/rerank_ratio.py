"""rerank_ratio: our scorer's pairs/s divided by those of sentence-transformers' CrossEncoder, by length of documents.

Both use the same model folder, device and precision (fp32 on a CPU, bf16 on a GPU), and CrossEncoder the best of
several batch sizes. They score the same pairs in turns, and the figure is the ratio of their medians. The models have
the architectures of Qwen3 (causal) and BERT (encoder) with hidden size 256, 4 layers and random weights; a query has 20
documents. The scores are compared, too.
"""

import math
import os
import tempfile
import time
from pathlib import Path
from pydoc_data.topics import topics
from statistics import median
from typing import Any

DOCUMENTS, ROUNDS = 20, 3
COMPARED = 10  # Queries whose scores are compared with those of CrossEncoder, one pair at a time.
# The number of queries by the tokens of a document, so that each case takes about the same time.
LENGTHS = {"causal": {100: 6, 400: 2, 800: 1, 1600: 1}, "encoder": {100: 10, 400: 3}}
BATCHES = {"cpu": (2, 8, 32), "cuda": (8, 32, 128)}
MOST = 2048


def measure() -> list[dict[str, Any]]:
    """Return the figures of both kinds of models at all lengths."""
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        for kind, queries_by_length in LENGTHS.items():
            published = model(kind, Path(folder) / kind)
            figures += [compare(kind, published, length, queries) for length, queries in queries_by_length.items()]
    return figures


def aim(kind: str, length: int) -> float:
    """Return the aim: 1.5 for short documents, whose prompts are mostly shared, else 1.0; 0.95 for encoders."""
    return 0.95 if kind == "encoder" else 1.5 if length == 100 else 1.0


def model(kind: str, folder: Path) -> Path:
    """Publish a model of this kind, tiny but not too small to measure, and return its folder."""
    from tests.tiny_models import adapter_of, dev_rows
    from training.published.base import answer_ids, load_tokenizer
    from training.published.causal import LoraTrained
    from training.published.encoder import EncoderTrained
    from training.published.margins import PromptTokens
    from training.published.publication import Record
    from training.published.tiny_bases import tiny_base, tiny_encoder
    from training.recipes import rendering
    from training.recipes.calibration import Calibration
    from training.trainers.finishing import finish_training

    if kind == "encoder":
        base = tiny_encoder(folder / "base", hidden=256, layers=4, max_length=512)
        trained: Any = EncoderTrained(base, base, max_length=512)
        record = Record("encoder", "cross-encoder", "tiny", {}, {}, Calibration(), max_length=512, tiny=True)
    else:
        base = tiny_base(folder / "base", hidden=256, layers=4)
        yes, no = answer_ids(load_tokenizer(base))
        trained = LoraTrained(
            base, adapter_of(base, folder / "adapter"), PromptTokens(rendering.QUORUM.render, yes, no, MOST)
        )
        record = Record(
            "causal", "prism", "tiny", {}, {}, Calibration(), prompt=rendering.QUORUM.text,
            prompt_sha256=rendering.QUORUM.sha256, yes_id=yes, no_id=no, max_length=MOST, tiny=True,
        )  # fmt: skip
    finish_training(folder / "out", trained, dev_rows(), record, report=lambda phase: None)
    return folder / "out"


def documents_of(tokenizer: Any, length: int, count: int) -> list[str]:
    """Return texts from the bundled collection of about `length` tokens each, up to a fifth more or less."""
    from corpus.bundled.passages import cut_passages

    text = " ".join(passage.text for passage in cut_passages(topics))
    ids = tokenizer(text[:400_000], add_special_tokens=False, verbose=False)["input_ids"]
    documents = []
    for number in range(count):
        size = round(length * (0.8 + 0.4 * number / max(1, count - 1)))
        begin = number * 577 % (len(ids) - 2 * length)
        documents.append(tokenizer.decode(ids[begin : begin + size]))
    return documents


def compare(kind: str, folder: Path, length: int, queries: int, size: str = "tiny model") -> dict[str, Any]:
    """Return the ratio at one length, with both speeds and the greatest difference of a score. `size`: for people."""
    import torch
    from sentence_transformers import CrossEncoder

    from training.published.opening import open_scorer
    from training.published.protocol import ServingRequest

    device = "cuda" if torch.cuda.is_available() else "cpu"
    ours: Any = open_scorer(folder, device)
    dtype = torch.bfloat16 if ours.precision == "bf16" else torch.float32
    theirs = CrossEncoder(str(folder), device=device, model_kwargs={"dtype": dtype})
    texts = documents_of(ours.tokenizer, length, DOCUMENTS)
    requests = [ServingRequest(f"what does the reference say about case {n}", texts) for n in range(queries)]
    pairs = [(query.query, document) for query in requests for document in query.documents]

    def score() -> list[float]:
        return [score.margin for scores in ours.score(requests) for score in scores]

    def predict(batch_size: int, count: int | None = None) -> Any:
        return theirs.predict(pairs[:count], batch_size=batch_size, show_progress_bar=False)

    batch = min(BATCHES[device], key=lambda number: seconds_of(lambda: predict(number, DOCUMENTS)))
    score()  # A warm-up, as CrossEncoder has by the choice of its batch size.
    seconds: dict[str, list[float]] = {"ours": [], "theirs": []}
    for _ in range(ROUNDS):
        seconds["ours"].append(seconds_of(score))
        seconds["theirs"].append(seconds_of(lambda: predict(batch)))
    speed = {side: len(pairs) / median(times) for side, times in seconds.items()}
    compared = [score.margin for scores in ours.score(requests[:COMPARED]) for score in scores]
    alone = predict(1, len(compared))
    differences = [1 / (1 + math.exp(-margin)) - float(value) for margin, value in zip(compared, alone, strict=True)]
    return {
        "name": "rerank_ratio",
        "case": f"{kind}, {length:,} tokens a document, {device.upper()}, {size}",
        "value": round(speed["ours"] / speed["theirs"], 2),
        "unit": "x",
        "aim": aim(kind, length),
        "pairs_per_s": round(speed["ours"], 1),
        "cross_encoder_pairs_per_s": round(speed["theirs"], 1),
        "cross_encoder_batch": batch,
        "precision": ours.precision,
        "greatest_difference": float(f"{max(map(abs, differences)):.1e}"),
    }


def seconds_of(work: Any) -> float:
    """Return the seconds of one call."""
    started_at = time.perf_counter()
    work()
    return time.perf_counter() - started_at
