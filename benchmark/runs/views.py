"""Pages of runs: list, upload, form of a new run, TREC file, delete."""

from functools import partial
from typing import Any, cast

from django import forms
from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from actions.options import ActionForm, show_refusal
from actions.pages import answer_action, form_of
from actions.services import Actor
from benchmark.models import Run
from benchmark.report.systems import chosen
from benchmark.runs import options, rankings, services
from benchmark.runs.builders import RUNS, free_name
from benchmark.runs.model_folders import fits, offered_folders, reader_of
from benchmark.search_endpoints.selectors import endpoints
from charts.downloads import DownloadTable
from corpus.access import AccessScope, action
from corpus.chart_downloads import answer_page, send_lines
from corpus.errors import BadInput, BadOption
from corpus.models import Collection, Document
from corpus.search import static_embeddings
from jobs.models import JobState
from judges.model_jobs.pages import answer_form, is_unattended
from judges.retrieval.model_requests import judges_for

SHOWN = sorted({*options.COMMON, *(name for names in options.TAKES.values() for name in names)})
KINDS = [
    (kind, gettext_lazy("from your search") if kind == Run.Kind.SEARCH else Run.Kind(kind).label)
    for kind in options.TAKES
    if kind != Run.Kind.STATIC or static_embeddings.is_available()
]
DEPTHS = ("20", "100")  # By default: of a search endpoint, whose users see one page or two, and of other systems.
ROLES = {"rewrite": "rewrite", "reasoning": "reason", "dense": "embed", "rerank": "rank"}


class RunFiles(forms.ClearableFileInput):
    """A file input that takes several files at once."""

    allow_multiple_selected = True


class FilesField(forms.FileField):
    """A field for one file or several; its value is a list."""

    widget = RunFiles

    def clean(self, data: Any, initial: Any = None) -> list[UploadedFile]:  # type: ignore[type-arg]
        """Clean each file by the rules of a single one."""
        files = data if isinstance(data, list | tuple) else [data]
        return [super(FilesField, self).clean(file, initial) for file in files] or super().clean(None, initial)


@action("admin")
@require_GET
def runs(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """List the runs, with the upload form. HTMX polls the list while runs are being made."""
    return _render_page(request, scope, _upload_form(request))


def _upload_form(request: HttpRequest) -> ActionForm:
    form = form_of(services.import_runs, request)
    form.fields["name"] = form.fields.pop("run")
    form.fields["files"] = FilesField(
        label=_("TREC files"),
        help_text=_(
            "Each file is one run and gives it its name. Lines contain query, Q0, document, "
            "rank, score and tag. Gzip is accepted."
        ),
    )
    return form


def _render_page(
    request: HttpRequest, scope: AccessScope, form: ActionForm, problems: list[str] | None = None
) -> HttpResponse:
    rows = chosen.runs_of(scope.collection)
    moving, unattended = any(not run.is_over for run in rows), is_unattended(*rows)
    context = {"runs": rows, "moving": moving, "unattended": unattended, "form": form, "problems": problems or []}
    news: dict[str, Any] = {"news": "benchmark/_runs.html", "is_over": not moving}
    news["status"] = 422 if form.is_bound else 200
    created, queries = pgettext("column", "created"), pgettext("column", "queries")
    origin_headers = (_("origin"), pgettext("column", "by"))
    header = (_("system"), *origin_headers, _("state"), created, _("depth"), queries)
    lines = tuple(
        (run.name, run.get_kind_display(), run.made_by, run.get_state_display(), run.created_at.isoformat(), run.depth,
         run.done)
        for run in rows
    )  # fmt: skip
    table = DownloadTable("runs", _("Runs"), header, lines, 5)
    return answer_page(request, scope, "benchmark/runs.html", context, tables=[table], **news)


@action("admin")
@require_POST
def upload_runs(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Import uploaded files as runs, all or none; every problem is listed with its line."""
    form = _upload_form(request)
    if not form.is_valid():
        return _render_page(request, scope, form)
    try:
        import_options = cast(
            options.RunImportOptions, form.options.model_copy(update={"run": form.cleaned_data["name"]})
        )
        imported = services.import_uploads(
            Actor.of(scope), scope.collection, import_options, form.cleaned_data["files"]
        )
    except BadOption as error:
        show_refusal(form, error)
        return _render_page(request, scope, form)
    except BadInput as error:
        return _render_page(request, scope, form, str(error).split("; "))
    lines = sum(counts["lines"] for _run, counts in imported)
    message = ngettext(
        "%(count)s run imported (%(lines)s lines).", "%(count)s runs imported (%(lines)s lines).", len(imported)
    )
    messages.success(request, message % {"count": len(imported), "lines": f"{lines:,}"})
    return redirect("runs", scope.collection.name)


@action("admin")
@require_http_methods(["GET", "POST"])
def make_run(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Show the form of a type of run and its estimated cost, then start the run.

    HTMX asks for the fields of another type, with the values entered in common fields.
    """
    kind = request.GET.get("type") or str(Run.Kind.BM25)
    if not request.GET.get("type") and not Document.objects.filter(collection=scope.collection).exists():
        kind = str(Run.Kind.SEARCH)  # Any other system ranks documents that are here.
    if kind not in options.TAKES:
        raise Http404(_("Unknown type of run."))
    entered = {name: request.GET[name] for name in ("name", "depth", "endpoint") if request.GET.get(name)}
    # Defaults of another type were not entered by the user.
    if entered.get("name") in options.TAKES:
        del entered["name"]
    if entered.get("depth") in DEPTHS:
        del entered["depth"]
    choices = _offers(scope.collection, kind)
    initial = {"name": kind, "method": next(iter(options.METHODS.get(Run.Kind(kind), ())), "")}
    if kind == Run.Kind.SEARCH:
        # A free name for a run of the endpoint that was asked for, or of the only one; none if there are several.
        endpoints = [endpoint for endpoint, _title in choices["endpoint"]]
        endpoint = entered.get("endpoint") or (endpoints[0] if len(endpoints) == 1 else "")
        run_name = options.RunOptions(system="search", endpoint=endpoint).run_name if endpoint else ""
        initial = {"name": run_name and free_name(scope.collection, run_name), "depth": DEPTHS[0]}
    initial |= entered
    form_options: dict[str, Any] = {
        "fixed": {"system": kind},
        "initial": initial,
        "choices": choices,
    }
    form = form_of(services.make_run, request, only=(*options.COMMON, *options.TAKES[kind]), **form_options)
    if kind == Run.Kind.HYBRID:
        form.fields["run"].label = _("Reranked run")

    def show(form: Any) -> HttpResponse:
        context, fields = {"scope": scope, "form": form, "kind": Run.Kind(kind), "kinds": KINDS}, form.fields
        form.lacks = next((field for field in options.OFFERED if field in fields and not fields[field].choices), "")
        page = "benchmark/_make.html" if request.headers.get("HX-Request") else "benchmark/make.html"
        return render(request, page, context, status=422 if form.is_bound else 200)

    if kind in ROLES:
        return answer_form(request, scope, RUNS, form, show, services.make_run)
    return answer_action(request, scope, services.make_run, form, show, RUNS.address_of)


def _offers(collection: Collection, kind: str) -> dict[str, list[tuple[Any, Any]]]:
    """Return the choices of the fields of a kind of run."""
    takes, words = options.TAKES[kind], options.METHOD_WORDS
    dense = judges_for(ROLES["dense"]) if "over" in takes else []
    offers: dict[str, list[tuple[Any, Any]]] = {
        "run": [(run.name, run.name) for run in chosen.ready_runs(collection)] if "run" in takes else [],
        "method": [(method, words[method]) for method in options.METHODS.get(Run.Kind(kind), ())],
        "scores": [
            ("", _("detect: treat as log odds if any score is below 0")),
            ("margins", _("log odds: apply the sigmoid first")),
            ("plain", _("use as they are")),
        ],
        "judge": [(name, name) for name in judges_for(ROLES[kind])] if "judge" in takes else [],
        "over": [
            ("", _("BM25")),
            *((f"dense:{judge}", _("embeddings of %(judge)s") % {"judge": judge}) for judge in dense),
        ],
    }
    if "model" in takes:
        offers["model"] = [(name, name) for name in offered_folders(partial(fits, Run.Kind(kind)))]
    if "endpoint" in takes:
        offers["endpoint"] = [(endpoint.name, endpoint.name) for endpoint in endpoints()]
    if "prompt" in takes:
        names = reader_of(Run.Kind.RERANK_FOLDER).PROMPT_NAMES
        offers["prompt"] = [("", _("as the model says")), *((name, name) for name in names)]
    return offers


@action("admin")
@require_GET
def run_file(request: HttpRequest, scope: AccessScope, run: int) -> HttpResponseBase:
    """Stream the run as a TREC file."""
    run_row = RUNS.find(scope.collection, run)
    if run_row.state != JobState.READY:
        raise Http404(_("This run is not ready yet."))
    return send_lines(rankings.write_trec(run_row), f"{run_row.name}.run")


@action("admin")
@require_http_methods(["GET", "POST"])
def delete_run(request: HttpRequest, scope: AccessScope, run: int) -> HttpResponse:
    """Delete a run: GET asks, POST removes it from every table and frees its name."""
    run_row = RUNS.find(scope.collection, run)
    if request.method == "GET":
        return render(request, "benchmark/delete_run.html", {"scope": scope, "run": run_row})
    services.delete_run(Actor.of(scope), run_row)
    messages.success(request, _("Run %(name)s deleted.") % {"name": run_row.name})
    return redirect("runs", scope.collection.name)
