"""Checkpoints: weights, optimiser, random state and progress, written beside and renamed when whole."""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from training.trainers.recipe import Recipe


def save_checkpoint(
    folder: Path, recipe: Recipe, optimizer: torch.optim.Optimizer, progress: Mapping[str, Any]
) -> None:
    """Write a checkpoint; `trainer.json` comes last, so a folder that has one is whole."""
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    recipe.save(part)
    random: dict[str, Any] = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        random["cuda"] = torch.cuda.get_rng_state_all()
    torch.save({"optimizer": optimizer.state_dict(), "random": random}, part / "optimizer.pt")
    (part / "trainer.json").write_text(json.dumps(dict(progress)))
    for path in part.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)


def load_checkpoint(folder: Path, recipe: Recipe, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Back to a checkpoint; its progress."""
    recipe.load(folder)
    kept = torch.load(folder / "optimizer.pt", weights_only=True)
    optimizer.load_state_dict(kept["optimizer"])
    torch.set_rng_state(kept["random"]["cpu"])
    if torch.cuda.is_available() and "cuda" in kept["random"]:
        torch.cuda.set_rng_state_all(kept["random"]["cuda"])
    return dict(json.loads((folder / "trainer.json").read_text()))
