"""Formats of the steps that write synthetic queries. Pure.

Queries with their documents (RTriever-Synth, BRIGHT-Pro 5.1), the keyword form of a query (Prism 4.1), and queries that
a document answers.
"""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from corpus.search.text import split_sentences, tokenize_text
from judges.prompts.answers.base import AnswerFormat

SUMMARY_SENTENCES = 3
LEAST_ASPECTS, MOST_ASPECTS = 2, 3
MOST_KEYWORDS = 10
LONGEST_KEYWORD, LONGEST_QUERY = 5, 80  # Words.


def normalize(text: str) -> str:
    """Return the words of a text: two titles or personas with the same words are the same."""
    return " ".join(tokenize_text(text))


def _require_text(text: str) -> str:
    if not text.strip():
        raise ValueError("it is empty")
    return text.strip()


def _require_three_sentences(text: str) -> str:
    # Counted with the splitter of the search, so that the rule agrees with later splitting.
    sentence_count = len(split_sentences(text))
    if sentence_count != SUMMARY_SENTENCES:
        raise ValueError(f"it has {sentence_count} sentences, not exactly {SUMMARY_SENTENCES}")
    return text


Text = Annotated[str, AfterValidator(_require_text)]
Summary = Annotated[Text, AfterValidator(_require_three_sentences)]


def _require_different(texts: Iterable[str], noun: str, others: Iterable[str] = ()) -> None:
    # Compared only by words, because models repeat themselves with a different comma or capital.
    normalized_texts = set(map(normalize, others))
    for text in map(normalize, texts):
        if text in normalized_texts:
            raise ValueError(f"two {noun} are the same")
        normalized_texts.add(text)


def _expected(info: ValidationInfo) -> dict[str, Any]:
    # The answer does not contain what the prompt asked for: the step passes it as the context of the validation.
    return info.context or {}


def _require_count(count: int, info: ValidationInfo) -> None:
    expected_count = _expected(info).get("count")
    # None if a stored answer is read, which was validated before.
    if expected_count is not None and count != expected_count:
        raise ValueError(f"there are {count}, not {expected_count}")


class PersonaQuery(AnswerFormat):
    """A new persona, and the seed query in its voice. Expected: `personas`, the examples."""

    persona: Text
    question: Text
    background: Text

    @field_validator("persona")
    @classmethod
    def is_new(cls, persona: str, info: ValidationInfo) -> str:
        _require_different([persona], "personas", _expected(info).get("personas", ()))
        return persona


class QueryType(AnswerFormat):
    """Type of a query: answered by one passage (factual) or by several (analytical)."""

    type: Literal["factual", "analytical"]


class ExpertAnswer(AnswerFormat):
    """The answer of a careful expert."""

    answer: Text


class AnswerAspect(AnswerFormat):
    """A part of the reasoning; the rationale names the part of the answer that depends on it."""

    aspect: Text
    rationale: Text


class Decomposition(AnswerFormat):
    """A decomposition into two or three aspects that do not overlap."""

    aspects: list[AnswerAspect] = Field(min_length=LEAST_ASPECTS, max_length=MOST_ASPECTS)

    @field_validator("aspects")
    @classmethod
    def are_different(cls, aspects: list[AnswerAspect]) -> list[AnswerAspect]:
        _require_different((blueprint.aspect for blueprint in aspects), "aspects")
        return aspects


class Blueprint(AnswerFormat):
    """Plan of a passage, made before the passage is written."""

    rationale: Text
    passage_type: Text
    source: Text
    title: Text
    summary: Summary


class PositiveBlueprints(AnswerFormat):
    """A blueprint for each aspect, in the order of the aspects. Expected: `count`."""

    blueprints: list[Blueprint]

    @field_validator("blueprints")
    @classmethod
    def are_different(cls, blueprints: list[Blueprint], info: ValidationInfo) -> list[Blueprint]:
        _require_count(len(blueprints), info)
        _require_different((blueprint.title for blueprint in blueprints), "titles")
        return blueprints


class NegativeBlueprint(Blueprint):
    """A passage that looks relevant but does not help: why it fails, and the aspect that it must not cover."""

    failure: Text
    missing_aspect: Text


class NegativeBlueprints(AnswerFormat):
    """Plans for as many negatives as positives. Expected: `count`, the positives' `titles`."""

    blueprints: list[NegativeBlueprint]

    @field_validator("blueprints")
    @classmethod
    def are_different(cls, blueprints: list[NegativeBlueprint], info: ValidationInfo) -> list[NegativeBlueprint]:
        _require_count(len(blueprints), info)
        _require_different((blueprint.title for blueprint in blueprints), "titles", _expected(info).get("titles", ()))
        return blueprints


class Passages(AnswerFormat):
    """The passages of some blueprints, in the order of the blueprints. Expected: `count`."""

    passages: list[Text]

    @field_validator("passages")
    @classmethod
    def are_all_there(cls, passages: list[str], info: ValidationInfo) -> list[str]:
        _require_count(len(passages), info)
        return passages


class KeywordForm(AnswerFormat):
    """Keywords for a search with the same intent, most specific first."""

    keywords: Annotated[list[Text], Field(min_length=1, max_length=MOST_KEYWORDS)]

    @field_validator("keywords")
    @classmethod
    def are_keywords(cls, keywords: list[str]) -> list[str]:
        normalized = [normalize(keyword) for keyword in keywords]
        # A keyword that is only punctuation would match nothing.
        if not all(normalized):
            raise ValueError("a keyword has no word")
        if any(len(keyword.split()) > LONGEST_KEYWORD for keyword in keywords):
            raise ValueError(f"a keyword has more than {LONGEST_KEYWORD} words")
        if len(set(normalized)) < len(normalized):
            raise ValueError("two keywords are the same")
        return keywords


class AskedQuery(AnswerFormat):
    """A query that the document answers."""

    query: Text

    @field_validator("query")
    @classmethod
    def is_a_query(cls, query: str) -> str:
        if not normalize(query):
            raise ValueError("it has no word")
        if len(query.split()) > LONGEST_QUERY:  # The model may have returned the passage itself.
            raise ValueError(f"it has more than {LONGEST_QUERY} words")
        return query


FORMATS: dict[str, type[AnswerFormat]] = {
    "persona": PersonaQuery,
    "classify": QueryType,
    "outline": ExpertAnswer,
    "decompose": Decomposition,
    "blueprint": PositiveBlueprints,
    "negatives": NegativeBlueprints,
    "compose": Passages,
    "keywords": KeywordForm,
    "ask": AskedQuery,
}
