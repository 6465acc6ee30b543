"""Formats of steps that write a query: the keyword form of one (Prism 4.1), one that a document answers. Pure."""

from typing import Annotated

from pydantic import Field, field_validator

from judges.conversations.base import AnswerFormat
from judges.conversations.synthesis import Text, normalize

MOST_KEYWORDS = 10
LONGEST_KEYWORD = 5  # Words.
LONGEST_QUERY = 80  # Words.


class KeywordForm(AnswerFormat):
    """What somebody would type into a search box for the same need, the most telling first."""

    keywords: Annotated[list[Text], Field(min_length=1, max_length=MOST_KEYWORDS)]

    @field_validator("keywords")
    @classmethod
    def are_keywords(cls, keywords: list[str]) -> list[str]:
        """Refuse sentences, terms without a word, and a term that stands twice."""
        seen = [normalize(one) for one in keywords]
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
        """Refuse what has no word, and a passage in the place of a query."""
        if not normalize(query):
            raise ValueError("it has no word")
        if len(query.split()) > LONGEST_QUERY:
            raise ValueError(f"it has more than {LONGEST_QUERY} words")
        return query


FORMATS: dict[str, type[AnswerFormat]] = {"keywords": KeywordForm, "ask": AskedQuery}
