"""Routing: a pair's turns and votes lead to a label, to people, or to failure. The decision table, in its order.

0. all three judges of a filter say no             labelled 0, and nothing else is asked
1. a call that the policy needs fails for good     failed (or escalated with reason `error`, as an option)
2. a turn was refused                              escalated, `refused`
3. a turn was unparsed, out of range or truncated  escalated, `unparsed`
4. no agreement in the last round                  escalated, `disagreement`; an adjudicating judge's verdict
                                                   takes the place of an agreement
5. too few equal votes among those cast            escalated, `split`
6. the panel's majority contradicts the debate     escalated, `conflict`
7. otherwise                                       labelled

A refused or unparsed vote is a missing vote. Under `single` the one vote must be a verdict, else the pair failed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from judges.domain import debate, ensemble
from judges.domain.verdicts import NoVerdict
from judges.records import DebateAgent, Turn

__all__ = ["EscalationReason", "NoVerdict", "NotOver", "RoutingOutcome", "RoutingPolicy", "RoutingState", "decide"]


class RoutingPolicy(StrEnum):
    """Policy by which a campaign turns evidence into labels."""

    DEBATE = "debate"
    ENSEMBLE = "ensemble"
    DEBATE_ENSEMBLE = "debate+ensemble"
    SINGLE = "single"
    HUMAN = "human"  # No judge is asked: people judge every pair (DREAM 3.2).

    @property
    def debates(self) -> bool:
        """True if a pair's outcome under this policy needs a debate."""
        return self in (RoutingPolicy.DEBATE, RoutingPolicy.DEBATE_ENSEMBLE)

    @property
    def votes(self) -> bool:
        """True if a pair's outcome under this policy needs votes."""
        return self in (RoutingPolicy.ENSEMBLE, RoutingPolicy.DEBATE_ENSEMBLE, RoutingPolicy.SINGLE)


class RoutingState(StrEnum):
    """State of a pair after its decision."""

    LABELLED = "labelled"
    ESCALATED = "escalated"
    FAILED = "failed"


class EscalationReason(StrEnum):
    """Reason why a pair was escalated."""

    NONE = ""
    DISAGREEMENT = "disagreement"
    CONFLICT = "conflict"
    SPLIT = "split"
    UNPARSED = "unparsed"
    REFUSED = "refused"
    ERROR = "error"
    STOPPED = "stopped"  # Labels of its route were wrong too often (judges.engine.route_breakers).
    POLICY = "policy"  # The policy asks people about every pair.
    LONG = "long"  # Its document is longer than judges read, and the collection leaves such documents to people.
    UNCERTAIN = "uncertain"  # LARA's calibrated probability is among those nearest to one half.


class NotOver(ValueError):
    """The evidence is not complete: some turns or votes are still to be asked for."""


@dataclass(frozen=True, slots=True)
class RoutingOutcome:
    """The decision on a pair. `label`: 0 or 1 where labelled, with an empty `reason`."""

    state: RoutingState
    label: int | None
    reason: EscalationReason
    # Round in which the debate agreed, whatever the outcome; None without an agreement or a debate.
    agreed_in_round: int | None
    uncertainty: float  # 0 (all evidence points one way) to 1.
    # Where the label comes from, if not from the policy itself: "filter" or "adjudicator"; else "".
    route: str = ""


# Origin of a label by its route, if the route is not the policy's own.
ORIGINS = {"filter": "filter", "adjudicator": "llm-adjudicator"}

# People who judge each pair under `human`, unless a collection asks for more.
VOTES_OF_HUMAN = 3

Votes = Mapping[int, Turn | NoVerdict]


def decide(
    policy: str,
    rounds: int,
    majority: int,
    turns: debate.Turns,
    votes: Votes,
    *,
    failed_to_people: bool = False,
    agents: Sequence[DebateAgent] = debate.PAIR,
    adjudicated: Turn | NoVerdict | None = None,
    filtered: Sequence[Turn | NoVerdict] = (),
    collapsed: bool = False,
) -> RoutingOutcome:
    """Return the outcome of complete evidence, of which only what the policy needs counts.

    `votes`: by place on the panel. `adjudicated`: a judge's verdict on a disagreement. `filtered`: votes of the filter.
    `collapsed`: the debate's agreement does not count (`guard` in judges.domain.protocol).

    Under `ensemble`, a debate that is held only for people to read changes nothing. Raises NotOver if the debate is not
    finished or there are no votes yet, ValueError for an unknown policy.
    """
    if is_filtered_out(filtered):
        return RoutingOutcome(RoutingState.LABELLED, 0, EscalationReason.NONE, None, 0.0, "filter")
    rule = RoutingPolicy(policy)
    if rule is RoutingPolicy.HUMAN:
        return RoutingOutcome(RoutingState.ESCALATED, None, EscalationReason.POLICY, None, 1.0)
    counted_turns = turns if rule.debates else {}
    counted_votes = votes if rule.votes else {}
    move = debate.next_move(counted_turns, rounds, agents) if rule.debates else None
    if collapsed and isinstance(move, debate.Agreed):
        move = debate.Disagreed()
    lost_turns = _failure_outcomes(counted_turns.values())
    lost_votes = _failure_outcomes(counted_votes.values())
    unfinished = isinstance(move, debate.TurnRequest) or (rule.votes and not counted_votes)
    if unfinished and "error" not in lost_turns | lost_votes:
        raise NotOver("Some turns or votes are still to be asked for.")
    verdicts = [None if isinstance(vote, NoVerdict) else vote.verdict for vote in counted_votes.values()]
    tally = ensemble.count_votes(verdicts)
    agreed_in_round = move.round if isinstance(move, debate.Agreed) else None
    uncertainty = _evidence_uncertainty(rule, rounds, majority, move, tally)
    route = ""
    if isinstance(move, debate.Disagreed) and isinstance(adjudicated, Turn):
        move, route = debate.Agreed(rounds, adjudicated.verdict), "adjudicator"
    label, reason = _label_or_reason(rule, move, tally, majority, lost_turns, lost_votes)
    if label is not None:
        return RoutingOutcome(RoutingState.LABELLED, label, EscalationReason.NONE, agreed_in_round, uncertainty, route)
    is_failure = reason is EscalationReason.ERROR or rule is RoutingPolicy.SINGLE
    if is_failure and not failed_to_people:
        return RoutingOutcome(RoutingState.FAILED, None, reason, agreed_in_round, uncertainty)
    reason = EscalationReason.ERROR if is_failure else reason
    return RoutingOutcome(RoutingState.ESCALATED, None, reason, agreed_in_round, uncertainty)


def escalate_outcome(outcome: RoutingOutcome) -> RoutingOutcome:
    """Return the outcome of a labelled pair whose route was stopped: escalated, and otherwise unchanged."""
    return replace(outcome, state=RoutingState.ESCALATED, label=None, reason=EscalationReason.STOPPED, route="")


def deciding_window(outcomes: Sequence[RoutingOutcome]) -> int:
    """Return the position of the window whose outcome is that of the whole document.

    The document is relevant if any window is, and the surest of those decides. Otherwise it failed if any window
    failed, is escalated if any is, and else is not relevant; the least sure window of that state decides. Of equal
    windows the first decides.
    """
    states = (RoutingState.FAILED, RoutingState.ESCALATED, RoutingState.LABELLED)

    def rank(position: int) -> tuple[int, float]:
        outcome = outcomes[position]
        if outcome.label == 1:
            return 0, outcome.uncertainty
        return 1 + states.index(outcome.state), -outcome.uncertainty

    return min(range(len(outcomes)), key=rank)


def is_filtered_out(filtered: Sequence[Turn | NoVerdict]) -> bool:
    """Return whether the filter drops the pair. A failed call keeps it."""
    return bool(filtered) and all(isinstance(vote, Turn) and vote.verdict == 0 for vote in filtered)


def _label_or_reason(
    rule: RoutingPolicy,
    move: debate.Move | None,
    tally: ensemble.Count,
    majority: int,
    lost_turns: frozenset[str],
    lost_votes: frozenset[str],
) -> tuple[int | None, EscalationReason]:
    """Return the label, or the first reason in the table that applies."""
    if "error" in lost_turns | lost_votes:
        return None, EscalationReason.ERROR
    if rule is RoutingPolicy.SINGLE:
        failure_reason = EscalationReason.REFUSED if "refused" in lost_votes else EscalationReason.UNPARSED
        verdict = None if tally.missing else tally.label(1)
        return (None, failure_reason) if verdict is None else (verdict, EscalationReason.NONE)
    if "refused" in lost_turns:
        return None, EscalationReason.REFUSED
    if lost_turns:
        return None, EscalationReason.UNPARSED
    if isinstance(move, debate.Disagreed):
        return None, EscalationReason.DISAGREEMENT
    debate_label = move.label if isinstance(move, debate.Agreed) else None
    if rule is RoutingPolicy.DEBATE:
        return debate_label, EscalationReason.NONE
    panel_label = tally.label(majority)
    if panel_label is None:
        return None, EscalationReason.SPLIT
    if debate_label is not None and debate_label != panel_label:
        return None, EscalationReason.CONFLICT
    return panel_label, EscalationReason.NONE


def _failure_outcomes(calls: Iterable[Turn | NoVerdict]) -> frozenset[str]:
    return frozenset(call.outcome for call in calls if isinstance(call, NoVerdict))


def _evidence_uncertainty(
    rule: RoutingPolicy, rounds: int, majority: int, move: debate.Move | None, tally: ensemble.Count
) -> float:
    """Return how far the evidence is from pointing one way, 0 to 1: the mean over the debate and the panel."""
    # The debate's uncertainty is 1 if it ends open, breaks off or contradicts the majority, else half the share of
    # rounds that it needed after the first. The panel's is one minus the margin between yes and no over all votes
    # asked for (5-0: 0, 4-1: 0.4, 3-2: 0.8; a missing vote counts for neither). More rounds, a narrower margin and
    # a missing vote can only raise the mean.
    uncertainties = []
    if rule.debates:
        if isinstance(move, debate.Agreed) and tally.label(majority) in (None, move.label):
            uncertainties.append(0.5 * (move.round - 1) / rounds)
        else:
            uncertainties.append(1.0)
    if rule.votes:
        uncertainties.append(1.0 - abs(tally.yes - tally.no) / tally.asked if tally.asked else 1.0)
    return sum(uncertainties) / len(uncertainties)
