"""Tables of a debate study: stance order, agreements that last, agreements that are wrong (DREAM B.1-B.4). Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from annotation.quality.policies.measures import Confusion

Verdicts = tuple[int | None, ...]  # Of all agents of a round; None for a turn that brought none.
Debate = Sequence[Verdicts]  # Round by round, from the first.
LABELS = ("not_relevant", "relevant")  # By the label, as documents name it.


def agreed_verdict(verdicts: Verdicts) -> int | None:
    """The verdict that all agents of a round gave; None where they differ or one is lost."""
    first = verdicts[0] if verdicts else None
    return first if all(verdict == first for verdict in verdicts) else None


def debate_label(debate: Debate, rounds: int | None = None) -> int | None:
    """The first agreement within so many rounds (all that were played); None without one."""
    return next((found for one in debate[:rounds] if (found := agreed_verdict(one)) is not None), None)


def order_table(relevant_first: Mapping[int, int | None], irrelevant_first: Mapping[int, int | None]) -> dict[str, Any]:
    """Labels by pair (None: escalated) of two campaigns that differ in the order of the stances (DREAM table 9).

    `counts`: by the label with relevant first, then by the other, of the pairs that both labelled;
    `same`: the share of equal labels, None without a pair; `left_out`: pairs that both debated and
    one did not label.
    """
    counts = {first: dict.fromkeys(LABELS, 0) for first in LABELS}
    both = relevant_first.keys() & irrelevant_first.keys()
    for pair in both:
        rf, other = relevant_first[pair], irrelevant_first[pair]
        # Pairs that one order escalated are counted apart: they compare no labels.
        if rf is not None and other is not None:
            counts[LABELS[rf]][LABELS[other]] += 1
    labelled = sum(sum(row.values()) for row in counts.values())
    same = sum(counts[label][label] for label in LABELS)
    return {
        "counts": counts,
        "pairs": labelled,
        "left_out": len(both) - labelled,
        "same": same / labelled if labelled else None,
    }


def measure_persistence(debates: Mapping[int, Debate], gold: Mapping[int, int]) -> list[dict[str, Any]]:
    """Measure how the agreements of round 1 last in each later round (DREAM table 12). Shares are None without a pair.

    `cases`: debates that agreed in round 1 and were played on to this round; `agreed`: of them,
    those whose agents agree in it; `kept`: of these, those on the label of round 1; `spurious`: on
    the wrong label, of those whose truth is `known`.

    Debates that ended with their agreement count in round 1 and no further: nothing is known of what came after.
    """
    began = {pair: debate for pair, debate in debates.items() if debate and agreed_verdict(debate[0]) is not None}
    longest = max(map(len, began.values()), default=0)
    rows = []
    for number in range(1, longest + 1):
        # Debates that ended by themselves in an earlier round are in no later one.
        played = {pair: debate for pair, debate in began.items() if len(debate) >= number}
        verdicts = {pair: agreed_verdict(debate[number - 1]) for pair, debate in played.items()}
        agreed = {pair: verdict for pair, verdict in verdicts.items() if verdict is not None}
        known = [pair for pair in agreed if pair in gold]
        spurious = sum(agreed[pair] != gold[pair] for pair in known)
        rows.append(
            {
                "round": number,
                "cases": len(played),
                "agreed": len(agreed),
                "kept": sum(verdict == agreed_verdict(played[pair][0]) for pair, verdict in agreed.items()),
                "spurious": spurious,
                "known": len(known),
                "persistence": len(agreed) / len(played) if played else None,
                "spurious_rate": spurious / len(known) if known else None,
            }
        )
    return rows


def measure_configuration(labels: Mapping[int, int | None], gold: Mapping[int, int]) -> dict[str, Any]:
    """Measure labels by pair (None: escalated) of a way to debate against the truth (DREAM tables 10, 13, 14, 15)."""
    table, escalated = Confusion(), sum(label is None for label in labels.values())
    for pair, label in labels.items():
        if label is not None and pair in gold:
            table.add(gold[pair], label)
    return {
        "pairs": len(labels),
        "escalated": escalated,
        "escalation": escalated / len(labels) if labels else None,
        **table.measured().document(),
    }
