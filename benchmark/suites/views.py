"""Pages of suites (collections measured together), for admins of all their members."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.db.models import Prefetch
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from actions.options import show_refusal
from benchmark.measures.arrays import RANKING
from benchmark.models import RUN_NAME, Suite, SuiteMember
from benchmark.report.naming import measure_label
from benchmark.report.systems.chosen import K
from benchmark.report.systems.figures import MEASURE
from benchmark.report.weighting import MeansChoice
from benchmark.suites import groups as services
from benchmark.suites.funnels import funnel_table
from corpus.access import AccessSiteScope, action, administered
from corpus.chart_downloads import send_file
from corpus.errors import BadInput
from corpus.models import Collection

MEASURES = (*RANKING, "hole", "judged")


class SuiteForm(forms.Form):
    """The form that creates a suite."""

    name = forms.CharField(max_length=63, validators=[RUN_NAME], label=gettext_lazy("Name"))
    title = forms.CharField(required=False, max_length=200, label=gettext_lazy("Title"))
    members = forms.MultipleChoiceField(label=gettext_lazy("Collections"), widget=forms.CheckboxSelectMultiple)

    def __init__(self, *args: Any, collections: Sequence[Collection], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [(collection.name, collection.title or collection.name) for collection in collections]
        self.fields["members"].choices = choices  # type: ignore[attr-defined]


@action("site")
@require_http_methods(["GET", "POST"])
def suites(request: HttpRequest, scope: AccessSiteScope) -> HttpResponse:
    """Show the suites whose members are all administered by the reader, and the form of a new one."""
    collections = list(administered(scope.user))
    form = SuiteForm(request.POST if request.method == "POST" else None, collections=collections)
    if request.method == "POST" and form.is_valid():
        name, title, names = (form.cleaned_data[field] for field in ("name", "title", "members"))
        members = [collection for collection in collections if collection.name in names]
        try:
            suite_row = services.make_suite(name=name, title=title, collections=members, by=scope)
        except BadInput as error:
            show_refusal(form, error)
        else:
            return redirect("suite", suite_row.pk)
    keys = {collection.pk for collection in collections}
    suite_members = Prefetch("members", SuiteMember.objects.select_related("collection").order_by("place"))
    rows = Suite.objects.order_by("name").prefetch_related(suite_members)
    visible_suites = [row for row in rows if {member.collection_id for member in row.members.all()} <= keys]
    context = {"scope": scope, "suites": visible_suites, "form": form, "collections": collections}
    return render(request, "benchmark/suites.html", context, status=422 if form.is_bound else 200)


def get_suite(scope: AccessSiteScope, suite: int) -> Suite:
    """Return a suite. Raises Http404 also if the reader does not administer all its members."""
    suite_row = get_object_or_404(Suite, pk=suite)
    keys = {collection.pk for collection in administered(scope.user)}
    if not set(suite_row.members.values_list("collection_id", flat=True)) <= keys:
        raise Http404(_("Suite not found."))
    return suite_row


@action("site")
@require_GET
def suite(request: HttpRequest, scope: AccessSiteScope, suite: int) -> HttpResponse:
    """Show the systems of a suite by member, by one measure, and their unweighted mean."""
    suite_row = get_suite(scope, suite)
    # By nDCG@k by default; with "tests" even those run that a page cannot wait for.
    measure_name = request.GET.get("measure", "")
    measure = measure_name if measure_name in MEASURES else MEASURE
    means = MeansChoice.of(services.collections_of(suite_row), request.GET.get("weights", ""))
    columns = services.suite_columns(suite_row, K, means.weights)
    lines = services.suite_lines(columns, measure, work="tests" in request.GET)
    has_letters = any(line["tests"] for line in lines)
    shown: dict[str, Any] = {
        "measure": measure,
        "label": services.label_of(columns, measure, K),
        "measures": [(key, measure_label(key, K)) for key in MEASURES],
        "query": urlencode({"measure": measure, **({"weights": means.weights} if means.weights else {})}),
        "columns": columns,
        "lines": lines,
        "table": services.suite_table(suite_row, columns, lines, measure, K),
        # Letters show tests of the means against each other, the others are tests of their changes.
        "lettered": has_letters,
        "untested": measure in RANKING and not has_letters and any(line["mean"] for line in lines),
        "has_change_tests": any("p" in line["tests"] for line in lines),
    }
    funnel = funnel_table(suite_row)
    if (file := send_file(request, [], [shown["table"], funnel])) is not None:
        return file
    context = {"scope": scope, "suite": suite_row, "shown": shown, "funnel": funnel, "means": means}
    return render(request, "benchmark/suite.html", context)


@action("site")
@require_POST
def control_suite(request: HttpRequest, scope: AccessSiteScope, suite: int, act: str) -> HttpResponse:
    """Delete a suite; its collections and their reports stay."""
    suite_row = get_suite(scope, suite)
    if act != "delete":
        raise Http404(_("Unknown action."))
    services.delete_suite(suite_row, by=scope)
    messages.success(request, _("Suite %(name)s deleted.") % {"name": suite_row.name})
    return redirect("suites")
