"""The rules by which a contribution and its evidence are good enough to train on. Imports no Django.

A judge scores six dimensions from 1 to 5, starting at 3 (Prism 5.3). Rules cap these scores, because an altered number
is wrong even if the judge overlooks it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from corpus.evidence.measures import EvidenceMeasures
from judges.records import Judge

# What a low score in each dimension means. These sentences, and those of `find_problems`, are shown to people and are
# part of the prompt for the writer's second try: a new wording would change what models are asked.
LOW_SCORE_MEANINGS = {
    "contribution_accuracy": "the contribution does not say what the document gives",
    "contribution_coverage": "the contribution leaves out a point, or repeats one",
    "evidence_faithfulness": "the evidence says other than the document",
    "evidence_self_contained": "the evidence cannot be understood without the document",
    "evidence_concision": "the evidence says more than the query asks for",
    "language": "it is not in the document's language",
}
LOWEST_SCORE = 1
START_SCORE = 3  # Every dimension starts at this score; a score below it is a problem.
# The document must contain at least this share of the evidence's entities. Numbers, percentages and dates are stricter:
# a single one that the document does not contain is a problem.
MIN_FIDELITY = 0.8
MAX_LENGTH_RATIO = 1.25  # Evidence with more than this many tokens per token of the document is not a summary of it.
MAX_LISTED_ENTITIES = 5
MAX_ENTITY_CHARACTERS = 80

# What a judge's scores measure, as stored with them.
TEACHER_FIDELITY = "fidelity to teacher"
QUALITY = "quality"


@dataclass(frozen=True, slots=True)
class TargetRating:
    """A judge's scores of a target, by dimension."""

    judge: str  # The judge's name.
    meaning: str  # TEACHER_FIDELITY or QUALITY.
    original_scores: Mapping[str, int]  # As the judge answered.
    scores: Mapping[str, int]  # Capped by the rules.

    def as_json(self) -> dict[str, Any]:
        """Return the rating as it is stored under `judged`."""
        return {
            "judge": self.judge,
            "as": self.meaning,
            "scores": dict(self.scores),
            "given": dict(self.original_scores),
        }


def cap_scores(scores: Mapping[str, int], measures: EvidenceMeasures) -> dict[str, int]:
    """Return the judge's scores, capped where a rule finds altered numbers, copied text or the wrong language."""
    capped = dict(scores)
    if measures.altered:
        capped["evidence_faithfulness"] = LOWEST_SCORE
    if measures.copied:
        capped["evidence_concision"] = min(START_SCORE, capped["evidence_concision"])
    if not measures.language_fits:
        capped["language"] = LOWEST_SCORE
    return capped


def find_problems(measures: EvidenceMeasures, scores: Mapping[str, int] | None = None) -> tuple[str, ...]:
    """Return a sentence for each problem of a target; empty if the target is good enough to train on.

    `scores` are a judge's capped scores by dimension, or None if no judge measured the target.
    """
    problems = []
    if measures.format < 1:
        problems.append("a text is too short: each needs more than 10 characters")
    if measures.contribution_sentences > 1:
        problems.append(f"the contribution has {measures.contribution_sentences} sentences: it shall be one")
    if measures.altered:
        problems.append(f"not in the document: {_list_entities(measures.altered)}")
    elif measures.fidelity is not None and measures.fidelity < MIN_FIDELITY:
        problems.append(f"names or terms that are not in the document: {_list_entities(measures.missing)}")
    if not measures.language_fits:
        problems.append(f"it is in “{measures.language}”, the language expected is “{measures.expected_language}”")
    if measures.ratio is not None and measures.ratio > MAX_LENGTH_RATIO:
        problems.append("the evidence is longer than the document")
    for dimension, score in (scores or {}).items():
        # The rule above has already reported a wrong language.
        is_reported = dimension == "language" and not measures.language_fits
        if score < START_SCORE and not is_reported:
            problems.append(f"{LOW_SCORE_MEANINGS[dimension]} ({score} of 5)")
    return tuple(problems)


def _list_entities(entities: tuple[str, ...]) -> str:
    """Return the first entities in quotation marks, each cut to a readable length, and the number of the others."""
    quoted = [f"“{entity[:MAX_ENTITY_CHARACTERS]}”" for entity in entities[:MAX_LISTED_ENTITIES]]
    remaining = len(entities) - len(quoted)
    return ", ".join(quoted) + (f" and {remaining} more" if remaining else "")


def meaning_of_scores(measurer: Judge, writer: Judge) -> str:
    """Return what the scores measure: QUALITY, or only TEACHER_FIDELITY.

    The latter if measurer and writer are the same model, since a model rates its own texts by its own habits
    (Prism 5.3).
    """
    return TEACHER_FIDELITY if share_model(measurer, writer) else QUALITY


def share_model(judge: Judge, other_judge: Judge) -> bool:
    """Return whether two judges ask the same model of the same provider, whatever their names and parameters."""
    return (judge.provider, judge.base_url, judge.model) == (
        other_judge.provider,
        other_judge.base_url,
        other_judge.model,
    )


def target_measures(
    rule_measures: dict[str, Any],
    problems: tuple[str, ...],
    *,
    rating: TargetRating | None = None,
    entities_by: str = "patterns",
) -> dict[str, Any]:
    """Return the JSON that is stored as a target's `measures`.

    `rule_measures` are the measures by rule as JSON, empty if the writer gave no text. `rating` is None if no judge
    scored the target. `entities_by` says how the entities of the evidence were found.
    """
    return {
        "rules": rule_measures,
        "entities_by": entities_by,
        "judged": rating.as_json() if rating is not None else None,
        "problems": list(problems),
    }
