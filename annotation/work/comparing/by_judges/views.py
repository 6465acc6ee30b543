"""Pages of comparisons by judges: the form that starts them, and one job with its progress and figures."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET, require_http_methods

from annotation.access.permissions import Scope, action
from annotation.work.comparing.by_judges import selectors
from annotation.work.comparing.by_judges.judging import COMPARISON_JUDGINGS
from judges.model_jobs.jobs import cost_of
from judges.model_jobs.pages import form_page, job_page


@action("admin")
@require_http_methods(["GET", "POST"])
def start_judging(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the form and the estimate of calls and cost, then start the job. `?set=`: the set that is preselected."""
    number = request.GET.get("set", "")[:9]
    return form_page(request, scope, COMPARISON_JUDGINGS, **({"set": int(number)} if number.isdecimal() else {}))


@action("admin")
@require_GET
def comparison_judging(request: HttpRequest, scope: Scope, judging: int) -> HttpResponse:
    """Show a job: its progress, the figures of its judges, and its cost."""
    row = COMPARISON_JUDGINGS.find(scope.collection, judging)
    judges = [judge for judge in selectors.comparing_judges(row.set) if judge.judge in row.options["versions"]]
    context = {"judging": row, "judges": judges, "cost": cost_of(row)}
    return job_page(request, scope, row, "comparing/judging.html", "comparing/_judging.html", context)
