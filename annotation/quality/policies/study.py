"""Tables of a debate study: stance order, persistence of agreements, wrong agreements (DREAM B.1-B.4). Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from annotation.quality.policies.measures import Confusion

Verdicts = tuple[int | None, ...]  # Verdicts of all agents of a round; None for a turn without a verdict.
Debate = Sequence[Verdicts]  # By round, from the first.
LABELS = ("not_relevant", "relevant")  # Names of the labels 0 and 1 in documents.


def agreed_verdict(verdicts: Verdicts) -> int | None:
    """Return the verdict that all agents of a round gave; None where they differ or one is missing."""
    first = verdicts[0] if verdicts else None
    return first if all(verdict == first for verdict in verdicts) else None


def debate_label(debate: Debate, rounds: int | None = None) -> int | None:
    """Return the first agreement within so many rounds (default: all); None without one."""
    return next((label for verdicts in debate[:rounds] if (label := agreed_verdict(verdicts)) is not None), None)


def order_table(relevant_first: Mapping[int, int | None], irrelevant_first: Mapping[int, int | None]) -> dict[str, Any]:
    """Compare labels by pair (None: escalated) of two campaigns that differ in the order of stances (DREAM table 9).

    `counts`: number of pairs that both labelled, by the label with relevant first, then by the other;
    `same`: share of equal labels, None without pairs; `left_out`: pairs that both debated and not both
    labelled.
    """
    counts = {label: dict.fromkeys(LABELS, 0) for label in LABELS}
    pairs = relevant_first.keys() & irrelevant_first.keys()
    for pair in pairs:
        first_label, second_label = relevant_first[pair], irrelevant_first[pair]
        if first_label is not None and second_label is not None:
            counts[LABELS[first_label]][LABELS[second_label]] += 1
    labelled = sum(sum(row.values()) for row in counts.values())
    same = sum(counts[label][label] for label in LABELS)
    return {
        "counts": counts,
        "pairs": labelled,
        "left_out": len(pairs) - labelled,
        "same": same / labelled if labelled else None,
    }


def measure_persistence(debates: Mapping[int, Debate], gold: Mapping[int, int]) -> list[dict[str, Any]]:
    """Measure the persistence of the agreements of round 1 in each round (DREAM table 12).

    `cases`: debates that agreed in round 1 and were played up to this round; `agreed`: of those, debates
    that agree in it; `kept`: of these, debates that agree on the label of round 1; `known`: agreements
    whose true label is known; `spurious`: of those, agreements on the wrong label. Shares are None
    without pairs.

    Debates that ended with their agreement count in round 1 alone.
    """
    agreeing = {pair: debate for pair, debate in debates.items() if debate and agreed_verdict(debate[0]) is not None}
    longest = max(map(len, agreeing.values()), default=0)
    rows = []
    for number in range(1, longest + 1):
        cases = {pair: debate for pair, debate in agreeing.items() if len(debate) >= number}
        verdicts = {pair: agreed_verdict(debate[number - 1]) for pair, debate in cases.items()}
        agreements = {pair: verdict for pair, verdict in verdicts.items() if verdict is not None}
        gold_pairs = [pair for pair in agreements if pair in gold]
        spurious = sum(agreements[pair] != gold[pair] for pair in gold_pairs)
        rows.append(
            {
                "round": number,
                "cases": len(cases),
                "agreed": len(agreements),
                "kept": sum(verdict == agreed_verdict(cases[pair][0]) for pair, verdict in agreements.items()),
                "spurious": spurious,
                "known": len(gold_pairs),
                "persistence": len(agreements) / len(cases) if cases else None,
                "spurious_rate": spurious / len(gold_pairs) if gold_pairs else None,
            }
        )
    return rows


def measure_configuration(labels: Mapping[int, int | None], gold: Mapping[int, int]) -> dict[str, Any]:
    """Measure a debate setting by its labels of pairs (None: escalated) against gold (DREAM tables 10, 13, 14, 15)."""
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
