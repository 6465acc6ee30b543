"""Quality of contribution and evidence: when they are good enough to train on. Pure.

Six dimensions are scored from 1 to 5, starting at 3 (Prism 5.3). Rules limit the scores: an altered number is wrong
even if the judge overlooks it.
"""

from collections.abc import Mapping
from typing import Any

from corpus.evidence.measures import EvidenceMeasures
from judges.records import Judge

# The meaning of a low score, for people and for the writer's second try.
WORDS = {
    "contribution_accuracy": "the contribution does not say what the document gives",
    "contribution_coverage": "the contribution leaves out a point, or repeats one",
    "evidence_faithfulness": "the evidence says other than the document",
    "evidence_self_contained": "the evidence cannot be understood without the document",
    "evidence_concision": "the evidence says more than the query asks for",
    "language": "it is not in the document's language",
}
ACCEPTABLE = 3
# Share of entities that must occur in the document; of numbers, percentages and dates, all must.
LEAST_FIDELITY = 0.8
LONGEST = 1.25  # Maximum of tokens of evidence over tokens of document: above it, evidence is no summary.
TEACHER = "fidelity to teacher"
QUALITY = "quality"


def cap_scores(scores: Mapping[str, int], measures: EvidenceMeasures) -> dict[str, int]:
    """Return the judge's scores limited by rules: for altered numbers, copied texts, another language."""
    capped = dict(scores)
    if measures.altered:
        capped["evidence_faithfulness"] = 1
    if measures.copied:
        capped["evidence_concision"] = min(3, capped["evidence_concision"])
    if not measures.language_fits:
        capped["language"] = 1
    return capped


def find_problems(measures: EvidenceMeasures, scores: Mapping[str, int] | None = None) -> tuple[str, ...]:
    """List the problems of a target in words; empty if it is good enough. `scores`: limited, if a judge measured."""
    problems = []
    if measures.format < 1:
        problems.append("a text is too short: each needs more than 10 characters")
    if measures.contribution_sentences > 1:
        problems.append(f"the contribution has {measures.contribution_sentences} sentences: it shall be one")
    if measures.altered:
        problems.append(f"not in the document: {_list_entities(measures.altered)}")
    elif measures.fidelity is not None and measures.fidelity < LEAST_FIDELITY:
        problems.append(f"names or terms that are not in the document: {_list_entities(measures.missing)}")
    if not measures.language_fits:
        problems.append(f"it is in “{measures.language}”, the language expected is “{measures.expected_language}”")
    if measures.ratio is not None and measures.ratio > LONGEST:
        problems.append("the evidence is longer than the document")
    for name, score in (scores or {}).items():
        if score < ACCEPTABLE and not (name == "language" and not measures.language_fits):
            problems.append(f"{WORDS[name]} ({score} of 5)")
    return tuple(problems)


def _list_entities(entities: tuple[str, ...]) -> str:
    more = f" and {len(entities) - 5} more" if len(entities) > 5 else ""
    return ", ".join(f"“{entity[:80]}”" for entity in entities[:5]) + more


def judged_as(measurer: Judge, writer: Judge) -> str:
    """Return the meaning of scores: a judge that measures its own model's texts shows only fidelity (Prism 5.3)."""
    return TEACHER if same_model(measurer, writer) else QUALITY


def same_model(judge: Judge, other_judge: Judge) -> bool:
    """Return whether two judges are the same model, whatever their names and parameters."""
    return (judge.provider, judge.base_url, judge.model) == (
        other_judge.provider,
        other_judge.base_url,
        other_judge.model,
    )


def target_measures(
    measures: dict[str, Any],
    problems: tuple[str, ...],
    *,
    scores: Mapping[str, int] | None = None,
    original_scores: Mapping[str, int] | None = None,
    judge: str = "",
    meaning: str = "",
    entities_by: str = "patterns",
) -> dict[str, Any]:
    """Return a target's stored `measures`: by rule, the judge's scores (limited, and as given), and the problems."""
    judged = (
        {"judge": judge, "as": meaning, "scores": dict(scores), "given": dict(original_scores or scores)}
        if scores
        else None
    )
    return {"rules": measures, "entities_by": entities_by, "judged": judged, "problems": list(problems)}
