"""What the training pages show, read from rows and job folders."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from redis.exceptions import RedisError

from charts import Chart, Dot, draw_lines, draw_scatter
from corpus.models import Collection
from jobs import workers
from training.jobs import outputs_page, worker_pool
from training.jobs.folder import JobFolder
from training.jobs.outcomes import MEASURES
from training.models import Job, Model

EXTRA = "training-extra.json"
NEEDED = ("torch", "peft", "accelerate")  # Of the training extra: looked for, never imported.
SHOWN = 50
LOG_LINES = 12
LONG_CURVE = 400  # Points of a curve from which it is drawn as means of neighbours.

SIDES = ("base", "adapter", "merged")
ROWS = {
    "label_pearson": gettext_noop("Pearson with the labels"),
    "teacher_pearson": gettext_noop("Pearson with the teacher"),
    "auc": "AUC",
    "accuracy": gettext_noop("Accuracy at 0.5"),
    "accuracy_at_threshold": gettext_noop("Accuracy at the chosen threshold"),
    "ndcg@10": "nDCG@10",
}


@dataclass(frozen=True)
class ExtraState:
    """How far the training extra of this instance is; `state` is ready where nobody said otherwise."""

    state: str
    line: str
    done: int
    of: int


def extra_state() -> ExtraState:
    """What the demo's installer said last."""
    try:
        found = json.loads((Path(settings.VAR) / EXTRA).read_text())
    except (OSError, ValueError):
        return ExtraState("ready", "", 0, 0)
    return ExtraState(str(found["state"]), str(found["line"]), int(found["done"]), int(found["of"]))


def why_not() -> str:
    """Why no job could run, in words; empty where a worker lives, or this machine has what a worker needs."""
    found = extra_state()
    if workers.has_workers(worker_pool.QUEUE) or found.state == "installing":
        return ""
    if found.state != "ready":
        return _("The training extra is not here: %(line)s.") % {"line": found.line}
    if any(find_spec(name) is None for name in NEEDED):
        return _(
            "The training extra is not installed here (`make install-training`), and no worker that has it is running."
        )
    return ""


@dataclass(frozen=True)
class TrainingData:
    """An export of format prism that a training can learn from."""

    folder: str
    name: str
    teacher: str
    rows: int
    queries: int

    def __str__(self) -> str:
        return _("%(self)s: %(rows)s rows of %(queries)s queries, teacher %(teacher)s") % {
            "self": self.name,
            "rows": f"{self.rows:,}",
            "queries": f"{self.queries:,}",
            "teacher": self.teacher,
        }


def training_sets(collection: Collection) -> list[TrainingData]:
    """Exports of this collection that lie in VAR, newest first."""
    folders = (Path(settings.VAR) / "exports" / collection.name).glob("*/manifest.json")
    found = [_read_training_set(path) for path in sorted(folders, key=lambda path: -path.stat().st_mtime)]
    return [one for one in found if one is not None]


def _read_training_set(path: Path) -> TrainingData | None:
    try:
        manifest = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    if manifest.get("format") != "prism":
        return None
    counts = manifest.get("counts", {})
    made = datetime.fromtimestamp(path.stat().st_mtime, timezone.get_current_timezone())
    teacher = str((manifest.get("options") or {}).get("teacher") or "none")
    return TrainingData(
        str(path.parent),
        date_format(made, "MONTH_DAY_TIME_FORMAT"),
        teacher,
        int(counts.get("rows", 0)),
        int(counts.get("queries", 0)),
    )


def jobs_of(collection: Collection) -> list[Job]:
    """The newest first."""
    return list(Job.objects.filter(collection=collection).select_related("model").order_by("-pk")[:SHOWN])


def models_of(collection: Collection) -> list[Model]:
    """The newest first."""
    return list(Model.objects.filter(collection=collection).order_by("-pk")[:SHOWN])


def explain_queue_wait(job: Job) -> str:
    """Why a queued job does not run, in words; empty where it is its turn."""
    if job.state != Job.State.QUEUED:
        return ""
    try:
        living = workers.live_workers(worker_pool.QUEUE)
    except (RedisError, OSError):
        return _("Redis does not answer, so no worker can be told: the job waits until it is back.")
    if not living:
        return _("No worker serves the queue: start one with `serve --gpu-workers 1`, or wait for the training extra.")
    if not any(job.device in worker.devices for worker in living):
        return _("It waits for a worker with a GPU: no worker that serves the queue has one.")
    return _("It waits for its turn: another job is running.")


@dataclass(frozen=True)
class Live:
    """A job as its page shows it."""

    job: Job
    loss: Chart | None
    latest: dict[str, Any]  # The last step's line of metrics.
    measured: list[tuple[int, dict[str, Any]]]
    forecast: timedelta | None
    log: list[str]
    waiting: str

    @property
    def percent(self) -> int:
        """Of its steps."""
        return 100 * self.job.done // self.job.total if self.job.total else 0


def live_job(job: Job) -> Live:
    """From the row and the folder."""
    folder = JobFolder(Path(job.folder))
    lines = folder.lines()
    steps = [one for one in lines if "loss" in one]
    measured = [(int(one["step"]), one["dev"]) for one in lines if "dev" in one]
    return Live(
        job=job,
        loss=loss_chart(job, steps) if steps else None,
        latest=steps[-1] if steps else {},
        measured=measured,
        forecast=_forecast_time(job, steps),
        log=folder.tail(LOG_LINES),
        waiting=explain_queue_wait(job),
    )


def _forecast_time(job: Job, steps: Sequence[dict[str, Any]]) -> timedelta | None:
    """Time left by the pace so far."""
    if job.state != Job.State.RUNNING or not steps or steps[-1]["step"] >= steps[-1]["steps"]:
        return None
    pace = steps[-1]["seconds"] / steps[-1]["step"]
    return timedelta(seconds=round(pace * (steps[-1]["steps"] - steps[-1]["step"])))


def loss_chart(job: Job, steps: Sequence[dict[str, Any]]) -> Chart:
    """The loss of each step and its mean over a tenth of the steps, which is what falls or does not."""
    points = [(float(one["step"]), float(one["loss"])) for one in steps]
    span = max(3, len(points) // 10)
    series = {"step": thin_curve(points)}
    if len(points) < 2 * span:
        first, last = points[0][1], points[-1][1]
        summary = _("The loss %(moved)s: %(first)s in the first step, %(last)s in the last") % {
            "moved": describe_loss_change(first, last),
            "first": f"{first:,.2f}",
            "last": f"{last:,.2f}",
        }
    else:
        mean = means_of(points, span)
        series[_("mean of %(span)s") % {"span": span}] = thin_curve(mean)
        first, last = mean[span - 1][1], mean[-1][1]
        summary = _("The loss %(moved)s: a mean of %(first)s over the first %(span)s steps, %(last)s over the last") % {
            "moved": describe_loss_change(first, last),
            "first": f"{first:,.2f}",
            "span": span,
            "last": f"{last:,.2f}",
        }
    summary += f" ({setup_label(job)})."
    return draw_lines(
        "loss",
        _("Loss by step (%(words)s)") % {"words": setup_label(job)},
        series,
        x="step",
        y="loss",
        low=0.0,
        summary=summary,
    )


def describe_loss_change(first: float, last: float) -> str:
    """In words."""
    return "fell" if last < first else _("did not fall")


def means_of(points: list[tuple[float, float]], span: int) -> list[tuple[float, float]]:
    """At each point the mean of the last `span` values."""
    return [
        (at, sum(value for _, value in points[max(0, place + 1 - span) : place + 1]) / min(span, place + 1))
        for place, (at, _) in enumerate(points)
    ]


def thin_curve(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Long curves as means of neighbours."""
    width = -(-len(points) // LONG_CURVE)
    groups = (points[start : start + width] for start in range(0, len(points), width))
    return [(group[-1][0], sum(value for _, value in group) / len(group)) for group in groups]


def setup_label(job: Job) -> str:
    """What stands beside its figures, and on which device it runs before anybody knows more."""
    return job.words or ("CPU" if job.device == "cpu" else "GPU")


def evaluation_table(evaluation: dict[str, Any] | None) -> list[tuple[str, list[float | None]]]:
    """Rows of base, adapter and merged, None where undefined or missing."""
    found = evaluation or {}
    return [(_(title), [(found.get(side) or {}).get(key) for side in SIDES]) for key, title in ROWS.items()]


@dataclass(frozen=True)
class Compared:
    """One ranking against another on one measure."""

    measure: str
    one: str
    other: str
    difference: float
    low: float
    high: float
    p: float

    @property
    def verdict(self) -> str:
        """In words; no difference shown is not a proof that there is none."""
        if self.p >= 0.05:
            return _("no difference shown")
        return "higher" if self.difference > 0 else "lower"


def list_comparisons(result: dict[str, Any]) -> list[Compared]:
    """All comparisons of an evaluation."""
    names = ("measure", "one", "other", "difference", "low", "high", "p")
    return [Compared(**{name: row[name] for name in names}) for row in result.get("compared", [])]


def ranking_means(result: dict[str, Any]) -> list[tuple[str, list[tuple[str, float]]]]:
    """Rankings with their means, in the order BM25, base, tuned."""
    found = result.get("measures", {})
    return [(name, [(measure, found[name][measure]) for measure in MEASURES]) for name in found]


def by_query(result: dict[str, Any]) -> Chart | None:
    """nDCG@10 of every query, base against tuned."""
    found = result.get("per_query")
    if not found:
        return None
    base, tuned = (found[name][MEASURES[0]] for name in ("base", "tuned"))
    dots = [Dot(base[query], tuned[query], query, "queries") for query in sorted(base)]
    better = sum(tuned[query] > base[query] for query in base)
    worse = sum(tuned[query] < base[query] for query in base)
    summary = _("%(base)s queries: %(better)s better with the tuned model, %(worse)s worse, the rest alike.") % {
        "base": len(base),
        "better": better,
        "worse": worse,
    }
    return draw_scatter("queries", _("nDCG@10 by query"), dots, x="base", y="tuned", diagonal=True, summary=summary)


def job_charts(live: Live) -> Iterable[Chart | None]:
    """Those of a job's page."""
    return (live.loss, by_query(live.job.result), outputs_page.evidence_chart(live.job.result))
