"""The rules that decide whether a target is good enough to train on, and the JSON that is stored about it.

A target is a contribution and evidence that somebody wrote about a pair. It is measured by rules, and it may also be
scored by a judge, from 1 to 5 in six dimensions (Prism 5.3). Rules cap these scores, because a number that the writer
altered is wrong even if the judge overlooks it. The module imports no Django.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

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
START_SCORE = 3  # The judge starts with this score in every dimension; a lower one is a problem.
# The document must contain at least this share of the names, terms and numbers of the evidence. For numbers,
# percentages and dates the rule is stricter: a single one that the document does not contain is a problem.
MIN_FIDELITY = 0.8
MAX_LENGTH_RATIO = 1.25  # Evidence with more tokens per token of the document is not a summary of it.
MAX_LISTED_ENTITIES = 5
MAX_ENTITY_CHARACTERS = 80

# What the scores of a judge measure, in the words that are stored with them.
TEACHER_FIDELITY = "fidelity to teacher"
QUALITY = "quality"


def cap_scores(judge_scores: Mapping[str, int], measures: EvidenceMeasures) -> dict[str, int]:
    """Return a judge's scores by dimension, lowered where rules found altered numbers, a copy or a wrong language."""
    capped_scores = dict(judge_scores)
    if measures.altered:
        capped_scores["evidence_faithfulness"] = LOWEST_SCORE
    if measures.copied:
        capped_scores["evidence_concision"] = min(START_SCORE, capped_scores["evidence_concision"])
    if not measures.language_fits:
        capped_scores["language"] = LOWEST_SCORE
    return capped_scores


def find_problems(measures: EvidenceMeasures, capped_scores: Mapping[str, int] | None = None) -> tuple[str, ...]:
    """Return a clause for each problem of a target, and nothing if the target is good enough to train on.

    `capped_scores` are the scores by dimension that `cap_scores` returned, or None if no judge scored the target.
    """
    problems = []
    # `format` is 1 if both texts have more than 10 characters.
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
    for dimension, score in (capped_scores or {}).items():
        # A wrong language has been reported above.
        is_reported = dimension == "language" and not measures.language_fits
        if score < START_SCORE and not is_reported:
            problems.append(f"{LOW_SCORE_MEANINGS[dimension]} ({score} of 5)")
    return tuple(problems)


def _list_entities(entities: tuple[str, ...]) -> str:
    """Return the first entities in quotation marks, each cut to a readable length, and how many others there are."""
    quoted_entities = [f"“{entity[:MAX_ENTITY_CHARACTERS]}”" for entity in entities[:MAX_LISTED_ENTITIES]]
    other_count = len(entities) - len(quoted_entities)
    return ", ".join(quoted_entities) + (f" and {other_count} more" if other_count else "")


def meaning_of_scores(scorer: Judge, writer: Judge) -> str:
    """Return what the scores of a judge about the targets of a writer measure: QUALITY or TEACHER_FIDELITY.

    If both are the same model, the scores measure only how faithful targets are to this teacher, because a model rates
    its own texts by its own habits (Prism 5.3).
    """
    return TEACHER_FIDELITY if have_same_model(scorer, writer) else QUALITY


def have_same_model(judge: Judge, other_judge: Judge) -> bool:
    """Return whether two judges ask the same model of the same provider, whatever their names and parameters."""
    return (judge.provider, judge.base_url, judge.model) == (
        other_judge.provider,
        other_judge.base_url,
        other_judge.model,
    )


@dataclass(frozen=True, slots=True)
class TargetRating:
    """The scores that a judge gave a target, by dimension."""

    judge: str  # The name of the judge.
    meaning: str  # What the scores measure, as `meaning_of_scores` returns it.
    judge_scores: Mapping[str, int]  # The scores as the judge gave them.
    capped_scores: Mapping[str, int]  # The scores that `cap_scores` returned for them.


# JSON of a rating. The key "as" is a keyword of Python, so this type cannot be a class.
RatingDocument = TypedDict(
    "RatingDocument", {"judge": str, "as": str, "scores": dict[str, int], "given": dict[str, int]}
)


class TargetDocument(TypedDict):
    """JSON of what is known about a target, which is stored as its `measures`."""

    rules: dict[str, Any]  # EvidenceMeasures as JSON; empty if the writer gave no text.
    entities_by: str  # How the names, terms and numbers of the evidence were found.
    judged: RatingDocument | None
    problems: list[str]


def build_target_document(
    rule_measures: dict[str, Any],
    problems: tuple[str, ...],
    *,
    rating: TargetRating | None = None,
    entities_by: str = "patterns",
) -> TargetDocument:
    """Return the JSON that is stored as the `measures` of a target. `rating` is None if no judge scored it."""
    rating_document: RatingDocument | None = None
    if rating is not None:
        rating_document = {
            "judge": rating.judge,
            "as": rating.meaning,
            "scores": dict(rating.capped_scores),
            "given": dict(rating.judge_scores),
        }
    return {
        "rules": rule_measures,
        "entities_by": entities_by,
        "judged": rating_document,
        "problems": list(problems),
    }
