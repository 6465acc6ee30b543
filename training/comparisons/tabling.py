"""Models on the same held-out queries: measures with intervals, and what each step of training changed (pure)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmark.measures.rankings import Paired, compare_runs
from training.curves.fitting import Estimate, estimate_means
from training.jobs.held_out import MEASURE, HeldOut

# ERank's names for what was trained how, in order; others follow under their own.
BASE, SFT, RL, BOTH = "base", "SFT", "RL", "SFT + RL"
ROLES = (BASE, SFT, RL, BOTH)
REWARDS = ("rr", "ndcg", "se")


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """A model that was published: from which base by which recipe, and its measures by query."""

    key: int
    name: str
    recipe: str
    base: str  # As it was named: a folder that may be another model's, or a hub id.
    folder: str
    held_out: HeldOut
    reward: str = ""
    words: str = ""


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """A row of the table. `start`: against the model that training began with; `root`: against the base, untuned."""

    role: str
    name: str
    reward: str
    words: str
    measure: Estimate
    key: int | None = None  # Of the model; None: a base.
    start: Paired | None = None
    root: Paired | None = None


def group_models(models: Sequence[TrainedModel]) -> list[dict[str, Any]]:
    """Return the groups of models with the same held-out queries; models without any are left out.

    `rows`: the models after their bases; `choosing`: the queries chose checkpoints, too.
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
        # A base is asked by the recipe's prompt: ERank's is not the others'.
        bases.setdefault((root.base, root.recipe.startswith("erank")), root.held_out.base)
        start, against = (
            compare_runs(MEASURE, own, base) if base.keys() & own.keys() else None
            for base in (model.held_out.base, root.held_out.base)
        )
        role = {"erank-sft": SFT, "erank-grpo": RL}.get(model.recipe, model.recipe)
        if role == RL and model.base in by_folder and by_folder[model.base].recipe == "erank-sft":
            role = BOTH
        rows.append(ComparedRow(role, model.name, model.reward, model.words, _estimate(own), model.key, start, against))
    named = [ComparedRow(BASE, base, "", "", _estimate(values)) for (base, _erank), values in bases.items() if values]
    rows.sort(key=lambda row: ((*REWARDS, row.reward).index(row.reward), row.name))
    rows.sort(key=lambda row: ((*ROLES, row.role).index(row.role), row.role))
    choosing = any(model.held_out.choosing for model in models)
    return {"queries": len(models[0].held_out.tuned), "choosing": choosing, "rows": [*named, *rows]}


def find_root(model: TrainedModel, by_folder: Mapping[str, TrainedModel]) -> TrainedModel:
    """Return the first model of this one's line: its base is no model of the group."""
    seen = {model.folder}
    # `seen`, since folders are names that somebody gave: two models may name each other as base.
    while (parent := by_folder.get(model.base)) is not None and parent.folder not in seen:
        seen.add(parent.folder)
        model = parent
    return model


def _estimate(values: Mapping[str, float]) -> Estimate:
    return estimate_means((tuple(values[query] for query in sorted(values)),))[0]
