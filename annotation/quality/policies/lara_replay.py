"""Replay of LARA on stored votes, with the reference in place of people. Pure.

Which pairs LARA gives to people depends on their earlier answers, so an answer must be known for any
pair. LARA is therefore replayed on the pairs with a reference grade, and not available against people.
"""

import numpy as np
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from annotation.quality.policies import lara
from annotation.quality.policies.measures import Classwise, Confusion
from annotation.quality.policies.replay import AS_GOLD, PolicyReplay, Reference, measure_latency
from annotation.quality.policies.rules import LARA, PolicyPanel, Rule, needed_slots
from annotation.quality.policies.stored import CallTotals, CampaignAnswers
from charts.translation import gettext_noop

PRESETS = (0.035, 0.125, 0.25, 0.5)  # Shares of pairs that people judge (DREAM 3.2).
NO_JUDGE = gettext_noop("not available: no judge in this campaign returned log-probabilities")
LEFT_OUT = gettext_noop("not computed yet because it takes several seconds: select “Include LARA” below")
WINDOWS = gettext_noop(
    "not available: %(windowed)s of %(pairs)s pairs were judged window by window; LARA needs votes on whole documents"
)
NO_GOLD = gettext_noop("not available: needs reference grades to stand in for people")


def replay_lara(
    panel: PolicyPanel, answers: CampaignAnswers, *, reference: Reference, overlap: int = 1, most: int | None = None
) -> list[PolicyReplay]:
    """Replay LARA at each preset for every judge that gave P(yes) and P(no); left out for more than `most` votes."""
    votes, reason = sum(map(len, answers.beliefs.values())), ""
    if not votes:
        reason = NO_JUDGE
    elif answers.windowed:  # A live campaign refuses them too.
        reason = _(WINDOWS) % {"windowed": f"{answers.windowed:,}", "pairs": f"{answers.pairs:,}"}
    elif most is not None and votes > most:
        reason = LEFT_OUT
    if reason:
        return [PolicyReplay(Rule(LARA, share=share, name=f"lara {share:.1%}"), reason) for share in PRESETS]
    return [
        replay
        for position in sorted(answers.beliefs)
        for replay in _replay_judge(panel, answers, position, reference=reference, overlap=overlap)
    ]


def _replay_judge(
    panel: PolicyPanel, answers: CampaignAnswers, position: int, *, reference: Reference, overlap: int
) -> list[PolicyReplay]:
    judge = panel.judges[position]
    rules = [Rule(LARA, position=position, share=share, name=f"lara {share:.1%}: {judge}") for share in PRESETS]
    beliefs = [belief for belief in answers.beliefs[position] if belief[2] is not None]
    gold_pairs = answers.measured("gold")
    if reference != "gold" or len(beliefs) < gold_pairs:
        incomplete = _(
            "not available: %(judge)s gave log-probabilities for %(given)s of %(wanted)s pairs with a reference grade"
        ) % {"judge": judge, "given": f"{len(beliefs):,}", "wanted": f"{gold_pairs:,}"}
        return [PolicyReplay(rule, NO_GOLD if reference != "gold" else incomplete) for rule in rules]
    gold = np.array([grade for _yes, _no, grade, _spent in beliefs], dtype=np.int64)
    # A vote has the same slots at each share.
    needed = {id(group): needed_slots(rules[0], panel, group) for group in answers.groups}
    matrix = np.array([belief[:2] for belief in beliefs], dtype=np.float64)
    results = lara.run_shares(matrix, lambda positions: gold[positions], PRESETS)
    return [
        PolicyReplay(
            rule,
            pairs=len(beliefs),
            labelled=len(beliefs) - len(calibration.people_pairs),
            escalated=len(calibration.people_pairs),
            own=_measure_labels(gold[calibration.own], calibration.label[calibration.own]),
            after={AS_GOLD: _measure_labels(gold, calibration.label)},
            # Every pair was voted on, also those that people label.
            spent=sum((totals for *_, totals in beliefs), CallTotals()),
            judgments=len(calibration.people_pairs) * overlap,
            latency=measure_latency(rule, needed, answers),
        )
        for rule, calibration in zip(rules, results, strict=True)
    ]


def _measure_labels(gold: NDArray[np.int64], labels: NDArray[np.int64]) -> Classwise:
    table = Confusion()
    for true_class in (0, 1):
        for label in (0, 1):
            table.add(true_class, label, pairs=int(((gold == true_class) & (labels == label)).sum()))
    return table.measured()
