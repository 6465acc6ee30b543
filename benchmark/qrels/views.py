"""Pages of versions of the qrels: the list, the difference of two versions, upload and download."""

from django import forms
from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext
from django.views.decorators.http import require_GET, require_http_methods

from actions.options import show_refusal
from benchmark.models import Qrels
from benchmark.qrels import comparing, reading
from benchmark.qrels.comparing import ChangeKind
from benchmark.qrels.importing import import_version
from benchmark.qrels.versions import labels_version, original_version
from benchmark.report.systems import chosen
from benchmark.runs.importing import saved_uploads
from charts.downloads import DownloadTable
from corpus.access import AccessScope, action
from corpus.chart_downloads import answer_page, send_file, send_lines
from corpus.collections.audit_log import record_act
from corpus.errors import BadInput

KINDS: tuple[ChangeKind, ...] = ("added", "removed", "changed")
SHOWN = 100  # Lines of a kind on the page; the downloaded table has all.


class QrelsForm(forms.Form):
    """A qrels file to import as a version."""

    file = forms.FileField(
        label=gettext_lazy("Qrels file"),
        help_text=gettext_lazy("TREC or BEIR format, with the ids of this collection."),
    )
    note = forms.CharField(required=False, max_length=200, label=gettext_lazy("Note"))


@action("admin")
@require_http_methods(["GET", "POST"])
def versions(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """List the versions. POST creates one from a file (`what` is import), the reference grades, or today's labels."""
    form = QrelsForm()
    if request.method == "POST":
        kind = request.POST.get("what", "import")
        form = QrelsForm(request.POST, request.FILES)
        try:
            version = None
            with transaction.atomic():
                if kind == "original":
                    version = original_version(scope.collection, by=scope.user.username)
                elif kind == "labels":
                    version = labels_version(scope.collection, by=scope.user.username)
                elif form.is_valid():
                    note = form.cleaned_data["note"]
                    with saved_uploads([form.cleaned_data["file"]]) as (path,):
                        version = import_version(scope.collection, path, note=note, by=scope.user.username)
                if version is not None:
                    record_act(scope, "qrels.made", version=version.number, what=kind)
        except BadInput as error:
            if kind != "import":
                messages.error(request, _("No changes made: %(error)s.") % {"error": error})
                return redirect("qrels", scope.collection.name)
            show_refusal(form, error)
            version = None
        if version is not None:
            message = _("Version %(number)s created.") % {"number": version.number}
            if unjudged := version.counts.get("not_judged"):
                left_out = ngettext(
                    "%(rows)s row with a grade below 0 was skipped because it means “not judged”.",
                    "%(rows)s rows with a grade below 0 were skipped because they mean “not judged”.",
                    unjudged,
                )
                message += " " + left_out % {"rows": f"{unjudged:,}"}
            messages.success(request, message)
            return redirect("qrels", scope.collection.name)
    stored_versions = chosen.versions_of(scope.collection)
    context, status = {"versions": stored_versions, "form": form}, 422 if form.is_bound else 200
    # The download table of versions, with counts of labels by origin.
    origins = list(dict.fromkeys(origin for version in stored_versions for origin in version.counts.get("origins", {})))
    origin_headers = (_("note"), pgettext("column", "by"), pgettext("column", "created"))
    counts = (pgettext("column", "queries"), _("judged"), _("relevant"))
    header = (_("version"), _("kind"), *origin_headers, *counts, *origins)
    lines = tuple(
        (str(version.number), version.get_kind_display(), version.note, version.made_by, version.created_at.isoformat(),
         *(version.counts.get(name) for name in ("queries", "judged", "relevant")),
         *(version.counts.get("origins", {}).get(origin, 0) for origin in origins))
        for version in stored_versions
    )  # fmt: skip
    files = [DownloadTable("versions", _("Versions of the qrels"), header, lines, 5)]
    return answer_page(request, scope, "benchmark/qrels.html", context, tables=files, status=status)


@action("admin")
@require_GET
def qrels_diff(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Show the difference of two versions: added, removed, changed."""
    numbers = [request.GET.get(name, "") for name in ("one", "other")]
    if not all(number.isascii() and number.isdigit() and len(number) < 10 for number in numbers):
        raise Http404(_("Choose two versions."))
    before, after = (get_object_or_404(Qrels, collection=scope.collection, number=int(number)) for number in numbers)
    diff = comparing.diff_versions(before, after)
    if request.GET.get("table"):
        header = (_("what"), _("query"), _("document"), _("before"), _("after"), _("origin"))
        labels = {"added": _("added"), "removed": _("removed"), "changed": _("changed")}
        rows = tuple(
            (labels[kind], *(row[name] for name in ("query", "document", "before", "after", "origin")))
            for kind in KINDS
            for row in diff.rows(kind)
        )
        table = DownloadTable("diff", _("Changes between two versions of the qrels"), header, rows, 3)
        file = send_file(request, [], [table])
        if file is None:
            raise Http404(_("Unknown table."))
        return file
    words = {"added": _("Added"), "removed": _("Removed"), "changed": _("Changed")}
    context = {
        "scope": scope,
        "before": before,
        "after": after,
        "diff": diff,
        "kinds": [(kind, words[kind], diff.rows(kind, 0, SHOWN), diff.counts[kind]) for kind in KINDS],
        "versions": chosen.versions_of(scope.collection),
    }
    return render(request, "benchmark/diff.html", context)


@action("admin")
@require_GET
def qrels_file(request: HttpRequest, scope: AccessScope, number: int) -> HttpResponseBase:
    """Stream a version as TREC qrels."""
    version = get_object_or_404(Qrels, collection=scope.collection, number=number)
    return send_lines(reading.write_trec(version), f"{scope.collection.name}-qrels-{number}.txt")
