"""A model folder opened as the scorer of its kind."""

import json
from pathlib import Path

from corpus.errors import BadInput
from training.serving.erank import ErankScorer
from training.serving.scorer import CausalScorer, EncoderScorer, Scorer, is_classifier, read_reranker_json


def open_scorer(folder: Path, device: str = "cpu", *, precision: str = "auto", prompt: str = "") -> Scorer:
    """Load a model folder for scoring. `prompt`: a name of rendering.PROMPTS, for models that bring none.

    Raises BadInput for what is no model, and as choose_prompt.
    """
    if not (folder / "config.json").exists():
        raise BadInput(f"{folder} has no config.json: name the folder of a model")
    found = read_reranker_json(folder)
    config = json.loads((folder / "config.json").read_text())
    names = config.get("architectures") or []
    if found.get("kind") == "embedder":
        raise BadInput(
            f"{folder.name} is an embedding model, which scores no pairs: serve its vectors with serve_model"
        )
    if found.get("kind") == "erank":
        return ErankScorer(folder, found, config, device, precision)
    if found.get("kind") == "encoder" or any(map(is_classifier, names)):
        return EncoderScorer(folder, found, config, device, precision)
    return CausalScorer(folder, found, config, device, precision, prompt)
