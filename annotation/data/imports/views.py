"""Pages of imports: upload files, see what they contain, check them, import them in the background."""

from tempfile import NamedTemporaryFile
from typing import Any

from django import forms
from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST

from actions.options import ActionForm
from actions.pages import answer_action, form_of
from actions.services import Actor
from annotation.access.permissions import Scope, action
from annotation.data.imports import importing, tus, uploads
from annotation.data.imports.page import SHOWN, build_import_page, find_import, list_choices
from annotation.models.imports import FileImport
from corpus.errors import BadInput
from corpus.formats.files import FileSource
from corpus.importing.options import ImportOptions
from corpus.models import Collection, Document
from corpus.query_logs.options import QueryLogOptions
from corpus.query_logs.services import import_queries

LARGEST_LOG = 10_000_000  # Bytes of a query log that are read while a page waits: about 4 s of a core.
# HTMX stops polling at this status.
STOP_POLLING = 286


LOG_HELP = gettext_lazy(
    "A table with a column of queries and a column of counts (CSV, TSV, Excel, Parquet or JSON), or one query a line, "
    "where each line counts once; plain or gzip."
)


class MultipleFilesInput(forms.ClearableFileInput):
    """An input that takes several files."""

    allow_multiple_selected = True


class MultipleFilesField(forms.FileField):
    """A field for any number of files, whose value is a list."""

    widget = MultipleFilesInput

    def clean(self, data: Any, initial: Any = None) -> list[UploadedFile]:  # type: ignore[type-arg]
        """Return the files unchecked: the importer names the file with an error."""
        return [file for file in data or [] if file is not None]


class FilesForm(forms.Form):
    """Files that come with the form; with JavaScript they are uploaded before, and the form has their numbers."""

    files = MultipleFilesField(  # type: ignore[assignment]  # the form's own `files` is set before fields are looked up
        required=False,
        label=gettext_lazy("Files"),
        help_text=gettext_lazy(
            "CSV, TSV, Excel, Parquet, JSON, or TREC topics, documents, qrels and runs; plain, gzip or in a zip archive"
            " (a BEIR folder); exports of Quepid, Label Studio, Argilla and of this site. Choose all files at once."
        ),
    )


class LogFileField(forms.FileField):
    """A query log, whose value is an upload that a page may read while its reader waits."""

    def clean(self, data: Any, initial: Any = None) -> Any:
        """Return the upload, if reading it takes no longer than a reader waits."""
        upload = super().clean(data, initial)
        if upload is not None and upload.size > LARGEST_LOG:
            message = _("%(name)s: larger than %(most)s MB; import it from a shell")
            raise forms.ValidationError(message % {"name": upload.name, "most": LARGEST_LOG // 1_000_000})
        return upload


create_upload = action("admin")(tus.create_upload)
change_upload = action("admin")(tus.change_upload)


@action("admin")
@require_http_methods(["GET", "POST"])
def import_files(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the form for files, unused uploads and earlier imports. A POST begins an import."""
    form = FilesForm(request.POST, request.FILES) if request.method == "POST" else FilesForm()
    free = uploads.free_uploads(scope.collection, scope.user)
    if form.is_valid():
        uploaded = free.filter(pk__in=[value for value in request.POST.getlist("upload") if is_key(value)])
        try:
            row = importing.import_files(scope.collection, scope.user, form.cleaned_data["files"], uploaded)
            return redirect("file_import", scope.collection.name, row.number)
        except BadInput as error:
            form.add_error("files", str(error))
    context = {
        "scope": scope,
        "form": form,
        "unused": [(upload, uploads.count_received(upload)) for upload in free],
        "imports": FileImport.objects.filter(collection=scope.collection).order_by("-pk")[:SHOWN],
    }
    return render(request, "imports/imports.html", context, status=422 if form.is_bound else 200)


@action("admin")
@require_http_methods(["GET", "POST"])
def import_query_log(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Show the form for a query log. A POST adds its queries, or a sample of them."""
    form = form_of(import_queries, request)
    form.fields = {"log": LogFileField(label=_("File"), help_text=LOG_HELP), **form.fields}

    def import_log(actor: Actor, collection: Collection, options: QueryLogOptions) -> dict[str, Any]:
        upload = form.cleaned_data["log"]
        with NamedTemporaryFile() as file:
            file.writelines(upload.chunks())
            file.flush()
            report = import_queries(actor, collection, options, source=FileSource(file.name, name=upload.name))
        message = _(
            "%(sampled)s of %(distinct)s different queries taken, %(share)s of the traffic: %(new)s new, "
            "%(renewed)s counts renewed. Skipped: %(empty)s lines without a query, %(unasked)s with a count of 0."
        )
        numbers = {name: f"{value:,}" for name, value in report.items() if isinstance(value, int)}
        messages.success(request, message % {**numbers, "share": f"{report['share']:.1%}"})
        return report

    def show(form: ActionForm) -> HttpResponse:
        status = 422 if form.is_bound else 200
        return render(request, "imports/query_log.html", {"scope": scope, "form": form}, status=status)

    def done(report: dict[str, Any]) -> str:
        # Without documents the next step is a run by a search engine, which brings them.
        has_documents = Document.objects.filter(collection=scope.collection).exists()
        return reverse("benchmark_queries" if has_documents else "make_run", args=[scope.collection.name])

    return answer_action(request, scope, import_log, form, show, done)


@action("admin")
@require_POST
def delete_upload(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Delete one of the person's uploads that no import uses."""
    if is_key(number := request.POST.get("number", "")):
        for upload in uploads.free_uploads(scope.collection, scope.user).filter(pk=number):
            uploads.delete_upload(upload)
            messages.success(request, _("%(name)s deleted.") % {"name": upload.name})
    return redirect("import", scope.collection.name)


def is_key(value: str) -> bool:
    """Return whether a text is a number that fits into PostgreSQL's bigint."""
    return value.isdecimal() and len(value) < 19


@action("admin")
@require_http_methods(["GET", "POST"])
def file_import(request: HttpRequest, scope: Scope, file_import: int) -> HttpResponseBase:
    """Show an import: files, check, progress. A POST corrects what the files contain and checks them again.

    With `start` it imports, unless something was chosen since the check: then the counts are of other choices.
    """
    row = find_import(scope.collection, file_import)
    # Fields of the form that describe files and their columns.
    fields = {name: str(value) for name, value in request.POST.dict().items() if name.startswith(("kind-", "field-"))}

    def correct(actor: Actor, collection: Collection, options: ImportOptions) -> FileImport:
        return importing.correct_import(actor, row, options, fields)

    def show(form: ActionForm) -> HttpResponse:
        context: dict[str, Any] = {"scope": scope, "form": form, **build_import_page(row)}
        # HTMX asks for the part that changes until the job is over.
        if request.headers.get("HX-Request") and request.method == "GET":
            response = render(request, "imports/_state.html", context, status=STOP_POLLING if row.is_over else 200)
            # The page was rendered before the files were recognised or corrected, so it must be loaded again.
            if "looking" in request.GET and ((row.looked_at and not row.corrections) or row.is_over):
                response["HX-Refresh"] = "true"
            return response
        return render(request, "imports/file_import.html", context, status=422 if form.errors else 200)

    def done(row: FileImport) -> str:
        address = reverse("file_import", args=[scope.collection.name, row.number])
        return f"{address}?changed" if "start" in request.POST else address

    form = form_of(importing.correct_import, request, initial=row.options)
    if "start" in request.POST and form.is_valid():
        options = ImportOptions(**row.options | form.options.model_dump(exclude_unset=True))
        if options == ImportOptions(**row.options) and fields.items() <= list_choices(row).items():
            return control_import(request, name=scope.collection.name, file_import=file_import, act="start")
    return answer_action(request, scope, correct, form, show, done)


@action("admin")
@require_POST
def control_import(request: HttpRequest, scope: Scope, file_import: int, act: str) -> HttpResponse:
    """Start, cancel, resume or discard an import."""
    row = find_import(scope.collection, file_import)
    if act in importing.ACTS:
        try:
            importing.control_import(scope, row, act)
        except BadInput as error:
            messages.error(request, str(error))
    elif act == "discard":
        importing.discard_import(row)
        messages.success(request, _("Files deleted. Nothing was imported."))
        return redirect("import", scope.collection.name)
    else:
        raise Http404(_("Unknown action."))
    return redirect("file_import", scope.collection.name, row.number)
