"""Pages of second readings: weighing the queries of a sample, and the agreement of both people."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from annotation.access.permissions import Scope, action
from annotation.work.aspects import forms, second
from annotation.work.aspects.views.aspects import require_active
from corpus.aspects.entries import ANCHORS
from corpus.errors import BadInput


@action("adjudicate")
@require_http_methods(["GET", "POST"])
def sample(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the agreement so far; POST draws a sample."""
    newest, problem = second.newest_sample(scope.collection), ""
    if request.method == "POST":
        try:
            size, seed = forms.read_row_number(request.POST, "size"), forms.read_row_number(request.POST, "seed")
            # Larger seeds do not fit the column.
            second.draw_sample(scope.member, size=size, seed=seed % 2**31)
            return redirect("aspects_second", scope.collection.name)
        except BadInput as error:
            problem = str(error)
    context = {
        "scope": scope,
        "results": second.sample_results(newest) if newest else None,
        "size": second.SIZE,
        "problem": problem,
        "levels": range(1, 6),
    }
    return render(request, "aspects/sample.html", context, status=422 if problem else 200)


@action("adjudicate")
@require_http_methods(["GET", "POST"])
def weigh(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the next query of the newest sample without weights; POST stores a second reading."""
    newest, problem = second.newest_sample(scope.collection), ""
    if newest is None:
        return redirect("aspects_sample", scope.collection.name)
    if request.method == "POST":
        try:
            require_active(scope)
            revision, importances = (
                forms.read_row_number(request.POST, "revision"),
                forms.read_importances(request.POST),
            )
            second.submit_reading(newest, scope.member, revision, importances, forms.read_text(request.POST, "comment"))
            messages.success(request, _("Saved. Here is the next one."))
            return redirect("aspects_second", scope.collection.name)
        except BadInput as error:
            problem = str(error)
    context = {
        "scope": scope,
        "task": second.next_task(newest, scope.member),
        "done": newest.readings.count(),
        "all": len(newest.revisions),
        "anchors": sorted(ANCHORS.items()),
        "problem": problem,
        "typed": forms.typed_values(request.POST),
    }
    return render(request, "aspects/second.html", context, status=422 if problem else 200)
