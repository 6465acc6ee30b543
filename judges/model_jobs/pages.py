"""The pages of jobs that ask models: estimate, start, progress, cancel and resume."""

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any

from django import forms
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

PATIENCE_S = 8.0  # A worker that is starting takes as long until it is heard of.


def is_unattended(*jobs: Any, needs_worker: Callable[[Any], bool] = lambda job: not job.is_over) -> bool:
    """Return whether one of these has waited for some seconds while no worker serves this instance. None: no job."""
    old = timezone.now() - timedelta(seconds=PATIENCE_S)
    waiting = any(job is not None and job.created_at < old and needs_worker(job) for job in jobs)
    # Without Redis nobody knows whether a worker lives.
    return waiting and not notifications.is_away() and not workers.has_workers()


def answer_form(
    request: HttpRequest,
    scope: AccessScope,
    kind: ModelJobKind[Job],
    form: ActionForm,
    show: Callable[[ActionForm], HttpResponse],
    start: Callable[..., Any] | None = None,
) -> HttpResponse:
    """Show the page with a kind's form, then the estimate of what was filled in, or the job that was started.

    `start`: the service, where a kind has several.
    """

    def estimate(actor: Actor, collection: Collection, options: Any) -> dict[str, Any]:
        query = f"?type={sort}" if (sort := request.POST.get("type")) else request.get_full_path()
        sent = [(name, value) for name, values in request.POST.lists() for value in values if value]
        return {
            "hidden": [(name, value) for name, value in sent if name != "csrfmiddlewaretoken"],
            "kind": kind,
            "home": kind.home_of(collection),
            "facts": [
                (str(bound_field.label), _say_value(bound_field.field, value))
                for bound_field in form
                if (value := form.cleaned_data.get(bound_field.name))
            ],
            "back": f"{query}#new",
            "estimate": kind.estimate_cost(collection, options.for_job()),
        }

    between: dict[str, Any] = {"confirm": "model_jobs/confirm.html", "estimate": estimate}
    return answer_action(request, scope, start or kind.start, form, show, kind.address_of, **between)


def _say_value(field: forms.Field, value: Any) -> str:
    if value is True:
        return _("yes")
    words = dict(getattr(field, "choices", ()))
    return ", ".join(str(words.get(choice, choice)) for choice in (value if isinstance(value, list) else [value]))


def form_page(request: HttpRequest, scope: AccessScope, kind: ModelJobKind[Job], **initial: Any) -> HttpResponse:
    """Show the form of a kind on a page of its own, then its estimate, or the job that was started from it."""
    shown = kind.shown_in(scope.collection)
    form: Any = form_of(kind.start, request, **{**shown, "initial": shown.get("initial", {}) | initial})
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
    """Show all jobs of a kind with the form of a new one, its estimate, or the job that was started from it."""

    def show(form: ActionForm) -> HttpResponse:
        moving = any(not job.is_over for job in jobs)
        shown = {"form": form, "jobs": jobs, "moving": moving, "unattended": is_unattended(*jobs), **context}
        polled: dict[str, Any] = {"news": "" if form.is_bound else news, "is_over": not moving}
        return answer_page(request, scope, page, shown, status=422 if form.is_bound else 200, **files, **polled)

    return answer_form(request, scope, kind, form, show, start)


def job_page(
    request: HttpRequest, scope: AccessScope, job: Job, page: str, news: str, context: dict[str, Any], **files: Any
) -> HttpResponse:
    """Show a job; HTMX polls `news` while it is worked on. `files`: charts and tables that the page offers."""
    context = {
        "job": job,
        "limits": ActionForm(PaidOptions, initial=job.kept),
        "unattended": is_unattended(job),
        **context,
    }
    return answer_page(request, scope, page, context, news=news, is_over=job.is_over, **files)


def with_limits(jobs: Iterable[Job]) -> list[tuple[Job, ActionForm]]:
    """Return jobs with the form in which each is resumed; the fields of several on one page have names of their own."""
    return [(job, ActionForm(PaidOptions, initial=job.kept, auto_id=f"id_{job.pk}_%s")) for job in jobs]


def control_job(request: HttpRequest, scope: AccessScope, kind: ModelJobKind[Job], job: Job, act: str) -> None:
    """Cancel a job, or let it go on under new limits, and tell the audit log. Raises Http404 for another act."""
    acts: dict[str, Callable[[Job], bool]] = {"cancel": kind.cancel, "go-on": kind.go_on}
    if act not in acts:
        raise Http404(_("Unknown action."))
    form = ActionForm(PaidOptions, request.POST)
    try:
        with transaction.atomic():
            # A job that asks nobody is resumed without a word of limits.
            if act == "go-on" and request.POST.keys() & set(LIMITS) and form.is_valid():
                kind.set_limits(job, **limits_of(form.cleaned_data))
            done = acts[act](job)
            if done:
                record_act(scope, kind.controlled, **kind.describe(job), what=act)
    except BadInput as error:
        messages.error(request, _("No changes made: %(error)s.") % {"error": error})
    else:
        # Two readers clicked at once, or it ended meanwhile.
        if not done:
            messages.error(request, _("No changes made: the job's state no longer allows this action."))


def control_path(here: str, kind: ModelJobKind[Job], name: str) -> URLPattern:
    """Return the address that cancels and resumes jobs of a kind. `here`: that of one job."""

    @action("admin")
    @require_POST
    def control(request: HttpRequest, scope: AccessScope, act: str, **which: Any) -> HttpResponse:
        """Cancel a job, or let it go on after a cancellation or a failure."""
        (number,) = which.values()
        job = kind.find(scope.collection, number)
        control_job(request, scope, kind, job, act)
        return redirect(kind.address_of(job))

    return path(f"{here}<slug:act>/", control, name=name)
