"""A published model's measures on dev queries that did not choose its checkpoint (pure)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

MEASURE = "nDCG@10"


@dataclass(frozen=True, slots=True)
class HeldOut:
    """The measure of each query by base and model; both empty where the folder does not say.

    `choosing`: there were too few queries to keep any apart, so these chose the checkpoint, too.
    """

    base: Mapping[str, float] = field(default_factory=dict)
    tuned: Mapping[str, float] = field(default_factory=dict)
    choosing: bool = False


def read_held_out(folder: Path) -> HeldOut:
    """Return what `reranker.json` of a model's folder holds; nothing where it is missing."""
    try:
        found = json.loads((folder / "reranker.json").read_text()).get("per_query") or {}
    except (OSError, ValueError):
        return HeldOut()
    return HeldOut(found.get("base") or {}, found.get("tuned") or {}, bool(found.get("choosing")))
