"""Pages of training: jobs, models, rollouts, and downloads of their files."""

from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.paginator import Paginator
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST, require_safe

from actions.options import ActionForm
from actions.pages import answer_action
from actions.pages import form_of as action_form
from actions.services import Actor
from corpus.access import AccessScope, action
from corpus.chart_downloads import download
from corpus.collections.audit_log import record_act
from corpus.errors import BadInput
from corpus.numbered import numbered_or_404
from jobs import background
from store.downloads import send_file
from store.files import fetch, fetch_matching
from store.paths import name_below_var
from training.jobs import graded_outputs, lifecycle, pages, rollouts, services
from training.jobs.forms import JudgeForm, form_of
from training.jobs.model_files import list_model_files
from training.jobs.model_files import model_file as find_model_file
from training.jobs.options import TrainingOptions
from training.lineage.model_sources import count_changed, read_changed
from training.models import Job, Model
from training.recipes.table import FAR_RATE, find_far_rate, is_embedding_recipe, recipe_options

ROLLOUTS = 10  # Rollouts on a page.
SHOWN = 50  # The newest jobs and models, on the page of a collection.


@action("admin")
@require_GET
def training(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Show jobs and models, and the form for a new training; HTMX refreshes the lists while a job is running."""
    if request.headers.get("HX-Request"):
        context = _lists_context(scope)
        return render(request, "training/_lists.html", context, status=200 if context["moving"] else 286)
    form = form_of(TrainingOptions, scope.collection)
    # The page of an export links to this one with the name of its folder.
    name = request.GET.get("training_set", "")
    if folders := [folder for folder, _label in form.sets if Path(folder).name == name]:
        form.initial["data"] = folders[0]
    return _render_page(request, scope, form)


def _lists_context(scope: AccessScope) -> dict[str, object]:
    jobs = Job.objects.filter(collection=scope.collection).select_related("model").order_by("-pk")[:SHOWN]
    models = list(Model.objects.filter(collection=scope.collection).select_related("job").order_by("-pk")[:SHOWN])
    changed = read_changed(scope.collection, models)
    extra = pages.extra_state()
    return {
        "scope": scope,
        "jobs": jobs,
        "models": [(model, changed.get(model.pk, 0)) for model in models],
        "extra": extra,
        "moving": extra["state"] == "installing" or any(not job.is_over for job in jobs),
    }


def _render_page(request: HttpRequest, scope: AccessScope, form: ActionForm) -> HttpResponse:
    context = {**_lists_context(scope), "form": form, "why_not": pages.why_not_now()}
    return render(request, "training/training.html", context, status=422 if form.is_bound else 200)


@action("admin")
@require_POST
def start_training(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Queue a training."""

    def done(job: Job) -> str:
        recipe, option_values = job.options["recipe"], job.options["options"]
        if rates := find_far_rate(recipe, recipe_options(recipe, option_values)):
            messages.warning(request, _(FAR_RATE) % rates)
        return reverse("training_job", args=[scope.collection.name, job.number])

    form = form_of(TrainingOptions, scope.collection, request.POST)
    return answer_action(request, scope, services.start_training, form, partial(_render_page, request, scope), done)


@action("admin")
@require_GET
def training_job(request: HttpRequest, scope: AccessScope, job: int) -> HttpResponse:
    """Show one job; HTMX refreshes it while it is running."""
    row = _get_job(Job.objects.select_related("model"), scope, job)
    live = pages.live_job(row)
    queries, evidence = pages.draw_queries(row.result), pages.draw_evidence(row.result)
    if (file := download(request, (live["loss"], live["lengths"], queries, evidence, *live["metrics"]))) is not None:
        return file
    context = {
        "scope": scope,
        "job": row,
        "live": live,
        "words": pages.setup_label(row),
        "no_gain": pages.explain_no_gain(row.result.get("gain") or {}, tiny=row.words.startswith("tiny")),
        "ranked": pages.rankings_table(row.result.get("rankings") or row.result),
        "queries": queries,
        "table": pages.evaluation_table(row.result.get("evaluation")),
        "sides": pages.name_sides(row.result.get("gain")),
        "written": pages.outputs_table(row.result),
        "written_sides": list(row.result.get("outputs") or {}),
        "missing_values": pages.missing_values(row.result),
        "written_chart": evidence,
    }
    if context["written"]:
        context |= {
            "judging": row.result.get("judged") or {},
            "judged_columns": graded_outputs.judged_columns(row),
            "judge_form": JudgeForm(judges=graded_outputs.judge_names()),
            "judge_calls": graded_outputs.count_judge_calls(row),
            "judge_job": background.last(graded_outputs.TASK, row.pk),
            "judge_why_not": graded_outputs.why_not(row),
        }
    if request.headers.get("HX-Request"):
        return render(request, "training/_job.html", context, status=286 if row.is_over else 200)
    return render(request, "training/job.html", context)


def _get_job(rows: QuerySet[Job], scope: AccessScope, number: int) -> Job:
    return numbered_or_404(rows, scope.collection, number, _("Training not found."))


@action("admin")
@require_GET
def job_rollouts(request: HttpRequest, scope: AccessScope, job: int) -> HttpResponse:
    """Show the rollouts of a stored round for one query: text, score, rank, reward and advantage."""
    row = _get_job(Job.objects.all(), scope, job)
    text, query_id = request.GET.get("step", ""), request.GET.get("query", "")
    step = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None
    view = rollouts.read_rollouts(fetch(Path(row.folder) / rollouts.FILE, newest=True), step, query_id)
    if view is None:
        raise Http404(_("This job has no rollouts."))
    context = {
        "scope": scope,
        "job": row,
        "view": view,
        "page": Paginator(view["rollouts"], ROLLOUTS).get_page(request.GET.get("page")),
        "asked": urlencode({"step": view["step"], "query": view["query_id"]}),
        "words": pages.setup_label(row),
    }
    return render(request, "training/rollouts.html", context)


@action("admin")
@require_POST
def control_job(request: HttpRequest, scope: AccessScope, job: int, act: str) -> HttpResponse:
    """Cancel a job, or resume it after a cancellation or a failure."""
    row = _get_job(Job.objects.all(), scope, job)
    if act not in services.ACTS:
        raise Http404(_("Unknown action."))
    try:
        services.control_job(Actor.of(scope), row, act)
    except BadInput as error:
        messages.error(request, str(error))
    return redirect("training_job", scope.collection.name, row.number)


@action("admin")
@require_POST
def judge_outputs(request: HttpRequest, scope: AccessScope, job: int) -> HttpResponse:
    """Queue the scoring of the texts of base and tuned model by a judge."""
    row = _get_job(Job.objects.filter(kind=Job.Kind.GENERATE, state=Job.State.FINISHED), scope, job)
    form = JudgeForm(request.POST, judges=graded_outputs.judge_names())
    try:
        if not form.is_valid():
            raise BadInput(_("Choose a judge, and a budget of 0 or more."))
        with transaction.atomic():
            graded_outputs.queue_scoring(row, form.cleaned_data["judge"], form.cleaned_data["budget"])
            record_act(scope, "training.control", job=row.number, what="judge")
    except BadInput as error:
        messages.error(request, str(error))
    else:
        messages.success(request, _("Scoring started. Reload this page to see the scores."))
    return redirect("training_job", scope.collection.name, row.number)


@action("admin")
@require_GET
def training_model(request: HttpRequest, scope: AccessScope, model: int) -> HttpResponse:
    """Show a published model: its measures, its files, and the jobs that it can be used for."""
    row = get_object_or_404(Model.objects.select_related("job"), pk=model, collection=scope.collection)
    summary = row.summary
    context = {
        "scope": scope,
        "model": row,
        "changed": count_changed([row]).get(row.pk, 0),
        "table": pages.evaluation_table(summary.get("evaluation")),
        "sides": pages.name_sides(summary.get("gain")),
        "ranked": pages.rankings_table(summary.get("rankings") or {}),
        "words": row.words,
        "calibration": summary.get("calibration") or {},
        "checkpoint": summary.get("checkpoint") or {},
        "used": Job.objects.filter(collection=scope.collection, options__model=row.pk).order_by("-pk")[:20],
        "is_here": fetch(Path(row.folder) / "reranker.json").exists(),
        "why_not": pages.why_not_now(),
        "is_embedder": is_embedding_recipe(row.recipe),
        "no_gain": pages.explain_no_gain(summary.get("gain") or {}, tiny=row.words.startswith("tiny")),
        # The path below VAR, or only the folder's name if a command wrote the model elsewhere.
        "place": f"VAR/{below}" if (below := name_below_var(Path(row.folder))) else Path(row.folder).name,
        "files": list_model_files(row),
        "form": action_form(services.use_model),
    }
    return render(request, "training/model.html", context)


@action("admin")
@require_POST
def use_model(request: HttpRequest, scope: AccessScope, model: int, act: str) -> HttpResponse:
    """Queue a job that uses a model: evaluate, rerank, order or generate."""
    row = get_object_or_404(Model.objects.select_related("job"), pk=model, collection=scope.collection)
    if act not in lifecycle.USES:
        raise Http404(_("Unknown action."))
    form: Any = action_form(services.use_model, request)
    try:
        if not form.is_valid():
            problems = (f"{form[name].label}: {' '.join(map(str, errors))}" for name, errors in form.errors.items())
            raise BadInput(" ".join(problems))
        job = services.use_model(Actor.of(scope), row, form.options, act=act)
    except BadInput as error:
        messages.error(request, str(error))
        return redirect("training_model", scope.collection.name, row.pk)
    return redirect("training_job", scope.collection.name, job.number)


@action("admin")
@require_GET
def model_card(request: HttpRequest, scope: AccessScope, model: int) -> HttpResponseBase:
    """Send the README.md of a model's folder."""
    row = get_object_or_404(Model, pk=model, collection=scope.collection)
    return send_file(request, Path(row.folder) / "README.md", name=f"{row.name}-README.md")


@action("admin")
@require_safe
def model_file(request: HttpRequest, scope: AccessScope, model: int, file: str) -> HttpResponseBase:
    """Send a file of a published model."""
    path = find_model_file(get_object_or_404(Model, pk=model, collection=scope.collection), file)
    if path is None:
        raise Http404(_("File not found."))
    return send_file(request, path, name=path.name)


@action("admin")
@require_GET
def job_file(request: HttpRequest, scope: AccessScope, job: int, file: str) -> HttpResponseBase:
    """Send a file of a job: a run, a table of losses, its log or its metrics."""
    row = _get_job(Job.objects.all(), scope, job)
    folder = Path(row.folder)
    names = {"metrics.jsonl", "log.txt", "evaluation.json"}
    names |= {path.name for pattern in ("*.run", "ablation.*") for path in fetch_matching(folder, pattern)}
    if file not in names:
        raise Http404(_("File not found."))
    # The log and the metrics grow while the job is running.
    return send_file(request, folder / file, name=f"{scope.collection.name}-{row.number}-{file}", grows=True)
