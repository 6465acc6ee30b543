"""A published model's measures on dev queries that did not choose its checkpoint (pure)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

MEASURE = "nDCG@10"


@dataclass(frozen=True, slots=True)
class HeldOut:
    """The measure of each query by base and model; both empty if they are not known.

    `choosing`: there were too few queries to hold any out, so these chose the checkpoint, too.
    """

    base: Mapping[str, float] = field(default_factory=dict)
    tuned: Mapping[str, float] = field(default_factory=dict)
    choosing: bool = False


def read_held_out(folder: Path) -> HeldOut:
    """Return the measures in the `reranker.json` of a model's folder, empty if the file is missing."""
    try:
        per_query = json.loads((folder / "reranker.json").read_text()).get("per_query") or {}
    except (OSError, ValueError):
        return HeldOut()
    return HeldOut(per_query.get("base") or {}, per_query.get("tuned") or {}, bool(per_query.get("choosing")))
