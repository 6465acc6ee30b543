"""LARA replayed on stored votes, with the reference in people's place (SPEC S3). Pure.

Which pairs it hands to people hangs on what they said of the ones before, so people must be able to answer whichever it
asks: it is replayed over the pairs with a reference grade, and not available against people alone.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from annotation.policies import lara
from annotation.policies.measures import Classwise, Confusion
from annotation.policies.replay import AS_GOLD, Reference, Replayed, latency
from annotation.policies.rules import LARA, Panel, Rule
from annotation.policies.stored import Belief, Gathered, Spent

PRESETS = (0.035, 0.125, 0.25, 0.5)
"""Shares of pairs that people get (DREAM 3.2)."""
NO_JUDGE = "not available: no judge of this campaign gave log-probabilities"
NO_GOLD = "not available: it needs a reference in people's place, whichever pairs it hands them"


def replay_lara(panel: Panel, found: Gathered, *, reference: Reference, overlap: int = 1) -> list[Replayed]:
    """LARA at each preset, by every judge that gave P(yes) and P(no)."""
    if not found.beliefs:
        return [Replayed(Rule(LARA, share=share, name=f"lara {share:.1%}"), NO_JUDGE) for share in PRESETS]
    rules = [
        Rule(LARA, place=place, share=share, name=f"lara {share:.1%}: {panel.judges[place]}")
        for place in sorted(found.beliefs)
        for share in PRESETS
    ]
    if reference != "gold":
        return [Replayed(rule, NO_GOLD) for rule in rules]
    wanted = found.measured("gold")
    return [_replayed(rule, panel, found, wanted, overlap) for rule in rules]


def _replayed(rule: Rule, panel: Panel, found: Gathered, wanted: int, overlap: int) -> Replayed:
    beliefs = [belief for belief in found.beliefs[rule.place] if belief.gold is not None]
    if len(beliefs) < wanted:
        given = f"{len(beliefs):,} of {wanted:,} pairs with a reference grade"
        return Replayed(rule, f"not available: {panel.judges[rule.place]} gave log-probabilities for {given}")
    gold = np.array([belief.gold for belief in beliefs], dtype=np.int64)
    result = lara.run(matrix(beliefs), lambda places: gold[places], rule.share)
    asked = len(result.asked)
    return Replayed(
        rule,
        pairs=len(beliefs),
        labelled=len(beliefs) - asked,
        escalated=asked,
        own=_measured(gold[result.own], result.label[result.own]),
        after={AS_GOLD: _measured(gold, result.label)},
        spent=sum((belief.spent for belief in beliefs), Spent()),
        judgments=asked * overlap,
        latency=latency(rule, panel, found.samples),
    )


def matrix(beliefs: Sequence[Belief]) -> NDArray[np.float64]:
    """Pairs x (P(yes), P(no)), in the order of the pairs."""
    return np.array([(belief.yes, belief.no) for belief in beliefs], dtype=np.float64)


def _measured(gold: NDArray[np.int64], labels: NDArray[np.int64]) -> Classwise:
    table = Confusion()
    for truth in (0, 1):
        for label in (0, 1):
            table.add(truth, label, pairs=int(((gold == truth) & (labels == label)).sum()))
    return table.measured()
