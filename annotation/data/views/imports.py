"""Bring files into a collection from the browser: the ordinary importer, all or nothing."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from annotation.audit_log.recording import record
from annotation.data.forms import ImportForm
from annotation.permissions import Scope, action
from corpus.errors import BadInput
from corpus.importing.service import ImportFiles, ImportReport, import_collection


@action("admin")
@require_http_methods(["GET", "POST"])
def import_files(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Documents, queries, candidates and reference grades; an error names file and line and nothing is changed."""
    form = ImportForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        try:
            with transaction.atomic():
                report = _import_uploads(scope.collection.name, form)
                names = [form.cleaned_data[field].name for field in form.FILES if form.cleaned_data[field]]
                record(scope, "import.files", files=names, new=report.new)
        except BadInput as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, _describe_import(report))
            return redirect("collection", scope.collection.name)
    context = {"scope": scope, "form": form}
    return render(request, "data/import.html", context, status=422 if form.is_bound else 200)


def _import_uploads(name: str, form: ImportForm) -> ImportReport:
    with TemporaryDirectory() as folder, _named_as_uploaded(folder):
        given = {field: _save_upload(Path(folder), field, form.cleaned_data[field]) for field in form.FILES}
        corpus, queries = given["corpus"], given["queries"]
        if corpus is None or queries is None:
            raise BadInput(_("documents and queries are required"))
        return import_collection(
            name,
            ImportFiles(
                corpus=corpus,
                queries=queries,
                qrels=given["qrels"],
                pairs=given["pairs"],
                bm25=form.cleaned_data["bm25"] or 0,
                keep_empty=form.cleaned_data["keep_empty"],
                update=form.cleaned_data["update"],
            ),
        )


@contextmanager
def _named_as_uploaded(folder: str) -> Iterator[None]:
    """Errors name files as they were uploaded, and not where the server put them."""
    try:
        yield
    except BadInput as error:
        places = f"{re.escape(folder)}/({'|'.join(ImportForm.FILES)})/"
        raise BadInput(re.sub(places, "", str(error))) from None


def _save_upload(folder: Path, field: str, upload: UploadedFile | None) -> Path | None:  # type: ignore[type-arg]
    """The upload on disk under its own name, so that errors can say it; in a folder of its own."""
    if upload is None:
        return None
    path = folder / field / Path(upload.name or field).name
    path.parent.mkdir()
    with path.open("wb") as file:
        file.writelines(upload.chunks())
    return path


def _describe_import(report: ImportReport) -> str:
    new, told = report.new, _("Nothing changed: everything is already in the collection.")
    if report.changed:
        told = _("Imported %(documents)s documents, %(queries)s queries and %(pairs)s pairs.") % {
            "documents": f"{new['documents']:,}",
            "queries": f"{new['queries']:,}",
            "pairs": f"{new['pairs']:,}",
        }
    if unjudged := report.grades_below_zero:
        left_out = ngettext(
            "%(rows)s row with a grade below 0 was left out: it means not judged.",
            "%(rows)s rows with a grade below 0 were left out: they mean not judged.",
            unjudged,
        )
        told += " " + left_out % {"rows": f"{unjudged:,}"}
    return told
