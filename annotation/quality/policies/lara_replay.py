"""LARA replayed on stored votes, with the reference in people's place. Pure.

Which pairs it hands to people hangs on what they said of the ones before, so people must be able to
answer whichever it asks: it is replayed over the pairs with a reference grade, and not available
against people alone.
"""

import numpy as np
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from annotation.quality.policies import lara
from annotation.quality.policies.measures import Classwise, Confusion
from annotation.quality.policies.replay import AS_GOLD, Reference, Replayed, measure_latency
from annotation.quality.policies.rules import LARA, PolicyPanel, Rule, needed_slots
from annotation.quality.policies.stored import CallTotals, Gathered
from charts.translation import gettext_noop

PRESETS = (0.035, 0.125, 0.25, 0.5)  # Shares of pairs that people get (DREAM 3.2).
NO_JUDGE = gettext_noop("not available: no judge in this campaign returned log-probabilities")
LEFT_OUT = gettext_noop("not computed yet because it takes several seconds: select “Include LARA” below")
WINDOWS = gettext_noop(
    "not available: %(windowed)s of %(pairs)s pairs were judged window by window; LARA needs votes on whole documents"
)
NO_GOLD = gettext_noop("not available: needs reference grades to stand in for people")


def replay_lara(
    panel: PolicyPanel, found: Gathered, *, reference: Reference, overlap: int = 1, most: int | None = None
) -> list[Replayed]:
    """LARA at each preset, by every judge that gave P(yes) and P(no); left out where such votes exceed `most`."""
    votes, why = sum(map(len, found.beliefs.values())), ""
    if not votes:
        why = NO_JUDGE
    elif found.windowed:  # as a live campaign refuses them
        why = _(WINDOWS) % {"windowed": f"{found.windowed:,}", "pairs": f"{found.pairs:,}"}
    elif most is not None and votes > most:
        why = LEFT_OUT
    if why:
        return [Replayed(Rule(LARA, share=share, name=f"lara {share:.1%}"), why) for share in PRESETS]
    return [
        row
        for place in sorted(found.beliefs)
        for row in _by_judge(panel, found, place, reference=reference, overlap=overlap)
    ]


def _by_judge(panel: PolicyPanel, found: Gathered, place: int, *, reference: Reference, overlap: int) -> list[Replayed]:
    judge = panel.judges[place]
    rules = [Rule(LARA, place=place, share=share, name=f"lara {share:.1%}: {judge}") for share in PRESETS]
    beliefs = [belief for belief in found.beliefs[place] if belief[2] is not None]
    wanted = found.measured("gold")
    if reference != "gold" or len(beliefs) < wanted:
        few = _(
            "not available: %(judge)s gave log-probabilities for %(given)s of %(wanted)s pairs with a reference grade"
        ) % {"judge": judge, "given": f"{len(beliefs):,}", "wanted": f"{wanted:,}"}
        return [Replayed(rule, NO_GOLD if reference != "gold" else few) for rule in rules]
    gold = np.array([truth for _yes, _no, truth, _spent in beliefs], dtype=np.int64)
    # What one vote costs is the same at each share.
    needed = {id(group): needed_slots(rules[0], panel, group) for group in found.groups}
    matrix = np.array([belief[:2] for belief in beliefs], dtype=np.float64)
    results = lara.run_shares(matrix, lambda places: gold[places], PRESETS)
    return [
        Replayed(
            rule,
            pairs=len(beliefs),
            labelled=len(beliefs) - len(one.asked),
            escalated=len(one.asked),
            own=_measure_labels(gold[one.own], one.label[one.own]),
            after={AS_GOLD: _measure_labels(gold, one.label)},
            # Every pair was voted on, whoever labels it in the end.
            spent=sum((spent for *_, spent in beliefs), CallTotals()),
            judgments=len(one.asked) * overlap,
            latency=measure_latency(rule, needed, found),
        )
        for rule, one in zip(rules, results, strict=True)
    ]


def _measure_labels(gold: NDArray[np.int64], labels: NDArray[np.int64]) -> Classwise:
    table = Confusion()
    for truth in (0, 1):
        for label in (0, 1):
            table.add(truth, label, pairs=int(((gold == truth) & (labels == label)).sum()))
    return table.measured()
