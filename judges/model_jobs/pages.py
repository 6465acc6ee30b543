"""The pages of jobs that call models: estimate, start, progress, cancel and resume."""

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from actions.options import ActionForm
from actions.pages import answer_action, form_of
from actions.services import Actor
from corpus.access import AccessScope, action
from corpus.chart_downloads import answer_page
from corpus.collections.audit_log import record_act
from corpus.errors import BadInput
from corpus.models import Collection
from jobs import notifications, workers
from judges.model_jobs.jobs import Job, ModelJobKind
from judges.model_jobs.options import LIMITS, PaidOptions, limits_of

PATIENCE_S = 8.0  # A starting worker takes this long until it can be seen.


def is_unattended(*jobs: Any, needs_worker: Callable[[Any], bool] = lambda job: not job.is_over) -> bool:
    """Return whether one of the jobs has waited for some seconds while no worker serves this instance."""
    threshold = timezone.now() - timedelta(seconds=PATIENCE_S)
    is_waiting = any(job is not None and job.created_at < threshold and needs_worker(job) for job in jobs)
    # Without Redis it is unknown whether a worker is alive.
    return is_waiting and not notifications.is_redis_unavailable() and not workers.has_workers()


def answer_form(
    request: HttpRequest,
    scope: AccessScope,
    kind: ModelJobKind[Job],
    form: ActionForm,
    show: Callable[[ActionForm], HttpResponse],
    start: Callable[..., Any] | None = None,
) -> HttpResponse:
    """Show a kind's form, then the estimate, or redirect to the started job.

    `start`: the service, for a kind with several.
    """

    def estimate(actor: Actor, collection: Collection, options: Any) -> dict[str, Any]:
        query = f"?type={sort}" if (sort := request.POST.get("type")) else request.get_full_path()
        posted = [(name, value) for name, values in request.POST.lists() for value in values if value]
        facts = []
        for bound_field in form:
            if value := form.cleaned_data.get(bound_field.name):
                labels = dict(getattr(bound_field.field, "choices", ()))
                choices = value if isinstance(value, list) else [value]
                text = _("yes") if value is True else ", ".join(str(labels.get(choice, choice)) for choice in choices)
                facts.append((str(bound_field.label), text))
        return {
            "hidden": [(name, value) for name, value in posted if name != "csrfmiddlewaretoken"],
            "kind": kind,
            "home": kind.home_of(collection),
            "facts": facts,
            "back": f"{query}#new",
            "estimate": kind.estimate_cost(collection, options.for_job()),
        }

    confirmation: dict[str, Any] = {"confirm": "model_jobs/confirm.html", "estimate": estimate}
    return answer_action(request, scope, start or kind.start, form, show, kind.address_of, **confirmation)


def form_page(request: HttpRequest, scope: AccessScope, kind: ModelJobKind[Job], **initial: Any) -> HttpResponse:
    """Show the form of a kind on a separate page, then the estimate, or redirect to the started job."""
    form_options = kind.shown_in(scope.collection)
    form: Any = form_of(kind.start, request, **{**form_options, "initial": form_options.get("initial", {}) | initial})
    form.lacks = kind.lacks(scope.collection)

    def show(form: ActionForm) -> HttpResponse:
        context = {"scope": scope, "kind": kind, "form": form, "home": kind.home_of(scope.collection)}
        return render(request, "model_jobs/start.html", context, status=422 if form.is_bound else 200)

    return answer_form(request, scope, kind, form, show)


def start_page(
    request: HttpRequest,
    scope: AccessScope,
    kind: ModelJobKind[Job],
    form: ActionForm,
    page: str,
    news: str,
    jobs: Sequence[Job],
    context: dict[str, Any],
    start: Callable[..., Any] | None = None,
    **files: Any,
) -> HttpResponse:
    """Show all jobs of a kind with the form of a new one, then the estimate, or redirect to the started job."""

    def show(form: ActionForm) -> HttpResponse:
        moving = any(not job.is_over for job in jobs)
        values = {"form": form, "jobs": jobs, "moving": moving, "unattended": is_unattended(*jobs), **context}
        polling: dict[str, Any] = {"news": "" if form.is_bound else news, "is_over": not moving}
        return answer_page(request, scope, page, values, status=422 if form.is_bound else 200, **files, **polling)

    return answer_form(request, scope, kind, form, show, start)


def job_page(
    request: HttpRequest, scope: AccessScope, job: Job, page: str, news: str, context: dict[str, Any], **files: Any
) -> HttpResponse:
    """Show a job; HTMX polls `news` until it is over. `files`: charts and tables to download."""
    context = {
        "job": job,
        "limits": ActionForm(PaidOptions, initial=job.kept),
        "unattended": is_unattended(job),
        **context,
    }
    return answer_page(request, scope, page, context, news=news, is_over=job.is_over, **files)


def with_limits(jobs: Iterable[Job]) -> list[tuple[Job, ActionForm]]:
    """Return each job with the form to resume it, whose fields have ids that are unique on the page."""
    return [(job, ActionForm(PaidOptions, initial=job.kept, auto_id=f"id_{job.pk}_%s")) for job in jobs]


def control_job(request: HttpRequest, scope: AccessScope, kind: ModelJobKind[Job], job: Job, act: str) -> None:
    """Cancel a job, or resume it under new limits, and write the audit log. Raises Http404 for another action."""
    acts: dict[str, Callable[[Job], bool]] = {"cancel": kind.cancel, "go-on": kind.go_on}
    if act not in acts:
        raise Http404(_("Unknown action."))
    form = ActionForm(PaidOptions, request.POST)
    try:
        with transaction.atomic():
            # The form of a job that calls no model has no limits.
            if act == "go-on" and request.POST.keys() & set(LIMITS) and form.is_valid():
                kind.set_limits(job, **limits_of(form.cleaned_data))
            is_changed = acts[act](job)
            if is_changed:
                record_act(scope, kind.controlled, **kind.describe(job), what=act)
    except BadInput as error:
        messages.error(request, _("No changes made: %(error)s.") % {"error": error})
    else:
        # Two people clicked at once, or the job ended meanwhile.
        if not is_changed:
            messages.error(request, _("No changes made: the job's state no longer allows this action."))


def control_path(here: str, kind: ModelJobKind[Job], name: str) -> URLPattern:
    """Return the URL pattern that cancels and resumes jobs of a kind. `here`: the route of one job."""

    @action("admin")
    @require_POST
    def control(request: HttpRequest, scope: AccessScope, act: str, **job_number: Any) -> HttpResponse:
        """Cancel a job, or resume it after a cancellation or a failure."""
        (number,) = job_number.values()
        job = kind.find(scope.collection, number)
        control_job(request, scope, kind, job, act)
        return redirect(kind.address_of(job))

    return path(f"{here}<slug:act>/", control, name=name)
