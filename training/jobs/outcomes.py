"""The outcome of a finished job: the row of a model, measures of rankings, or a reordered queue."""

import json
from pathlib import Path
from typing import Any

from django.utils.translation import gettext_noop

from benchmark.measures import rankings as measures
from benchmark.runs import files
from corpus.collections.task_order import reprioritise_tasks
from corpus.models import Pair
from training.jobs import lifecycle
from training.jobs.first_stage import BM25, PAIRS, QRELS, compare_rankings
from training.jobs.inputs import dev_queries
from training.jobs.loss_comparison import MEASURE, write_tables
from training.models import CurvePoint, Job, Model
from training.recipes.job_folder import JobFolder, read_lines
from training.recipes.subsets import read_subset

MEASURES = ("nDCG@10", "RR@10", "R@20")
BATCH = 5000
CAVEAT = {
    True: gettext_noop("These queries were not used to choose the checkpoint."),
    False: gettext_noop(
        "The checkpoint was chosen on these same queries, which favours the tuned model: interpret p with caution."
    ),
}


def store_outcome(job: Job, folder: JobFolder) -> dict[str, Any]:
    """Store the outcome of a job in the database, and return the result for its page. Raises QuorumError.

    1. Jobs that score write a TREC run for each model.
    2. A training publishes its model; a point of a learning curve stores the size of its subset.
    3. A comparison of losses or rankings returns their measures, and an ordering reorders the queue.
    """
    if job.kind not in (Job.Kind.TRAIN, Job.Kind.GENERATE):
        # The score of a document in the run is its raw margin in fp32.
        for path in folder.path.glob("*.scores.jsonl"):
            name = path.name.removesuffix(".scores.jsonl")
            run = folder.path / f"{name}.run"
            # An earlier attempt may have written it, and a run is never overwritten.
            run.unlink(missing_ok=True)
            files.write_run(run, _model_scores(folder, name), name)
    if job.kind == Job.Kind.TRAIN:
        lifecycle.publish_model(job)
        if subset := read_subset(folder.path / "data"):
            CurvePoint.objects.filter(job=job).update(labels=subset["labels"], queries=subset["queries"])
    elif job.kind in (Job.Kind.EVALUATE, Job.Kind.LOSSES):
        qrels = json.loads((folder.path / QRELS).read_text())
        caveat = CAVEAT[dev_queries(Path(job.options["data"]))[1]]
        names = job.options["models"] if job.kind == Job.Kind.LOSSES else ("base", "tuned")
        rankings = {name: _model_scores(folder, name) for name in names}
        if job.kind == Job.Kind.LOSSES:
            assert job.collection is not None
            values = {
                name: measures.evaluate_run(qrels, ranking, [MEASURE]).per_query[MEASURE]
                for name, ranking in rankings.items()
            }
            losses = write_tables(folder.path, {job.collection.name: values})
            return {**job.result, "losses": losses, "caveat": caveat}
        model = Model.objects.filter(pk=job.options.get("model")).first()
        random_head = bool(model and (model.summary.get("gain") or {}).get("random_head"))
        first = {
            line["query_id"]: {document["doc_id"]: document["score"] for document in line["documents"]}
            for line in read_lines(folder.path / PAIRS)
        }
        compared = compare_rankings(qrels, {BM25: first, **rankings}, MEASURES)
        return {**job.result, **compared, "random_head": random_head, "caveat": caveat}
    elif job.kind == Job.Kind.ORDER:
        return {**job.result, "ordered": reorder_queue(job, folder)}
    return dict(job.result)


def _model_scores(folder: JobFolder, name: str) -> dict[str, dict[str, float]]:
    lines = read_lines(folder.path / f"{name}.scores.jsonl")
    return {line["query_id"]: dict(zip(line["doc_ids"], line["margins"], strict=True)) for line in lines}


def reorder_queue(job: Job, folder: JobFolder) -> int:
    """Order the queue by the model's uncertainty, which is greatest at a probability of 0.5.

    Return the number of pairs that got an uncertainty.
    """
    assert job.collection is not None
    scores = {
        (line["query_id"], doc_id): probability
        for line in read_lines(folder.path / "model.scores.jsonl")
        for doc_id, probability in zip(line["doc_ids"], line["probabilities"], strict=True)
    }
    changed: list[Pair] = []
    pairs = Pair.objects.filter(collection=job.collection, items__state="open").select_related("query", "document")
    for pair in pairs.distinct():
        probability = scores.get((pair.query.external_id, pair.document.external_id))
        if probability is not None:
            pair.uncertainty = 1.0 - abs(2.0 * probability - 1.0)
            changed.append(pair)
    Pair.objects.bulk_update(changed, ["uncertainty"], batch_size=BATCH)
    reprioritise_tasks(job.collection)
    return len(changed)
