"""Opening of a model folder with the scorer of its kind."""

import json
from pathlib import Path

from corpus.errors import BadInput
from training.published.embedder import is_embedder
from training.published.erank import ErankScorer
from training.published.scorer import (
    CausalScorer,
    EncoderScorer,
    Scorer,
    check_prompt,
    is_classifier,
    is_seq2seq,
    read_reranker_json,
)
from training.published.seq2seq import Seq2SeqScorer
from training.published.sparse import is_sparse_encoder
from training.recipes.rendering import PROMPT_NAMES

__all__ = ["PROMPT_NAMES", "check_prompt", "is_reranker", "kind_of_scores", "open_scorer"]


def is_reranker(folder: Path) -> bool:
    """Return whether a folder contains a model that scores pairs, according to its configuration files."""
    if not (folder / "config.json").exists() or read_reranker_json(folder).get("kind") == "embedder":
        return False
    return not is_embedder(folder) and not is_sparse_encoder(folder)


def kind_of_scores(folder: Path) -> str:
    """Return the kind of a model's scores: "grades" times their probability (ERank), or "margins"."""
    return "grades" if read_reranker_json(folder).get("kind") == "erank" else "margins"


def open_scorer(folder: Path, device: str = "cpu", *, precision: str = "auto", prompt: str = "") -> Scorer:
    """Load a model folder for scoring. `prompt`: one of rendering.PROMPT_NAMES, for models without their own prompt.

    Raises BadInput for a folder without a model that scores pairs, and as choose_prompt does.
    """
    if not (folder / "config.json").exists():
        raise BadInput(f"{folder.name} has no config.json: name the folder of a model")
    record = read_reranker_json(folder)
    config = json.loads((folder / "config.json").read_text())
    names = config.get("architectures") or []
    if record.get("kind") == "embedder":
        raise BadInput(
            f"{folder.name} is an embedding model, which scores no pairs: serve its vectors with serve_model"
        )
    kind: type[Scorer] = Seq2SeqScorer if is_seq2seq(config) else CausalScorer
    if record.get("kind") == "erank":
        kind = ErankScorer
    elif record.get("kind") == "encoder" or any(map(is_classifier, names)):
        kind = EncoderScorer
    return kind(folder, record, config, device, precision, prompt)
