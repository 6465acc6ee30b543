"""The page of a filling: who is asked, and its funnel as a table and as a flow."""

from dataclasses import replace
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from benchmark.models import Filling
from charts import Chart, Link, Node, draw_flow
from charts.downloads import DownloadTable
from judges.campaigns.selectors import number_of
from judges.domain.copies import number_names
from judges.domain.protocol import Protocol
from judges.domain.routing import RoutingPolicy
from judges.models import Campaign, JudgeVersion


def describe_judges(filling: Filling) -> dict[str, Any]:
    """Name who judges, from its campaign, or until there is one from what was asked for."""
    given = filling.options
    found = {"policy": given.get("policy", ""), "first": given.get("first"), "debaters": "", "judges": ""}
    campaign = Campaign.objects.filter(pk=filling.campaign).first() if filling.campaign else None
    if campaign is None:
        return {**found, "panel": given.get("panel"), "filter": ", ".join(given.get("filters", [])), "is_open": True}
    debaters = campaign.debaters if RoutingPolicy(campaign.policy).debates else []
    seats = {"debaters": debaters, "judges": campaign.voters, "filter": Protocol.of(campaign.protocol).filter}
    versions = JudgeVersion.objects.filter(pk__in=[key for keys in seats.values() for key in keys])
    names = dict(versions.values_list("pk", "name"))
    told = {seat: ", ".join(number_names([names[key] for key in keys])) for seat, keys in seats.items()}
    return {**found, "policy": campaign.get_policy_display(), "panel": campaign.panel, **told}


def funnel_steps(funnel: dict[str, Any]) -> list[tuple[str, int, str]]:
    """Return what became of the pool, step by step: (words, count, remark)."""
    rounds = [
        (_("agreed in round %(round)s of the debate") % {"round": one["round"]}, int(one["agreed"]), "")
        for one in funnel["rounds"]
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
        (_("excluded by the filter"), funnel["filtered"], _("all three judges said not relevant")),
        *rounds,
        (_("labelled by judges"), funnel["labelled"], ""),
        (_("sent to people"), funnel["to_people"], ""),
        (_("settled by people"), funnel["people_settled"], ""),
        (_("waiting for people"), funnel["people_open"], ""),
        (_("failed"), funnel["failed"], _("a judge could not be reached or gave no verdict")),
        (_("not started"), funnel["pending"], ""),
        (_("settled"), funnel["settled"], ""),
        (_("relevant (holes)"), funnel["relevant"], ""),
    ]
    # Steps that nothing went through are left out, but for the first four and the last two.
    always = 4
    return [row for place, row in enumerate(rows) if row[1] or place < always or place >= len(rows) - 2]


def funnel_table(funnel: dict[str, Any]) -> DownloadTable:
    """The funnel as a table to save."""
    header = (_("step"), _("pairs"))
    rows = tuple((words, count) for words, count, _why in funnel_steps(funnel))
    return DownloadTable("funnel", _("Outcome of the pool"), header, rows)


def funnel_chart(funnel: dict[str, Any], filling: Filling) -> Chart:
    """The funnel as a flow from the pool to what is settled."""
    parts = {"people": funnel["to_people"], "settled": funnel["people_settled"], "open": funnel["people_open"]}
    count = {**funnel, **parts}
    nodes = [
        Node("pool", _("in the pool"), count["pool"], 0),
        Node("judged", _("already judged"), count["judged"], 1, "quiet"),
        Node("known", _("already labelled"), count["known"], 1, "quiet"),
        Node("asked", _("unjudged"), count["asked"], 1, "plain"),
        Node("filtered", _("dropped by the filter"), count["filtered"], 2, "quiet"),
        Node("labelled", _("labelled by judges"), count["labelled"], 2, "data"),
        Node("people", _("sent to people"), count["people"], 2, "warn"),
        Node("failed", _("failed"), count["failed"], 2, "danger"),
        Node("pending", _("not started"), count["pending"], 2),
        Node("settled", _("settled by people"), count["settled"], 3, "data"),
        Node("open", _("waiting for people"), count["open"], 3, "warn"),
    ]
    links = [Link("pool", key, count[key]) for key in ("judged", "known", "asked")]
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
    return draw_flow("funnel-flow", _("Outcome of the pool"), nodes, links, source=source)
