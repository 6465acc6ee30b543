"""What is known of judges that compared documents: how often the order decided, and their agreement with people."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from annotation.agreement.measures import Statistic
from annotation.models.comparisons import ComparisonSet
from annotation.models.judged_comparisons import ComparisonJudging, JudgedComparison
from annotation.work.comparing.by_judges.orders import (
    OrderAnswers,
    agreement_with_majority,
    flip_rate,
    majority_outcome,
)
from annotation.work.comparing.counting import ComparisonOutcome
from annotation.work.comparing.selectors import outcomes_of
from judges.model_jobs.jobs import cost_of
from judges.models import JudgeCall, JudgeVersion
from judges.panels.offline_panel import OFFLINE


@dataclass(frozen=True, slots=True)
class ComparingJudge:
    """A judge's comparisons in a set. `unanswered`: how many have no preference, by the reason."""

    judge: str
    is_offline: bool
    answered: int
    flips: Statistic
    agreement: Statistic
    unanswered: Mapping[str, int]


def comparing_judges(
    comparison_set: ComparisonSet, outcomes: Iterable[ComparisonOutcome] | None = None
) -> list[ComparingJudge]:
    """Return the judges that compared documents of a set, by name. `outcomes`: of the set, if they were read."""
    votes: dict[int, list[str]] = defaultdict(list)
    for row in outcomes_of(comparison_set) if outcomes is None else outcomes:
        if row.kind == "person":
            votes[row.comparison].append(row.outcome)
    majorities = {key: outcome for key, answers in votes.items() if (outcome := majority_outcome(answers))}
    answers_of: dict[str, dict[int, OrderAnswers]] = defaultdict(dict)
    problems_of: dict[str, Counter[str]] = defaultdict(Counter)
    rows = JudgedComparison.objects.filter(comparison__set=comparison_set).order_by("assessor__name", "comparison")
    fields = "assessor__name", "comparison", "forward", "backward", "problem"
    for judge, key, forward, backward, problem in rows.values_list(*fields):
        if problem:
            problems_of[judge][str(JudgeCall.Outcome(problem.partition(":")[0]).label)] += 1
        else:
            answers_of[judge][key] = OrderAnswers(forward, backward)
    names, judges = sorted(answers_of.keys() | problems_of.keys()), []
    offline = {str(row) for row in JudgeVersion.objects.filter(provider=OFFLINE)} if names else set()
    for judge in names:
        orders = answers_of[judge]
        judges.append(
            ComparingJudge(
                judge=judge,
                is_offline=judge in offline,
                answered=len(orders),
                flips=flip_rate(orders.values()),
                agreement=agreement_with_majority({key: pair.outcome for key, pair in orders.items()}, majorities),
                unanswered=dict(problems_of[judge].most_common()),
            )
        )
    return judges


def describe_judging(judging: ComparisonJudging) -> dict[str, Any]:
    """Return a job's counts so far, its judges' figures and its cost, as JSON."""
    judges = [row for row in comparing_judges(judging.set) if row.judge in judging.options["versions"]]
    return {
        "collection": judging.collection.name,
        "set": judging.set.number,
        "judging": judging.number,
        "state": judging.state,
        "done": judging.done,
        "total": judging.total,
        "error": judging.error,
        "judges": [
            {
                "judge": row.judge,
                "answered": row.answered,
                "flips": describe_statistic(row.flips),
                "agreement": describe_statistic(row.agreement),
                "unanswered": row.unanswered,
            }
            for row in judges
        ],
        **cost_of(judging),
    }


def describe_statistic(statistic: Statistic) -> dict[str, Any]:
    """Return a share with its interval, as JSON."""
    return {name: getattr(statistic, name) for name in ("value", "low", "high", "n")}
