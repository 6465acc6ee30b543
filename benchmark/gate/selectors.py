"""What pages and the API show of gates: the history, the form, and one verdict with its picture."""

from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from benchmark.gate.summary import depends_on_judging, describe_basis, explain_verdict, measures_in_order, verdict_title
from benchmark.models import Gate
from benchmark.report.systems import chosen
from charts import Chart, IntervalSpan, draw_intervals
from charts.downloads import DownloadTable
from corpus.models import Collection, Query
from corpus.numbered import numbered_or_404
from jobs.models import JobState
from judges.campaigns.selectors import judging_choices

SHOWN = 50  # Verdicts on the page; the downloaded table has all.


def gates_of(collection: Collection) -> QuerySet[Gate]:
    """Return the verdicts of a collection."""
    return Gate.objects.filter(collection=collection).select_related("collection", "run", "against", "filling__after")


def find_gate(collection: Collection, number: int) -> Gate:
    """Return the verdict with this number. Raises Http404."""
    return numbered_or_404(gates_of(collection), collection, number, _("Verdict not found."))


def gate_document(gate: Gate) -> dict[str, Any]:
    """Return a verdict as the command prints it."""
    filling = gate.filling.number if gate.filling is not None else None
    document = {key: value for key, value in gate.result.items() if key != "order"}
    document["measures"] = measures_in_order(gate.result)
    return {"collection": gate.collection.name, "gate": gate.number, **document, "filling": filling}


def gate_form(collection: Collection) -> dict[str, Any]:
    """Return what the form of a verdict offers: the newest run beside the one that was measured before it."""
    runs = [run for run in chosen.runs_of(collection) if run.state == JobState.READY]
    newest = sorted(runs, key=lambda run: run.pk, reverse=True)[:2]
    names = [(run.name, run.name) for run in runs]
    versions = [(version.number, chosen.version_title(version)) for version in chosen.versions_of(collection)]
    initial = dict(zip(("run", "against"), [run.name for run in newest], strict=False))
    # A depth at which both can be measured.
    initial["measures"] = f"nDCG@{chosen.common_depth(newest)}"
    choices: dict[str, Any] = {"run": names, "against": names, "qrels": [("", _("the newest")), *versions]}
    return {"choices": choices, "initial": initial}


def judging_form(collection: Collection) -> dict[str, Any]:
    """Return what the form for the pairs that decide offers."""
    return {"choices": judging_choices(collection), "auto_id": "judge_%s"}


def gates_page(collection: Collection, *, whole: bool = False) -> tuple[dict[str, Any], list[DownloadTable]]:
    """Return the context of the page of the newest verdicts, and their table; `whole`: of all, for the download."""
    # Without the hole filling, whose pairs may be many.
    rows = Gate.objects.filter(collection=collection).select_related("run", "against").order_by("-number")
    rows = rows if whole else rows[:SHOWN]
    header = (
        _("gate"), _("verdict"), _("new run"), _("old run"), _("measure"), _("old"), _("new"), _("change"),
        _("at least"), _("at most"), _("largest drop"), _("pairs that decide"), pgettext("column", "created"),
    )  # fmt: skip
    lines = tuple(
        (str(gate.number), verdict_title(outcome["verdict"]), gate.run.name, gate.against.name, name, outcome["old"],
         outcome["new"], outcome["change"], outcome["low"], outcome["high"], outcome["max_drop"],
         gate.result["deciding_pairs"], gate.created_at.isoformat())
        for gate in rows  # Read once: each has a document of some kilobytes.
        for name, outcome in measures_in_order(gate.result).items()
    )  # fmt: skip
    context = {"gates": [describe_gate(gate) for gate in list(rows)[:SHOWN]]}
    return context, [DownloadTable("gates", _("Verdicts"), header, lines, 5)]


def gate_page(gate: Gate) -> dict[str, Any]:
    """Return the context of the page of one verdict: its measures, its picture, and the queries that lost most."""
    losses = gate.result["losses"]
    rows = Query.objects.filter(
        collection=gate.collection, external_id__in=[loss["query"] for loss in losses["queries"]], is_current=True
    )
    queries = {query.external_id: query for query in rows}
    return {
        **describe_gate(gate),
        "rows": [
            {"name": name, "title": verdict_title(outcome["verdict"]), **outcome}
            for name, outcome in measures_in_order(gate.result).items()
        ],
        "chart": draw_verdict(gate),
        "basis": describe_basis(gate.result),
        "losses": [{**loss, "text": queries.get(loss["query"])} for loss in losses["queries"]],
        "loss_measure": losses["measure"],
    }


def describe_gate(gate: Gate) -> dict[str, Any]:
    """Return a verdict with its title and reason in the reader's words."""
    return {
        "gate": gate,
        "title": verdict_title(gate.verdict),
        "reason": explain_verdict(gate.result),
        "changes": [(name, outcome["change"]) for name, outcome in measures_in_order(gate.result).items()],
    }


def draw_verdict(gate: Gate) -> Chart:
    """Draw each measure's interval of the change, as judged and over all ways to judge, against the limit."""
    spans = []
    for name, outcome in measures_in_order(gate.result).items():
        is_open = outcome["verdict"] == Gate.Verdict.CANNOT_TELL
        spans.append(IntervalSpan(name, outcome["change"], outcome["low"], outcome["high"], is_open))
        if outcome["least"] != outcome["most"]:
            label = _("%(measure)s, all ways to judge") % {"measure": name}
            spans.append(IntervalSpan(label, outcome["change"], outcome["lowest"], outcome["highest"], is_open))
    drop = gate.options["max_drop"]
    summary = _(
        "Dot: the change of the mean. Bar: its interval. Line: the limit, %(limit)s; above it passes, below it fails."
    )
    if depends_on_judging(gate.result["measures"].values()):
        summary = _(
            "Dot: the change of the mean. Bar: its interval, with unjudged documents as not relevant, and over all "
            "ways to judge them. Line: the limit, %(limit)s; above it passes, below it fails."
        )
    summary %= {"limit": f"{0 - drop:g}".replace("-", "−")}
    values = {"run": gate.run.name, "against": gate.against.name}
    return draw_intervals(
        "gate",
        _("%(run)s against %(against)s") % values,
        spans,
        x=_("change"),
        summary=summary,
        source=_("%(collection)s, gate %(number)s") % {"collection": gate.collection.name, "number": gate.number},
        kind="measure",
        limit=-drop,
    )
