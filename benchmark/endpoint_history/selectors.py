"""What the page of a search endpoint shows: its runs, the newest beside the one before, pairs without a label."""

from typing import Any

from django.http import Http404
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from benchmark.hole_filling.options import DEEPEST, FillingPolicy
from benchmark.models import Run
from benchmark.qrels import versions
from benchmark.report import leaderboard
from benchmark.report.naming import describe_outdated, label_in
from benchmark.report.systems import chosen
from benchmark.report.systems.chosen import StoredReport
from benchmark.report.systems.figures import MEASURE, source_line
from benchmark.runs.answer_counts import describe_answers
from benchmark.search_endpoints.selectors import endpoints
from charts import Chart, draw_lines
from charts.downloads import DownloadTable
from corpus.models import Collection
from jobs.models import JobState
from store.sql import fetch_row, read_sql

UNLABELLED = read_sql(__file__, "count_unlabelled")


def history_page(collection: Collection, endpoint: str, weights: str = "") -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the context of an endpoint's page, and its files. Raises Http404 without an endpoint or run of this name.

    Values, intervals and differences are those of the leaderboard's report. `weights`: COUNTS for means weighted by the
    query log's counts.
    """
    state = leaderboard.load_leaderboard(collection, weights)
    runs = [run for run in state.runs if run.kind == Run.Kind.SEARCH and run.recipe.get("endpoint") == endpoint]
    is_offered = endpoints().filter(name=endpoint).exists()
    if not runs and not is_offered:
        raise Http404(_("Search endpoint not found."))
    runs.sort(key=lambda run: run.pk, reverse=True)
    # Without a judgment every value would be 0, which says nothing.
    stored = state.stored if state.stored and state.stored.result["judged"]["after"] else None
    board = leaderboard.build_leaderboard(stored, MEASURE, "") if stored else {"rows": []}
    values = {row["run"]: row for row in board["rows"]}
    own = {run.pk for run in runs}
    rows: list[dict[str, Any]] = [
        {"run": run, "values": values.get(run.pk), "notes": describe_answers(run)} for run in runs
    ]
    ready = [run for run in runs if run.state == JobState.READY]
    chart = draw_history(stored, rows, endpoint) if stored else None
    label = board.get("label", "nDCG")
    header = (_("run"), _("state"), pgettext("column", "created"), label, _("95% from"), _("95% to"), _("unjudged"))
    lines = []
    for run in runs:
        measured = values.get(run.pk) or {"values": {}}
        figures = (measured.get("value"), measured.get("low"), measured.get("high"), measured["values"].get("unjudged"))
        lines.append((run.name, str(run.get_state_display()), run.created_at.isoformat(), *figures))
    context = {
        "endpoint": endpoint,
        "is_offered": is_offered,
        "state": state,
        "means": state.means,
        "rows": rows,
        "label": label,
        "board": board,
        "report": stored and stored.report,
        "outdated_words": describe_outdated(
            system for system in (stored.result["systems"] if stored else ()) if system["run"] in own
        ),
        "newest": ready[0] if ready else None,
        "depth": min(ready[0].depth, DEEPEST) if ready else 0,
        "comparison": compare_newest(stored, [run for run in ready if run.pk in values]),
        "chart": chart,
        "unattended": chosen.is_unattended(state.current, *state.in_progress),
        **(count_unlabelled(collection, ready[0]) if ready else {}),
    }
    table = DownloadTable("runs", _("Runs of %(endpoint)s") % {"endpoint": endpoint}, header, tuple(lines), 3)
    return context, {"charts": [chart], "tables": [table], "is_over": not state.is_moving}


def compare_newest(stored: StoredReport | None, runs: list[Run]) -> dict[str, Any] | None:
    """Compare the first of these runs with the second by a report that includes both; None without two."""
    if stored is None or len(runs) < 2:
        return None
    position_of = {system["run"]: position for position, system in enumerate(stored.result["systems"])}
    newest, before = (position_of[run.pk] for run in runs[:2])
    measures = []
    for key in leaderboard.SHOWN:
        new, old = (stored.result["systems"][position]["values"][key]["after"] for position in (newest, before))
        difference = leaderboard.difference_of(stored.result, key, newest, before)
        measures.append({"label": label_in(stored.result, key), "new": new, "old": old, **difference})
    return {"newest": runs[0], "before": runs[1], "measures": measures, "pairs": len(stored.result["pairs"][MEASURE])}


def draw_history(stored: StoredReport, rows: list[dict[str, Any]], endpoint: str) -> Chart:
    """Draw the measure of each run with its interval, the oldest first."""
    points = [(row["run"], row["values"]) for row in reversed(rows) if row["values"]]
    measure = label_in(stored.result, MEASURE)
    summary = ""
    if len(points) > 1:
        summary = ngettext(
            "%(measure)s of %(runs)s run, with the 95%% interval of each: from %(first)s to %(last)s.",
            "%(measure)s of %(runs)s runs, with the 95%% interval of each: from %(first)s to %(last)s.",
            len(points),
        ) % {
            "measure": measure,
            "runs": f"{len(points):,}",
            "first": f"{points[0][1]['value']:.4f}",
            "last": f"{points[-1][1]['value']:.4f}",
        }
    return draw_lines(
        "history",
        _("%(measure)s of %(endpoint)s over time") % {"measure": measure, "endpoint": endpoint},
        {measure: [(float(place), values["value"]) for place, (_run, values) in enumerate(points)]},
        bands={measure: [(float(place), values["low"], values["high"]) for place, (_run, values) in enumerate(points)]},
        names={
            float(place): f"{timezone.localtime(run.created_at):%Y-%m-%d}"
            for place, (run, _values) in enumerate(points)
        },
        x=_("run"),
        y=measure,
        summary=summary,
        source=source_line(stored),
    )


def count_unlabelled(collection: Collection, run: Run) -> dict[str, Any]:
    """Count the pairs of a run without a label, and of these, those with a label for an earlier text."""
    latest = versions.latest_version(collection)
    pairs, outdated = fetch_row(UNLABELLED, run=run.pk, qrels=latest.pk if latest else None)
    return {"unlabelled": pairs, "outdated": outdated, "qrels": latest}


def judging_form() -> dict[str, Any]:
    """Return what the form that judges new pairs offers: who judges, by default the panel as fully as it can."""
    policies = [("", _("as fully as the panel can: debate and panel, then people")), *FillingPolicy.choices]
    return {"choices": {"policy": policies}, "initial": {"policy": ""}, "auto_id": "judge_%s"}
