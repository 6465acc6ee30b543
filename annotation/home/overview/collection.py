"""The admin's Overview: decisions, progress, label quality, cost (docs/quality.md)."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.home.overview.attention import list_attention
from annotation.home.overview.overview import CollectionOverview
from annotation.quality.costs.labels import PerLabel
from annotation.quality.costs.report import HumanCost, costs_by_audits
from annotation.quality.label_quality import canaries
from annotation.quality.label_quality.costs import campaign_costs
from annotation.quality.label_quality.loading import LabelQuality
from annotation.quality.label_quality.records import Audits, Kappa, RouteQuality
from annotation.quality.label_quality.statistics import StoredStatistics
from charts import Bar, Chart, Link, Node, draw_bars, draw_flow
from corpus.models import Collection
from judges.campaigns import selectors
from judges.models import Campaign

DEBATES = ("debate", "debate+ensemble")
MOST_ROUTES = 6  # Routes in the picture: the home is one screen. The table of routes has all.
NOT_STATES = {"pairs", "agreed", "disputed", "dropped"}  # Nodes to which the list of pairs cannot be narrowed.


def build_dashboard(
    story: CollectionOverview, quality: LabelQuality, collection: Collection, *, judges: bool, adjudicates: bool
) -> dict[str, Any]:
    """Build the Overview's context beside counts; `judges`, `adjudicates`: its reader may."""
    campaign, status, stored = story.campaign, story.status, quality.statistics
    audits, costs = stored.audits, campaign_costs(collection, status, story.chosen)
    flips = canaries.measure_flips(canaries.judges_of(campaign))
    dropped = selectors.count_filtered(campaign) if campaign else 0
    # Several campaigns have no one way that pairs went, so only their ends are drawn.
    nodes, links = _build_flow(story, dropped) if campaign and story.is_of_one else _build_ends(story)
    per_label: PerLabel | None = None
    if status["labelled"] and audits is not None:
        people = HumanCost.of(collection, costs.own, costs.median_seconds)
        of_judges, of_all = costs_by_audits(status, costs.own, people, audits)
        per_label = of_judges if costs.hourly_rate is None else of_all
    return {
        "attention": list_attention(story, quality, flips, collection, judges=judges, adjudicates=adjudicates),
        "quality": quality,
        "audits": audits,
        "routes": largest_routes(audits.routes) if audits else [],
        "costs": costs,
        "per_label": per_label,
        "parts": [
            (node, story.filter + _state_query(story, node.key))
            for node in nodes
            if node.count and node.key not in NOT_STATES
        ],
        "flow": _draw_flow(story, collection, nodes, links),
        "accuracy": _draw_accuracy(audits, collection, story.at) if audits and audits.routes else None,
        "agreement": _draw_agreement(stored, collection, story.at),
    }


def _draw_flow(
    story: CollectionOverview, collection: Collection, nodes: Sequence[Node], links: Sequence[Link]
) -> Chart:
    s, at = story.status, _format_time(story.at)
    address = f"{reverse('pairs', args=[collection.name])}?{story.filter}"
    states = {"pairs": address.rstrip("?&")}
    states |= {node.key: f"{address}{_state_query(story, node.key)}" for node in nodes if node.key not in NOT_STATES}
    source = _("%(collection)s, campaign %(campaign)s, %(at)s") if story.chosen else "%(collection)s, %(at)s"
    summary = _(
        "%(labelled)s labelled by judges, %(escalated)s escalated to people "
        "(%(settled)s resolved, %(open)s open), %(failed)s failed, %(pending)s not "
        "judged yet."
    )
    counts = {key: f"{s[key]:,}" for key in ("labelled", "escalated", "settled", "open", "failed")}
    return draw_flow(
        "flow",
        _("Progress by route"),
        [replace(node, address=states.get(node.key, "")) for node in nodes],
        links,
        # Being judged is not judged yet, for a reader of the sentence.
        summary=summary % {**counts, "pending": f"{s['pending'] + s['running']:,}"},
        source=source % {"collection": collection.name, "campaign": s["campaign"], "at": at},
    )


def _draw_accuracy(audits: Audits, collection: Collection, at: datetime) -> Chart:
    """Draw the accuracy of the automatic labels by route."""
    shown = largest_routes(audits.routes)
    known = sorted((route.accuracy.value, route.words) for route in shown if route.accuracy.value is not None)
    # How many routes are without an audit is said first: a chart leaves them as empty lines.
    counts = {"routes": len(shown) - len(known), "routes2": len(shown)}
    summary = [_("%(routes)s of %(routes2)s routes have no completed audit.") % counts]
    if known:
        value, words = known[0]
        summary.append(_("Least accurate: %(known)s (%(known2)s).") % {"known": words, "known2": f"{value:.0%}"})
    if rest := len(audits.routes) - len(shown):
        words = ngettext(
            "%(rest)s smaller route is listed in the table below.",
            "%(rest)s smaller routes are listed in the table below.",
            rest,
        )
        summary.append(words % {"rest": rest})
    address = reverse("pairs", args=[collection.name])
    return draw_bars(
        "audits",
        _("Accuracy of automatic labels by route"),
        [_route_bar(route, f"{address}?campaign={route.campaign}&route={route.key}") for route in shown],
        x=_("share correct by people's answers, 95% interval"),
        high=1.0,
        mark=(1.0 - audits.limit, _("limit")),
        summary=" ".join(summary),
        source=f"{collection.name}: {audits.population}; {_format_time(at)}",
    )


def _draw_agreement(stored: StoredStatistics, collection: Collection, at: datetime) -> Chart | None:
    """Draw the agreement of judges and of people by population; None before it is computed, or where there is none."""
    known = [one for one in stored.kappas or () if one.pairs]
    if not known:
        return None
    return draw_bars(
        "agreement",
        _("Agreement beyond chance"),
        [kappa_bar(one) for one in known],
        x=_("Krippendorff's alpha (nominal), relevant or not, 95% interval"),
        high=1.0,
        source=f"{collection.name}, {_format_time(stored.at or at)}",
    )


def largest_routes(routes: Sequence[RouteQuality]) -> list[RouteQuality]:
    """Choose the routes with the most pairs, and all that are surely beyond the limit, in the order of the audit."""
    by_size = sorted(routes, key=lambda route: (route.verdict != "over", -route.population))
    kept = {route.key for place, route in enumerate(by_size) if place < MOST_ROUTES or route.verdict == "over"}
    return [route for route in routes if route.key in kept]


def kappa_bar(one: Kappa) -> Bar:
    """Build the bar of a group's agreement, which never stands without percent and prevalence."""
    found = one.kappa
    details = [_("no pair has two grades")]
    if one.percent.value is not None:
        details = [_("%(percent_value)s equal") % {"percent_value": f"{one.percent.value:.0%}"}]
    if one.prevalence is not None:
        details.append(_("%(prevalence)s relevant") % {"prevalence": f"{one.prevalence:.0%}"})
    itself = _("%(names)s are the same model: their agreement measures consistency only")
    details += [itself % {"names": ", ".join(names)} for names in one.copies]
    words = {"assessors": one.assessors, "group": _(one.group), "population": _(one.population)}
    label, reason = _("%(assessors)s %(group)s, %(population)s pairs") % words, _(found.reason) if found.reason else ""
    return Bar(label, found.value, found.low, found.high, found.n, reason, "; ".join(details))


def _route_bar(route: RouteQuality, address: str) -> Bar:
    """Build the bar of a route, with what was audited of it."""
    found = route.accuracy
    counts = {name: f"{getattr(route, name):,}" for name in ("settled", "drawn", "population")}
    detail = _("%(settled)s of %(drawn)s audited, %(population)s labelled") % counts
    return Bar(route.words, found.value, found.low, found.high, None, _("not measured"), detail, address)


def _build_ends(story: CollectionOverview) -> tuple[list[Node], list[Link]]:
    """pairs -> what became of them."""
    status = story.status
    ends = [
        Node("labelled", _("labelled by judges"), status["labelled"], 1, "data"),
        Node("settled", _("settled"), status["settled"], 1, "data"),
        Node("open", _("open"), status["open"], 1, "warn"),
        *_unended_nodes(story),
    ]
    links = [Link("pairs", node.key, node.count) for node in ends if node.count > 0]
    return [Node("pairs", _("pairs"), status["pairs"], 0), *ends], links


def _unended_nodes(story: CollectionOverview) -> list[Node]:
    status = story.status
    return [
        Node("failed", _("failed"), status["failed"], 1, "danger"),
        Node("running", _("being judged"), status["running"], 1, "quiet"),
        Node("pending", _("waiting for judges"), status["pending"] - story.unjudged, 1, "quiet"),
        Node("unjudged", _("not judged"), story.unjudged, 1, "quiet"),
    ]


def _build_flow(story: CollectionOverview, dropped: int) -> tuple[list[Node], list[Link]]:
    """pairs -> debate -> label or people -> settled. `dropped`: labelled by the filter."""
    status = story.status
    labelled, escalated, policy = status["labelled"] - dropped, status["escalated"], status["policy"]
    ended = labelled + escalated
    agreed = min(sum(status["agreed_in_round"].values()), ended) if policy in DEBATES else ended
    if policy in DEBATES:
        words = _("debate agreed")
    else:
        words = _("people judge every pair") if policy == Campaign.Policy.HUMAN else _("judged by models")
    # The counters do not say which pairs the two have in common; most agreements become labels, so as many as can be.
    both = min(labelled, agreed)
    after = [
        Link("dropped", "labelled", dropped),
        Link("agreed", "labelled", both),
        Link("agreed", "escalated", agreed - both),
        Link("disputed", "labelled", labelled - both),
        Link("disputed", "escalated", escalated - (agreed - both)),
        Link("escalated", "settled", status["settled"]),
        Link("escalated", "open", status["open"]),
    ]
    nodes = [
        Node("pairs", _("pairs"), status["pairs"], 0),
        Node("dropped", _("rejected by the filter"), dropped, 1, "data"),
        Node("agreed", words, agreed, 1, "data"),
        Node("disputed", _("debate did not agree"), ended - agreed, 1, "warn"),
        *_unended_nodes(story),
        Node("labelled", _("labelled by judges"), status["labelled"], 2, "data"),
        Node("escalated", _("escalated to people"), escalated, 2, "warn"),
        Node("settled", _("settled"), status["settled"], 3, "data"),
        Node("open", _("open"), status["open"], 3, "warn"),
    ]
    first = [Link("pairs", node.key, node.count) for node in nodes if node.column == 1]
    return nodes, [link for link in (*first, *after) if link.count > 0]


def _state_query(story: CollectionOverview, state: str) -> str:
    """Return the query that lists the pairs of a state; one with a label waits for nobody, whatever is asked of it."""
    return f"state={state}" + ("&label=none" if state == "open" and not story.chosen else "")


def _format_time(when: datetime) -> str:
    return f"{timezone.localtime(when):%Y-%m-%d %H:%M}"
