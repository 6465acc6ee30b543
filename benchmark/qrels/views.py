"""Versions of the qrels: the list, what one has that another has not, files in and out."""

from django import forms
from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_GET, require_http_methods

from actions.options import show_refusal
from benchmark.models import Qrels
from benchmark.qrels import comparing, importing, reading
from benchmark.qrels.comparing import What
from benchmark.qrels.versions import labels_version, original_version
from benchmark.report import tables
from benchmark.runs.importing import saved_uploads
from benchmark.systems import chosen
from charts.downloads import DownloadTable
from corpus.access import AccessScope, action
from corpus.chart_downloads import answer_page, send_file, send_lines
from corpus.collections.audit_log import record_act
from corpus.errors import BadInput

KINDS: tuple[What, ...] = ("added", "removed", "changed")
SHOWN = 100  # Lines of a kind on the page; the table to save has all.


class QrelsForm(forms.Form):
    """A version of the qrels from elsewhere."""

    file = forms.FileField(
        label=gettext_lazy("Qrels file"),
        help_text=gettext_lazy("TREC or BEIR format, with the ids of this collection."),
    )
    note = forms.CharField(required=False, max_length=200, label=gettext_lazy("Note"))


@action("admin")
@require_http_methods(["GET", "POST"])
def versions(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """List the versions. POST makes one: of a file (`what` is import), the reference grades, or today's labels."""
    form = QrelsForm()
    if request.method == "POST":
        what = request.POST.get("what", "import")
        form = QrelsForm(request.POST, request.FILES)
        try:
            new = _make_version(scope, form, what)
        except BadInput as error:
            if what != "import":
                messages.error(request, _("No changes made: %(error)s.") % {"error": error})
                return redirect("qrels", scope.collection.name)
            show_refusal(form, error)
            new = None
        if new is not None:
            told = _("Version %(number)s created.") % {"number": new.number}
            if unjudged := new.counts.get("not_judged"):
                left_out = ngettext(
                    "%(rows)s row with a grade below 0 was skipped because it means “not judged”.",
                    "%(rows)s rows with a grade below 0 were skipped because they mean “not judged”.",
                    unjudged,
                )
                told += " " + left_out % {"rows": f"{unjudged:,}"}
            messages.success(request, told)
            return redirect("qrels", scope.collection.name)
    found = chosen.versions_of(scope.collection)
    context, status = {"versions": found, "form": form}, 422 if form.is_bound else 200
    files = [tables.versions_table(found)]
    return answer_page(request, scope, "benchmark/qrels.html", context, tables=files, status=status)


def _make_version(scope: AccessScope, form: QrelsForm, what: str) -> Qrels | None:
    """The new version; None where the form is wrong. Raises BadInput."""
    by = scope.user.username
    with transaction.atomic():
        if what == "original":
            found = original_version(scope.collection, by=by)
        elif what == "labels":
            found = labels_version(scope.collection, by=by)
        elif not form.is_valid():
            return None
        else:
            with saved_uploads([form.cleaned_data["file"]]) as (path,):
                found = importing.import_version(scope.collection, path, note=form.cleaned_data["note"], by=by)
        record_act(scope, "qrels.made", version=found.number, what=what)
    return found


@action("admin")
@require_GET
def qrels_diff(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Show the difference of two versions: added, removed, changed."""
    numbers = [request.GET.get(name, "") for name in ("one", "other")]
    if not all(number.isascii() and number.isdigit() and len(number) < 10 for number in numbers):
        raise Http404(_("Choose two versions."))
    one, other = (get_object_or_404(Qrels, collection=scope.collection, number=int(number)) for number in numbers)
    found = comparing.diff_versions(one, other)
    words = {"added": _("Added"), "removed": _("Removed"), "changed": _("Changed")}
    if request.GET.get("table"):
        return _diff_file(request, found)
    context = {
        "scope": scope,
        "one": one,
        "other": other,
        "found": found,
        "kinds": [(kind, words[kind], found.rows(kind, 0, SHOWN), found.counts[kind]) for kind in KINDS],
        "versions": chosen.versions_of(scope.collection),
    }
    return render(request, "benchmark/diff.html", context)


def _diff_file(request: HttpRequest, found: comparing.Diff) -> HttpResponse:
    header = (_("what"), _("query"), _("document"), _("before"), _("after"), _("origin"))
    words = {"added": _("added"), "removed": _("removed"), "changed": _("changed")}
    rows = tuple(
        (words[kind], *(row[name] for name in ("query", "document", "before", "after", "origin")))
        for kind in KINDS
        for row in found.rows(kind)
    )
    file = send_file(
        request, [], [DownloadTable("diff", _("Changes between two versions of the qrels"), header, rows, 3)]
    )
    if file is None:
        raise Http404(_("Unknown table."))
    return file


@action("admin")
@require_GET
def qrels_file(request: HttpRequest, scope: AccessScope, number: int) -> HttpResponseBase:
    """A version as TREC qrels, streamed."""
    found = get_object_or_404(Qrels, collection=scope.collection, number=number)
    return send_lines(reading.write_trec(found), f"{scope.collection.name}-qrels-{number}.txt")
