"""The Overview page of admins: decisions, progress, label quality, cost (docs/quality.md)."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.data.imports.candidate_sources import read_sources
from annotation.home.inbox.attention import list_attention, read_open_work
from annotation.home.inbox.selectors import list_ended
from annotation.home.overview.overview import CollectionOverview, collection_overview
from annotation.home.overview.promise import build_promise
from annotation.models import User
from annotation.quality.costs.labels import PerLabel
from annotation.quality.costs.report import HumanCost, costs_by_audits
from annotation.quality.label_quality.costs import campaign_costs
from annotation.quality.label_quality.loading import LabelQuality, find_campaign, load_label_quality
from annotation.quality.label_quality.records import Audits, Kappa, RouteQuality
from annotation.quality.label_quality.statistics import StoredStatistics, labels_chart
from charts import Bar, Chart, Link, Node, draw_bars, draw_flow
from corpus.importing.sources import describe_sources, has_one_search
from corpus.models import Collection
from judges.campaigns import selectors
from judges.campaigns.pair_states import IMPORTED, recent_states
from judges.models import Campaign

DEBATES = ("debate", "debate+ensemble")
MOST_ROUTES = 6  # Routes in the chart, so that the page fits on one screen; the table below lists all.
NOT_STATES = {"pairs", "agreed", "disputed", "dropped"}  # Nodes that are no states of the list of pairs.


def load_overview(
    collection: Collection,
    number: str = "",
    user: User | None = None,
    *,
    judges: bool = False,
    adjudicates: bool = False,
) -> dict[str, Any]:
    """Load the context of the Overview: of a campaign by its number, or of the whole collection.

    `user`: the admin to whom it says what needs attention; `judges`, `adjudicates`: what they may do. Raises Http404.
    """
    selected = find_campaign(collection, number) if number else None
    states = recent_states([collection.pk])[collection.pk]
    status = (
        selectors.campaign_status(collection, selected, by_judge=False)
        if selected
        else selectors.collection_status(collection, states, by_judge=False)
    )
    quality = load_label_quality(collection, selected, status)
    overview = collection_overview(collection, selected, status, states)
    board = build_dashboard(overview, quality, collection, user, judges=judges, adjudicates=adjudicates)
    return {"board": board, "overview": overview, "status": overview.status}


def build_dashboard(
    overview: CollectionOverview,
    quality: LabelQuality,
    collection: Collection,
    user: User | None,
    *,
    judges: bool,
    adjudicates: bool,
) -> dict[str, Any]:
    """Build the Overview's context, except its counts, with what needs attention for `user`, an admin."""
    campaign, status, stored = overview.campaign, overview.status, quality.statistics
    audits, costs = stored.audits, campaign_costs(collection, status, overview.selected)
    open_work = read_open_work(collection)
    if overview.selected is None:
        # The page's own figures are exact; what needs attention is always that of the whole collection.
        open_work = replace(
            open_work,
            pending=status["pending"],
            failed=status["failed"],
            conflicts=overview.conflicts,
            escalated=max(0, int(status["open"]) - overview.own_conflicts),
        )
    dropped = selectors.count_filtered(campaign) if campaign else 0
    # Pairs of several campaigns took different routes, so only their outcomes are drawn.
    has_others = overview.campaigns or overview.status["escalations"].get(IMPORTED)
    if campaign and (overview.selected is not None or not has_others):
        nodes, links = _build_flow(overview, dropped)
    else:
        ends = [
            Node("labelled", _("labelled by judges"), status["labelled"], 1, "data"),
            Node("settled", _("completed by people"), status["settled"], 1, "data"),
            Node("open", _("waiting for people"), status["open"], 1, "warn"),
            *_unended_nodes(overview),
        ]
        nodes = [Node("pairs", _("pairs"), status["pairs"], 0), *ends]
        links = [Link("pairs", node.key, node.count) for node in ends if node.count > 0]
    sources = read_sources(collection)
    per_label: PerLabel | None = None
    if status["labelled"] and audits is not None:
        people = HumanCost.of(collection, costs.own, costs.median_seconds)
        of_judges, of_all = costs_by_audits(status, costs.own, people, audits)
        per_label = of_judges if costs.hourly_rate is None else of_all
    return {
        "attention": list_attention(collection, open_work, quality.statistics, judges=judges, adjudicates=adjudicates)
        if user
        else [],
        "ended": list_ended(collection, user, overview.at) if user else [],
        "sources": describe_sources(sources),
        "has_one_search": has_one_search(sources),
        "quality": quality,
        "audits": audits,
        "routes": largest_routes(audits.routes) if audits else [],
        "costs": costs,
        "per_label": per_label,
        "parts": [
            (node, overview.filter + _state_query(overview, node.key))
            for node in nodes
            if node.count and node.key not in NOT_STATES
        ],
        "promise": build_promise(overview, quality, costs, collection),
        "labels": labels_chart(collection, stored) if overview.selected is None else None,
        "flow": _draw_flow(overview, collection, nodes, links),
        "accuracy": _draw_accuracy(audits, collection, overview.at) if audits and audits.routes else None,
        "agreement": _draw_agreement(stored, collection, overview.at),
    }


def _draw_flow(
    overview: CollectionOverview, collection: Collection, nodes: Sequence[Node], links: Sequence[Link]
) -> Chart:
    status, at = overview.status, _format_time(overview.at)
    address = f"{reverse('pairs', args=[collection.name])}?{overview.filter}"
    states = {"pairs": address.rstrip("?&")}
    states |= {node.key: f"{address}{_state_query(overview, node.key)}" for node in nodes if node.key not in NOT_STATES}
    source = _("%(collection)s, campaign %(campaign)s, %(at)s") if overview.selected else "%(collection)s, %(at)s"
    summary = _(
        "%(labelled)s labelled by judges, %(escalated)s escalated to people (%(settled)s completed, %(open)s "
        "waiting), %(failed)s failed, %(pending)s not judged yet."
    )
    counts = {key: f"{status[key]:,}" for key in ("labelled", "escalated", "settled", "open", "failed")}
    return draw_flow(
        "flow",
        _("Progress by route"),
        [replace(node, address=states.get(node.key, "")) for node in nodes],
        links,
        # The sentence counts pairs that are being judged as not judged yet.
        summary=summary % {**counts, "pending": f"{status['pending'] + status['running']:,}"},
        source=source % {"collection": collection.name, "campaign": status["campaign"], "at": at},
    )


def _draw_accuracy(audits: Audits, collection: Collection, at: datetime) -> Chart:
    """Draw the accuracy of the automatic labels by route."""
    routes = largest_routes(audits.routes)
    measured = sorted((route.accuracy.value, route.words) for route in routes if route.accuracy.value is not None)
    # Routes without an audit are mentioned first: the chart leaves them as empty lines.
    counts = {"routes": len(routes) - len(measured), "routes2": len(routes)}
    summary = [_("%(routes)s of %(routes2)s routes have no completed audit.") % counts]
    if measured:
        value, words = measured[0]
        summary.append(_("Least accurate: %(known)s (%(known2)s).") % {"known": words, "known2": f"{value:.0%}"})
    if omitted := len(audits.routes) - len(routes):
        words = ngettext(
            "%(rest)s smaller route is listed in the table below.",
            "%(rest)s smaller routes are listed in the table below.",
            omitted,
        )
        summary.append(words % {"rest": omitted})
    address, bars = reverse("pairs", args=[collection.name]), []
    for route in routes:
        accuracy = route.accuracy
        numbers = {name: f"{getattr(route, name):,}" for name in ("settled", "drawn", "population")}
        detail = _("%(settled)s of %(drawn)s audits completed, %(population)s labelled") % numbers
        link = f"{address}?campaign={route.campaign}&route={route.key}"
        estimate = (accuracy.value, accuracy.low, accuracy.high)
        bars.append(Bar(route.words, *estimate, None, _("not measured"), detail, link))
    return draw_bars(
        "audits",
        _("Accuracy of automatic labels by route"),
        bars,
        x=_("share correct by people's answers, 95% interval"),
        high=1.0,
        mark=(1.0 - audits.limit, _("limit")),
        summary=" ".join(summary),
        source=f"{collection.name}: {audits.population}; {_format_time(at)}",
    )


def _draw_agreement(stored: StoredStatistics, collection: Collection, at: datetime) -> Chart | None:
    """Draw the agreement of judges and of people by population; None where it is not computed or nothing is shared."""
    groups = [group for group in stored.kappas or () if group.pairs]
    if not groups:
        return None
    return draw_bars(
        "agreement",
        _("Agreement beyond chance"),
        [kappa_bar(group) for group in groups],
        x=_("Krippendorff's alpha (nominal), relevant or not, 95% interval"),
        high=1.0,
        source=f"{collection.name}, {_format_time(stored.at or at)}",
    )


def largest_routes(routes: Sequence[RouteQuality]) -> list[RouteQuality]:
    """Choose the routes with the most pairs and all significantly over the limit, in the order of the audit."""
    by_size = sorted(routes, key=lambda route: (route.verdict != "over", -route.population))
    keys = {route.key for rank, route in enumerate(by_size) if rank < MOST_ROUTES or route.verdict == "over"}
    return [route for route in routes if route.key in keys]


def kappa_bar(group: Kappa) -> Bar:
    """Build the bar of a group's agreement, with its percent agreement and prevalence."""
    alpha = group.kappa
    details = [_("no pair has two grades")]
    if group.percent.value is not None:
        details = [_("%(percent_value)s equal") % {"percent_value": f"{group.percent.value:.0%}"}]
    if group.prevalence is not None:
        details.append(_("%(prevalence)s relevant") % {"prevalence": f"{group.prevalence:.0%}"})
    consistency = _("%(names)s are the same model: their agreement measures consistency only")
    details += [consistency % {"names": ", ".join(names)} for names in group.copies]
    words = {"assessors": group.assessors, "group": _(group.group), "population": _(group.population)}
    label, reason = _("%(assessors)s %(group)s, %(population)s pairs") % words, _(alpha.reason) if alpha.reason else ""
    return Bar(label, alpha.value, alpha.low, alpha.high, alpha.n, reason, "; ".join(details))


def _unended_nodes(overview: CollectionOverview) -> list[Node]:
    status = overview.status
    return [
        Node("failed", _("failed"), status["failed"], 1, "danger"),
        Node("running", _("being judged"), status["running"], 1, "quiet"),
        Node("pending", _("waiting for judges"), status["pending"] - overview.unjudged, 1, "quiet"),
        Node("unjudged", _("not judged"), overview.unjudged, 1, "quiet"),
    ]


def _build_flow(overview: CollectionOverview, dropped: int) -> tuple[list[Node], list[Link]]:
    """Return the flow pairs -> debate -> label or people -> settled. `dropped`: pairs labelled by the filter."""
    status = overview.status
    labelled, escalated, policy = status["labelled"] - dropped, status["escalated"], status["policy"]
    finished = labelled + escalated
    agreed = min(sum(status["agreed_in_round"].values()), finished) if policy in DEBATES else finished
    if policy in DEBATES:
        words = _("debate agreed")
    else:
        words = _("people judge every pair") if policy == Campaign.Policy.HUMAN else _("judged by models")
    # The counters do not say how many agreements became labels: as many as possible, since most do.
    agreed_labelled = min(labelled, agreed)
    after = [
        Link("dropped", "labelled", dropped),
        Link("agreed", "labelled", agreed_labelled),
        Link("agreed", "escalated", agreed - agreed_labelled),
        Link("disputed", "labelled", labelled - agreed_labelled),
        Link("disputed", "escalated", escalated - (agreed - agreed_labelled)),
        Link("escalated", "settled", status["settled"]),
        Link("escalated", "open", status["open"]),
    ]
    nodes = [
        Node("pairs", _("pairs"), status["pairs"], 0),
        Node("dropped", _("rejected by the filter"), dropped, 1, "data"),
        Node("agreed", words, agreed, 1, "data"),
        Node("disputed", _("debate did not agree"), finished - agreed, 1, "warn"),
        *_unended_nodes(overview),
        Node("labelled", _("labelled by judges"), status["labelled"], 2, "data"),
        Node("escalated", _("escalated to people"), escalated, 2, "warn"),
        Node("settled", _("completed by people"), status["settled"], 3, "data"),
        Node("open", _("waiting for people"), status["open"], 3, "warn"),
    ]
    first = [Link("pairs", node.key, node.count) for node in nodes if node.column == 1]
    return nodes, [link for link in (*first, *after) if link.count > 0]


def _state_query(overview: CollectionOverview, state: str) -> str:
    """Return the query string that lists the pairs of a state; of a collection, "open" means without a label."""
    return f"state={state}" + ("&label=none" if state == "open" and not overview.selected else "")


def _format_time(time: datetime) -> str:
    # In files, too, which are for readers in all zones.
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
