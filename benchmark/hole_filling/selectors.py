"""What pages and the API show of fillings: lists, forms, and a funnel as table and flow chart."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.db.models import QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _

from benchmark.bounds.page import show_bounds
from benchmark.hole_filling import stages
from benchmark.models import Filling
from benchmark.qrels.versions import latest_version
from benchmark.report import tables
from benchmark.report.systems import chosen
from benchmark.report.weighting import MeansChoice
from charts import Link, Node, draw_flow
from charts.downloads import DownloadTable
from corpus.models import Collection
from corpus.numbered import numbered_or_404
from jobs.models import JobState
from judges.campaigns.selectors import judging_choices, number_of, with_campaign_number
from judges.domain.copies import number_names
from judges.domain.protocol import Protocol
from judges.domain.routing import RoutingPolicy
from judges.models import Campaign, JudgeVersion

SHOWN = 30


def fillings_of(collection: Collection) -> QuerySet[Filling]:
    """Return the fillings of a collection with the number of each one's campaign."""
    # The column of pairs has thousands of numbers, and only counts are shown.
    rows = Filling.objects.select_related("before", "after", "collection").defer("pairs").prefetch_related("runs")
    return with_campaign_number(rows.filter(collection=collection))


def find_filling(collection: Collection, number: int) -> Filling:
    """Return the filling with this number. Raises Http404."""
    return numbered_or_404(fillings_of(collection), collection, number, _("Hole filling not found."))


def filling_form(collection: Collection, runs: Sequence[str] = (), depth: str = "") -> dict[str, Any]:
    """Return what the form of a filling offers. `runs` and `depth`: what an address names, to begin with."""
    ready = [run.name for run in chosen.runs_of(collection) if run.state == JobState.READY]
    versions = [(version.number, chosen.version_title(version)) for version in chosen.versions_of(collection)]
    choices: dict[str, Any] = {"runs": [(name, name) for name in ready], "qrels": versions or [("", _("1, original"))]}
    initial = {"runs": [name for name in ready if name in runs] or ready, "qrels": versions[-1][0] if versions else ""}
    initial |= {"depth": depth} if depth.isdecimal() else {}
    return {"choices": {**choices, **judging_choices(collection)}, "initial": initial}


def send_form(collection: Collection) -> dict[str, Any]:
    """Return what the form for the most informative pairs offers."""
    return {"choices": judging_choices(collection), "auto_id": "send_%s"}


def fillings_page(
    collection: Collection, *, with_table: bool, weights: str = ""
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the context of the page of all fillings, and its files; the downloaded table has all rows.

    `weights`: COUNTS for bounds of means weighted by counts.
    """
    # The newest stored bounds, and a newer version of the qrels.
    runs, means = chosen.runs_of(collection), MeansChoice.of([collection], weights)
    stored = chosen.stored_report(chosen.newest_report(collection, compares=False, weights=means.weights), runs)
    latest = latest_version(collection)
    bounds: dict[str, Any] = {
        "means": means,
        "stored": stored,
        "shown": show_bounds(stored) if stored and stored.is_ready else None,
        "runs": runs,
        "newer": latest if stored and latest and latest.pk != stored.report.before_id else None,
        "unattended": chosen.is_unattended(stored.report if stored else None),
    }
    rows, shown = fillings_of(collection).order_by("-pk"), bounds["shown"]
    files: dict[str, Any] = {"charts": [shown["chart"]], "tables": [*shown["tables"]]} if shown else {"tables": []}
    if with_table:
        files["tables"].append(tables.fillings_table(rows))
    files["is_over"] = bounds["stored"] is None or bounds["stored"].report.is_over
    return {**bounds, "fillings": rows[:SHOWN]}, files


def filling_page(filling: Filling) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the context of the page of a filling, and its files."""
    funnel = stages.current_funnel(filling).document
    # Draw the funnel as a flow from the pool to the outcomes of its pairs.
    people = {"people": funnel["to_people"], "settled": funnel["people_settled"], "open": funnel["people_open"]}
    count = {**funnel, **people}
    nodes = [
        Node("pool", _("in the pool"), count["pool"], 0),
        Node("judged", _("already judged"), count["judged"], 1, "quiet"),
        Node("known", _("already labelled"), count["known"], 1, "quiet"),
        Node("left_out", _("left out"), count["left_out"], 1, "quiet"),
        Node("asked", _("unjudged"), count["asked"], 1, "plain"),
        Node("filtered", _("dropped by the filter"), count["filtered"], 2, "quiet"),
        Node("labelled", _("labelled by judges"), count["labelled"], 2, "data"),
        Node("people", _("sent to people"), count["people"], 2, "warn"),
        Node("failed", _("failed"), count["failed"], 2, "danger"),
        Node("pending", _("not started"), count["pending"], 2),
        Node("settled", _("completed by people"), count["settled"], 3, "data"),
        Node("open", _("waiting for people"), count["open"], 3, "warn"),
    ]
    links = [Link("pool", key, count[key]) for key in ("judged", "known", "left_out", "asked")]
    links += [Link("asked", key, count[key]) for key in ("filtered", "labelled", "people", "failed", "pending")]
    links += [Link("people", key, count[key]) for key in ("settled", "open")]
    if number := number_of(filling.campaign):
        address = f"{reverse('pairs', args=[filling.collection.name])}?campaign={number}&state="
        states = {"people": "escalated"} | {key: key for key in ("labelled", "failed", "pending", "settled", "open")}
        nodes = [replace(node, address=address + states[node.key]) if node.key in states else node for node in nodes]
    source = _("%(collection)s, hole filling %(number)s") % {
        "collection": filling.collection.name,
        "number": filling.number,
    }
    chart = draw_flow("funnel-flow", _("Outcome of the pool"), nodes, links, source=source)
    context: dict[str, Any] = {
        "filling": filling,
        "runs": filling.runs.order_by("name"),
        "funnel": funnel,
        "asked": describe_judges(filling),
        "steps": funnel_steps(funnel, of_first=bool(filling.options.get("first"))),
        "chart": chart,
        "unattended": chosen.is_unattended(filling),
    }
    header = (_("step"), _("pairs"))
    rows = tuple((step, count) for step, count, _remark in context["steps"])
    return context, {"charts": [chart], "tables": [DownloadTable("funnel", _("Outcome of the pool"), header, rows)]}


def current_document(filling: Filling) -> dict[str, Any]:
    """Return a filling as programs read it. Counts its funnel, which takes at least one statement."""
    return build_document(filling, stages.current_funnel(filling).document)


def document_with_stored_funnel(filling: Filling) -> dict[str, Any]:
    """Return a filling as programs read it, with the funnel that was counted last."""
    return build_document(filling, filling.funnel) if filling.funnel else current_document(filling)


def build_document(filling: Filling, funnel: dict[str, Any]) -> dict[str, Any]:
    """Return a filling as programs read it, with this funnel."""
    columns = ("state", "depth", "error", "made_by", "created_at", "ended_at")
    return {
        **{name: getattr(filling, name) for name in columns},
        "number": filling.number,
        "campaign": filling.campaign_number,  # type: ignore[attr-defined]
        "runs": sorted(run.name for run in filling.runs.all()),
        "before": filling.before.number,
        "after": filling.after and filling.after.number,
        "policy": filling.options.get("policy") or "",
        "funnel": funnel,
    }


def describe_judges(filling: Filling) -> dict[str, Any]:
    """Describe who judges: from the campaign of the filling, or without one from its options."""
    options = filling.options
    description = {"policy": options.get("policy", ""), "first": options.get("first"), "debaters": "", "judges": ""}
    campaign = Campaign.objects.filter(pk=filling.campaign).first() if filling.campaign else None
    if campaign is None:
        return {
            **description,
            "panel": options.get("panel"),
            "filter": ", ".join(options.get("filter", [])),
            "is_open": True,
        }
    debaters = campaign.debaters if RoutingPolicy(campaign.policy).debates else []
    roles = {"debaters": debaters, "judges": campaign.voters, "filter": Protocol.of(campaign.protocol).filter}
    versions = JudgeVersion.objects.filter(pk__in=[key for keys in roles.values() for key in keys])
    names = dict(versions.values_list("pk", "name"))
    role_names = {role: ", ".join(number_names([names[key] for key in keys])) for role, keys in roles.items()}
    return {**description, "policy": campaign.get_policy_display(), "panel": campaign.panel, **role_names}


def funnel_steps(funnel: dict[str, Any], *, of_first: bool = False) -> list[tuple[str, int, str]]:
    """Return the outcome of the pool by step: (step, count, remark). `of_first`: of the most informative pairs only."""
    changed = _("the query or document was changed or removed after the run was made")
    rounds = [
        (
            _("the debate agreed in round %(round)s") % {"round": round_counts["round"]},
            int(round_counts["agreed"]),
            "",
        )
        for round_counts in funnel["rounds"]
    ]
    rows: list[tuple[str, int, str]] = [
        (
            _("pairs in the pool"),
            funnel["pool"],
            _("all documents that the runs return down to this depth, each pair once"),
        ),
        (_("already judged"), funnel["judged"], _("in the starting qrels")),
        (_("already labelled by people"), funnel["known"], _("labels are reused")),
        (_("unjudged"), funnel["asked"], ""),
        (_("left out"), funnel["left_out"], _("not among the most informative pairs") if of_first else changed),
        (_("excluded by the filter"), funnel["filtered"], _("all three judges said not relevant")),
        *rounds,
        (_("labelled by judges"), funnel["labelled"], ""),
        (_("sent to people"), funnel["to_people"], ""),
        (_("completed by people"), funnel["people_settled"], ""),
        (_("waiting for people"), funnel["people_open"], ""),
        (_("failed"), funnel["failed"], _("a judge could not be reached or gave no verdict")),
        (_("not started"), funnel["pending"], ""),
        (_("completed"), funnel["settled"], ""),
        (_("relevant (holes)"), funnel["relevant"], ""),
    ]
    # Steps without pairs are left out, except for the first four and the last two.
    return [row for position, row in enumerate(rows) if row[1] or position < 4 or position >= len(rows) - 2]
