"""The admin's home: one story, told from counters, audits, agreement and cost (UI.md, docs/dashboard.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.dashboard.overview import CollectionOverview, collection_overview
from annotation.label_quality import campaign_costs, canaries, list_route_decisions
from annotation.label_quality.records import Audits, Costs, Kappa, RouteDecision, RouteQuality
from annotation.label_quality.statistics import StoredStatistics, cached_statistics, is_stale
from charts import Bar, Chart, Link, Node, draw_bars, draw_flow
from corpus.models import Collection
from judges.campaigns import selectors
from judges.domain.audits import OVERLAP
from judges.models import Campaign

DEBATES = ("debate", "debate+ensemble")
HALF = 520
"""Width of a chart beside another, so that its words stay as large as the page's."""
MOST_ROUTES = 6
"""Routes in the picture: the home is one screen. The table of routes has all."""
NOT_STATES = {"pairs", "agreed", "disputed", "dropped"}
SAID_ABOVE = {"conflicts", "skipped", "failed"}
"""Kinds of decisions that the story words itself, with a button that acts."""


@dataclass(frozen=True)
class Dashboard:
    """Everything on the admin's home."""

    collection: Collection
    story: CollectionOverview
    standing: StoredStatistics
    costs: Costs
    alarms: tuple[dict[str, Any], ...]
    is_stale: bool

    @property
    def audits(self) -> Audits | None:
        """The audit of the newest campaign."""
        return self.standing.trust.audits

    @cached_property
    def _stages(self) -> tuple[list[Node], list[Link]]:
        campaign = self.story.campaign
        return _build_flow(self.story.status, selectors.count_filtered(campaign)) if campaign else ([], [])

    @cached_property
    def flow(self) -> Chart | None:
        """Where the pairs stand; None before the first campaign."""
        campaign = self.story.campaign
        if campaign is None:
            return None
        nodes, links = self._stages
        source = _("%(collection)s, campaign %(campaign)s, %(at)s") % {
            "collection": self.collection.name,
            "campaign": campaign.pk,
            "at": _format_time(self.story.at),
        }
        return draw_flow(
            "flow", _("Where the pairs stand"), nodes, links, summary=self.story.flow_summary, source=source
        )

    @cached_property
    def accuracy(self) -> Chart | None:
        """Accuracy of the automatic labels by route; None where nothing is labelled."""
        audits = self.audits
        if audits is None or not audits.routes:
            return None
        shown = largest_routes(audits.routes)
        rows = [route_bar(route) for route in shown]
        rest = len(audits.routes) - len(shown)
        return draw_bars(
            "audits",
            _("Accuracy of the judges' labels by route"),
            rows,
            x=_("share right by people's answers, 95% interval"),
            high=1.0,
            mark=1.0 - audits.limit,
            width=HALF,
            summary=describe_routes(shown, rest),
            source=f"{self.collection.name}: {audits.population}; {_format_time(self.story.at)}",
        )

    @cached_property
    def agreement(self) -> Chart | None:
        """Agreement of judges and of people by population; None before it is computed, or where there is none."""
        known = [one for one in self.standing.trust.kappas or () if one.pairs]
        if not known:
            return None
        return draw_bars(
            "agreement",
            _("Agreement beyond chance"),
            [kappa_bar(one) for one in known],
            x=_("Krippendorff's alpha (nominal), relevant or not, 95% interval"),
            high=1.0,
            width=HALF,
            source=f"{self.collection.name}, {_format_time(self.standing.trust.at or self.story.at)}",
        )

    @property
    def parts(self) -> list[Node]:
        """The states that the list of pairs can be narrowed to, with their counts."""
        return [node for node in self._stages[0] if node.count and node.key not in NOT_STATES]

    @property
    def charts(self) -> tuple[Chart | None, ...]:
        """What can be saved."""
        return (self.flow, self.accuracy, self.agreement)

    @property
    def pending_audits(self) -> int:
        """Audited pairs of the newest campaign that wait for annotators."""
        audits = self.audits
        return max(0, audits.drawn - audits.settled - audits.conflicts) if audits else 0

    @property
    def people_needed(self) -> int:
        """How many people a waiting pair needs, where fewer can judge here; 0 where there are enough."""
        needed = self.collection.overlap if self.story.for_annotators else 0
        needed = max(needed, OVERLAP if self.pending_audits else 0)
        return needed if self.story.judging < needed else 0

    @property
    def decision_count(self) -> int:
        """Lines of the list at the end: what needs somebody."""
        story, status = self.story, self.story.status
        said = [story.conflicts, story.skipped, story.other_tasks, status["failed"], story.for_annotators]
        said += [self.pending_audits, self.people_needed]
        stopped = status["state"] in (Campaign.State.PAUSED, Campaign.State.BUDGET)
        return len(self.alarms) + sum(map(bool, said)) + stopped

    @property
    def accuracy_summary(self) -> str:
        """Can the labels be trusted, in a sentence."""
        return (
            describe_accuracy(self.audits)
            if self.audits
            else _("No pair is labelled yet, so there is nothing to audit.")
        )

    @property
    def cost_note(self) -> str:
        """What is not in the figures."""
        found = self.costs
        if found.calls_without_price:
            n = found.calls_without_price
            words = ngettext(
                "What %(n)s call cost is unknown and stands in no sum.",
                "What %(n)s calls cost is unknown and stands in no sum.",
                n,
            )
            return words % {"n": f"{n:,}"}
        return ""


def build_dashboard(collection: Collection, campaign: Campaign | None) -> Dashboard:
    """The home of `collection`, whose newest campaign is `campaign`."""
    story = collection_overview(collection, campaign)
    stand = cached_statistics(collection, campaign)
    waiting = list_route_decisions(
        story.status,
        audits=stand.trust.audits,
        people=stand.people.people,
        conflicts=story.conflicts,
        skipped=story.skipped,
        flips=canaries.measure_flips(canaries.judges_of(campaign)),
    )
    alarms = tuple(
        {"decision": one, "address": address_of(one, collection)} for one in waiting if one.kind not in SAID_ABOVE
    )
    return Dashboard(collection, story, stand, campaign_costs(collection, story.status), alarms, is_stale(stand))


def address_of(decision: RouteDecision, collection: Collection) -> str:
    """Where the decision is taken."""
    try:
        address = reverse(decision.url, args=[collection.name, *decision.arguments])
    except NoReverseMatch:
        address = reverse("pairs", args=[collection.name])
    return f"{address}?{decision.query}" if decision.query else address


def describe_accuracy(audits: Audits) -> str:
    """The audit in a sentence that names its population."""
    found = audits.overall
    if not audits.drawn:
        return _("Not measured: none of %(population)s is drawn for people to check.") % {
            "population": audits.population
        }
    if found.value is None or found.low is None or found.high is None:
        return _("Not measured yet: of %(population)s, %(drawn)s are drawn for people to check.") % {
            "population": audits.population,
            "drawn": f"{audits.drawn:,}",
        }
    rest = _(" This speaks for %(covered)s of them: the other routes have no settled audit.") % {
        "covered": f"{audits.covered:.0%}"
    }
    return (
        _(
            "Of %(population)s, %(found_value)s are right by people's answers (95%% interval %(low)s to "
            "%(high)s, from %(settled)s of %(drawn)s audited pairs)."
        )
        % {
            "population": audits.population,
            "found_value": f"{found.value:.1%}",
            "low": f"{found.low:.1%}",
            "high": f"{found.high:.1%}",
            "settled": f"{audits.settled:,}",
            "drawn": f"{audits.drawn:,}",
        }
    ) + (rest if audits.covered < 0.999 else "")


def largest_routes(routes: Sequence[RouteQuality]) -> list[RouteQuality]:
    """Those with the most pairs, and all that are surely beyond the limit, in the order of the audit."""
    by_size = sorted(routes, key=lambda route: (route.verdict != "over", -route.population))
    kept = {route.key for place, route in enumerate(by_size) if place < MOST_ROUTES or route.verdict == "over"}
    return [route for route in routes if route.key in kept]


def describe_routes(routes: Sequence[RouteQuality], rest: int) -> str:
    """What the picture shows, in a sentence or two."""
    known = sorted((route.accuracy.value, route.words) for route in routes if route.accuracy.value is not None)
    said = _("Of these routes, %(routes)s of %(routes2)s have no settled audit.") % {
        "routes": len(routes) - len(known),
        "routes2": len(routes),
    }
    if known:
        said += _(" The least accurate is: %(known)s (%(known2)s).") % {
            "known": known[0][1],
            "known2": f"{known[0][0]:.0%}",
        }
    return said + (_(" %(rest)s smaller routes stand in the table of routes below.") % {"rest": rest} if rest else "")


def kappa_bar(one: Kappa) -> Bar:
    """Who, over which pairs; agreement never stands without percent and prevalence."""
    percent = (
        _("%(percent_value)s equal") % {"percent_value": f"{one.percent.value:.0%}"}
        if one.percent.value is not None
        else _("no pair with two grades")
    )
    relevant = (
        _(", %(prevalence)s relevant") % {"prevalence": f"{one.prevalence:.0%}"} if one.prevalence is not None else ""
    )
    itself = [
        _("%(names)s are one model: its agreement with itself counts") % {"names": ", ".join(names)}
        for names in one.copies
    ]
    found = one.kappa
    label = _("%(assessors)s %(group)s, %(population)s pairs") % {
        "assessors": one.assessors,
        "group": _(one.group),
        "population": _(one.population),
    }
    return Bar(
        label,
        found.value,
        found.low,
        found.high,
        found.n,
        _(found.reason) if found.reason else "",
        "; ".join([percent + relevant, *itself]),
    )


def route_bar(route: RouteQuality) -> Bar:
    """A route with what was audited of it."""
    found = route.accuracy
    detail = _("%(settled)s of %(drawn)s drawn, %(population)s labelled") % {
        "settled": f"{route.settled:,}",
        "drawn": f"{route.drawn:,}",
        "population": f"{route.population:,}",
    }
    return Bar(route.words, found.value, found.low, found.high, None, _("not measured"), detail)


def _build_flow(status: Mapping[str, Any], dropped: int) -> tuple[list[Node], list[Link]]:
    """pairs -> debate -> label or people -> settled. Pairs whose debate agreed may still go to people (a conflict).

    `dropped`: labelled by the filter, without a debate.
    """
    labelled, escalated, policy = status["labelled"] - dropped, status["escalated"], status["policy"]
    ended = labelled + escalated
    agreed = min(sum(status["agreed_in_round"].values()), ended) if policy in DEBATES else ended
    if policy in DEBATES:
        words = _("agents agreed")
    else:
        words = _("people judge every pair") if policy == Campaign.Policy.HUMAN else _("judged by models")
    both = min(labelled, agreed)
    second = [
        Node("dropped", _("dropped by the filter"), dropped, 1, "accent"),
        Node("agreed", words, agreed, 1, "accent"),
        Node("disputed", _("agents did not agree"), ended - agreed, 1, "warn"),
    ]
    after = [Link("dropped", "labelled", dropped), Link("agreed", "labelled", both)]
    after += [
        Link("agreed", "escalated", agreed - both),
        Link("disputed", "labelled", labelled - both),
        Link("disputed", "escalated", escalated - (agreed - both)),
    ]
    nodes = [
        Node("pairs", _("pairs"), status["pairs"], 0),
        *second,
        Node("failed", _("failed"), status["failed"], 1, "danger"),
        Node("running", _("being judged"), status["running"], 1, "quiet"),
        Node("pending", _("waiting for judges"), status["pending"], 1, "quiet"),
        Node("labelled", _("labelled by judges"), status["labelled"], 2, "accent"),
        Node("escalated", _("escalated to people"), escalated, 2, "warn"),
        Node("settled", _("settled"), status["settled"], 3, "accent"),
        Node("open", _("open"), status["open"], 3, "warn"),
    ]
    people = [Link("escalated", "settled", status["settled"]), Link("escalated", "open", status["open"])]
    first = [Link("pairs", node.key, node.count) for node in nodes if node.column == 1]
    return nodes, [link for link in (*first, *after, *people) if link.count > 0]


def _format_time(when: Any) -> str:
    return f"{timezone.localtime(when):%Y-%m-%d %H:%M}"
