"""The JSON documents of search tools: their beginning, the text of a query's ratings, and their end. Pure."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from annotation.exports.ratings.requests import RequestTemplate
from annotation.exports.ratings.scales import describe_ratings

DEPTH = 10  # Results of a query that `_rank_eval` measures.
METRIC = {"dcg": {"k": DEPTH, "normalize": True}}
# Limits of the Workbench in characters (TextValidationUtil of its plugin, as of OpenSearch 3.9).
LONGEST_NAME, LONGEST_DESCRIPTION = 50, 250
TEMPLATE = "query"  # Id of the template in the body of `_rank_eval`.


class RatedPair(NamedTuple):
    """A rated document of a query. `key`: what the tool knows the query by, its id or its text."""

    key: str
    document: str
    grade: int
    origin: str
    rating: float
    number: int  # Of the query in the file, from 1.
    text: str
    title: str
    excerpt: str


class JsonDocument(NamedTuple):
    """The text before the queries, that of a query with its pairs, and the text after them."""

    beginning: str
    describe: Callable[[Sequence[RatedPair]], str]
    end: str


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _open(values: Mapping[str, Any], name: str) -> str:
    """Return the beginning of an object that ends with a list of this name."""
    return f'{_as_json(values)[:-1]}, "{name}": ['


def describe_judgments(collection: str, ratings: Mapping[int, float]) -> JsonDocument:
    """Return the body of PUT _plugins/_search_relevance/judgments (OpenSearch's Search Relevance Workbench).

    Its description has the ratings by grade, by which an import maps them back, unless they are too many.
    """
    description = f"Exported from Quorum; rating of each grade: {describe_ratings(ratings)}"
    if len(description) > LONGEST_DESCRIPTION:
        description = "Exported from Quorum"
    values = {"name": collection[:LONGEST_NAME], "description": description, "type": "IMPORT_JUDGMENT"}

    def describe(pairs: Sequence[RatedPair]) -> str:
        # Ratings are texts, which all versions accept; numbers stop versions before 3.3.
        rated = [{"docId": pair.document, "rating": str(float(pair.rating))} for pair in pairs]
        return _as_json({"query": pairs[0].text, "ratings": rated})

    return JsonDocument(_open(values, "judgmentRatings"), describe, "\n]}\n")


def describe_rank_eval(index: str, template: RequestTemplate) -> JsonDocument:
    """Return the body of Elasticsearch's and OpenSearch's _rank_eval, whose requests fill a template."""
    values = {"metric": METRIC, "templates": [{"id": TEMPLATE, "template": template.template}]}

    def describe(pairs: Sequence[RatedPair]) -> str:
        rated = [{"_index": index, "_id": pair.document, "rating": pair.rating} for pair in pairs]
        request = {"id": pairs[0].key, "template_id": TEMPLATE, "params": template.insert_query(pairs[0].text)}
        return _as_json({**request, "ratings": rated})

    return JsonDocument(_open(values, "requests"), describe, "\n]}\n")


def describe_book(collection: str, ratings: Mapping[int, float], labels: Mapping[int, str]) -> JsonDocument:
    """Return a book as Quepid imports it, on the scale of the ratings; `labels`: names of grades.

    Judgements have no user, since Quepid refuses users that it does not know.
    """
    values = {
        "name": collection,
        "show_rank": False,
        "support_implicit_judgements": False,
        "scale": sorted(set(ratings.values())),
        "scale_with_labels": {str(ratings[grade]): label for grade, label in labels.items()},
    }

    def describe(pairs: Sequence[RatedPair]) -> str:
        return ",\n".join(
            _as_json(
                {
                    "query_text": pair.text,
                    "doc_id": pair.document,
                    "position": None,
                    "document_fields": _as_json({"title": pair.title, "text": pair.excerpt}),
                    "judgements": [
                        {"rating": float(pair.rating), "unrateable": False, "judge_later": False,
                         "explanation": pair.origin}
                    ],
                }
            )
            for pair in pairs
        )  # fmt: skip

    return JsonDocument(_open(values, "query_doc_pairs"), describe, "\n]}\n")
