"""How safe is today's ranking? And the pairs that could settle it, sent to somebody."""

from collections import Counter
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from benchmark.forms import SendForm
from benchmark.hole_filling import starting
from benchmark.models import Run
from benchmark.qrels.versions import latest_version
from benchmark.report import tables
from benchmark.report.downloads import DownloadTable
from benchmark.systems import chosen, figures
from benchmark.systems.chosen import StoredReport
from corpus.access import AccessScope, action
from corpus.collections.audit_log import record_act
from corpus.errors import BadInput

SHOWN = 60  # Pairs of systems that are named; the table to save has all.


@action("admin")
@require_GET
def ranking_bounds(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Show the bounds of each system and the open orders. HTMX asks again while they are worked out."""
    return _render_page(request, scope, SendForm(collection=scope.collection))


def _render_page(request: HttpRequest, scope: AccessScope, form: SendForm) -> HttpResponse:
    runs = chosen.runs_of(scope.collection)
    stored = chosen.stored_report(chosen.newest_report(scope.collection, compares=False), runs)
    shown = show_bounds(stored) if stored and stored.is_ready else None
    latest = latest_version(scope.collection)
    context = {
        "stored": stored,
        "shown": shown,
        "runs": runs,
        "unattended": chosen.is_unattended(stored.report if stored else None),
        "form": form,
        "newer": latest if stored and latest and latest.pk != stored.report.before_id else None,
    }
    files: dict[str, Any] = {"charts": [shown["chart"]], "tables": shown["tables"]} if shown else {}
    news: dict[str, Any] = {"news": "benchmark/_bounds.html", "is_over": stored is None or stored.report.is_over}
    status = 422 if form.is_bound else 200
    return tables.answer_page(request, scope, "benchmark/bounds.html", context, **files, **news, status=status)


def show_bounds(stored: StoredReport) -> dict[str, Any]:
    """What the page says of a stored report: a line for each system, and the orders that are not settled."""
    found = stored.result["safety"]
    open_of = Counter(run for pair in found["unsettled"] for run in pair[:2])
    lines = [{**one, "name": stored.name(one["run"]), "open": open_of[one["run"]]} for one in found["systems"]]
    lines.sort(key=lambda line: (-line["value"], line["name"]))
    place = {line["run"]: at for at, line in enumerate(lines)}
    # Of each pair the one that is ahead today stands first; the closest pairs come first.
    unsettled = [sorted((place[one], place[other])) for one, other, *_more in found["unsettled"]]
    pairs = [(lines[ahead], lines[behind]) for ahead, behind in unsettled]
    pairs.sort(key=lambda pair: (pair[0]["value"] - pair[1]["value"], pair[0]["name"], pair[1]["name"]))
    return {
        "lines": lines,
        "unsettled": pairs[:SHOWN],
        "left_out": max(0, len(pairs) - SHOWN),
        "open": len(pairs),
        "all": len(pairs) + int(found["settled"]),
        "unjudged": int(found["unjudged"]),
        "sendable": len(found.get("first", [])),
        "chart": figures.bounds_chart(stored),
        "tables": bounds_tables(lines, pairs, stored.k),
        "k": stored.k,
    }


def bounds_tables(
    lines: list[dict[str, Any]], pairs: list[tuple[dict[str, Any], dict[str, Any]]], k: int
) -> list[DownloadTable]:
    """The bounds of every system, and all orders that are not settled."""
    header = (_("system"), f"Judged@{k}", f"nDCG@{k}", _("at least"), _("at most"), _("open orders"))
    rows = tuple(tuple(line[key] for key in ("name", "judged", "value", "low", "high", "open")) for line in lines)
    systems = DownloadTable("safety", _("How safe today's ranking is"), header, rows)
    names = (_("ahead today"), _("behind today"), _("difference in nDCG@%(k)s") % {"k": k})
    rows = tuple((one["name"], other["name"], one["value"] - other["value"]) for one, other in pairs)
    return [systems, DownloadTable("unsettled", _("Orders that are not settled"), names, rows, 2)]


@action("admin")
@require_POST
def send_pairs(request: HttpRequest, scope: AccessScope) -> HttpResponse:
    """Send the pairs that could settle most to people, or to a policy's judges."""
    form = SendForm(request.POST, collection=scope.collection)
    stored = chosen.stored_report(chosen.newest_report(scope.collection, compares=False), [])
    if stored is None or not stored.is_ready:
        messages.error(request, _("Work out first how safe the ranking is."))
        return redirect("ranking_bounds", scope.collection.name)
    if not form.is_valid():
        return _render_page(request, scope, form)
    try:
        with transaction.atomic():
            found = starting.send_pairs(
                collection=scope.collection,
                runs=list(Run.objects.filter(pk__in=stored.report.options["runs"], is_deleted=False)),
                before=stored.report.before,
                k=stored.k,
                first=form.cleaned_data["first"],
                by=scope.user.username,
                **form.asked(),
            )
            what = {"policy": form.cleaned_data["policy"], "pairs": form.cleaned_data["first"]}
            record_act(scope, "filling.started", filling=found.pk, **what)
    except BadInput as error:
        form.add_error(None, str(error))
        return _render_page(request, scope, form)
    return redirect("hole_filling", scope.collection.name, found.pk)
