"""Formats of the steps that write synthetic queries. Pure.

A query with its documents (RTriever-Synth, BRIGHT-Pro 5.1), the keyword form of a query (Prism
4.1), a query that a document answers.
"""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from corpus.search.text import split_sentences, tokenize_text
from judges.conversations.base import AnswerFormat

SUMMARY_SENTENCES = 3
LEAST_ASPECTS, MOST_ASPECTS = 2, 3
MOST_KEYWORDS = 10
LONGEST_KEYWORD, LONGEST_QUERY = 5, 80  # Words.


def normalize(text: str) -> str:
    """Return a text's words: with the same ones, two are the same title or persona."""
    return " ".join(tokenize_text(text))


def _require_text(text: str) -> str:
    if not text.strip():
        raise ValueError("it is empty")
    return text.strip()


def _require_three_sentences(text: str) -> str:
    # Counted as the search counts sentences, so that the rule and the later cutting agree.
    found = len(split_sentences(text))
    if found != SUMMARY_SENTENCES:
        raise ValueError(f"it has {found} sentences, not exactly {SUMMARY_SENTENCES}")
    return text


Text = Annotated[str, AfterValidator(_require_text)]
Summary = Annotated[Text, AfterValidator(_require_three_sentences)]


def _require_different(texts: Iterable[str], what: str, others: Iterable[str] = ()) -> None:
    # Compared by words alone: models repeat themselves with another comma or capital.
    seen = set(map(normalize, others))
    for text in map(normalize, texts):
        if text in seen:
            raise ValueError(f"two {what} are the same")
        seen.add(text)


def _expected(info: ValidationInfo) -> dict[str, Any]:
    # What the prompt asked for is not in the answer: the asker hands it in as the context of the validation.
    return info.context or {}


def _require_count(found: int, info: ValidationInfo) -> None:
    wanted = _expected(info).get("count")
    # None where a stored answer is read back: nothing is expected of it any more.
    if wanted is not None and found != wanted:
        raise ValueError(f"there are {found}, not {wanted}")


class PersonaQuery(AnswerFormat):
    """A new persona and the seed in its voice. Expected: `personas`, the examples."""

    persona: Text
    question: Text
    background: Text

    @field_validator("persona")
    @classmethod
    # A copied example would be no new persona.
    def is_new(cls, persona: str, info: ValidationInfo) -> str:
        _require_different([persona], "personas", _expected(info).get("personas", ()))
        return persona


class QueryType(AnswerFormat):
    """Type of a query: one passage answers it (factual), or several (analytical)."""

    type: Literal["factual", "analytical"]


class ReferenceAnswer(AnswerFormat):
    """Answer that a careful expert would give."""

    answer: Text


class AnswerAspect(AnswerFormat):
    """A part of the reasoning; the rationale names what of the answer it carries."""

    aspect: Text
    rationale: Text


class Decomposition(AnswerFormat):
    """A decomposition into two or three aspects that do not overlap."""

    aspects: list[AnswerAspect] = Field(min_length=LEAST_ASPECTS, max_length=MOST_ASPECTS)

    @field_validator("aspects")
    @classmethod
    def are_different(cls, aspects: list[AnswerAspect]) -> list[AnswerAspect]:
        _require_different((one.aspect for one in aspects), "aspects")
        return aspects


class Blueprint(AnswerFormat):
    """Plan of a passage, before anybody writes it."""

    rationale: Text
    passage_type: Text
    source: Text
    title: Text
    summary: Summary


class PositiveBlueprints(AnswerFormat):
    """A blueprint for each aspect, in their order. Expected: `count`."""

    blueprints: list[Blueprint]

    @field_validator("blueprints")
    @classmethod
    def are_different(cls, blueprints: list[Blueprint], info: ValidationInfo) -> list[Blueprint]:
        _require_count(len(blueprints), info)
        _require_different((one.title for one in blueprints), "titles")
        return blueprints


class NegativeBlueprint(Blueprint):
    """A passage that looks fitting and lacks what is needed: why it fails, and which aspect it must leave out."""

    failure: Text
    missing_aspect: Text


class NegativeBlueprints(AnswerFormat):
    """Plans for as many negatives as positives. Expected: `count`, positives' `titles`."""

    blueprints: list[NegativeBlueprint]

    @field_validator("blueprints")
    @classmethod
    def are_different(cls, blueprints: list[NegativeBlueprint], info: ValidationInfo) -> list[NegativeBlueprint]:
        _require_count(len(blueprints), info)
        _require_different((one.title for one in blueprints), "titles", _expected(info).get("titles", ()))
        return blueprints


class Passages(AnswerFormat):
    """The passages of some blueprints, in their order. Expected: `count`."""

    passages: list[Text]

    @field_validator("passages")
    @classmethod
    def are_all_there(cls, passages: list[str], info: ValidationInfo) -> list[str]:
        _require_count(len(passages), info)
        return passages


class KeywordForm(AnswerFormat):
    """Words that somebody would type to search for the same, most telling first."""

    keywords: Annotated[list[Text], Field(min_length=1, max_length=MOST_KEYWORDS)]

    @field_validator("keywords")
    @classmethod
    def are_keywords(cls, keywords: list[str]) -> list[str]:
        seen = [normalize(one) for one in keywords]
        # A keyword of punctuation alone would match nothing in any search.
        if not all(seen):
            raise ValueError("a keyword has no word")
        if any(len(one.split()) > LONGEST_KEYWORD for one in keywords):
            raise ValueError(f"a keyword has more than {LONGEST_KEYWORD} words")
        if len(set(seen)) < len(seen):
            raise ValueError("two keywords are the same")
        return keywords


class AskedQuery(AnswerFormat):
    """A query that the document answers."""

    query: Text

    @field_validator("query")
    @classmethod
    def is_a_query(cls, query: str) -> str:
        # A model that returns the passage itself has as many words as a passage.
        if not normalize(query):
            raise ValueError("it has no word")
        if len(query.split()) > LONGEST_QUERY:
            raise ValueError(f"it has more than {LONGEST_QUERY} words")
        return query


FORMATS: dict[str, type[AnswerFormat]] = {
    "persona": PersonaQuery,
    "classify": QueryType,
    "outline": ReferenceAnswer,
    "decompose": Decomposition,
    "blueprint": PositiveBlueprints,
    "negatives": NegativeBlueprints,
    "compose": Passages,
    "keywords": KeywordForm,
    "ask": AskedQuery,
}
