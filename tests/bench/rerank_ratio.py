"""rerank_ratio: pairs/s of training.serving.scorer over sentence-transformers' CrossEncoder on the same folder and
device.

Causal: Qwen3's shape, hidden 256, 4 layers, 20 documents a query. Encoder: BERT's shape, hidden 256, 4 layers. Both
sides take the same pairs in turns; the figure is the ratio of their medians. Random weights: only speed is measured.
"""

import os
import tempfile
import time
from pathlib import Path
from pydoc_data.topics import topics
from statistics import median
from typing import Any

QUERIES, DOCUMENTS, ROUNDS = 12, 20, 3
AIMS = {"causal": 1.5, "encoder": 0.95}


def measure() -> list[dict[str, Any]]:
    """Both kinds; the models are made here."""
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    with tempfile.TemporaryDirectory() as folder:
        return [one(kind, model(kind, Path(folder) / kind)) for kind in AIMS]


def model(kind: str, folder: Path) -> Path:
    """A published folder of the kind, tiny but not too small to measure."""
    from tests.tiny_models import adapter_of, dev_rows
    from training.recipes import rendering
    from training.recipes.calibration import Calibration
    from training.serving.publication import Record
    from training.trainers.base import answer_ids, load_tokenizer
    from training.trainers.causal import LoraTrained
    from training.trainers.encoder import EncoderTrained
    from training.trainers.finishing import finish_training
    from training.trainers.margins import PromptTokens
    from training.trainers.tiny_bases import tiny_base, tiny_encoder

    if kind == "encoder":
        base = tiny_encoder(folder / "base", hidden=256, layers=4, max_length=512)
        trained: Any = EncoderTrained(base, base, max_length=512)
        record = Record("encoder", "cross-encoder", "tiny", {}, {}, Calibration(), max_length=512, tiny=True)
    else:
        base = tiny_base(folder / "base", hidden=256, layers=4)
        yes, no = answer_ids(load_tokenizer(base))
        trained = LoraTrained(
            base, adapter_of(base, folder / "adapter"), PromptTokens(rendering.render_prompt, yes, no, 2048)
        )
        record = Record(
            "causal", "prism", "tiny", {}, {}, Calibration(), prompt=rendering.prompt_text(),
            prompt_sha256=rendering.prompt_sha256(), yes_id=yes, no_id=no, max_length=2048, tiny=True,
        )  # fmt: skip
    finish_training(folder / "out", trained, dev_rows(), record, report=lambda phase: None)
    return folder / "out"


def one(kind: str, folder: Path) -> dict[str, Any]:
    """The ratio of one kind, with both speeds and the greatest difference of a score."""
    from sentence_transformers import CrossEncoder

    from corpus.bundled.passages import cut_passages
    from training.serving.protocol import ServingRequest
    from training.serving.scorer import open_scorer

    texts = [passage.text for passage in cut_passages(topics)]
    titles = [passage.title for passage in cut_passages(topics)]
    asked = [
        ServingRequest(
            f"what does the reference say about {titles[n * 7]}", [texts[n + 17 * k] for k in range(DOCUMENTS)]
        )
        for n in range(QUERIES)
    ]
    pairs = [(query.query, document) for query in asked for document in query.documents]
    ours, theirs = open_scorer(folder), CrossEncoder(str(folder), device="cpu")
    seconds: dict[str, list[float]] = {"ours": [], "theirs": []}
    for _ in range(ROUNDS):
        began = time.perf_counter()
        margins = [margin for found in ours.margins_of(asked) for margin in found]
        seconds["ours"].append(time.perf_counter() - began)
        began = time.perf_counter()
        scores = theirs.predict(pairs, show_progress_bar=False)
        seconds["theirs"].append(time.perf_counter() - began)
    speed = {side: len(pairs) / median(times) for side, times in seconds.items()}
    return {
        "name": "rerank_ratio",
        "case": f"{kind}, {DOCUMENTS} documents a query, CPU, tiny model",
        "value": round(speed["ours"] / speed["theirs"], 2),
        "unit": "x",
        "aim": AIMS[kind],
        "pairs_per_s": round(speed["ours"], 1),
        "cross_encoder_pairs_per_s": round(speed["theirs"], 1),
        "greatest_difference": float(f"{max(map(abs, differences(margins, scores))):.1e}"),
    }


def differences(margins: list[float], scores: Any) -> list[float]:
    """Of sigmoid(margin) and what predict() gives."""
    import math

    return [1 / (1 + math.exp(-margin)) - float(score) for margin, score in zip(margins, scores, strict=True)]
