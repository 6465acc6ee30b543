"""Quality of contribution and evidence: when they are good enough to learn from. Pure.

Six dimensions are scored from 1 to 5, beginning at 3 (Prism 5.3). What rules can see caps the
scores: a judge that overlooks an altered number does not make it right.
"""

from collections.abc import Mapping
from typing import Any

from corpus.evidence.measures import EvidenceMeasures
from judges.records import Judge

# What a low score means, for people and for the writer's second try.
WORDS = {
    "contribution_accuracy": "the contribution does not say what the document gives",
    "contribution_coverage": "the contribution leaves out a point, or repeats one",
    "evidence_faithfulness": "the evidence says other than the document",
    "evidence_self_contained": "the evidence cannot be understood without the document",
    "evidence_concision": "the evidence says more than the query asks for",
    "language": "it is not in the document's language",
}
ACCEPTABLE = 3
# Share of entities that must stand in the document; numbers, percentages and dates must all.
LEAST_FIDELITY = 0.8
LONGEST = 1.25  # Tokens of evidence over tokens of document: beyond it nothing is made shorter.
TEACHER = "fidelity to teacher"
QUALITY = "quality"


def cap_scores(scores: Mapping[str, int], measures: EvidenceMeasures) -> dict[str, int]:
    """Return the judge's scores under what rules see: altered numbers, copies, another language."""
    found = dict(scores)
    if measures.altered:
        found["evidence_faithfulness"] = 1
    if measures.copied:
        found["evidence_concision"] = min(3, found["evidence_concision"])
    if not measures.language_fits:
        found["language"] = 1
    return found


def find_problems(measures: EvidenceMeasures, scores: Mapping[str, int] | None = None) -> tuple[str, ...]:
    """List what is wrong, in words; empty when it may be learned from. `scores`: capped, where a judge measured."""
    found = []
    if measures.format < 1:
        found.append("a text is too short: each needs more than 10 characters")
    if measures.contribution_sentences > 1:
        found.append(f"the contribution has {measures.contribution_sentences} sentences: it shall be one")
    if measures.altered:
        found.append(f"not in the document: {_list_entities(measures.altered)}")
    elif measures.fidelity is not None and measures.fidelity < LEAST_FIDELITY:
        found.append(f"names or terms that are not in the document: {_list_entities(measures.missing)}")
    if not measures.language_fits:
        found.append(f"it is in “{measures.language}”, the language expected is “{measures.expected_language}”")
    if measures.ratio is not None and measures.ratio > LONGEST:
        found.append("the evidence is longer than the document")
    for name, score in (scores or {}).items():
        if score < ACCEPTABLE and not (name == "language" and not measures.language_fits):
            found.append(f"{WORDS[name]} ({score} of 5)")
    return tuple(found)


def _list_entities(entities: tuple[str, ...]) -> str:
    more = f" and {len(entities) - 5} more" if len(entities) > 5 else ""
    return ", ".join(f"“{entity[:80]}”" for entity in entities[:5]) + more


def judged_as(measurer: Judge, writer: Judge) -> str:
    """Return what scores mean: a judge that measures its own model's texts says how alike they are (Prism 5.3)."""
    return TEACHER if same_model(measurer, writer) else QUALITY


def same_model(one: Judge, other: Judge) -> bool:
    """Return whether two judges are the same model, whatever their names and parameters."""
    return (one.provider, one.base_url, one.model) == (other.provider, other.base_url, other.model)


def target_measures(
    measures: dict[str, Any],
    found: tuple[str, ...],
    *,
    scores: Mapping[str, int] | None = None,
    given: Mapping[str, int] | None = None,
    judge: str = "",
    meaning: str = "",
    entities_by: str = "patterns",
) -> dict[str, Any]:
    """Return a target's `measures`: by rule, the judge's scores (capped, and as given), and the problems."""
    judged = {"judge": judge, "as": meaning, "scores": dict(scores), "given": dict(given or scores)} if scores else None
    return {"rules": measures, "entities_by": entities_by, "judged": judged, "problems": list(found)}
