"""Records of label quality, frozen. Every figure names its population."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import gettext_noop

from annotation.agreement.measures import Statistic

NOT_REPEATED = Statistic(None, None, None, 0, gettext_noop("no pair was repeated"))


@dataclass(frozen=True, slots=True)
class RouteQuality:
    """A stratum of the audit: pairs that a policy labelled in the same way."""

    key: str  # The stratum's key (judges.domain.audits).
    words: str  # "agreed in round 1, votes 5 to 0, relevant".
    label: int  # 0 or 1: what the policy said.
    population: int  # Pairs that the campaign labelled by this route.
    drawn: int  # Of them, pairs drawn for the audit.
    settled: int  # Of those, pairs that people settled.
    right: int  # Of those, pairs where people found what the policy said.
    accuracy: Statistic  # Exact (Clopper-Pearson) 95% interval; `reason` where nobody has settled a pair.
    looks: Statistic  # The same value with the bound that allows for looking again and again (a confidence sequence).
    verdict: str  # enough (surely within the limit) | over (surely beyond it) | open.
    stopped: bool = False  # The campaign's further pairs by this route go to people (judges.campaigns.route_breakers).
    # Half the interval's width once all drawn pairs are settled; None where none is drawn.
    half: float | None = None
    enough: int = 0  # Drawn pairs with which it is 5 points or less; `most` where even those are too few.
    most: int = 0  # Drawn pairs and those that can be drawn: people met none of them for another reason.
    reached: bool = True  # `enough` gives 5 points or less.
    campaign: int = 0  # Whose route it is.

    @property
    def more(self) -> int:
        """Pairs to draw for that."""
        return max(0, self.enough - self.drawn)


@dataclass(frozen=True, slots=True)
class Audits:
    """The audit of automatic labels. `limit`: the share of wrong ones that raises an alarm."""

    campaign: int | None  # None: of several campaigns, whose labels stand.
    policy: str  # Empty: of several campaigns.
    overall: Statistic  # Accuracy over all labelled pairs of audited routes, weighted by the routes' sizes.
    covered: float  # Share of the labelled pairs whose route has at least one settled audit.
    routes: tuple[RouteQuality, ...]
    limit: float
    drawn: int
    settled: int
    conflicts: int  # Of the drawn: two people differ, an adjudicator decides.
    population: str  # "1,234 pairs that debate+ensemble labelled in campaign 7".
    half: float | None = None  # As of a route, for all together.
    enough: int = 0
    reached: bool = True

    @property
    def more(self) -> int:
        """Pairs to draw for an interval of 5 points to each side."""
        return max(0, self.enough - self.drawn)

    @property
    def open(self) -> int:
        """Drawn pairs that wait for annotators."""
        return max(0, self.drawn - self.settled - self.conflicts)

    @property
    def least(self) -> float:
        """The share of right labels that is wanted."""
        return 1 - self.limit

    @property
    def over(self) -> tuple[RouteQuality, ...]:
        """Routes that are surely worse than the limit."""
        return tuple(route for route in self.routes if route.verdict == "over")


@dataclass(frozen=True, slots=True)
class Kappa:
    """Agreement of a group over a named population: kappa with percent and prevalence."""

    group: str  # judges | people | people (final).
    population: str  # all | escalated | audited.
    measure: str  # "Fleiss' kappa", "Krippendorff's alpha".
    assessors: int
    pairs: int  # Pairs of the population with two grades and more by the group.
    kappa: Statistic
    percent: Statistic
    prevalence: float | None  # Share of relevant among the group's grades there.
    # Names of the assessors that are one model, by group: agreement with itself counts once.
    copies: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class PersonQuality:
    """Quality of one annotator. `alarms`: why an admin should look, in words; empty where nothing is unusual."""

    membership: int
    name: str
    active: bool
    judged: int
    seconds: float | None  # Median time on the page of a judgment.
    majority: Statistic  # Share of judgments equal to the majority of the others on the same item.
    gold: Statistic  # Share right against reference grades, Clopper-Pearson.
    kappa: Statistic  # Cohen's kappa with the majority of the others.
    prevalence: float | None
    skips: int
    flags: int
    alarms: tuple[str, ...]
    intra: Statistic = NOT_REPEATED  # Share of repeats answered as the first time, Clopper-Pearson.
    fast: int = 0  # Judgments that took far less time than is usual here, ...
    slow: int = 0  # ... and far more.
    # Estimated share of right grades (Dawid and Skene), beside others; None: not estimated.
    dawid_skene: float | None = None
    checks: int = 0  # Attention checks answered, ...
    missed: int = 0  # ... and of them those answered wrongly.
    paused: bool = False

    @property
    def passed(self) -> int:
        """Attention checks answered rightly."""
        return self.checks - self.missed


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
    """Costs so far and expected, in USD; None: unknown. People's need the hourly rate."""

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
        """Machine and people together, so far; None where one of them is unknown."""
        return None if self.machine is None or self.people is None else self.machine + self.people

    @property
    def forecast(self) -> float | None:
        """Expected cost of the work left, machine and people; None where one is unknown."""
        if self.machine_forecast is None or self.people_forecast is None:
            return None
        return self.machine_forecast + self.people_forecast


def missing_statistic(reason: str) -> Statistic:
    """Return a figure that could not be measured, with the reason."""
    return Statistic(None, None, None, 0, reason)
