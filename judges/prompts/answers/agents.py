"""Formats of the answers of search agents, graders and writers of reference answers. Pure.

BRIGHT-Pro 4.2 and appendix E: one search per turn or the final answer; a grade for every aspect and an overall
quality; a reference answer that cites the passages that it is based on.
"""

import re
from collections.abc import Sequence, Set
from typing import Annotated

from pydantic import Field, ValidationInfo, WithJsonSchema, field_validator, model_validator

from judges.prompts.answers.base import AnswerFormat

_BRACKETS = re.compile(r"\[([^\[\]]{1,400})\]")
_BETWEEN = re.compile(r"[,;]")

# An agent may name several searches in spite of the schema: it is asked again once, then the first one counts.
Searches = Annotated[str | list[str] | None, WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "null"}]})]


class SearchTurn(AnswerFormat):
    """A turn of an agent: a search or its answer. `must_answer` of the step's context: no search is possible."""

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
        """The searches of the turn, with normalized white space and without blank ones."""
        texts = [self.search] if isinstance(self.search, str) else self.search or []
        return [search for text in texts if (search := " ".join(text.split()))]


SCORES = (0, 0.5, 1)  # An aspect is not addressed, partly, or fully.
Score = Annotated[float, WithJsonSchema({"type": "number", "enum": list(SCORES)})]


class AspectScore(AnswerFormat):
    """Grade for an answer's coverage of one aspect."""

    id: str
    score: Score

    @field_validator("score")
    @classmethod
    def is_a_step(cls, score: float) -> float:
        if score not in SCORES:
            raise ValueError("it is not 0, 0.5 or 1")
        return score


class AnswerGrade(AnswerFormat):
    """The grades of an answer. `aspects` of the step's context: the ids that have to be scored, each once."""

    aspect_scores: list[AspectScore]
    overall_quality: int = Field(ge=1, le=5)
    justification: str

    @model_validator(mode="after")
    def has_every_aspect(self, info: ValidationInfo) -> "AnswerGrade":
        aspect_ids = (info.context or {}).get("aspects")
        if aspect_ids is not None and sorted(aspect.id for aspect in self.aspect_scores) != sorted(aspect_ids):
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
        cited_ids, unknown_ids = find_citations(
            self.answer, {passage_id for ids in passages.values() for passage_id in ids}
        )
        if unknown_ids:
            raise ValueError('"answer" cites a document that is not among the passages')
        if any(not set(ids) & set(cited_ids) for ids in passages.values()):
            raise ValueError('"answer" cites no passage of one of the aspects')
        return self


def find_citations(text: str, known_ids: Set[str]) -> tuple[list[str], list[str]]:
    """Return the ids in square brackets, each once and in order: the known ones, and all others."""
    ids: list[str] = []
    for match in _BRACKETS.finditer(text):
        content = match[1].strip()
        ids += [content] if content in known_ids else [part.strip() for part in _BETWEEN.split(content)]
    unique_ids: Sequence[str] = [part for part in dict.fromkeys(ids) if part]
    return [part for part in unique_ids if part in known_ids], [part for part in unique_ids if part not in known_ids]
