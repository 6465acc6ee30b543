"""Contents of the training pages: reasons, tables and charts, read from rows and job folders."""

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop
from redis.exceptions import RedisError

from charts import Bar, Chart, Dot, draw_bars, draw_lines, draw_scatter
from corpus.collections.exported_sets import read_manifests
from corpus.models import Collection
from corpus.reader_time import format_time
from jobs import workers
from store.files import exists, fetch
from training.jobs import rollouts, worker_pool
from training.jobs.first_stage import BM25
from training.jobs.outcomes import CAVEAT, MEASURES
from training.jobs.shared_folder import PROGRESS_FILES
from training.jobs.significance import TOO_FEW
from training.models import Job, Model
from training.recipes.job_folder import JobFolder
from training.recipes.table import RECIPES

EXTRA = "training-extra.json"
LOG_LINES = 12
MOST_BASES = 20  # The newest models of the collection that the form offers as bases.
LONG_CURVE = 400  # A curve with more points is drawn as means of neighbours.
ALMOST = 0.99  # Above this nDCG@10 of the base, there is nothing to gain.
MOST_DOTS = 400  # Dots of each model in the scatter of evidence; more would hide each other.

# Metrics by their key in metrics.jsonl, which is also the id of the chart.
METRIC_NAMES = {
    "reward_mean": gettext_noop("Mean reward"),
    "kl": gettext_noop("KL divergence from the reference model"),
    "response_tokens": gettext_noop("Answer length in tokens"),
    "malformed": gettext_noop("Share of malformed answers"),
}
DOCUMENT_KINDS = {"positive": gettext_noop("relevant documents"), "negative": gettext_noop("other documents")}

WHY_NOT = {
    "missing": gettext_lazy("Training is not installed: %(line)s."),
    "not-installed": gettext_lazy(
        "Training is not installed (make install-training), and no worker with training is running."
    ),
}
SIDES = ("base", "adapter", "merged")
ROWS = {
    "label_pearson": gettext_noop("Pearson with the labels"),
    "teacher_pearson": gettext_noop("Pearson with target scores"),
    "auc": "AUC",
    "accuracy": gettext_noop("Accuracy at 0.5"),
    "accuracy_at_threshold": gettext_noop("Accuracy at the chosen threshold"),
    "ndcg@10": "nDCG@10",
}
# The measures of a model's answers by rule, without a judge (Prism table 2).
OUTPUT_ROWS = {
    "label_match": gettext_noop("First word agrees with the label"),
    "format": gettext_noop("Format score"),
    "fidelity": gettext_noop("Entity fidelity (numbers, percentages, dates)"),
    "fidelity_prism": gettext_noop("Entity fidelity by substring, as in Prism"),
    "language": gettext_noop("In the expected language"),
}
COMPRESSION_ROWS = {
    "p10": gettext_noop("Evidence tokens / document tokens, p10"),
    "median": gettext_noop("Evidence tokens / document tokens, median"),
    "p90": gettext_noop("Evidence tokens / document tokens, p90"),
}


def extra_state() -> dict[str, Any]:
    """Return the state of the demo's installation of the training extra (config.extra); "ready" if it never ran."""
    try:
        return dict(json.loads((Path(settings.VAR) / EXTRA).read_text()))
    except (OSError, ValueError):
        return {"state": "ready"}


def why_not() -> str:
    """Return why no job can be started, or "" if a worker is running or training is installed here."""
    extra = extra_state()
    # While the extra is being installed, jobs wait in the queue until the demo starts the worker.
    if workers.has_workers(worker_pool.QUEUE) or extra["state"] == "installing":
        return ""
    if extra["state"] != "ready":
        return str(WHY_NOT["missing"] % extra)
    return "" if worker_pool.is_training_installed() else str(WHY_NOT["not-installed"])


def why_not_now() -> str:
    """Return why a training started now would not run, or "" if a worker is running or about to run."""
    if reason := why_not():
        return reason
    if workers.has_workers(worker_pool.QUEUE) or extra_state()["state"] == "installing":
        return ""
    return _("No trainer is running, so a training would wait forever. Ask an administrator of this site to start one.")


def training_sets(collection: Collection) -> list[tuple[str, str]]:
    """Return the folder and label of each export that a training can learn from, newest first."""
    sets = []
    for folder, manifest, created_at in read_manifests(collection):
        export_format = manifest.get("format")
        if export_format not in {entry.format for entry in RECIPES.values()}:
            continue
        counts = manifest.get("counts", {})
        label = _("%(self)s: %(rows)s rows from %(queries)s queries, target score %(teacher)s")
        if export_format != "prism":
            label = _("%(self)s: format %(format)s, %(rows)s rows from %(queries)s queries")
        if manifest.get("synthetic"):
            label = _("%(self)s: format %(format)s, %(rows)s synthetic queries")
        label %= {
            "format": export_format,
            "self": format_time(created_at, "MONTH_DAY_TIME_FORMAT"),
            "rows": f"{counts.get('rows', 0):,}",
            "queries": f"{counts.get('queries', 0):,}",
            "teacher": (manifest.get("options") or {}).get("teacher") or "none",
        }
        sets.append((str(folder), label))
    return sets


def base_choices(collection: Collection) -> list[Model]:
    """Return the collection's models that a training can use as base, newest first: those whose folders exist."""
    models = Model.objects.filter(collection=collection, job__curve_point=None).order_by("-pk")[:MOST_BASES]
    return [model for model in models if fetch(Path(model.folder) / "config.json").exists()]


def explain_queue_wait(job: Job) -> str:
    """Return why a queued job is not running yet; "" for jobs in other states."""
    if job.state != Job.State.QUEUED:
        return ""
    try:
        running_workers = workers.live_workers(worker_pool.QUEUE)
    except (RedisError, OSError):
        return _("Redis does not respond, so no worker can be reached. The job waits until it is available.")
    if not running_workers:
        return _("No trainer is running, so the training waits. Ask an administrator of this site to start one.")
    if not any(job.device in worker.devices for worker in running_workers):
        return _("Waiting for a worker with a GPU. No worker on this queue has one.")
    return _("Waiting for another job to finish.")


def live_job(job: Job) -> dict[str, Any]:
    """Return what a job's page shows of its folder: loss, last step, measurements, log."""
    folder = JobFolder(Path(job.folder))
    # The newest version that the machine working on the job has published.
    for name in PROGRESS_FILES:
        fetch(folder.path / name, newest=True)
    lines = folder.read_metrics()
    steps = [line for line in lines if "loss" in line]
    latest, forecast = steps[-1] if steps else {}, None
    if job.state == Job.State.RUNNING and latest and latest["step"] < latest["steps"]:
        pace = latest["seconds"] / latest["step"]
        forecast = timedelta(seconds=round(pace * (latest["steps"] - latest["step"])))
    return {
        "loss": loss_chart(job, steps) if steps else None,
        "latest": latest,
        "lengths": lengths_chart(folder.state.get("row_lengths")),
        "metrics": draw_metrics(lines, setup_label(job)),
        "has_rollouts": exists(folder.path / rollouts.FILE),
        "measured": [(int(line["step"]), line["dev"]) for line in lines if "dev" in line],
        "forecast": forecast,
        "log": folder.tail(LOG_LINES),
        "files": [name for name in ("log.txt", "metrics.jsonl") if (folder.path / name).exists()],
        "waiting": explain_queue_wait(job),
    }


def loss_chart(job: Job, steps: Sequence[dict[str, Any]]) -> Chart:
    """Draw the loss of each step, and its moving mean over a tenth of the steps."""
    points = [(float(line["step"]), float(line["loss"])) for line in steps]
    span = max(3, len(points) // 10)
    series = {"step": thin_curve(points)}
    # Single steps vary too much to be compared, so the summary compares means as soon as there are two of them.
    if len(points) < 2 * span:
        first, last = points[0][1], points[-1][1]
        summary = _("Loss from %(first)s at the first step to %(last)s at the last")
    else:
        mean = [
            (step, sum(value for _step, value in points[max(0, end - span) : end]) / min(span, end))
            for end, (step, _value) in enumerate(points, 1)
        ]
        series[_("mean of %(span)s") % {"span": span}] = thin_curve(mean)
        first, last = mean[span - 1][1], mean[-1][1]
        summary = _("Loss from a mean of %(first)s over the first %(span)s steps to %(last)s over the last")
    summary %= {"first": f"{first:,.2f}", "span": span, "last": f"{last:,.2f}"}
    return draw_lines(
        "loss",
        _("Loss by step (%(words)s)") % {"words": setup_label(job)},
        series,
        x="step",
        y="loss",
        low=0.0,
        summary=f"{summary} ({setup_label(job)}).",
    )


def draw_metrics(lines: Sequence[Mapping[str, Any]], words: str) -> list[Chart]:
    """Draw rewards, KL divergence, answer length and malformed answers by step, those that were measured."""
    charts = []
    for key, name in METRIC_NAMES.items():
        points = [(line["step"], float(line[key])) for line in lines if line.get(key) is not None]
        series = {_("all"): points}
        for kind, kind_name in DOCUMENT_KINDS.items() if key == "reward_mean" else ():
            rewards = [(line["step"], line.get("reward_by_kind") or {}) for line in lines]
            if kind_points := [(step, float(by_kind[kind])) for step, by_kind in rewards if kind in by_kind]:
                series[_(kind_name)] = kind_points
        if points:
            title = _("%(name)s by step (%(words)s)") % {"name": _(name), "words": words}
            low = None if key == "reward_mean" else 0.0
            charts.append(draw_lines(key, title, series, x=_("step"), y=_(name), low=low))
    return charts


def lengths_chart(lengths: dict[str, Any] | None) -> Chart | None:
    """Draw a histogram of the lengths of training rows before they are cut (metrics.summarize_lengths)."""
    if not lengths:
        return None
    width = lengths["width"]
    edges = [(index * width + 1, (index + 1) * width) for index in range(len(lengths["counts"]))]
    rows = [Bar(f"{low:,}-{high:,}", float(count)) for (low, high), count in zip(edges, lengths["counts"], strict=True)]
    summary = _(
        "%(cut)s of %(rows)s rows are longer than the maximum of %(limit)s tokens and are truncated. "
        "A maximum of %(fits_95)s tokens would fit 95%% of the rows."
    ) % {name: f"{lengths[name]:,}" for name in ("cut", "rows", "limit", "fits_95")}
    return draw_bars("lengths", _("Rows by length in tokens"), rows, x=_("rows"), summary=summary)


def thin_curve(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points of a curve, those of a long one as means of neighbours."""
    width = -(-len(points) // LONG_CURVE)
    groups = (points[start : start + width] for start in range(0, len(points), width))
    return [(group[-1][0], sum(value for _, value in group) / len(group)) for group in groups]


def setup_label(job: Job) -> str:
    """Return the label of a job's setup that is shown with its figures: its device, until the subprocess says more."""
    return job.words or ("CPU" if job.device == "cpu" else "GPU")


def evaluation_table(evaluation: dict[str, Any] | None) -> list[tuple[str, list[float | None]]]:
    """Return the title of each measure with the values of base, adapter and merged model, None if missing."""
    evaluation = evaluation or {}
    return [(_(title), [(evaluation.get(side) or {}).get(key) for side in SIDES]) for key, title in ROWS.items()]


def explain_no_gain(gain: Mapping[str, Any], *, tiny: bool) -> str:
    """Return a sentence why significance.compare_models shows no gain, or "" if it shows one."""
    queries, base, difference = gain.get("queries", 0), gain.get("base"), gain.get("difference")
    if not gain or gain.get("shown"):
        return ""
    if difference is None or base is None:
        return _("No dev query with a relevant document was answered by both models.")
    if TOO_FEW in str(gain.get("words")):
        return _(
            "Too few dev queries (%(queries)s): create an export with a smaller share of queries for training, or "
            "label more queries."
        ) % {"queries": queries}
    if gain.get("below"):
        return _(
            "Its reranking is worse than the first ranking. Train on more labels from people or judges, with fewer "
            "assumed negatives, or lower the learning rate."
        )
    if gain.get("random_head"):
        return _(
            "The base had no head that scores, so its first scores are random, and a gain over them says nothing. "
            "Compare the model with what it would rerank."
        )
    if base >= ALMOST:
        return _("The base model ranks these queries almost perfectly already, so there is nothing to gain.")
    if tiny:
        return _(
            "The base model is tiny and has random weights: it shows how training works, and is too small to learn "
            "much."
        )
    if difference < 0:
        return _("The tuned model ranks these queries worse: train on more labels, or lower the learning rate.")
    return _(
        "The difference is within chance: more held-out queries would test it better, and more labels would teach more."
    )


def name_side(side: str, *, random_head: bool) -> str:
    """Return the heading of a model: a base with a random head is named so, since it is no baseline."""
    return gettext_noop("random head") if side == "base" and random_head else side


def name_sides(gain: Mapping[str, Any] | None) -> list[str]:
    """Return the column headings of base, adapter and merged model."""
    return [name_side(side, random_head=bool((gain or {}).get("random_head"))) for side in SIDES]


def rankings_table(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table of first stage, base and tuned model (first_stage.compare_rankings), {} if they are missing."""
    if not (measures := result.get("measures")):
        return {}
    first = result.get("first_stage") or BM25
    random_head = bool(result.get("random_head"))
    headings = {name: name_side(name, random_head=random_head) for name in (first, "base", "tuned")}
    return {
        "first_stage": first,
        "queries": result["queries"],
        "caveat": result.get("caveat") or CAVEAT[not result.get("choosing")],
        "means": [(heading, list(measures[name].items())) for name, heading in headings.items()],
        "compared": [
            {**row, "one": headings[row["one"]], "other": headings[row["other"]]} for row in result["compared"]
        ],
    }


def draw_queries(result: dict[str, Any]) -> Chart | None:
    """Draw the nDCG@10 of every query with the base and with the tuned model."""
    per_query = result.get("per_query")
    if not per_query:
        return None
    base, tuned = (per_query[name][MEASURES[0]] for name in ("base", "tuned"))
    dots = [Dot(base[query], tuned[query], query, "queries") for query in sorted(base)]
    summary = _("%(base)s queries: %(better)s better with the tuned model, %(worse)s worse, the rest unchanged.") % {
        "base": len(base),
        "better": sum(tuned[query] > base[query] for query in base),
        "worse": sum(tuned[query] < base[query] for query in base),
    }
    return draw_scatter("queries", _("nDCG@10 by query"), dots, x="base", y="tuned", diagonal=True, summary=summary)


def outputs_table(result: dict[str, Any]) -> list[tuple[str, list[float | None]]]:
    """Return the title of each measure of the models' texts with the models' values, None if undefined."""
    outputs = (result.get("outputs") or {}).values()
    rows = [(_(title), [measures.get(key) for measures in outputs]) for key, title in OUTPUT_ROWS.items()]
    rows += [
        (_(title), [measures["compression"][key] for measures in outputs]) for key, title in COMPRESSION_ROWS.items()
    ]
    return rows if outputs else []


def missing_values(result: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the undefined values of that table, each as model, title and reason."""
    titles = OUTPUT_ROWS | {"compression": _("Evidence tokens / document tokens")}
    outputs = (result.get("outputs") or {}).items()
    return [(side, _(titles[key]), reason) for side, measures in outputs for key, reason in measures["reasons"].items()]


def draw_evidence(result: dict[str, Any]) -> Chart | None:
    """Draw the tokens of evidence against those of the document, for rows that the model calls relevant."""
    outputs = result.get("outputs") or {}
    dots = [Dot(x, y, "", side) for side, measures in outputs.items() for x, y in measures["points"][:MOST_DOTS]]
    if not dots:
        return None
    summary = _("%(dots)s rows with evidence; evidence is shorter than the document in %(shorter)s of them.") % {
        "dots": len(dots),
        "shorter": sum(dot.y < dot.x for dot in dots),
    }
    title = _("Evidence and document length in model tokens")
    return draw_scatter("evidence", title, dots, x="document", y="evidence", diagonal=True, summary=summary)
