"""Replay of a policy on stored answers: what it labels, how accurate that is, what it costs. Pure.

Labels are measured against gold or against people's labels. People's pairs are no random sample, so
escalated pairs weigh 1 and audited ones the inverse of their sampling probability.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from statistics import fmean, median
from typing import Final, Literal

from django.utils.translation import gettext as _

from annotation.quality.policies.measures import NOT_MEASURED, Classwise, Confusion
from annotation.quality.policies.rules import HUMAN, PolicyPanel, Rule, beside_slots, needed_slots, policy_outcome
from annotation.quality.policies.stored import AnswerGroup, CallTotals, CampaignAnswers, ReferenceLabels
from charts.translation import gettext_noop
from judges.domain.routing import VOTES_OF_HUMAN, RoutingOutcome, RoutingState
from judges.domain.stance_flip_guard import relies_on_stance_flip
from judges.records import Slot, Turn

# What labels are compared with: reference grades, answers of people, or nothing.
Reference = Literal["gold", "people", "none"]
REFERENCE_GRADES: Final = "gold"
NO_REFERENCE: Final = "none"
LABELS_NONE = "labels no pairs itself"
VOTE_NOT_STORED = gettext_noop("not available: a required vote is missing for %(missing)s of %(pairs)s pairs")
# Reasons by whether a policy needs turns, and votes of the whole panel.
NOT_STORED = {
    (True, True): gettext_noop("not available: a required turn or vote is missing for %(missing)s of %(pairs)s pairs"),
    (True, False): gettext_noop("not available: a required turn is missing for %(missing)s of %(pairs)s pairs"),
}
# Who resolves the escalated pairs; AS_GOLD: people who always give the reference label, the best possible case.
PEOPLE, ADJUDICATOR, AS_GOLD = "people", "adjudicator", "gold"
RESOLVERS: dict[Reference, tuple[str, ...]] = {
    "gold": (PEOPLE, ADJUDICATOR, AS_GOLD),
    "people": (PEOPLE, ADJUDICATOR),
    "none": (),
}


@dataclass(frozen=True, slots=True)
class PolicyReplay:
    """A policy replayed over a campaign's pairs. Where `reason` is set, the other fields are empty."""

    rule: Rule
    reason: str = ""  # Why the policy is not available.
    pairs: int = 0
    labelled: int = 0
    escalated: int = 0
    failed: int = 0  # Pairs with neither a label nor a task for people: a single judge gave no verdict.
    collapsed: int = 0  # Agreements that rest on an agent that changed sides without evidence.
    # Accuracy on the pairs that the policy labels itself.
    own: Classwise = field(default_factory=lambda: Classwise.missing(NOT_MEASURED))
    # Accuracy over all pairs, by who resolves the escalated ones.
    after: Mapping[str, Classwise] = field(default_factory=dict)
    spent: CallTotals = field(default_factory=CallTotals)
    adjudication: CallTotals | None = None  # Further calls of an adjudicating judge; None where they are not stored.
    judgments: int = 0  # Number of judgments that people would give.
    latency: dict[str, float] | None = None  # As `measure_latency` returns it.

    @property
    def escalation(self) -> float:
        """Share of pairs that are escalated to people."""
        return self.escalated / self.pairs if self.pairs else 0.0


def replay_policy(
    rule: Rule, panel: PolicyPanel, answers: CampaignAnswers, *, reference: Reference = "gold", overlap: int = 1
) -> PolicyReplay:
    """Replay every pair under a policy other than LARA. `overlap`: number of people who judge an escalated pair."""
    outcomes = [(group, policy_outcome(rule, panel, group)) for group in answers.groups]
    # Pairs with all answers are no random sample, so the policy is not replayed on them alone.
    if missing := sum(group.pairs for group, outcome in outcomes if outcome is None):
        reason = _(NOT_STORED.get((rule.debates, rule.votes), VOTE_NOT_STORED))
        return PolicyReplay(
            rule, reason % {"missing": f"{missing:,}", "pairs": f"{answers.pairs:,}"}, pairs=answers.pairs
        )
    complete_outcomes = [(group, outcome) for group, outcome in outcomes if outcome is not None]
    escalated = _count_pairs(complete_outcomes, RoutingState.ESCALATED)
    needed = {id(group): needed_slots(rule, panel, group) for group in answers.groups}
    # The calls of the deciding windows, and of the others.
    calls = CallTotals()
    for group in answers.groups:
        rounds, votes = needed[id(group)]
        calls = sum((group.spent.get(slot, CallTotals()) for slot in chain(*rounds, votes)), calls)
        rounds, votes = beside_slots(rule, group.beside)
        calls = sum((group.beside[slot] for slot in chain(*rounds, votes)), calls)
    return PolicyReplay(
        rule,
        pairs=answers.pairs,
        labelled=_count_pairs(complete_outcomes, RoutingState.LABELLED),
        escalated=escalated,
        failed=_count_pairs(complete_outcomes, RoutingState.FAILED),
        collapsed=sum(
            group.pairs
            for group, outcome in complete_outcomes
            if outcome.agreed_in_round is not None and relies_on_stance_flip(group.turns, outcome.agreed_in_round)
        ),
        own=_measure_own_labels(complete_outcomes, reference),
        # Against people, what people resolved is correct by definition. Failed pairs have no label and do not count.
        after={
            resolver: _measure_resolved(resolver, rule, complete_outcomes, reference)
            for resolver in RESOLVERS[reference]
        },
        spent=calls,
        adjudication=_adjudication_calls(rule, complete_outcomes),
        judgments=escalated * (max(VOTES_OF_HUMAN, overlap) if rule.policy == HUMAN else overlap),
        latency=None if rule.policy == HUMAN else measure_latency(rule, needed, answers),
    )


Outcomes = list[tuple[AnswerGroup, RoutingOutcome]]
# By the id() of a group: the turns of each round, and the votes, that a policy would ask for.
Needed = Mapping[int, tuple[list[list[Slot]], list[Slot]]]


def _count_pairs(outcomes: Outcomes, state: RoutingState) -> int:
    return sum(group.pairs for group, outcome in outcomes if outcome.state is state)


def reference_label(true_labels: ReferenceLabels, reference: Reference) -> tuple[int, float] | None:
    """Return the true class by this reference and the pair's weight; None where it is unknown."""
    if reference == "gold" and true_labels.gold is not None:
        return true_labels.gold, 1.0
    if reference == "people" and true_labels.people is not None and true_labels.weight > 0:
        return true_labels.people, true_labels.weight
    return None


def _measure_own_labels(outcomes: Outcomes, reference: Reference) -> Classwise:
    """Measure recalls on the pairs that the policy labels itself."""
    if reference == "none":
        return Classwise.missing(NOT_MEASURED)
    if not _count_pairs(outcomes, RoutingState.LABELLED):
        return Classwise.missing(LABELS_NONE)
    table = Confusion()
    for group, outcome in outcomes:
        if outcome.label is not None:
            _add_group(table, group, outcome.label, reference)
    return table.measured()


def _add_group(table: Confusion, group: AnswerGroup, label: int, reference: Reference) -> None:
    for true_labels, pairs in group.truths.items():
        if labelled := reference_label(true_labels, reference):
            true_class, weight = labelled
            table.add(true_class, label, weight=weight, pairs=pairs)


def _measure_resolved(resolver: str, rule: Rule, outcomes: Outcomes, reference: Reference) -> Classwise:
    """Measure recalls over all pairs once `resolver` has resolved the escalated ones."""
    table, escalated, unanswered = Confusion(), 0, 0
    for group, outcome in outcomes:
        adjudication = group.adjudged.get(rule.rounds)
        adjudged = adjudication.verdict if isinstance(adjudication, Turn) else None
        if outcome.label is not None:
            _add_group(table, group, outcome.label, reference)
        elif outcome.state is RoutingState.ESCALATED:
            for true_labels, pairs in group.truths.items():
                if not (labelled := reference_label(true_labels, reference)):
                    continue
                escalated += pairs
                answer = {PEOPLE: true_labels.people, AS_GOLD: true_labels.gold, ADJUDICATOR: adjudged}[resolver]
                if answer is None:
                    unanswered += pairs
                else:
                    true_class, weight = labelled
                    table.add(true_class, answer, weight=weight, pairs=pairs)
    # Unanswered pairs are the hard ones: without them the recall would be too high, so it is unknown.
    if unanswered:
        words = (
            _("not available: people answered %(answered)s of %(wanted)s escalated pairs")
            if resolver == PEOPLE
            else _("not available: an adjudicating judge answered %(answered)s of %(wanted)s escalated pairs")
        )
        return Classwise.missing(words % {"answered": f"{escalated - unanswered:,}", "wanted": f"{escalated:,}"})
    return table.measured()


def _adjudication_calls(rule: Rule, outcomes: Outcomes) -> CallTotals | None:
    """Sum the adjudicating judge's calls on escalated pairs; None where one is not stored."""
    total = CallTotals()
    for group, outcome in outcomes:
        if outcome.state is RoutingState.ESCALATED:
            call = group.spent.get(("adjudicate", rule.rounds, 0))
            if call is None or not isinstance(group.adjudged.get(rule.rounds), Turn):
                return None
            total += call
        # Windows that did not decide had adjudications of their own.
        total += group.beside.get(("adjudicate", rule.rounds, 0), CallTotals())
    return total


def measure_latency(rule: Rule, needed: Needed, answers: CampaignAnswers) -> dict[str, float] | None:
    """Return the latency of a pair in milliseconds, over a sample of pairs; None without pairs.

    `summed`: the median with calls in sequence; `wall`: with calls in parallel where none waits for
    another; `mean_summed` and `mean_wall`: the means (DREAM table 11).
    """
    if not answers.samples:
        return None
    summed, wall = [], []
    for group, pair in answers.samples:
        # Windows of a document are judged in parallel: the pair waits for the slowest.
        windows = [_pair_latency(*needed[id(group)], pair.spent)]
        windows += [_pair_latency(*beside_slots(rule, totals), totals) for totals in pair.beside.values()]
        summed.append(sum(window_summed for window_summed, _ in windows))
        wall.append(max(window_wall for _, window_wall in windows))
    return {"summed": median(summed), "wall": median(wall), "mean_summed": fmean(summed), "mean_wall": fmean(wall)}


def _pair_latency(
    rounds: list[list[Slot]], votes: list[Slot], totals: Mapping[Slot, CallTotals]
) -> tuple[float, float]:
    def latency(slot: Slot) -> int:
        return totals[slot].milliseconds if slot in totals else 0

    # A round waits for its slowest turn; all votes are cast in parallel with the debate.
    debate = sum(max(map(latency, turns)) for turns in rounds)
    summed = sum(map(latency, chain(*rounds, votes)))
    return float(summed), float(max(debate, max(map(latency, votes), default=0)))
