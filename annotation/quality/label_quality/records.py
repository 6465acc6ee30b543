"""Frozen records of label quality. Every figure names its population."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import gettext_noop

from annotation.agreement.measures import Statistic

NOT_REPEATED = Statistic(None, None, None, 0, gettext_noop("no pair was repeated"))


@dataclass(frozen=True, slots=True)
class RouteQuality:
    """A stratum of the label audit: pairs that a policy labelled by the same route."""

    key: str  # The stratum's key (judges.domain.audits).
    words: str  # "Round 1 · votes 5-0 · relevant".
    label: int  # The policy's label, 0 or 1.
    population: int  # Pairs that the campaign labelled by this route.
    drawn: int  # Of those, pairs drawn for the audit.
    settled: int  # Of those, pairs that people resolved.
    right: int  # Of those, pairs where people agreed with the policy.
    accuracy: Statistic  # Exact (Clopper-Pearson) 95% interval; `reason` where no pair is resolved.
    looks: Statistic  # The same value with an interval that allows for repeated looks (a confidence sequence).
    verdict: str  # enough (surely within the limit) | over (surely beyond it) | open.
    stopped: bool = False  # The campaign's further pairs by this route go to people (judges.engine.route_breakers).
    # Half the interval's width once all drawn pairs are resolved; None where none is drawn.
    half: float | None = None
    enough: int = 0  # Sample size for a half width of 5 points or less; `most` where that many are too few.
    most: int = 0  # Pairs drawn or available for drawing: people have met none of them for another reason.
    reached: bool = True  # Whether `enough` gives a half width of 5 points or less.
    campaign: int = 0  # Number of the campaign.

    @property
    def more(self) -> int:
        """Number of pairs to draw to have `enough`."""
        return max(0, self.enough - self.drawn)


@dataclass(frozen=True, slots=True)
class Audits:
    """The audit of automatic labels. `limit`: the share of wrong labels that raises an alarm."""

    campaign: int | None  # None: current labels of several campaigns.
    policy: str  # Empty: several campaigns.
    overall: Statistic  # Accuracy over all labelled pairs of audited routes, weighted by the routes' sizes.
    covered: float  # Share of the labelled pairs whose route has at least one resolved audit.
    routes: tuple[RouteQuality, ...]
    limit: float
    drawn: int
    settled: int
    conflicts: int  # Drawn pairs on which two people differ: an adjudicator decides.
    population: str  # "1,234 pairs that debate+ensemble labelled in campaign 7".
    half: float | None = None  # `half`, `enough` and `reached` are those of RouteQuality, over all routes.
    enough: int = 0
    reached: bool = True
    looks: Statistic | None = None  # `overall` with an interval that allows for repeated looks.

    @property
    def more(self) -> int:
        """Number of pairs to draw for an interval of 5 points to each side."""
        return max(0, self.enough - self.drawn)

    @property
    def open(self) -> int:
        """Number of drawn pairs that wait for annotators."""
        return max(0, self.drawn - self.settled - self.conflicts)

    @property
    def least(self) -> float:
        """The least share of correct labels that raises no alarm."""
        return 1 - self.limit

    @property
    def over(self) -> tuple[RouteQuality, ...]:
        """Routes whose share of wrong labels is surely above the limit."""
        return tuple(route for route in self.routes if route.verdict == "over")


@dataclass(frozen=True, slots=True)
class Kappa:
    """Agreement of a group over a named population: kappa with percent and prevalence."""

    group: str  # judges | people | people (final).
    population: str  # all | escalated | audited.
    measure: str  # "Fleiss' kappa", "Krippendorff's alpha".
    assessors: int
    pairs: int  # Pairs of the population with two or more grades by the group.
    kappa: Statistic
    percent: Statistic
    prevalence: float | None  # Share of relevant among the group's grades there.
    copies: tuple[tuple[str, ...], ...] = ()  # Groups of names of assessors that are the same model.


@dataclass(frozen=True, slots=True)
class PersonQuality:
    """Quality of one annotator. `alarms`: sentences that say why an admin should look; empty where all is usual."""

    membership: int
    name: str
    active: bool
    judged: int
    seconds: float | None  # Median time on the page of a judgment.
    majority: Statistic  # Share of judgments equal to the majority of the others on the same task.
    gold: Statistic  # Share correct by the reference grades, Clopper-Pearson.
    kappa: Statistic  # Cohen's kappa with the majority of the others.
    prevalence: float | None
    skips: int
    flags: int
    alarms: tuple[str, ...]
    intra: Statistic = NOT_REPEATED  # Share of repeated pairs answered as the first time, Clopper-Pearson.
    fast: int = 0  # Judgments that took far less time than is usual in the collection.
    slow: int = 0  # Judgments that took far more.
    dawid_skene: float | None = None  # Estimated share of correct grades (Dawid and Skene); None: not estimated.
    checks: int = 0  # Attention checks answered.
    missed: int = 0  # Of those, checks answered wrongly.
    paused: bool = False

    @property
    def passed(self) -> int:
        """Number of attention checks answered correctly."""
        return self.checks - self.missed


@dataclass(frozen=True, slots=True)
class MonthQuality:
    """Quality of one annotator in one month ("2026-11"), as in PersonQuality."""

    membership: int
    month: str
    gold: Statistic
    majority: Statistic


@dataclass(frozen=True, slots=True)
class Point:
    """Agreement of a group in one week or day. `start` is its first day, ISO."""

    group: str  # judges | people.
    start: str
    pairs: int
    kappa: Statistic
    percent: Statistic


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs so far and to come, in USD; None: unknown. Those of people need the hourly rate."""

    machine: float | None
    calls_without_price: int
    machine_forecast: float | None  # For the pairs that still wait for judges, at this campaign's cost per pair so far.
    people_hours: float
    people: float | None
    waiting: int  # Judgments that people still owe.
    hours_forecast: float | None
    people_forecast: float | None
    hourly_rate: float | None
    median_seconds: float | None
    own: Mapping[str, float]  # Counters of people's work on this campaign alone.

    @property
    def total(self) -> float | None:
        """Cost of machine and people so far; None where one of the two is unknown."""
        return None if self.machine is None or self.people is None else self.machine + self.people

    @property
    def forecast(self) -> float | None:
        """Expected cost of the remaining work of machine and people; None where one of the two is unknown."""
        if self.machine_forecast is None or self.people_forecast is None:
            return None
        return self.machine_forecast + self.people_forecast


def missing_statistic(reason: str) -> Statistic:
    """Return a statistic without a value, and with the reason why it could not be measured."""
    return Statistic(None, None, None, 0, reason)
