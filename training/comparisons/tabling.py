"""The table of models on the same held-out queries: measures with intervals, and the gain of each training (pure)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmark.measures.rankings import Paired, compare_runs
from training.curves.fitting import MeanEstimate, estimate_means
from training.jobs.held_out import MEASURE, HeldOut

# The ERank paper's names for its trainings, in order; other recipes follow under their own names.
BASE, SFT, RL, BOTH = "base", "SFT", "RL", "SFT + RL"
ROLES = (BASE, SFT, RL, BOTH)
REWARDS = ("rr", "ndcg", "se")


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """A published model: its base, its recipe, and its measures by query."""

    key: int
    name: str
    recipe: str
    base: str  # As named in the options: a folder, maybe another model's, or a hub id.
    folder: str
    held_out: HeldOut
    reward: str = ""
    words: str = ""


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """A row of the table, compared with the model that its training began from (`start`) and the base (`root`)."""

    role: str
    name: str
    reward: str
    words: str
    measure: MeanEstimate
    key: int | None = None  # The model's primary key; None for a base.
    start: Paired | None = None
    root: Paired | None = None


def group_models(models: Sequence[TrainedModel]) -> list[dict[str, Any]]:
    """Return the groups of models with the same held-out queries; models without such queries are left out.

    A group has `rows`, the bases and then the models; `queries`, their number; and `choosing`, whether the queries
    chose checkpoints too.
    """
    by_queries: dict[frozenset[str], list[TrainedModel]] = {}
    for model in models:
        if model.held_out.tuned:
            by_queries.setdefault(frozenset(model.held_out.tuned), []).append(model)
    return [_build_group(group) for group in by_queries.values()]


def _build_group(models: Sequence[TrainedModel]) -> dict[str, Any]:
    by_folder = {model.folder: model for model in models}
    rows = []
    bases: dict[tuple[str, bool], Mapping[str, float]] = {}
    for model in models:
        root, own = find_root(model, by_folder), model.held_out.tuned
        # A base is measured with its recipe's prompt, and ERank's prompt differs from the others'.
        bases.setdefault((root.base, root.recipe.startswith("erank")), root.held_out.base)
        start, against = (
            compare_runs(MEASURE, own, base) if base.keys() & own.keys() else None
            for base in (model.held_out.base, root.held_out.base)
        )
        role = {"erank-sft": SFT, "erank-grpo": RL}.get(model.recipe, model.recipe)
        if role == RL and model.base in by_folder and by_folder[model.base].recipe == "erank-sft":
            role = BOTH
        rows.append(ComparedRow(role, model.name, model.reward, model.words, _estimate(own), model.key, start, against))
    base_rows = [
        ComparedRow(BASE, base, "", "", _estimate(values)) for (base, _erank), values in bases.items() if values
    ]
    rows.sort(key=lambda row: ((*REWARDS, row.reward).index(row.reward), row.name))
    rows.sort(key=lambda row: ((*ROLES, row.role).index(row.role), row.role))
    choosing = any(model.held_out.choosing for model in models)
    return {"queries": len(models[0].held_out.tuned), "choosing": choosing, "rows": [*base_rows, *rows]}


def find_root(model: TrainedModel, by_folder: Mapping[str, TrainedModel]) -> TrainedModel:
    """Return the first model of a chain of trainings: the one whose base is not a model of the group."""
    # Folders are names given by users, so two models may name each other as base.
    seen = {model.folder}
    while (parent := by_folder.get(model.base)) is not None and parent.folder not in seen:
        seen.add(parent.folder)
        model = parent
    return model


def _estimate(values: Mapping[str, float]) -> MeanEstimate:
    return estimate_means((tuple(values[query] for query in sorted(values)),))[0]
