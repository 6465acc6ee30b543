"""Finishing of a training: base, adapter and merged model on the dev split, calibration, verdict, publishing."""

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

# Pairs of our own that every model is checked with, so that a published folder holds no text of its dev split.
FIXTURE = (
    Example("why does bread rise", "Yeast ferments sugar, and the gas that it gives off is held by the gluten."),
    Example("why does bread rise", "Trains to the coast leave at 07:40 and 09:10 on working days."),
    Example("sort a list by the second item", 'rows.sort(key=lambda row: row[1])\n# "stable": equal keys keep order'),
    Example("высота горы", "Η κορυφή βρίσκεται στα 2.918 μέτρα 🏔", "Relevant when a height in metres is given."),
    Example("tides", "The sea rises twice a day, later each day by about fifty minutes. " * 60),
)


class Trained(Protocol):
    """A finished training: three ways to score rows in fp32, and the folder that people load."""

    kind: Kind
    has_adapter: bool
    random_head: bool  # The base has no head that scores, so that its margins are chance.

    def base_margins(self, rows: Sequence[Any]) -> list[float]:
        """Return the base's own margins with our prompt."""

    def trained_margins(self, rows: Sequence[Any]) -> list[float]:
        """Return the chosen checkpoint's margins: base and adapter, or the tuned encoder."""

    def write(self, folder: Path) -> None:
        """Merge in fp32 and write weights, tokenizer and template."""

    def published_margins(self, folder: Path, rows: Sequence[Any]) -> list[float]:
        """Return the margins of the model in the folder, loaded by plain transformers."""


def finish_training(
    out: Path,
    trained: Trained,
    dev: Sequence[Example],
    record: Record,
    *,
    report: Callable[[str], None],
    first_stage: FirstStage | None = None,
) -> Record:
    """Score, calibrate and publish to `out` (new, or an empty folder); return the record with all that was measured.

    `record` holds what training knows so far; `first_stage` what the model would rerank. Raises
    publishing.MergeDiffers when the written model scores otherwise; then `out` is as it was.
    """
    report("scoring the dev split with the base")
    ranked = first_stage.rows if first_stage else []
    of_base = trained.base_margins([*dev, *ranked])
    report("scoring the dev split with the chosen checkpoint")
    # The fixture and the first stage are scored with the split, in one pass over the model.
    everything = [*dev, *FIXTURE, *ranked]
    # fp32 throughout: what is published is held to these margins.
    expected = trained.trained_margins(everything)
    before, after, last = of_base[: len(dev)], expected[: len(dev)], len(dev) + len(FIXTURE)
    # Compared on queries without a part in choosing the checkpoint, if any; else all.
    apart = held_out_queries(dev)
    sides = {
        name: {query: value for query, value in ndcg_by_query(margins, dev).items() if not apart or query in apart}
        for name, margins in (("base", before), ("tuned", after))
    }
    compare = partial(compare_models, least=LEAST_QUERIES if apart else LEAST_TO_SPLIT, random_head=trained.random_head)
    gain, rankings = compare(sides["base"], sides["tuned"]), {}
    if first_stage:
        # All three over the documents of the first stage.
        orders = first_stage.compare(of_base[len(dev) :], expected[last:], random_head=trained.random_head)
        names = (orders["first_stage"], "base", "tuned")
        first, base, tuned = (orders["per_query"][side][MEASURE] for side in names)
        gain = compare(base, tuned, first=first, first_stage=orders["first_stage"])
        rankings = {name: value for name, value in orders.items() if name != "per_query"} | {"choosing": not apart}
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
        # Another way: the published folder is loaded as by somebody without our code.
        found = trained.published_margins(folder, everything)
        record = replace(
            record,
            calibration=calibration,
            gain=gain,
            rankings=rankings,
            per_query={"measure": MEASURE, "choosing": not apart, **sides},
            fixture=[
                {"query": pair.query, "document": pair.document, "instruction": pair.instruction, "margin": margin}
                for pair, margin in zip(FIXTURE, expected[len(dev) : last], strict=True)
            ],
            merge_difference=check_merge(expected, found, precision),
            evaluation={**evaluation, "merged": measure(found[: len(dev)])},
        )
        annotate_folder(folder, record, name=model_title(out.name, record))
    return record


def dev_measures(margins: Sequence[float], dev: Sequence[Example]) -> dict[str, Any]:
    """Return the measures of one evaluation while training goes on (the `dev` of a line of metrics.jsonl).

    `choosing`: the same over the queries that decide between checkpoints (metrics.held_out_queries).
    """
    # Some dev queries have no part in choosing a checkpoint, to judge it fairly.
    apart = held_out_queries(dev)
    places = [place for place, row in enumerate(dev) if row.query_id not in apart]
    choosing = measure_dev_split([margins[place] for place in places], [dev[place] for place in places])
    return measure_dev_split(margins, dev) | {"choosing": choosing}
