"""The policies that are compared, and their outcomes on stored answers. Pure.

A policy that needs an answer that is not stored is "not available": nothing is extrapolated.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.quality.policies.stored import AnswerGroup
from judges.domain import debate, routing
from judges.domain.routing import RoutingOutcome
from judges.domain.stance_flip_guard import relies_on_stance_flip
from judges.domain.verdicts import NoVerdict
from judges.records import DebateAgent, Side, Slot, Turn

SIDES = [side.value for side in Side]
HUMAN, LARA = routing.RoutingPolicy.HUMAN.value, "lara"
ROUNDS = (1, 2, 3)  # Debates that are always compared (DREAM table 2).


@dataclass(frozen=True, slots=True)
class PolicyPanel:
    """A campaign's panel for a replay. `judges`: names of the voters, in panel order."""

    judges: tuple[str, ...] = ()
    majority: int = 3
    early_stop: bool = False
    rounds: int = 2
    agents: tuple[DebateAgent, ...] = debate.PAIR


@dataclass(frozen=True, slots=True)
class Rule:
    """A policy with all parameters of its outcome."""

    policy: str  # A routing.Policy, `human` or `lara`.
    rounds: int = 0
    majority: int = 0
    position: int = 0  # Position of the judge on the panel, under `single` and `lara`.
    share: float = 0.0  # Share of pairs that people judge, under `lara`.
    name: str = ""
    guard: bool = False  # Whether an agreement that rests on a change of sides without evidence is none.

    @property
    def debates(self) -> bool:
        """Whether the policy's outcome needs a debate."""
        return self.policy in (routing.RoutingPolicy.DEBATE, routing.RoutingPolicy.DEBATE_ENSEMBLE)

    @property
    def votes(self) -> bool:
        """Whether the policy's outcome needs the whole panel's votes."""
        return self.policy in (routing.RoutingPolicy.ENSEMBLE, routing.RoutingPolicy.DEBATE_ENSEMBLE)


def every_rule(panel: PolicyPanel, *, guard: bool = False) -> Iterator[Rule]:
    """Yield all policies that are possible with the panel, and debates in any case."""
    size = len(panel.judges)
    rounds = {
        r: ngettext("%(number)s round", "%(number)s rounds", r) % {"number": r} for r in sorted({*ROUNDS, panel.rounds})
    }
    margins = range(size // 2 + 1, size + 1) if size > 1 else ()
    for r, words in rounds.items():
        yield Rule("debate", r, name=_("debate, %(rounds)s") % {"rounds": words}, guard=guard)
    for m in margins:
        yield Rule("ensemble", majority=m, name=_("ensemble, %(m)s of %(size)s") % {"m": m, "size": size})
    for (r, words), m in product(rounds.items(), margins):
        name = _("debate + ensemble, %(rounds)s, %(m)s of %(size)s") % {"rounds": words, "m": m, "size": size}
        yield Rule("debate+ensemble", r, m, name=name, guard=guard)
    for position, judge in enumerate(panel.judges):
        yield Rule("single", majority=1, position=position, name=_("single: %(judge)s") % {"judge": judge})
    yield Rule(HUMAN, name=_("human"))


def policy_outcome(rule: Rule, panel: PolicyPanel, group: AnswerGroup) -> RoutingOutcome | None:
    """Return the policy's outcome on the group's answers; None where not all that it needs are stored.

    LARA is not among them: its outcome depends on all pairs together (annotation.quality.policies.lara).
    """
    turns, votes = played_turns(rule, panel, group), cast_votes(rule, panel, group)
    if turns is None or votes is None:
        return None
    move = debate.next_move(turns, rule.rounds, panel.agents) if rule.debates else None
    collapsed = rule.guard and isinstance(move, debate.Agreed) and relies_on_stance_flip(turns, move.round)
    return routing.decide(
        rule.policy, max(rule.rounds, 1), rule.majority, turns, votes, agents=panel.agents, collapsed=collapsed
    )


def played_turns(
    rule: Rule, panel: PolicyPanel, group: AnswerGroup
) -> dict[tuple[int, DebateAgent], Turn | NoVerdict] | None:
    """Return the turns of the rule's rounds; None where one of them is not stored."""
    if not rule.debates:
        return {}
    move = debate.next_move(group.turns, rule.rounds, panel.agents)
    if isinstance(move, debate.TurnRequest):
        return None
    # A longer debate is cut where this rule would have ended it.
    last = rule.rounds if isinstance(move, debate.Disagreed) else move.round
    return {(round, agent): turn for (round, agent), turn in group.turns.items() if round <= last}


def cast_votes(rule: Rule, panel: PolicyPanel, group: AnswerGroup) -> dict[int, Turn | NoVerdict] | None:
    """Return the votes that the policy needs, by position on the panel; None where one of them is not stored.

    Votes that an early stop left out are not needed if they cannot change this rule's outcome.
    """
    if rule.policy == routing.RoutingPolicy.SINGLE:
        return {0: group.votes[rule.position]} if rule.position in group.votes else None
    if not rule.votes:
        return {}
    missing = len(panel.judges) - len(group.votes)
    has_stopped = group.votes and panel.early_stop
    if missing and not (has_stopped and group.count_votes().is_decided(rule.majority, missing)):
        return None
    return dict(group.votes)


def needed_slots(rule: Rule, panel: PolicyPanel, group: AnswerGroup) -> tuple[list[list[Slot]], list[Slot]]:
    """Return the slots that the policy asks for: the turns of each round of a debate, and the votes."""
    turns = played_turns(rule, panel, group) or {}
    rounds = [
        [(agent.side.value, round, agent.couple) for turn_round, agent in turns if turn_round == round]
        for round in sorted({round for round, _ in turns})
    ]
    if rule.policy in (routing.RoutingPolicy.SINGLE, LARA):
        return rounds, [("vote", 0, rule.position)]
    return rounds, [("vote", 0, position) for position in group.votes] if rule.votes else []


def beside_slots(rule: Rule, stored: Iterable[Slot]) -> tuple[list[list[Slot]], list[Slot]]:
    """Return the slots of a window that did not decide, as `needed_slots` does, from its stored slots.

    Its debate may be longer than that of the deciding window, up to the rule's rounds.
    """
    turns = sorted(slot for slot in stored if slot[0] in SIDES and slot[1] <= rule.rounds) if rule.debates else []
    rounds = [[slot for slot in turns if slot[1] == round] for round in sorted({slot[1] for slot in turns})]
    votes = [slot for slot in stored if slot[0] == "vote"]
    if rule.policy in (routing.RoutingPolicy.SINGLE, LARA):
        return rounds, [slot for slot in votes if slot[2] == rule.position]
    return rounds, votes if rule.votes else []
