"""Contents of the training pages, read from rows and job folders."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop
from redis.exceptions import RedisError

from charts import Bar, Chart, Dot, draw_bars, draw_lines, draw_scatter
from corpus.models import Collection
from jobs import workers
from store.files import exists, fetch, fetch_matching
from training.jobs import rollouts, worker_pool
from training.jobs.first_stage import BM25
from training.jobs.folder import JobFolder
from training.jobs.outcomes import CAVEAT, MEASURES
from training.jobs.shared_folder import NEWS
from training.jobs.significance import TOO_FEW
from training.models import Job, Model
from training.recipes.table import RECIPES

EXTRA = "training-extra.json"
NEEDED = ("torch", "peft", "accelerate")  # Of the training extra: looked for, never imported.
LOG_LINES = 12
MOST_BASES = 20  # Models of the collection that the form offers as bases.
LONG_CURVE = 400  # Points of a curve from which it is drawn as means of neighbours.
ALMOST = 0.99  # nDCG@10 of a base from which nothing is left to gain.
MOST_DOTS = 400  # Of each model in the scatter of evidence: more would hide each other.

# Key of the chart and of a line of metrics -> what it is.
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
# Prism, table 2: what is measured of a model's answers by rule, without a judge.
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
    """Return what the demo's installer last wrote of the training extra (config.extra); ready where it never ran."""
    try:
        return dict(json.loads((Path(settings.VAR) / EXTRA).read_text()))
    except (OSError, ValueError):
        return {"state": "ready"}


def why_not() -> str:
    """Return why no job could run; empty with a worker, or what one needs here."""
    found = extra_state()
    # A job may be started while the extra is installed: it waits in the queue until the demo starts the worker.
    if workers.has_workers(worker_pool.QUEUE) or found["state"] == "installing":
        return ""
    if found["state"] != "ready":
        return str(WHY_NOT["missing"] % found)
    return str(WHY_NOT["not-installed"]) if any(find_spec(name) is None for name in NEEDED) else ""


def why_not_now() -> str:
    """Return why a training that is started now would not run; empty where a trainer is there, or about to be."""
    if why := why_not():
        return why
    if workers.has_workers(worker_pool.QUEUE) or extra_state()["state"] == "installing":
        return ""
    return _("No trainer is running, so a training would wait for ever. Ask whoever runs this site to start one.")


def training_sets(collection: Collection) -> list[tuple[str, str]]:
    """Return folder and label of exports that a training can learn from, newest first."""
    found = []
    paths = fetch_matching(Path(settings.VAR) / "exports" / collection.name, "*/manifest.json")
    for path in sorted(paths, key=lambda path: -path.stat().st_mtime):
        try:
            manifest = json.loads(path.read_text())
        except (OSError, ValueError):
            continue
        form = manifest.get("format")
        if form not in {entry.format for entry in RECIPES.values()}:
            continue
        counts = manifest.get("counts", {})
        made = datetime.fromtimestamp(path.stat().st_mtime, timezone.get_current_timezone())
        words = _("%(self)s: %(rows)s rows from %(queries)s queries, target score %(teacher)s")
        if form != "prism":
            words = _("%(self)s: format %(format)s, %(rows)s rows from %(queries)s queries")
        if manifest.get("synthetic"):
            words = _("%(self)s: format %(format)s, %(rows)s synthetic queries")
        label = words % {
            "format": form,
            "self": date_format(made, "MONTH_DAY_TIME_FORMAT"),
            "rows": f"{counts.get('rows', 0):,}",
            "queries": f"{counts.get('queries', 0):,}",
            "teacher": (manifest.get("options") or {}).get("teacher") or "none",
        }
        found.append((str(path.parent), label))
    return found


def base_choices(collection: Collection) -> list[Model]:
    """Return the collection's models that a training can begin with, newest first: those whose folders are there."""
    found = Model.objects.filter(collection=collection, job__curve_point=None).order_by("-pk")[:MOST_BASES]
    return [model for model in found if fetch(Path(model.folder) / "config.json").exists()]


def explain_queue_wait(job: Job) -> str:
    """Return why a queued job does not run, in words; empty where it runs."""
    if job.state != Job.State.QUEUED:
        return ""
    try:
        living = workers.live_workers(worker_pool.QUEUE)
    except (RedisError, OSError):
        return _("Redis does not respond, so no worker can be reached. The job waits until it is available.")
    if not living:
        return _("No trainer is running, so the training waits. Ask whoever runs this site to start one.")
    if not any(job.device in worker.devices for worker in living):
        return _("Waiting for a worker with a GPU. No worker on this queue has one.")
    return _("Waiting for another job to finish.")


def live_job(job: Job) -> dict[str, Any]:
    """Return a job's page of its folder: loss, last step, measurements, log."""
    folder = JobFolder(Path(job.folder))
    for name in NEWS:  # As the machine that works on the job published it last.
        fetch(folder.path / name, newest=True)
    lines = folder.lines()
    steps = [one for one in lines if "loss" in one]
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
        "measured": [(int(one["step"]), one["dev"]) for one in lines if "dev" in one],
        "forecast": forecast,
        "log": folder.tail(LOG_LINES),
        "files": [name for name in ("log.txt", "metrics.jsonl") if (folder.path / name).exists()],
        "waiting": explain_queue_wait(job),
    }


def loss_chart(job: Job, steps: Sequence[dict[str, Any]]) -> Chart:
    """Draw each step's loss and its mean over a tenth of the steps, which tells."""
    points = [(float(one["step"]), float(one["loss"])) for one in steps]
    span = max(3, len(points) // 10)
    series = {"step": thin_curve(points)}
    # Single steps jump too much to be compared, so the summary compares means as soon as there are two of them.
    if len(points) < 2 * span:
        first, last = points[0][1], points[-1][1]
        words = _("Loss from %(first)s at the first step to %(last)s at the last")
    else:
        mean = [
            (at, sum(value for _step, value in points[max(0, end - span) : end]) / min(span, end))
            for end, (at, _value) in enumerate(points, 1)
        ]
        series[_("mean of %(span)s") % {"span": span}] = thin_curve(mean)
        first, last = mean[span - 1][1], mean[-1][1]
        words = _("Loss from a mean of %(first)s over the first %(span)s steps to %(last)s over the last")
    summary = words % {"first": f"{first:,.2f}", "span": span, "last": f"{last:,.2f}"}
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
    """Draw rewards, KL, answer length and malformed answers by round, if any."""
    charts = []
    for key, name in METRIC_NAMES.items():
        points = [(line["step"], float(line[key])) for line in lines if line.get(key) is not None]
        series = {_("all"): points}
        for kind, kind_name in DOCUMENT_KINDS.items() if key == "reward_mean" else ():
            rewards = [(line["step"], line.get("reward_by_kind") or {}) for line in lines]
            if of_kind := [(step, float(by_kind[kind])) for step, by_kind in rewards if kind in by_kind]:
                series[_(kind_name)] = of_kind
        if points:
            title = _("%(name)s by step (%(words)s)") % {"name": _(name), "words": words}
            low = None if key == "reward_mean" else 0.0
            charts.append(draw_lines(key, title, series, x=_("step"), y=_(name), low=low))
    return charts


def lengths_chart(found: dict[str, Any] | None) -> Chart | None:
    """Draw how many rows of the training split have which length, before they are cut."""
    if not found:
        return None
    width = found["width"]
    edges = [(place * width + 1, (place + 1) * width) for place in range(len(found["counts"]))]
    rows = [Bar(f"{low:,}-{high:,}", float(n)) for (low, high), n in zip(edges, found["counts"], strict=True)]
    summary = _(
        "%(cut)s of %(rows)s rows are longer than the maximum of %(limit)s tokens and are truncated. "
        "A maximum of %(fits_95)s tokens would fit 95%% of the rows."
    ) % {name: f"{found[name]:,}" for name in ("cut", "rows", "limit", "fits_95")}
    return draw_bars("lengths", _("Rows by length in tokens"), rows, x=_("rows"), summary=summary)


def thin_curve(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return a long curve as means of neighbours."""
    width = -(-len(points) // LONG_CURVE)
    groups = (points[start : start + width] for start in range(0, len(points), width))
    return [(group[-1][0], sum(value for _, value in group) / len(group)) for group in groups]


def setup_label(job: Job) -> str:
    """Return what stands beside a job's figures: its device, until the subprocess says more."""
    return job.words or ("CPU" if job.device == "cpu" else "GPU")


def evaluation_table(evaluation: dict[str, Any] | None) -> list[tuple[str, list[float | None]]]:
    """Return a row for each measure with the values of base, adapter and merged, None where undefined or missing."""
    found = evaluation or {}
    return [(_(title), [(found.get(side) or {}).get(key) for side in SIDES]) for key, title in ROWS.items()]


def explain_no_gain(found: Mapping[str, Any], *, tiny: bool) -> str:
    """Return in a sentence why significance.compare_models shows no gain; empty where it does."""
    queries, base, difference = found.get("queries", 0), found.get("base"), found.get("difference")
    if not found or found.get("shown"):
        return ""
    if difference is None or base is None:
        return _("No dev query with a relevant document was answered by both models.")
    if TOO_FEW in str(found.get("words")):
        return _(
            "%(queries)s dev queries are too few: create an export with a smaller share of queries for training, or "
            "label more queries."
        ) % {"queries": queries}
    if found.get("below"):
        return _(
            "What it would rerank is better left as it is. Train on more labels that people or judges gave, with fewer "
            "assumed negatives, or lower the learning rate."
        )
    if found.get("random_head"):
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
    """Return the name of a model's column or row: a base with a random head is no yardstick."""
    return gettext_noop("random head") if side == "base" and random_head else side


def name_sides(gain: Mapping[str, Any] | None) -> list[str]:
    """Return the columns of the table of base, adapter and merged model."""
    return [name_side(side, random_head=bool((gain or {}).get("random_head"))) for side in SIDES]


def rankings_table(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the first stage, the base and the tuned model side by side (first_stage.compare_rankings); {} without."""
    if not (measures := found.get("measures")):
        return {}
    first = found.get("first_stage") or BM25
    named = {name: name_side(name, random_head=bool(found.get("random_head"))) for name in (first, "base", "tuned")}
    return {
        "first_stage": first,
        "queries": found["queries"],
        "caveat": found.get("caveat") or CAVEAT[not found.get("choosing")],
        "means": [(named[name], list(measures[name].items())) for name in named],
        "compared": [{**row, "one": named[row["one"]], "other": named[row["other"]]} for row in found["compared"]],
    }


def draw_queries(result: dict[str, Any]) -> Chart | None:
    """Draw nDCG@10 of every query, base against tuned."""
    found = result.get("per_query")
    if not found:
        return None
    base, tuned = (found[name][MEASURES[0]] for name in ("base", "tuned"))
    dots = [Dot(base[query], tuned[query], query, "queries") for query in sorted(base)]
    summary = _("%(base)s queries: %(better)s better with the tuned model, %(worse)s worse, the rest unchanged.") % {
        "base": len(base),
        "better": sum(tuned[query] > base[query] for query in base),
        "worse": sum(tuned[query] < base[query] for query in base),
    }
    return draw_scatter("queries", _("nDCG@10 by query"), dots, x="base", y="tuned", diagonal=True, summary=summary)


def outputs_table(result: dict[str, Any]) -> list[tuple[str, list[float | None]]]:
    """Return a row a measure of models' texts with values; None where undefined."""
    found = (result.get("outputs") or {}).values()
    rows = [(_(title), [one.get(key) for one in found]) for key, title in OUTPUT_ROWS.items()]
    rows += [(_(title), [one["compression"][key] for one in found]) for key, title in COMPRESSION_ROWS.items()]
    return rows if found else []


def missing_values(result: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return which values of that table are missing, as model, title and reason."""
    titles = OUTPUT_ROWS | {"compression": _("Evidence tokens / document tokens")}
    found = (result.get("outputs") or {}).items()
    return [(side, _(titles[key]), why) for side, one in found for key, why in one["reasons"].items()]


def draw_evidence(result: dict[str, Any]) -> Chart | None:
    """Draw tokens of evidence against the document's, for rows called relevant."""
    found = result.get("outputs") or {}
    dots = [Dot(x, y, "", side) for side, one in found.items() for x, y in one["points"][:MOST_DOTS]]
    if not dots:
        return None
    summary = _("%(dots)s rows with evidence; evidence is shorter than the document in %(shorter)s of them.") % {
        "dots": len(dots),
        "shorter": sum(dot.y < dot.x for dot in dots),
    }
    title = _("Evidence and document length in model tokens")
    return draw_scatter("evidence", title, dots, x="document", y="evidence", diagonal=True, summary=summary)
