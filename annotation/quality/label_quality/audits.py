"""Accuracy of the automatic labels, from audits: by route with exact intervals, and over all routes.

The truth of an audited pair is what people made of its audit item: their equal answers, or an
adjudicator's. It is compared with the label that stood in the audit's row before anybody saw the
pair. Escalated pairs are not in it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.agreement.measures import Statistic
from annotation.agreement.proportions import Interval, Stratum, stratified_share, weighted_sequence
from annotation.quality.label_quality.records import Audits, RouteQuality, missing_statistic
from corpus.models import Collection
from judges.campaigns import route_breakers
from judges.domain.audits import HALF_WIDTH, LEAST, LIMIT, USUAL, Route, allocate_sample, route_of
from judges.models import Campaign
from store.sql import fetch_rows

NO_AUDIT = gettext_noop("not measured: no audit is completed yet")


# Labels by campaign and route in whose place a later campaign gave one.
REPLACED = """
SELECT w.campaign_id, w.stratum, count(*) FROM judges_work w
WHERE w.campaign_id = ANY(%(campaigns)s) AND w.state = 'labelled' AND EXISTS (
    SELECT FROM judges_work n WHERE n.pair_id = w.pair_id AND n.campaign_id = ANY(%(campaigns)s)
      AND n.state = 'labelled' AND (n.ended_at, n.campaign_id) > (w.ended_at, w.campaign_id))
GROUP BY w.campaign_id, w.stratum
"""
ROUTES = """
SELECT c.id, t.key, sum(t.value) FROM judges_tally t JOIN judges_campaign c ON c.id = t.campaign_id
WHERE c.collection_id = %(collection)s AND c.kind = 'judging'
  AND (t.key LIKE 'route:%%' OR t.key LIKE %(stopped)s OR t.key LIKE %(resumed)s)
GROUP BY c.id, t.key ORDER BY c.id, t.key
"""


@dataclass(frozen=True, slots=True)
class _CampaignAudit:
    """The measured routes of one campaign, with the strata that they are made of."""

    campaign: Campaign
    routes: list[RouteQuality]
    cells: Mapping[str, "_Cell"]
    conflicts: int


def measure_audits(
    collection: Collection,
    campaign: Campaign | None,
    counts: Mapping[str, float],
    left: Mapping[str, int] | None = None,
) -> Audits | None:
    """The audit of one campaign; None where nothing is labelled. `counts`: its counters (judges.campaigns.counters).

    `left`: pairs of each stratum that can be drawn (audit_sampling.remaining_by_stratum); without
    it all that are not drawn.
    """
    measured = _measure_campaign(collection, campaign, counts, left, {}) if campaign else None
    return _sum_up([measured] if measured else [])


def measure_collection_audits(collection: Collection) -> Audits | None:
    """The audits of all automatic labels that stand, whichever campaigns gave them; None where nothing is labelled.

    A label that a later campaign replaced counts no more, and what was audited of it says nothing about the new one.
    """
    counts: dict[int, dict[str, float]] = defaultdict(dict)
    patterns = {"stopped": f"{route_breakers.STOPPED}%", "resumed": f"{route_breakers.RESUMED}%"}
    for pk, key, n in fetch_rows(ROUTES, collection=collection.pk, **patterns):
        counts[pk][key] = n
    campaigns = Campaign.objects.in_bulk([pk for pk, sums in counts.items() if _route_sizes(sums, {})])
    if len(campaigns) < 2:
        return next((measure_audits(collection, one, counts[pk]) for pk, one in campaigns.items()), None)
    replaced: dict[int, dict[str, int]] = defaultdict(dict)
    for pk, route, n in fetch_rows(REPLACED, campaigns=list(campaigns)):
        replaced[pk][route] = n
    each = (
        _measure_campaign(collection, campaigns[pk], counts[pk], None, replaced[pk])
        for pk in sorted(campaigns, reverse=True)
    )
    return _sum_up([one for one in each if one is not None])


def _route_sizes(counts: Mapping[str, float], replaced: Mapping[str, int]) -> dict[str, int]:
    """Return the labelled pairs of each route that has any, not those counted back to 0."""
    sizes = {key.removeprefix("route:"): int(n) for key, n in counts.items() if key.startswith("route:")}
    return {key: left for key, n in sizes.items() if (left := n - replaced.get(key, 0)) > 0}


def _measure_campaign(
    collection: Collection,
    campaign: Campaign,
    counts: Mapping[str, float],
    left: Mapping[str, int] | None,
    replaced: Mapping[str, int],
) -> _CampaignAudit | None:
    sizes = _route_sizes(counts, replaced)
    if not sizes:
        return None
    found = route_breakers.answered_audits(campaign.pk, collection.relevant_from)
    halted = route_breakers.tripped_routes(found, counts)
    # A route of which nothing was answered yet is measured too: as an empty sample.
    none = route_breakers.AnsweredAudits()
    cells = {key: _route_cells(key, size, found.get(key, none), left) for key, size in sizes.items()}
    # Sure routes first.
    order = sorted((route.round, -route.margin, -route.label, route.key) for route in map(route_of, sizes))
    routes = [
        _route_quality(campaign, route_of(key), sizes[key], found.get(key, none), key in halted, cells[key])
        for *_rank, key in order
    ]
    # Over all routes together each stratum keeps its own weight.
    every = {f"{name}/{campaign.pk}": cell for one in cells.values() for name, cell in one.items()}
    conflicts = sum(found[key].conflicts for key in sizes if key in found)
    return _CampaignAudit(campaign, routes, every, conflicts)


def _sum_up(measured: Sequence[_CampaignAudit]) -> Audits | None:
    """Return the audit of these campaigns together."""
    if not measured:
        return None
    first, is_one = measured[0].campaign, len(measured) == 1
    population = _("%(labelled)s pairs labelled by judges in %(campaigns)s campaigns")
    if is_one:
        population = _("%(labelled)s pairs labelled by %(policy)s in campaign %(campaign)s")
    routes = tuple(route for one in measured for route in one.routes)
    every = {name: cell for one in measured for name, cell in one.cells.items()}
    labelled = sum(route.population for route in routes)
    half, enough, reached = _forecast_interval(every, labelled)
    words = {"labelled": f"{labelled:,}", "policy": first.policy, "campaign": first.number, "campaigns": len(measured)}
    return Audits(
        campaign=first.number if is_one else None,
        policy=first.policy if is_one else "",
        overall=_weighted_accuracy(every.values()),
        covered=sum(cell.size for cell in every.values() if cell.settled) / labelled,
        routes=routes,
        limit=LIMIT,
        drawn=sum(route.drawn for route in routes),
        settled=sum(route.settled for route in routes),
        conflicts=sum(one.conflicts for one in measured),
        population=population % words,
        half=half,
        enough=enough,
        reached=reached,
    )


@dataclass(frozen=True, slots=True)
class _Cell:
    """A route within a part of a campaign (audit_sampling), drawn with one probability."""

    size: float
    most: int  # The drawn pairs with those that can still be drawn.
    drawn: int
    settled: int
    right: int

    @property
    def expected(self) -> float:
        """The share that is right, as far as is known: what people found, beside 19 of 20."""
        return (self.right + USUAL[0]) / (self.settled + USUAL[1])


def _route_cells(
    key: str, population: int, answers: route_breakers.AnsweredAudits, left: Mapping[str, int] | None
) -> dict[str, _Cell]:
    """A route's strata. Their sizes, as drawn, are scaled to the pairs that were labelled: people met some of them."""
    others = {int(cell.partition("/")[2]): n for cell, n in (left or {}).items() if cell.startswith(f"{key}/")}
    none = route_breakers.AnsweredAudits()
    parts = {part: answers.parts.get(part, none) for part in sorted(answers.parts.keys() | others.keys()) or [0]}
    # A part of which nothing is drawn has no size of its own yet: what can be drawn stands for it.
    sizes = {part: one.size or float(others.get(part, 0)) for part, one in parts.items()}
    scale = population / (sum(sizes.values()) or 1.0)
    found = {}
    for part, one in parts.items():
        # With one part the size is known exactly, and scaling would only add rounding.
        size = sizes[part] * scale if len(parts) > 1 else float(population)
        most = round(size) if left is None else min(round(size), one.drawn + others.get(part, 0))
        found[f"{key}/{part}"] = _Cell(size, max(one.drawn, most), one.drawn, one.settled, one.right)
    return found


def _cell_strata(cells: Iterable[_Cell]) -> list[Stratum]:
    return [Stratum(cell.size, cell.settled, cell.right) for cell in cells]


def _route_quality(
    campaign: Campaign,
    route: Route,
    population: int,
    answers: route_breakers.AnsweredAudits,
    stopped: bool,
    cells: Mapping[str, _Cell],
) -> RouteQuality:
    settled = answers.settled
    accuracy, looks = _weighted_accuracy(cells.values()), weighted_sequence(_cell_strata(cells.values()))
    half, enough, reached = _forecast_interval(cells, population)
    return RouteQuality(
        key=route.key,
        words=route.description,
        label=route.label,
        population=population,
        drawn=answers.drawn,
        settled=settled,
        right=answers.right,
        accuracy=accuracy,
        looks=Statistic(accuracy.value, *looks, settled, None) if settled else accuracy,
        verdict=route_verdict(over=answers.over, low=looks.low),
        stopped=stopped,
        half=half,
        enough=enough,
        most=sum(cell.most for cell in cells.values()),
        reached=reached,
        campaign=campaign.number,
    )


def _half_width(bounds: Interval) -> float:
    return (bounds.high - bounds.low) / 2


def _find_sample_size(bounds: Callable[[int], Interval], drawn: int, most: int, population: int) -> tuple[int, bool]:
    """The smallest sample from `drawn` with an interval within 5 points, else `most`."""
    low, high = min(drawn, most), most
    if low and _half_width(bounds(low)) <= HALF_WIDTH:
        return low, True
    # Doubling first, then halving: intervals over very large populations are slow.
    high = min(high, max(2 * low, LEAST))
    while high < most and _half_width(bounds(high)) > HALF_WIDTH:
        low, high = high, min(2 * high, most)
    while low < high:
        middle = (low + high) // 2
        if middle and _half_width(bounds(middle)) <= HALF_WIDTH:
            high = middle
        else:
            low = middle + 1
    return high, high >= population or (high > 0 and _half_width(bounds(high)) <= HALF_WIDTH)


def _forecast_interval(cells: Mapping[str, _Cell], population: int) -> tuple[float | None, int, bool]:
    """Half the width of the interval once all that is drawn of these strata is settled; the sample that is enough."""
    most = {key: cell.most for key, cell in cells.items()}
    drawn = {key: cell.drawn for key, cell in cells.items()}

    def bounds(n: int) -> Interval:
        # Split as the real draw would split it, so that the forecast is of its sample.
        taken = allocate_sample(most, n, drawn) if len(cells) > 1 else dict.fromkeys(cells, n)
        found = stratified_share(
            [Stratum(cell.size, taken[key], cell.expected * taken[key]) for key, cell in cells.items()]
        )
        return found[1] if found else Interval(0.0, 1.0)

    total = sum(drawn.values())
    return _half_width(bounds(total)) if total else None, *_find_sample_size(
        bounds, total, sum(most.values()), population
    )


def route_verdict(*, over: bool, low: float) -> str:
    """Say enough, over or open, by bounds that allow for a look after every answer (`low`: of the right share)."""
    if over:
        return "over"
    return "enough" if low >= 1 - LIMIT else "open"


def _weighted_accuracy(cells: Iterable[_Cell]) -> Statistic:
    """The share that is right over strata, each weighted by its size."""
    strata = _cell_strata(cells)
    found = stratified_share(strata)
    if found is None:
        return missing_statistic(NO_AUDIT)
    value, bounds = found
    return Statistic(value, bounds.low, bounds.high, sum(round(stratum.n) for stratum in strata), None)
