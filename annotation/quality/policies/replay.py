"""Stored answers under one policy: what it labels, how right that is, what it costs. Pure.

Labels are measured against gold, or against people: then escalated pairs weigh 1 and audited ones
the inverse of their probability, because pairs that people were asked about are not a fair sample.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from statistics import fmean, median
from typing import Literal

from django.utils.translation import gettext as _

from annotation.quality.policies.measures import NOT_MEASURED, Classwise, Confusion
from annotation.quality.policies.rules import HUMAN, PolicyPanel, Rule, beside_slots, needed_slots, policy_outcome
from annotation.quality.policies.stored import AnswerGroup, CallTotals, Gathered, ReferenceLabels
from charts.translation import gettext_noop
from judges.domain.routing import VOTES_OF_HUMAN, RoutingOutcome, RoutingState
from judges.domain.stance_flip_guard import relies_on_stance_flip
from judges.records import Slot, Turn

Reference = Literal["gold", "people", "none"]
LABELS_NONE = "labels no pairs itself"
VOTE_NOT_STORED = gettext_noop("not available: a required vote is missing for %(missing)s of %(pairs)s pairs")
# By whether a policy needs turns, and votes of the whole panel.
NOT_STORED = {
    (True, True): gettext_noop("not available: a required turn or vote is missing for %(missing)s of %(pairs)s pairs"),
    (True, False): gettext_noop("not available: a required turn is missing for %(missing)s of %(pairs)s pairs"),
}
# Who settles what a policy escalates; `gold`: as if people always found the reference, the most that they can give.
PEOPLE, ADJUDICATOR, AS_GOLD = "people", "adjudicator", "gold"
SETTLERS: dict[Reference, tuple[str, ...]] = {
    "gold": (PEOPLE, ADJUDICATOR, AS_GOLD),
    "people": (PEOPLE, ADJUDICATOR),
    "none": (),
}


@dataclass(frozen=True, slots=True)
class Replayed:
    """A policy replayed over a campaign's pairs. Where `reason` is set, nothing else is known."""

    rule: Rule
    reason: str = ""  # Why it is not available.
    pairs: int = 0
    labelled: int = 0
    escalated: int = 0
    # Pairs that would have got neither a label nor a person: a single judge without a verdict.
    failed: int = 0
    collapsed: int = 0  # Agreements that rest on an agent that changed sides without evidence.
    # On the pairs that the policy labels itself.
    own: Classwise = field(default_factory=lambda: Classwise.missing(NOT_MEASURED))
    # Over all pairs, once people, an adjudicating judge, or the reference in people's place settled the rest.
    after: Mapping[str, Classwise] = field(default_factory=dict)
    spent: CallTotals = field(default_factory=CallTotals)
    # More, where a judge settles what is escalated; None where that is not stored.
    adjudication: CallTotals | None = None
    judgments: int = 0  # That people would give.
    latency: dict[str, float] | None = None  # As `measure_latency` gives it.

    @property
    def escalation(self) -> float:
        """Share of pairs that people get."""
        return self.escalated / self.pairs if self.pairs else 0.0


def replay_policy(
    rule: Rule, panel: PolicyPanel, found: Gathered, *, reference: Reference = "gold", overlap: int = 1
) -> Replayed:
    """Replay every pair under a policy but LARA. `overlap`: people on an escalated pair."""
    outcomes = [(group, policy_outcome(rule, panel, group)) for group in found.groups]
    # It is not replayed on the rest alone: the pairs with all answers are not a random part.
    if missing := sum(group.pairs for group, one in outcomes if one is None):
        reason = _(NOT_STORED.get((rule.debates, rule.votes), VOTE_NOT_STORED))
        return Replayed(rule, reason % {"missing": f"{missing:,}", "pairs": f"{found.pairs:,}"}, pairs=found.pairs)
    known = [(group, one) for group, one in outcomes if one is not None]
    escalated = _count_pairs(known, RoutingState.ESCALATED)
    needed = {id(group): needed_slots(rule, panel, group) for group in found.groups}
    return Replayed(
        rule,
        pairs=found.pairs,
        labelled=_count_pairs(known, RoutingState.LABELLED),
        escalated=escalated,
        failed=_count_pairs(known, RoutingState.FAILED),
        collapsed=sum(
            group.pairs
            for group, one in known
            if one.agreed_in_round is not None and relies_on_stance_flip(group.turns, one.agreed_in_round)
        ),
        own=_measure_own_labels(known, reference),
        # Against people, what people settled is right by definition. Failed pairs have no label and stand outside.
        after={settler: _measure_resolved(settler, rule, known, reference) for settler in SETTLERS[reference]},
        spent=_sum_calls(rule, needed, found.groups),
        adjudication=_adjudication_calls(rule, known),
        judgments=escalated * (max(VOTES_OF_HUMAN, overlap) if rule.policy == HUMAN else overlap),
        latency=None if rule.policy == HUMAN else measure_latency(rule, needed, found),
    )


Known = list[tuple[AnswerGroup, RoutingOutcome]]


def _count_pairs(known: Known, state: RoutingState) -> int:
    return sum(group.pairs for group, one in known if one.state is state)


def reference_label(truth: ReferenceLabels, reference: Reference) -> tuple[int, float] | None:
    """The true class and the pair's weight, by what is measured against; None if unknown."""
    if reference == "gold" and truth.gold is not None:
        return truth.gold, 1.0
    if reference == "people" and truth.people is not None and truth.weight > 0:
        return truth.people, truth.weight
    return None


def _measure_own_labels(known: Known, reference: Reference) -> Classwise:
    """Measure recalls on the pairs that the policy labels itself."""
    if reference == "none":
        return Classwise.missing(NOT_MEASURED)
    if not _count_pairs(known, RoutingState.LABELLED):
        return Classwise.missing(LABELS_NONE)
    table = Confusion()
    for group, one in known:
        if one.label is not None:
            _add_group(table, group, one.label, reference)
    return table.measured()


def _add_group(table: Confusion, group: AnswerGroup, label: int, reference: Reference) -> None:
    for truth, pairs in group.truths.items():
        if at := reference_label(truth, reference):
            table.add(at[0], label, weight=at[1], pairs=pairs)


def _measure_resolved(settler: str, rule: Rule, known: Known, reference: Reference) -> Classwise:
    """Measure recalls over all pairs once the escalated ones are settled by `settler`."""
    table, wanted, lacking = Confusion(), 0, 0
    for group, one in known:
        said = group.adjudged.get(rule.rounds)
        adjudged = said.verdict if isinstance(said, Turn) else None
        if one.label is not None:
            _add_group(table, group, one.label, reference)
        elif one.state is RoutingState.ESCALATED:
            for truth, pairs in group.truths.items():
                if not (at := reference_label(truth, reference)):
                    continue
                wanted += pairs
                answer = {PEOPLE: truth.people, AS_GOLD: truth.gold, ADJUDICATOR: adjudged}[settler]
                if answer is None:
                    lacking += pairs
                else:
                    table.add(at[0], answer, weight=at[1], pairs=pairs)
    # One unanswered pair leaves the recall unknown, since those left open are the hard ones.
    if lacking:
        words = (
            _("not available: people answered %(answered)s of %(wanted)s escalated pairs")
            if settler == PEOPLE
            else _("not available: an adjudicating judge answered %(answered)s of %(wanted)s escalated pairs")
        )
        return Classwise.missing(words % {"answered": f"{wanted - lacking:,}", "wanted": f"{wanted:,}"})
    return table.measured()


def _adjudication_calls(rule: Rule, known: Known) -> CallTotals | None:
    """Sum the adjudicating judge's calls on escalated pairs; None where one is not stored."""
    total = CallTotals()
    for group, one in known:
        if one.state is RoutingState.ESCALATED:
            call = group.spent.get(("adjudicate", rule.rounds, 0))
            if call is None or not isinstance(group.adjudged.get(rule.rounds), Turn):
                return None
            total += call
        # Windows that did not decide had their own.
        total += group.beside.get(("adjudicate", rule.rounds, 0), CallTotals())
    return total


# By the id() of a group: each round's turns, and the votes, that a policy would ask for.
Needed = Mapping[int, tuple[list[list[Slot]], list[Slot]]]


def _sum_calls(rule: Rule, needed: Needed, groups: Iterable[AnswerGroup]) -> CallTotals:
    total = CallTotals()
    for group in groups:
        rounds, votes = needed[id(group)]
        total = sum((group.spent.get(slot, CallTotals()) for slot in chain(*rounds, votes)), total)
        rounds, votes = beside_slots(rule, group.beside)
        total = sum((group.beside[slot] for slot in chain(*rounds, votes)), total)
    return total


def measure_latency(rule: Rule, needed: Needed, found: Gathered) -> dict[str, float] | None:
    """Return medians over a spread of pairs, in milliseconds: calls one after the other (`summed`),
    and side by side where they need not wait for each other (`wall`); `mean_summed` and
    `mean_wall`: the means of the same (DREAM table 11). None where there is no pair.
    """
    if not found.samples:
        return None
    summed, wall = [], []
    for group, pair in found.samples:
        # Windows of a document are judged side by side: the pair waits for the slowest.
        windows = [_pair_latency(*needed[id(group)], pair.spent)]
        windows += [_pair_latency(*beside_slots(rule, spent), spent) for spent in pair.beside.values()]
        summed.append(sum(one for one, _ in windows))
        wall.append(max(one for _, one in windows))
    return {"summed": median(summed), "wall": median(wall), "mean_summed": fmean(summed), "mean_wall": fmean(wall)}


def _pair_latency(rounds: list[list[Slot]], votes: list[Slot], spent: Mapping[Slot, CallTotals]) -> tuple[float, float]:
    def of(slot: Slot) -> int:
        return spent[slot].milliseconds if slot in spent else 0

    # A round waits for its slowest turn; all votes are asked at the same time, beside the debate.
    debate = sum(max(map(of, turns)) for turns in rounds)
    summed = sum(map(of, chain(*rounds, votes)))
    return float(summed), float(max(debate, max(map(of, votes), default=0)))
