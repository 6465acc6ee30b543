"""Pages of the leaderboard, of two runs compared, and of reports over two versions of the qrels."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_POST

from actions.options import ActionForm, show_refusal
from actions.pages import answer_action, form_of
from actions.services import Actor
from benchmark.measures.arrays import RANKING
from benchmark.models import Qrels, QrelsRow, Report, Run
from benchmark.report import leaderboard as boards
from benchmark.report import reports, run_pairs, services, tabling, verdict
from benchmark.report.naming import describe_outdated, describe_weights, label_in
from benchmark.report.options import ReportOptions
from benchmark.report.systems import chosen, figures
from benchmark.report.systems.chosen import StoredReport, complete_figures
from benchmark.report.weighting import COUNTS
from corpus.access import AccessScope, action
from corpus.chart_downloads import answer_page
from corpus.errors import BadInput
from corpus.models import Collection, Query
from corpus.numbered import numbered_or_404
from jobs.models import JobState

LISTED = 10  # Queries in a list; the others are counted.


class FollowingForm(forms.Form):
    """The form that compares two runs of one system: original and changed instructions."""

    original = forms.TypedChoiceField(coerce=int, label=gettext_lazy("Original instructions"))
    changed = forms.TypedChoiceField(coerce=int, label=gettext_lazy("Changed instructions"))

    def __init__(self, *args: Any, runs: Sequence[Run], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.by_key = {run.pk: run for run in runs if run.state == JobState.READY}
        for field in self.fields.values():
            field.choices = [(key, run.name) for key, run in self.by_key.items()]  # type: ignore[attr-defined]

    def selected_runs(self) -> tuple[Run, Run]:
        """Return the run under the original instructions, and the one under the changed ones."""
        return self.by_key[self.cleaned_data["original"]], self.by_key[self.cleaned_data["changed"]]


@action("results")
@require_GET
def leaderboard(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Show the leaderboard of ready runs by the newest qrels. HTMX polls while something is computed."""
    return _render_leaderboard(request, scope)


def _render_leaderboard(request: HttpRequest, scope: AccessScope, status: int = 200) -> HttpResponse:
    parameters = {name: request.GET.get(name, "") for name in ("measure", "sort", "weights")}
    context = show_leaderboard(scope.collection, **parameters)
    files = [context["board"]["table"]] if context["board"] else []
    news: dict[str, Any] = {"news": "benchmark/_leaderboard.html", "is_over": not context["state"].is_moving}
    return answer_page(request, scope, "benchmark/leaderboard.html", context, tables=files, status=status, **news)


def show_leaderboard(collection: Collection, **parameters: str) -> dict[str, Any]:
    """Return the context of the leaderboard by a `measure`, in the order of a column (`sort`); empty: as it comes.

    `weights`: COUNTS for means weighted by the query log's counts.
    """
    state = boards.load_leaderboard(collection, parameters.get("weights", ""))
    names = {name: parameters.get(name, "") for name in ("measure", "sort")}
    shown = names | {"weights": state.means.weights}
    return {
        "state": state,
        "board": boards.build_leaderboard(state.stored, **names) if state.stored else None,
        "next": chosen.next_step(collection, state.runs, state.stored),
        "asked": urlencode({name: value for name, value in shown.items() if value}),
        "means": state.means,
        "others": urlencode({"measure": names["measure"]}) if names["measure"] else "",
        "endpoints": sorted({run.recipe.get("endpoint", "") for run in state.runs} - {""}),
        "unattended": chosen.is_unattended(state.current, *state.in_progress),
    }


@action("admin")
@require_POST
def compute_leaderboard(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Compute the leaderboard: a small one at once, a large one by a worker. HTMX receives a fragment."""
    page = reverse("hole_fillings" if "bounds" in request.POST else "benchmark", args=[scope.collection.name])
    if endpoint := request.POST.get("endpoint"):
        try:
            page = reverse("endpoint_history", args=[scope.collection.name, endpoint])
        except NoReverseMatch:
            messages.error(request, _("Search endpoint not found."))
            return _render_leaderboard(request, scope, status=422)
    try:
        # Outside the service's transaction, because the lease needs a committed row.
        weights = COUNTS if request.GET.get("weights") == COUNTS else ""
        boards.make_small(services.ask_leaderboard(Actor.of(scope), scope.collection, weights=weights))
    except BadInput as error:
        messages.error(request, str(error))
    if request.headers.get("HX-Request"):
        return _render_leaderboard(request, scope)
    return redirect(f"{page}?{request.GET.urlencode()}" if request.GET else page)


@action("results")
@require_GET
def compare_runs(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Compare two runs by query: `a` and `b`, or the two selected on the leaderboard (`run`)."""
    state = boards.load_leaderboard(scope.collection, request.GET.get("weights", ""))
    if state.stored is None:
        return redirect("benchmark", scope.collection.name)
    systems = [(system["run"], state.stored.name(system["run"])) for system in state.stored.result["systems"]]
    run_of = {str(run): run for run, _name in systems}
    requested_runs = [request.GET[name] for name in ("a", "b") if name in request.GET] or request.GET.getlist("run")
    runs = [run_of[key] for key in requested_runs if key in run_of]
    comparison = None
    if len(runs) == 2:
        measure, order = (request.GET.get(name, "") for name in ("measure", "order"))
        text = request.GET.get("page", "")[:6]
        page_number = max(int(text), 1) if text.isdecimal() else 1
        comparison = run_pairs.compare_runs(state.stored, *runs, measure=measure, order=order, page=page_number)
    selected_runs = runs if comparison else list(dict.fromkeys([*runs, *run_of.values()]))[:2]
    context = {
        "comparison": comparison,
        "stored": state.stored,
        "systems": systems,
        "picked": selected_runs,
        "asked": bool(requested_runs),
    }
    files: dict[str, Any] = {"charts": [comparison["chart"]], "tables": [comparison["table"]]} if comparison else {}
    return answer_page(request, scope, "benchmark/compare.html", context, **files)


@action("results")
@require_GET
def newest_report(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Show the newest report, or the form for the first one."""
    return _render_page(request, scope, chosen.newest_report(scope.collection, compares=True, weights=None))


@action("results")
@require_GET
def report(request: HttpRequest, scope: AccessScope, report: int) -> HttpResponse:
    """Show one report; HTMX polls it while it is computed."""
    rows = Report.objects.select_related("before", "after", "collection")
    return _render_page(request, scope, numbered_or_404(rows, scope.collection, report, _("Report not found.")))


def _render_page(request: HttpRequest, scope: AccessScope, report: Report | None) -> HttpResponse:
    runs, versions = chosen.runs_of(scope.collection), chosen.versions_of(scope.collection)
    context: dict[str, Any] = read_report(report, runs, request.GET.get("measure", ""))
    stored, page = context["stored"], context["shown"]
    context |= {"form": _form_of(scope, runs, versions, report), "versions": versions, "following": None}
    # The p-MRR of two runs, where the later qrels are of changed instructions.
    is_submitted = "changed" in request.GET
    context["follow"] = follow = FollowingForm(request.GET if is_submitted else None, runs=runs)
    if is_submitted and stored and follow.is_valid():
        try:
            versions_compared = stored.report.before, stored.report.after
            context["following"] = reports.measure_following(*follow.selected_runs(), *versions_compared)
        except BadInput as error:
            show_refusal(follow, error)
    news: dict[str, Any] = {"news": "benchmark/_report.html", "is_over": stored is None or stored.report.is_over}
    files: dict[str, Any] = {key: page[key] for key in ("charts", "tables")} if page else {}
    return answer_page(request, scope, "benchmark/report.html", context, **files, **news)


def _form_of(
    scope: AccessScope,
    runs: list[Run],
    versions: list[Qrels],
    report: Report | None = None,
    request: HttpRequest | None = None,
) -> Any:
    """Return the form of a report, with the options of `report`."""
    names = [run.name for run in runs if run.state == JobState.READY]
    titles = [(version.number, chosen.version_title(version)) for version in versions]
    initial: dict[str, Any] = {"runs": names}
    if report is not None:
        initial |= {"before": report.before.number, "after": report.after.number}
        initial |= {name: report.options.get(name) for name in ("k", "aspects_k")}
        initial |= {"weights": report.options.get("weights", "plain")}
    elif versions:
        initial |= {"before": versions[0].number, "after": versions[-1].number}
    choices = {"runs": [(name, name) for name in names], "before": titles, "after": titles}
    form: Any = form_of(services.ask_report, request, choices=choices, initial=initial)
    form.by_key = names
    return form


@action("admin")
@require_POST
def make_report(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Request a report by the form, by the versions numbered `one` and `other`, or of the first and newest version."""
    runs, versions = chosen.runs_of(scope.collection), chosen.versions_of(scope.collection)
    ready = [run for run in runs if run.state == JobState.READY]
    if not ready:
        messages.error(request, _("No runs yet. Add a run first."))
        return redirect("runs", scope.collection.name)
    # Only the form sends `before`; the buttons of other pages do not.
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
    version_options = dict(zip(("before", "after"), pair or numbers[:1] + numbers[-1:], strict=False))
    options = ReportOptions.read(
        {**version_options, "runs": [run.name for run in ready], "k": chosen.common_depth(ready)}
    )
    try:
        return redirect(_address_of(services.ask_report(Actor.of(scope), scope.collection, options)))
    except BadInput as error:
        messages.error(request, str(error))
        return redirect("benchmark_report", scope.collection.name)


def _address_of(report: Report) -> str:
    return reverse("report", args=[report.collection.name, report.number])


def read_report(report: Report | None, runs: list[Run], measure: str = "") -> dict[str, Any]:
    """Return the context of a report's figures by a measure."""
    stored = chosen.stored_report(report, runs)
    page = show_report(stored, measure) if stored and stored.is_ready else None
    left_out = list_left_out(stored) if stored and page else []
    return {"stored": stored, "shown": page, "left_out": left_out, "unattended": chosen.is_unattended(report)}


def list_left_out(stored: StoredReport) -> list[tuple[Qrels, list[Query], int]]:
    """Return the queries judged by one version only: the version, its first queries by id, and the number of others."""
    before, after = stored.report.before, stored.report.after
    rows = QrelsRow.objects.filter(qrels__in=[before, after]).exclude(documents=[])
    judged: dict[int, set[int]] = {before.pk: set(), after.pk: set()}
    for key, query in rows.values_list("qrels", "query"):
        judged[key].add(query)
    omissions = []
    for version, other in ((before, after), (after, before)):
        if query_keys := judged[version.pk] - judged[other.pk]:
            queries = list(Query.objects.filter(pk__in=query_keys).order_by("external_id")[:LISTED])
            omissions.append((version, queries, len(query_keys) - len(queries)))
    return omissions


def show_report(stored: StoredReport, measure_name: str) -> dict[str, Any]:
    """Return the context of a report by a measure; nDCG@k if the measure does not rank systems."""
    measure = measure_name if measure_name in RANKING else figures.MEASURE
    # The figures are over the queries common to all systems and both versions, if there are any.
    result, headline = stored.result, tabling.headline_result(stored.result)
    lines = []
    for system in headline["systems"]:
        values = {key: complete_figures(value) for key, value in system["values"].items()}
        identity = {
            "run": system["run"],
            "name": stored.name(system["run"]),
            "note": stored.notes.get(system["run"], ""),
        }
        lines.append({**identity, "missing": system["missing"], "value": values[measure], "values": values})
    # The best after filling comes first.
    lines.sort(key=lambda row: (-row["value"]["after"], row["name"]))
    common, queries = result["common"]["queries"], len(result["queries"])
    bump = figures.bump_chart(stored, measure)
    curves = [figures.holes_chart(stored), figures.growth_chart(stored), figures.marginal_chart(stored)]
    growth = [chart for chart in curves if chart is not None]
    return {
        "measure": measure,
        "weights_words": describe_weights(result),
        "outdated_words": describe_outdated(result["systems"]),
        "label": label_in(result, measure),
        "measures": [(key, label_in(result, key)) for key in RANKING],
        "rows": lines,
        "mean": headline["means"],
        "value": headline["means"][measure],
        "order": headline["order"][measure],
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
