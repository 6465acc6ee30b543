"""Judged measures of the texts of base and tuned model: the six columns of Prism table 2, scored by a judge."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from corpus.errors import BadInput, QuorumError
from corpus.holding import hold
from jobs import background, notifications, workers
from judges.campaigns.evidence_campaigns import judge_named
from judges.evidence import measuring
from judges.evidence.outputs import OutputRow, mean_scores, measures_table
from judges.models import JudgeVersion
from judges.panels.offline_panel import missing_writers
from store.files import fetch
from training.models import Job
from training.recipes.job_folder import read_lines

TASK = "training.judge_outputs"
TITLES = {
    "contribution_accuracy": gettext_noop("Contribution: accuracy"),
    "contribution_coverage": gettext_noop("Contribution: coverage"),
    "evidence_faithfulness": gettext_noop("Evidence: faithfulness"),
    "evidence_self_contained": gettext_noop("Evidence: self-contained"),
    "evidence_concision": gettext_noop("Evidence: concision"),
    "language": gettext_noop("Language"),
    "fidelity": gettext_noop("Entity fidelity, with entities from the judge"),
    "fidelity_prism": gettext_noop("Entity fidelity by substring, as in Prism"),
}


def rows_of(job: Job) -> dict[str, list[OutputRow]]:
    """Return the rows that each model wrote, without those whose pairs are not in the collection."""
    assert job.collection is not None
    rows = {}
    for side in job.result.get("outputs") or {}:
        path = fetch(Path(job.folder) / f"{side}.outputs.jsonl")
        lines = read_lines(path) if path.is_file() else []
        outputs = [(line["query_id"], line["doc_id"], line["label"], line["output"]) for line in lines]
        rows[side] = [row for row in measuring.rows_of_outputs(job.collection, outputs) if row is not None]
    return rows


def count_judge_calls(job: Job) -> int:
    """Return the maximum number of calls: two for each row whose label and answer are yes and that has both texts."""
    return 2 * sum(row.target is not None for rows in rows_of(job).values() for row in rows)


def judge_names() -> list[str]:
    """Return the names of the judges that can score the texts."""
    stored = JudgeVersion.objects.filter(is_current=True).values_list("name", flat=True)
    return sorted([*stored, *(row.name for row in missing_writers())])


def why_not(job: Job) -> str:
    """Return why the texts cannot be scored, or "" if they can."""
    if not count_judge_calls(job):
        return _("There are no rows in which label and answer are “yes” and both texts are written.")
    if notifications.is_redis_unavailable():
        return _("Redis does not respond, so no worker can be reached. Try again when it is available")
    return "" if workers.has_workers() else _("No worker is running to contact the judge.")


def queue_scoring(job: Job, judge: str, budget: float | None) -> None:
    """Queue the scoring by a judge. Raises BadInput for an unknown judge, or if no worker is running."""
    judge_named(judge)
    if reason := why_not(job):
        raise BadInput(reason)
    _background_job, is_new = background.enqueue(TASK, job.pk, judge=judge, budget=budget)
    if not is_new:
        raise BadInput(_("Scoring is already in progress. Reload this page to see the scores."))
    _store_judged(job.pk, {"judge": judge, "state": "running"})


def score_outputs(job: int, judge: str, budget: float | None) -> None:
    """Score all rows of a job, if it still exists; answers that were already paid for are reused."""
    row = Job.objects.select_related("collection").filter(pk=job).first()
    if row is None or row.collection is None:
        return
    try:
        sides = {}
        for side, rows in rows_of(row).items():
            measured = measuring.measure_rows(row.collection, judge, rows, budget=budget)
            by_rule = measures_table(rows, measured.answers)
            scored = sum(scores is not None for _entities, scores in measured.answers.values())
            sides[side] = {
                **mean_scores(measured.answers),
                **{name: by_rule[name] for name in ("fidelity", "fidelity_prism")},
                "rows": len(rows),
                "scored": scored,
                "without_scores": by_rule["with_fields"] - scored,
                "calls": measured.calls,
                "cost": measured.cost,
            }
        meaning = measuring.score_meaning(row.collection, judge_named(judge))
    except QuorumError as error:
        _store_judged(job, {"judge": judge, "state": "failed", "error": str(error)})
        raise
    _store_judged(job, {"judge": judge, "state": "ready", "as": meaning, "sides": sides})


@transaction.atomic
def _store_judged(job: int, judged: Mapping[str, Any]) -> None:
    # Locked, since the page and the worker write parts of the same column.
    row = hold(Job.objects, job)
    row.result = {**row.result, "judged": dict(judged)}
    row.save(update_fields=["result"])


def judged_columns(job: Job) -> list[tuple[str, list[float | None]]]:
    """Return the title of each judged measure with the models' values; empty until the texts are scored."""
    sides = (job.result.get("judged") or {}).get("sides") or {}
    return [(_(title), [side.get(key) for side in sides.values()]) for key, title in TITLES.items()] if sides else []
