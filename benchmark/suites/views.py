"""Suites: collections measured together. Pages of the site, for admins of every member."""

from collections.abc import Iterable, Sequence
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Prefetch
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from actions.options import show_refusal
from benchmark.models import RUN_NAME, Suite, SuiteMember
from benchmark.report.measures import RANKING
from benchmark.report.naming import measure_label
from benchmark.suites import groups as services
from benchmark.suites.funnels import funnel_table
from benchmark.systems.chosen import K
from benchmark.systems.figures import MEASURE
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
        self.fields["members"].choices = [(one.name, one.title or one.name) for one in collections]  # type: ignore[attr-defined]


def suites_of(mine: Iterable[Collection]) -> list[Suite]:
    """Return the suites all of whose members are among these collections."""
    keys = {one.pk for one in mine}
    members = Prefetch("members", SuiteMember.objects.select_related("collection").order_by("place"))
    found = Suite.objects.order_by("name").prefetch_related(members)
    return [suite for suite in found if {member.collection_id for member in suite.members.all()} <= keys]


def show_suite(suite: Suite, asked: str, *, work: bool) -> dict[str, Any]:
    """Return a suite by the measure asked for, else nDCG@k. `work`: run the tests that a page cannot wait for, too."""
    measure = asked if asked in MEASURES else MEASURE
    columns = services.suite_columns(suite, K)
    lines = services.suite_lines(columns, measure, work=work)
    lettered = any(line["tests"] for line in lines)
    return {
        "measure": measure,
        "label": measure_label(measure, K),
        "measures": [(key, measure_label(key, K)) for key in MEASURES],
        "columns": columns,
        "lines": lines,
        "table": services.suite_table(suite, columns, lines, measure, K),
        "lettered": lettered,  # means were tested against each other, "has_change_tests": and their changes
        "untested": measure in RANKING and not lettered and any(line["mean"] for line in lines),
        "has_change_tests": any("p" in line["tests"] for line in lines),
    }


@action("site")
@require_http_methods(["GET", "POST"])
def suites(request: HttpRequest, scope: AccessSiteScope) -> HttpResponse:
    """Suites of collections that the reader may admin, and the form of a new one."""
    mine = list(administered(scope.user))
    form = SuiteForm(request.POST if request.method == "POST" else None, collections=mine)
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        chosen = [one for one in mine if one.name in given["members"]]
        try:
            made = services.make_suite(name=given["name"], title=given["title"], collections=chosen, by=scope)
        except BadInput as error:
            show_refusal(form, error)
        else:
            return redirect("suite", made.pk)
    context = {"scope": scope, "suites": suites_of(mine), "form": form, "collections": mine}
    return render(request, "benchmark/suites.html", context, status=422 if form.is_bound else 200)


def get_suite(scope: AccessSiteScope, suite: int) -> Suite:
    """404 for a suite with a member that the reader may not admin: they do not know of it."""
    found = get_object_or_404(Suite, pk=suite)
    mine = {one.pk for one in administered(scope.user)}
    if not set(found.members.values_list("collection_id", flat=True)) <= mine:
        raise Http404(_("Suite not found."))
    return found


@action("site")
@require_GET
def suite(request: HttpRequest, scope: AccessSiteScope, suite: int) -> HttpResponse:
    """Systems by members, by one measure, and the unweighted mean."""
    found = get_suite(scope, suite)
    shown = show_suite(found, request.GET.get("measure", ""), work="tests" in request.GET)
    funnel = funnel_table(found)
    if (file := send_file(request, [], [shown["table"], funnel])) is not None:
        return file
    return render(request, "benchmark/suite.html", {"scope": scope, "suite": found, "shown": shown, "funnel": funnel})


@action("site")
@require_POST
def control_suite(request: HttpRequest, scope: AccessSiteScope, suite: int, act: str) -> HttpResponse:
    """Delete the suite; its collections and their reports stay."""
    found = get_suite(scope, suite)
    if act != "delete":
        raise Http404(_("Unknown action."))
    services.delete_suite(found, by=scope)
    messages.success(request, _("Suite %(name)s deleted.") % {"name": found.name})
    return redirect("suites")
