"""The leaderboard, two of its runs compared, and reports over two versions of the qrels."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_POST

from actions.options import ActionForm, show_refusal
from actions.pages import answer_action, form_of
from actions.services import Actor
from benchmark.models import Qrels, QrelsRow, Report, Run
from benchmark.report import leaderboard as boards
from benchmark.report import reports, run_pairs, services, tabling, verdict
from benchmark.report.measures import RANKING
from benchmark.report.naming import label_in
from benchmark.report.options import ReportOptions
from benchmark.systems import chosen, figures
from benchmark.systems.chosen import StoredReport, complete_figures
from corpus.access import AccessScope, action
from corpus.chart_downloads import answer_page
from corpus.errors import BadInput
from corpus.models import Query
from corpus.numbered import numbered_or_404
from jobs.models import JobState

NAMED = 10  # Queries that are named; the others are counted.


class FollowingForm(forms.Form):
    """The form that compares two runs of one system: original and changed instructions."""

    original = forms.TypedChoiceField(coerce=int, label=gettext_lazy("Original instructions"))
    changed = forms.TypedChoiceField(coerce=int, label=gettext_lazy("Changed instructions"))

    def __init__(self, *args: Any, runs: Sequence[Run], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.by_key = {run.pk: run for run in runs if run.state == JobState.READY}
        for field in self.fields.values():
            field.choices = [(key, run.name) for key, run in self.by_key.items()]  # type: ignore[attr-defined]

    def chosen(self) -> tuple[Run, Run]:
        """Return the run under the original instructions, and the one under the changed ones."""
        return self.by_key[self.cleaned_data["original"]], self.by_key[self.cleaned_data["changed"]]


@action("admin")
@require_GET
def leaderboard(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Show ready runs on the newest qrels. HTMX asks for news while something is made."""
    return _render_leaderboard(request, scope)


def _render_leaderboard(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    state = boards.load_leaderboard(scope.collection)
    given = {name: request.GET.get(name, "") for name in ("measure", "sort")}
    board = boards.build_leaderboard(state.stored, **given) if state.stored else None
    context = {
        "state": state,
        "board": board,
        "next": chosen.next_step(scope.collection, state.runs, state.stored),
        "asked": urlencode({name: value for name, value in given.items() if value}),
        "unattended": chosen.is_unattended(state.current, *state.in_progress),
    }
    files = [board["table"]] if board else []
    news: dict[str, Any] = {"news": "benchmark/_leaderboard.html", "is_over": not state.is_moving}
    return answer_page(request, scope, "benchmark/leaderboard.html", context, tables=files, **news)


@action("admin")
@require_POST
def compute_leaderboard(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """A small leaderboard is made at once, a large one by a worker. HTMX gets a part."""
    try:
        # Outside of its transaction: the lease of the work needs rows that are committed.
        boards.make_small(services.ask_leaderboard(Actor.of(scope), scope.collection))
    except BadInput as error:
        messages.error(request, str(error))
    if request.headers.get("HX-Request"):
        return _render_leaderboard(request, scope)
    return redirect("hole_fillings" if "bounds" in request.POST else "benchmark", scope.collection.name)


@action("admin")
@require_GET
def compare_runs(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Compare two runs by query: `a` and `b`, or the two ticked on the leaderboard (`run`)."""
    state = boards.load_leaderboard(scope.collection)
    if state.stored is None:
        return redirect("benchmark", scope.collection.name)
    systems = [(one["run"], state.stored.name(one["run"])) for one in state.stored.result["systems"]]
    known = {str(run): run for run, _name in systems}
    asked = [request.GET[name] for name in ("a", "b") if name in request.GET] or request.GET.getlist("run")
    picked = [known[key] for key in asked if key in known]
    found = None
    if len(picked) == 2:
        measure, order = (request.GET.get(name, "") for name in ("measure", "order"))
        text = request.GET.get("page", "")[:6]
        page_number = max(int(text), 1) if text.isdecimal() else 1
        found = run_pairs.compare_runs(state.stored, *picked, measure=measure, order=order, page=page_number)
    chosen_ones = picked if found else list(dict.fromkeys([*picked, *known.values()]))[:2]
    context = {"found": found, "stored": state.stored, "systems": systems, "picked": chosen_ones, "asked": bool(asked)}
    files: dict[str, Any] = {"charts": [found["chart"]], "tables": [found["table"]]} if found else {}
    return answer_page(request, scope, "benchmark/compare.html", context, **files)


@action("admin")
@require_GET
def newest_report(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Show the newest report, or what it takes to have one."""
    return _render_page(request, scope, chosen.newest_report(scope.collection, compares=True))


@action("admin")
@require_GET
def report(request: HttpRequest, scope: AccessScope, report: int) -> HttpResponse:
    """Show one report; HTMX polls it while it is computed."""
    rows = Report.objects.select_related("before", "after", "collection")
    return _render_page(request, scope, numbered_or_404(rows, scope.collection, report, _("Report not found.")))


def _render_page(request: HttpRequest, scope: AccessScope, found: Report | None) -> HttpResponse:
    runs, versions = chosen.runs_of(scope.collection), chosen.versions_of(scope.collection)
    stored = chosen.stored_report(found, runs)
    shown = show_report(stored, request.GET.get("measure", "")) if stored and stored.is_ready else None
    form = _form_of(scope, runs, versions, found)
    context: dict[str, Any] = {"stored": stored, "shown": shown, "form": form, "versions": versions}
    context |= {"left_out": list_left_out(stored) if stored and shown else []}
    context |= {"unattended": chosen.is_unattended(found), **_following_context(request, stored, runs)}
    news: dict[str, Any] = {"news": "benchmark/_report.html", "is_over": stored is None or stored.report.is_over}
    files: dict[str, Any] = {key: shown[key] for key in ("charts", "tables")} if shown else {}
    return answer_page(request, scope, "benchmark/report.html", context, **files, **news)


def _following_context(request: HttpRequest, stored: StoredReport | None, runs: list[Run]) -> dict[str, object]:
    """p-MRR of the two runs, where the later qrels are of changed instructions."""
    asked = "changed" in request.GET
    form = FollowingForm(request.GET if asked else None, runs=runs)
    if not (asked and stored and form.is_valid()):
        return {"follow": form, "following": None}
    try:
        found = reports.measure_following(*form.chosen(), stored.report.before, stored.report.after)
    except BadInput as error:
        show_refusal(form, error)
        return {"follow": form, "following": None}
    return {"follow": form, "following": found}


def _form_of(
    scope: AccessScope,
    runs: list[Run],
    versions: list[Qrels],
    found: Report | None = None,
    request: HttpRequest | None = None,
) -> Any:
    """The form of a report, with what `found` was told."""
    names = [run.name for run in runs if run.state == JobState.READY]
    titles = [(version.number, chosen.version_title(version)) for version in versions]
    initial: dict[str, Any] = {"runs": names}
    if found is not None:
        initial |= {"before": found.before.number, "after": found.after.number}
        initial |= {name: found.options.get(name) for name in ("k", "aspects_k")}
    elif versions:
        initial |= {"before": versions[0].number, "after": versions[-1].number}
    choices = {"runs": [(name, name) for name in names], "before": titles, "after": titles}
    form: Any = form_of(services.ask_report, request, choices=choices, initial=initial)
    form.by_key = names
    return form


@action("admin")
@require_POST
def make_report(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """A report of what was chosen; of versions `one` and `other`, by number; or of the first and the newest version."""
    runs, versions = chosen.runs_of(scope.collection), chosen.versions_of(scope.collection)
    ready = [run for run in runs if run.state == JobState.READY]
    if not ready:
        messages.error(request, _("No runs yet. Add a run first."))
        return redirect("runs", scope.collection.name)
    # A form is filled in by a reader; the one-click buttons of other pages send no `before`.
    if "before" in request.POST:

        def show(form: ActionForm) -> HttpResponse:
            context = {"scope": scope, "stored": None, "shown": None, "form": form, "versions": versions}
            return render(request, "benchmark/report.html", context, status=422)

        form = _form_of(scope, runs, versions, request=request)
        return answer_action(request, scope, services.ask_report, form, show, _address_of)
    numbers = [str(version.number) for version in versions]
    pair = [request.POST.get(name, "") for name in ("one", "other")] if "one" in request.POST else []
    if not set(pair) <= set(numbers):
        raise Http404(_("Choose two versions."))
    told = dict(zip(("before", "after"), pair or numbers[:1] + numbers[-1:], strict=False))
    options = ReportOptions.read({**told, "runs": [run.name for run in ready], "k": chosen.common_depth(ready)})
    try:
        return redirect(_address_of(services.ask_report(Actor.of(scope), scope.collection, options)))
    except BadInput as error:
        messages.error(request, str(error))
        return redirect("benchmark_report", scope.collection.name)


def _address_of(report: Report) -> str:
    return reverse("report", args=[report.collection.name, report.number])


def list_left_out(stored: StoredReport) -> list[tuple[Qrels, list[Query], int]]:
    """Queries that one version alone judges: the version, the first of them by id, and how many there are more."""
    before, after = stored.report.before, stored.report.after
    rows = QrelsRow.objects.filter(qrels__in=[before, after]).exclude(documents=[])
    judged: dict[int, set[int]] = {before.pk: set(), after.pk: set()}
    for key, query in rows.values_list("qrels", "query"):
        judged[key].add(query)
    found = []
    for version, other in ((before, after), (after, before)):
        if own := judged[version.pk] - judged[other.pk]:
            named = list(Query.objects.filter(pk__in=own).order_by("external_id")[:NAMED])
            found.append((version, named, len(own) - len(named)))
    return found


def show_report(stored: StoredReport, asked: str) -> dict[str, Any]:
    """The report by the measure that was asked for, nDCG@k unless it has an order."""
    measure = asked if asked in RANKING else figures.MEASURE
    # The figures are over the queries that every system answered and both versions judge, where there are any.
    result, first = stored.result, tabling.headline_result(stored.result)
    lines = []
    for one in first["systems"]:
        values = {key: complete_figures(value) for key, value in one["values"].items()}
        about = {"run": one["run"], "name": stored.name(one["run"]), "note": stored.notes.get(one["run"], "")}
        lines.append({**about, "missing": one["missing"], "value": values[measure], "values": values})
    # The best after filling first.
    lines.sort(key=lambda row: (-row["value"]["after"], row["name"]))
    common, queries = result["common"]["queries"], len(result["queries"])
    bump = figures.bump_chart(stored, measure)
    curves = [figures.holes_chart(stored), figures.growth_chart(stored), figures.marginal_chart(stored)]
    growth = [chart for chart in curves if chart is not None]
    return {
        "measure": measure,
        "label": label_in(result, measure),
        "measures": [(key, label_in(result, key)) for key in RANKING],
        "rows": lines,
        "mean": first["means"],
        "value": first["means"][measure],
        "order": first["order"][measure],
        "bump": bump,
        "growth": growth,
        "charts": [bump, *growth],
        "verdict": verdict.explain_verdict(result["verdict"]),
        "tables": [*tabling.report_tables(result, measure), tabling.leaderboard_table(result, measure)],
        "k": stored.k,
        "common": common,
        "is_of_common": 0 < common < queries,
        "queries": queries,
        "recall": verdict.recall_shift(result),
    }
