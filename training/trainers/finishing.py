"""After the last step: base, adapter and merged on the dev split, calibration, the verdict, and publishing."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from training.jobs.significance import Gain, compare_models
from training.recipes.calibration import Calibration, fit_calibration
from training.recipes.metrics import kept_apart, measure_dev_split, ndcg_by_query
from training.serving.publication import Kind, Record
from training.trainers.publishing import publish_folder

# Queries with a relevant document, from which on half of them are kept for the test of the gain.
LEAST_TO_SPLIT = 10


@dataclass(frozen=True)
class FixedPair:
    """A pair of our own that every model is checked with, so that a published folder holds no text of its dev split."""

    query: str
    document: str
    instruction: str = ""
    label: int | None = None
    teacher: float | None = None
    query_id: str = "fixture"
    doc_id: str = "fixture"


FIXTURE = (
    FixedPair("why does bread rise", "Yeast ferments sugar, and the gas that it gives off is held by the gluten."),
    FixedPair("why does bread rise", "Trains to the coast leave at 07:40 and 09:10 on working days."),
    FixedPair("sort a list by the second item", 'rows.sort(key=lambda row: row[1])\n# "stable": equal keys keep order'),
    FixedPair("высота горы", "Η κορυφή βρίσκεται στα 2.918 μέτρα 🏔", "Relevant when a height in metres is given."),
    FixedPair("tides", "The sea rises twice a day, later each day by about fifty minutes. " * 60),
)


class FinishedRow(Protocol):
    """What is needed of an example of the dev split (training/recipes/data.py)."""

    @property
    def query(self) -> str: ...
    @property
    def document(self) -> str: ...
    @property
    def instruction(self) -> str: ...
    @property
    def label(self) -> int | None: ...
    @property
    def teacher(self) -> float | None: ...
    @property
    def query_id(self) -> str: ...
    @property
    def doc_id(self) -> str: ...


class Trained(Protocol):
    """A finished training: three ways to score rows in fp32, and the folder that people load."""

    kind: Kind
    has_adapter: bool

    def base_margins(self, rows: Sequence[Any]) -> list[float]:
        """The base's own margins with our prompt."""

    def trained_margins(self, rows: Sequence[Any]) -> list[float]:
        """The chosen checkpoint's margins: base and adapter, or the tuned encoder."""

    def write(self, folder: Path) -> None:
        """Merge in fp32 and write weights, tokenizer and template."""

    def published_margins(self, folder: Path, rows: Sequence[Any]) -> list[float]:
        """Margins of the model in the folder, loaded by plain transformers."""


@dataclass(frozen=True)
class TrainingOutcome:
    """What was published: evaluation of base, adapter and merged, calibration, and the verdict in words."""

    evaluation: dict[str, Any]
    calibration: Calibration
    gain: dict[str, Any] = field(default_factory=dict)
    merge_difference: float = 0.0


def finish_training(
    out: Path, trained: Trained, dev: Sequence[FinishedRow], record: Record, *, report: Callable[[str], None]
) -> TrainingOutcome:
    """Score, calibrate, publish to `out` (new, or an empty folder); `record` holds what training knows so far.

    Raises publishing.MergeDiffers when the written model scores otherwise; then `out` is as it was.
    """
    report("scoring the dev split with the base")
    before = trained.base_margins(dev)
    report("scoring the dev split with the chosen checkpoint")
    everything = [*dev, *FIXTURE]
    expected = trained.trained_margins(everything)
    after = expected[: len(dev)]
    calibration = fit_calibration(after, [row.label for row in dev])
    evaluation: dict[str, Any] = {
        "base": _measure_margins(before, dev, 0.0),
        "adapter": _measure_margins(after, dev, calibration.threshold_margin) if trained.has_adapter else None,
    }
    gain = asdict(gain_of(before, after, dev))
    merged: list[float] = []

    def rescore(folder: Path) -> list[float]:
        report("scoring the dev split with the merged model")
        merged.extend(trained.published_margins(folder, everything))
        return merged

    def describe(difference: float) -> Record:
        evaluation["merged"] = _measure_margins(merged[: len(dev)], dev, calibration.threshold_margin)
        return replace(
            record,
            evaluation=evaluation,
            calibration=calibration,
            gain=gain,
            merge_difference=difference,
            fixture=_fixture_rows(expected[len(dev) :]),
        )

    report("merging and writing the model")
    difference = publish_folder(out, write=trained.write, rescore=rescore, expected=expected, describe=describe)
    return TrainingOutcome(evaluation, calibration, gain, difference)


def dev_measures(margins: Sequence[float], dev: Sequence[FinishedRow]) -> dict[str, Any]:
    """The measures of one evaluation while training goes on (the `dev` of a line of metrics.jsonl).

    `choosing`: the same over the queries that decide between checkpoints (metrics.kept_apart).
    """
    apart = _held_out_queries(dev)
    places = [place for place, row in enumerate(dev) if row.query_id not in apart]
    choosing = _measure_margins([margins[place] for place in places], [dev[place] for place in places], 0.0)
    return _measure_margins(margins, dev, 0.0) | {"choosing": choosing}


def gain_of(before: Sequence[float], after: Sequence[float], dev: Sequence[FinishedRow]) -> Gain:
    """Base against chosen checkpoint on the queries that had no part in choosing it."""
    apart = _held_out_queries(dev)
    sides = [_per_query(margins, dev) for margins in (before, after)]
    if not apart:
        return compare_models(*sides, least=LEAST_TO_SPLIT)
    base, tuned = ({query: value for query, value in side.items() if query in apart} for side in sides)
    return compare_models(base, tuned)


def _held_out_queries(dev: Sequence[FinishedRow]) -> set[str]:
    return kept_apart([row.query_id for row in dev], [row.label for row in dev], LEAST_TO_SPLIT)


def _measure_margins(margins: Sequence[float], dev: Sequence[FinishedRow], threshold_margin: float) -> dict[str, Any]:
    return measure_dev_split(
        margins,
        [row.label for row in dev],
        [row.teacher for row in dev],
        [row.query_id for row in dev],
        [row.doc_id for row in dev],
        threshold_margin=threshold_margin,
    )


def _per_query(margins: Sequence[float], dev: Sequence[FinishedRow]) -> dict[str, float]:
    kept = [place for place, row in enumerate(dev) if row.label is not None]
    raw = np.array([margins[place] for place in kept], dtype=np.float64)
    truth = np.array([dev[place].label for place in kept], dtype=np.float64)
    return ndcg_by_query(raw, truth, [dev[place].query_id for place in kept], [dev[place].doc_id for place in kept])


def _fixture_rows(margins: Sequence[float]) -> list[dict[str, Any]]:
    return [
        {"query": pair.query, "document": pair.document, "instruction": pair.instruction, "margin": margin}
        for pair, margin in zip(FIXTURE, margins, strict=True)
    ]
