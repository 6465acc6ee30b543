"""Answers of agents that search and of those who write and grade: formats of search, assess and reference. Pure.

BRIGHT-Pro 4.2 and appendix E: one search a turn or the final answer; a grade for every aspect and a
quality; a reference answer that cites the passages it was given.
"""

import re
from collections.abc import Sequence, Set
from typing import Annotated

from pydantic import Field, ValidationInfo, WithJsonSchema, field_validator, model_validator

from judges.conversations.base import AnswerFormat

_BRACKETS = re.compile(r"\[([^\[\]]{1,400})\]")
_BETWEEN = re.compile(r"[,;]")

# An agent may name several searches in spite of the schema that is sent: it is asked once more, then the first counts.
Searches = Annotated[str | list[str] | None, WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "null"}]})]


class SearchTurn(AnswerFormat):
    """A turn of an agent: a search, or its answer. `must_answer`: no search is possible."""

    search: Searches = None
    answer: str | None = None
    confidence: int | None = Field(default=None, ge=0, le=100)

    @model_validator(mode="after")
    def is_one_of_both(self, info: ValidationInfo) -> "SearchTurn":
        if (self.search is None) == (self.answer is None):
            raise ValueError('it needs either "search" or "answer", and null for the other')
        if self.search is None:
            if not (self.answer or "").strip():
                raise ValueError('"answer" is empty')
            if self.confidence is None:
                raise ValueError('"confidence" is missing: a whole number from 0 to 100')
        elif (info.context or {}).get("must_answer"):
            raise ValueError("no search is possible any more: it needs an answer")
        elif not self.searches:
            raise ValueError('"search" is empty')
        return self

    @property
    def searches(self) -> list[str]:
        """The searches that it names, without blanks."""
        given = [self.search] if isinstance(self.search, str) else self.search or []
        return [text for one in given if (text := " ".join(one.split()))]


SCORES = (0, 0.5, 1)  # An aspect is not addressed, in part, or fully.
Score = Annotated[float, WithJsonSchema({"type": "number", "enum": list(SCORES)})]


class AspectScore(AnswerFormat):
    """Grade of how far an answer covers one aspect."""

    id: str
    score: Score

    @field_validator("score")
    @classmethod
    def is_a_step(cls, score: float) -> float:
        if score not in SCORES:
            raise ValueError("it is not 0, 0.5 or 1")
        return score


class AnswerGrade(AnswerFormat):
    """The grades of an answer. The step's `aspects`: the ids that it has to score, each once."""

    aspect_scores: list[AspectScore]
    overall_quality: int = Field(ge=1, le=5)
    justification: str

    @model_validator(mode="after")
    def has_every_aspect(self, info: ValidationInfo) -> "AnswerGrade":
        wanted = (info.context or {}).get("aspects")
        if wanted is not None and sorted(one.id for one in self.aspect_scores) != sorted(wanted):
            raise ValueError('"aspect_scores" has not every aspect id exactly once')
        return self


class ReferenceDraft(AnswerFormat):
    """A reference answer. `passages` of the step's context: ids of passages by aspect."""

    answer: str

    @model_validator(mode="after")
    def cites_what_it_was_given(self, info: ValidationInfo) -> "ReferenceDraft":
        passages = (info.context or {}).get("passages")
        if passages is None:
            return self
        cited, strange = find_citations(self.answer, {one for ids in passages.values() for one in ids})
        if strange:
            raise ValueError('"answer" cites a document that is not among the passages')
        if any(not set(ids) & set(cited) for ids in passages.values()):
            raise ValueError('"answer" cites no passage of one of the aspects')
        return self


def find_citations(text: str, known: Set[str]) -> tuple[list[str], list[str]]:
    """Return the ids that stand in square brackets, each once in their order: those that are known, and all others."""
    found: list[str] = []
    for match in _BRACKETS.finditer(text):
        whole = match[1].strip()
        found += [whole] if whole in known else [one.strip() for one in _BETWEEN.split(whole)]
    unique: Sequence[str] = [one for one in dict.fromkeys(found) if one]
    return [one for one in unique if one in known], [one for one in unique if one not in known]
