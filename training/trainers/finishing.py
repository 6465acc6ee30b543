"""Finishing of a training: base, adapter and merged model are measured, the model is calibrated and published."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from training.jobs.first_stage import FirstStage
from training.jobs.held_out import MEASURE
from training.jobs.significance import LEAST_QUERIES, compare_models
from training.published.publication import Kind, Record, model_title
from training.published.publishing import annotate_folder, check_merge, convert_weights
from training.recipes.calibration import fit_calibration
from training.recipes.data import Example
from training.recipes.job_folder import write_folder
from training.recipes.metrics import LEAST_TO_SPLIT, held_out_queries, measure_dev_split, ndcg_by_query

# Every published model is checked with these pairs, so that its folder contains no texts of the dev split.
FIXTURE = (
    Example("why does bread rise", "Yeast ferments sugar, and the gas that it gives off is held by the gluten."),
    Example("why does bread rise", "Trains to the coast leave at 07:40 and 09:10 on working days."),
    Example("sort a list by the second item", 'rows.sort(key=lambda row: row[1])\n# "stable": equal keys keep order'),
    Example("высота горы", "Η κορυφή βρίσκεται στα 2.918 μέτρα 🏔", "Relevant when a height in metres is given."),
    Example("tides", "The sea rises twice a day, later each day by about fifty minutes. " * 60),
)


class Trained(Protocol):
    """A finished training: its base, its chosen checkpoint and its published folder, all of which score in fp32."""

    kind: Kind
    has_adapter: bool
    random_head: bool  # Whether the base has no scoring head, so that its margins are random.

    def base_margins(self, rows: Sequence[Any]) -> list[float]:
        """Return the base's margins with our prompt."""

    def trained_margins(self, rows: Sequence[Any]) -> list[float]:
        """Return the margins of the chosen checkpoint, before it is merged."""

    def write(self, folder: Path) -> None:
        """Merge the checkpoint in fp32, and write weights, tokenizer and template."""

    def published_margins(self, folder: Path, rows: Sequence[Any]) -> list[float]:
        """Return the margins of the model in the folder, loaded with transformers alone."""


def finish_training(
    out: Path,
    trained: Trained,
    dev: Sequence[Example],
    record: Record,
    *,
    report: Callable[[str], None],
    first_stage: FirstStage | None = None,
) -> Record:
    """Measure, calibrate and publish a training to `out`, a new or empty folder; return the completed record.

    1. Score the dev split, the fixture and the first stage with the base and with the chosen checkpoint.
    2. Compare both on held-out queries, or all three rankings if there is a first stage.
    3. Fit the calibration and measure both on the dev split.
    4. Write the merged model, check that it scores as the checkpoint did, and add its descriptions.

    `record` has the fields that are known before; `first_stage` is the ranking that the model would reorder. Raises
    publishing.MergeDiffers if the written model scores differently, and then leaves `out` as it was.
    """
    report("scoring the dev split with the base")
    ranked_rows = first_stage.rows if first_stage else []
    base_margins = trained.base_margins([*dev, *ranked_rows])
    report("scoring the dev split with the chosen checkpoint")
    # The fixture and the first stage are scored with the split, in one pass over the model.
    all_rows = [*dev, *FIXTURE, *ranked_rows]
    # In fp32: the published model must have the same margins.
    expected = trained.trained_margins(all_rows)
    before, after, ranked_from = base_margins[: len(dev)], expected[: len(dev)], len(dev) + len(FIXTURE)
    # Compared on held-out queries, if there are enough to hold any out.
    held_out = held_out_queries(dev)
    sides = {
        name: {
            query: value for query, value in ndcg_by_query(margins, dev).items() if not held_out or query in held_out
        }
        for name, margins in (("base", before), ("tuned", after))
    }
    compare = partial(
        compare_models, least=LEAST_QUERIES if held_out else LEAST_TO_SPLIT, random_head=trained.random_head
    )
    gain, rankings = compare(sides["base"], sides["tuned"]), {}
    if first_stage:
        # All three rankings are of the documents of the first stage.
        comparison = first_stage.compare(
            base_margins[len(dev) :], expected[ranked_from:], random_head=trained.random_head
        )
        names = (comparison["first_stage"], "base", "tuned")
        first, base, tuned = (comparison["per_query"][side][MEASURE] for side in names)
        gain = compare(base, tuned, first=first, first_stage=comparison["first_stage"])
        rankings = {name: value for name, value in comparison.items() if name != "per_query"}
        rankings |= {"choosing": not held_out}
    calibration = fit_calibration(after, [row.label for row in dev])
    measure = partial(measure_dev_split, rows=dev, threshold_margin=calibration.threshold_margin)
    evaluation = {
        "base": measure_dev_split(before, dev),
        "adapter": measure(after) if trained.has_adapter else None,
    }
    with write_folder(out) as folder:
        report("merging and writing the model")
        trained.write(folder)
        precision = str(record.options.get("publish_precision") or "fp32")
        convert_weights(folder, precision)
        report("scoring the dev split with the merged model")
        # The published folder is loaded as others would load it, without our code.
        published = trained.published_margins(folder, all_rows)
        record = replace(
            record,
            calibration=calibration,
            gain=gain,
            rankings=rankings,
            per_query={"measure": MEASURE, "choosing": not held_out, **sides},
            fixture=[
                {"query": pair.query, "document": pair.document, "instruction": pair.instruction, "margin": margin}
                for pair, margin in zip(FIXTURE, expected[len(dev) : ranked_from], strict=True)
            ],
            merge_difference=check_merge(expected, published, precision),
            evaluation={**evaluation, "merged": measure(published[: len(dev)])},
        )
        annotate_folder(folder, record, name=model_title(out.name, record))
    return record


def dev_measures(margins: Sequence[float], dev: Sequence[Example]) -> dict[str, Any]:
    """Return the measures of a checkpoint during training (`dev` in a line of metrics.jsonl).

    `choosing`: the same measures without the held-out queries, which choose between checkpoints.
    """
    held_out = held_out_queries(dev)
    rows = [index for index, row in enumerate(dev) if row.query_id not in held_out]
    choosing = measure_dev_split([margins[index] for index in rows], [dev[index] for index in rows])
    return measure_dev_split(margins, dev) | {"choosing": choosing}
