"""Accuracy of the automatic labels, from label audits: by route with exact intervals, and over all routes.

The true label of an audited pair is the one that people gave its audit task: their common answer, or an
adjudicator's. It is compared with the automatic label that the audit recorded before anyone saw the
pair. Escalated pairs are left out.
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
from judges.domain.audits import HALF_WIDTH, LEAST, LIMIT, USUAL, Route, allocate_sample, route_of
from judges.engine import route_breakers
from judges.models import Campaign
from store.sql import fetch_rows

NO_AUDIT = gettext_noop("not measured: no audit is completed yet")


# Number of labels by campaign and route that a later campaign replaced.
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
    """Return the audit of one campaign, or None where it has labelled nothing.

    `counts`: the campaign's counters (judges.costs.counters). `left`: number of pairs of each stratum
    that can still be drawn (audit_sampling.remaining_by_stratum); None: all that are not drawn.
    """
    measured = _measure_campaign(collection, campaign, counts, left, {}) if campaign else None
    return _sum_up([measured] if measured else [])


def measure_collection_audits(collection: Collection) -> Audits | None:
    """Return the audit of all current automatic labels, whichever campaign gave them; None where there are none.

    A label that a later campaign replaced does not count: its audit says nothing about the new label.
    """
    counts: dict[int, dict[str, float]] = defaultdict(dict)
    patterns = {"stopped": f"{route_breakers.STOPPED}%", "resumed": f"{route_breakers.RESUMED}%"}
    for pk, key, n in fetch_rows(ROUTES, collection=collection.pk, **patterns):
        counts[pk][key] = n
    campaigns = Campaign.objects.in_bulk([pk for pk, sums in counts.items() if _route_sizes(sums, {})])
    if len(campaigns) < 2:
        return next((measure_audits(collection, campaign, counts[pk]) for pk, campaign in campaigns.items()), None)
    replaced: dict[int, dict[str, int]] = defaultdict(dict)
    for pk, route, n in fetch_rows(REPLACED, campaigns=list(campaigns)):
        replaced[pk][route] = n
    audits = (
        _measure_campaign(collection, campaigns[pk], counts[pk], None, replaced[pk])
        for pk in sorted(campaigns, reverse=True)
    )
    return _sum_up([audit for audit in audits if audit is not None])


def _route_sizes(counts: Mapping[str, float], replaced: Mapping[str, int]) -> dict[str, int]:
    """Return the number of current labels of each route that has any."""
    sizes = {key.removeprefix("route:"): int(n) for key, n in counts.items() if key.startswith("route:")}
    return {key: size for key, n in sizes.items() if (size := n - replaced.get(key, 0)) > 0}


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
    answers = route_breakers.answered_audits(campaign.pk, collection.relevant_from)
    tripped = route_breakers.tripped_routes(answers, counts)
    # A route without answered audits is measured too, as an empty sample.
    no_answers = route_breakers.AnsweredAudits()
    cells = {key: _route_cells(key, size, answers.get(key, no_answers), left) for key, size in sizes.items()}
    # Sure routes first.
    order = sorted((route.round, -route.margin, -route.label, route.key) for route in map(route_of, sizes))
    routes = [
        _route_quality(campaign, route_of(key), sizes[key], answers.get(key, no_answers), key in tripped, cells[key])
        for *_rank, key in order
    ]
    # Over all routes together each stratum keeps its own weight.
    all_cells = {f"{name}/{campaign.pk}": cell for route_cells in cells.values() for name, cell in route_cells.items()}
    conflicts = sum(answers[key].conflicts for key in sizes if key in answers)
    return _CampaignAudit(campaign, routes, all_cells, conflicts)


def _sum_up(measured: Sequence[_CampaignAudit]) -> Audits | None:
    """Return the audit of several campaigns together; None for no campaign."""
    if not measured:
        return None
    first, is_one = measured[0].campaign, len(measured) == 1
    population = _("%(labelled)s pairs labelled by judges in %(campaigns)s campaigns")
    if is_one:
        population = _("%(labelled)s pairs labelled by %(policy)s in campaign %(campaign)s")
    routes = tuple(route for audit in measured for route in audit.routes)
    cells = {name: cell for audit in measured for name, cell in audit.cells.items()}
    labelled = sum(route.population for route in routes)
    half, enough, reached = _forecast_interval(cells, labelled)
    overall = _weighted_accuracy(cells.values())
    always = weighted_sequence(_cell_strata(cells.values()))
    words = {"labelled": f"{labelled:,}", "policy": first.policy, "campaign": first.number, "campaigns": len(measured)}
    return Audits(
        campaign=first.number if is_one else None,
        policy=first.policy if is_one else "",
        overall=overall,
        covered=sum(cell.size for cell in cells.values() if cell.settled) / labelled,
        routes=routes,
        limit=LIMIT,
        drawn=sum(route.drawn for route in routes),
        settled=sum(route.settled for route in routes),
        conflicts=sum(audit.conflicts for audit in measured),
        population=population % words,
        half=half,
        enough=enough,
        reached=reached,
        looks=overall if overall.value is None else Statistic(overall.value, *always, overall.n, None),
    )


@dataclass(frozen=True, slots=True)
class _Cell:
    """A route within a part of a campaign (audit_sampling): its pairs are drawn with the same probability."""

    size: float
    most: int  # Pairs that are drawn or can still be drawn.
    drawn: int
    settled: int
    right: int

    @property
    def expected(self) -> float:
        """Expected share of correct labels: the audited ones, with 19 correct of 20 as the prior."""
        return (self.right + USUAL[0]) / (self.settled + USUAL[1])


def _route_cells(
    key: str, population: int, answers: route_breakers.AnsweredAudits, left: Mapping[str, int] | None
) -> dict[str, _Cell]:
    """Return a route's strata by key.

    Their sizes are those at the draw, scaled to the number of labelled pairs: people met some pairs before the draw.
    """
    undrawn = {int(cell.partition("/")[2]): n for cell, n in (left or {}).items() if cell.startswith(f"{key}/")}
    no_answers = route_breakers.AnsweredAudits()
    parts = {part: answers.parts.get(part, no_answers) for part in sorted(answers.parts.keys() | undrawn.keys()) or [0]}
    # Nothing is drawn of a part without a size: the pairs that can be drawn are its size.
    sizes = {part: sample.size or float(undrawn.get(part, 0)) for part, sample in parts.items()}
    scale = population / (sum(sizes.values()) or 1.0)
    cells = {}
    for part, sample in parts.items():
        # The size of a single part is known exactly: scaling would only add rounding.
        size = sizes[part] * scale if len(parts) > 1 else float(population)
        most = round(size) if left is None else min(round(size), sample.drawn + undrawn.get(part, 0))
        cells[f"{key}/{part}"] = _Cell(size, max(sample.drawn, most), sample.drawn, sample.settled, sample.right)
    return cells


def _cell_strata(cells: Iterable[_Cell]) -> list[Stratum]:
    return [Stratum(cell.size, cell.settled, cell.right) for cell in cells]


def _route_quality(
    campaign: Campaign,
    route: Route,
    population: int,
    answers: route_breakers.AnsweredAudits,
    is_stopped: bool,
    cells: Mapping[str, _Cell],
) -> RouteQuality:
    resolved = answers.settled
    accuracy, looks = _weighted_accuracy(cells.values()), weighted_sequence(_cell_strata(cells.values()))
    half, enough, reached = _forecast_interval(cells, population)
    return RouteQuality(
        key=route.key,
        words=campaign.describe_route(route),
        label=route.label,
        population=population,
        drawn=answers.drawn,
        settled=resolved,
        right=answers.right,
        accuracy=accuracy,
        looks=Statistic(accuracy.value, *looks, resolved, None) if resolved else accuracy,
        verdict=route_verdict(over=answers.over, low=looks.low),
        stopped=is_stopped,
        half=half,
        enough=enough,
        most=sum(cell.most for cell in cells.values()),
        reached=reached,
        campaign=campaign.number,
    )


def _half_width(bounds: Interval) -> float:
    return (bounds.high - bounds.low) / 2


def _find_sample_size(bounds: Callable[[int], Interval], drawn: int, most: int, population: int) -> tuple[int, bool]:
    """Return the smallest sample of at least `drawn` pairs with an interval of 5 points to each side, else `most`.

    The second value says whether that sample is enough. `bounds`: the interval of a sample of a size.
    """
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
    """Forecast the interval of these strata.

    Return half its width once all drawn pairs are resolved, the sample that is enough, and whether it is.
    """
    most = {key: cell.most for key, cell in cells.items()}
    drawn = {key: cell.drawn for key, cell in cells.items()}

    def bounds(n: int) -> Interval:
        # Allocated as the real draw would allocate it, so that the forecast is of its sample.
        sample = allocate_sample(most, n, drawn) if len(cells) > 1 else dict.fromkeys(cells, n)
        share = stratified_share(
            [Stratum(cell.size, sample[key], cell.expected * sample[key]) for key, cell in cells.items()]
        )
        return share[1] if share else Interval(0.0, 1.0)

    total = sum(drawn.values())
    return _half_width(bounds(total)) if total else None, *_find_sample_size(
        bounds, total, sum(most.values()), population
    )


def route_verdict(*, over: bool, low: float) -> str:
    """Return enough, over or open. `over`, `low` (of the share correct): by bounds that allow for repeated looks."""
    if over:
        return "over"
    return "enough" if low >= 1 - LIMIT else "open"


def _weighted_accuracy(cells: Iterable[_Cell]) -> Statistic:
    """Return the share of correct labels over strata, each weighted by its size."""
    strata = _cell_strata(cells)
    estimate = stratified_share(strata)
    if estimate is None:
        return missing_statistic(NO_AUDIT)
    value, bounds = estimate
    return Statistic(value, bounds.low, bounds.high, sum(round(stratum.n) for stratum in strata), None)
