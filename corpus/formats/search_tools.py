"""Ratings of search tools as rows: OpenSearch's Search Relevance Workbench, and bodies of `_rank_eval`. Pure."""

import re
from typing import Any

from corpus.formats import passages
from corpus.formats.cell_values import as_cell

# In the description of our own exports (annotation.exports.ratings.documents): the rating of each grade.
_RATED = r"\d{1,3}=\d+(?:\.\d+)?(?:e-\d+)?"
_SCALE = re.compile(rf"rating of each grade: ({_RATED}(?:, {_RATED})*)\Z")
_QUERY_PARAMETERS = "query query_text query_string querytext text q"


def read_ratings(row: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Return a row for each query with its ratings; None for an object that is none of these.

    Ratings from 0 to 1 become "0.5 of 1", a share of the scale, and those of our own exports grades again.
    """
    if _is_list(row.get("judgmentRatings")):
        return _read_judgments(row)
    # The answer to GET _plugins/_search_relevance/judgments.
    answer = row.get("hits")
    if isinstance(answer, dict) and _is_list(answer.get("hits")):
        sources = [hit.get("_source") for hit in answer["hits"]]
        if all(isinstance(source, dict) and _is_list(source.get("judgmentRatings")) for source in sources):
            return [judged_query for source in sources for judged_query in _read_judgments(source)]
    if _is_list(row.get("requests")) and all(_is_list(request.get("ratings")) for request in row["requests"]):
        # A body of `_rank_eval`: queries have their ids, and their texts if all have one as a parameter.
        requests, texts = row["requests"], []
        for request in requests:
            params = request.get("params")
            name = passages.find_key(params, _QUERY_PARAMETERS) if isinstance(params, dict) else ""
            texts.append(params[name] if name and isinstance(params, dict) else None)
        have_texts = all(isinstance(text, str) for text in texts)
        rows = []
        for request, text in zip(requests, texts, strict=True):
            rated = [{"doc_id": rating.get("_id"), "rating": rating.get("rating")} for rating in request["ratings"]]
            query = {"query": text} if have_texts else {}
            rows.append({"query_id": request.get("id"), **query, "ratings": rated})
        return rows
    return None


def _is_list(value: Any) -> bool:
    """Return whether a value is a list of objects."""
    return isinstance(value, list) and all(isinstance(part, dict) for part in value)


def _read_judgments(row: dict[str, Any]) -> list[dict[str, Any]]:
    queries = row["judgmentRatings"]
    rated = [rating for query in queries if _is_list(query.get("ratings")) for rating in query["ratings"]]
    values = [_as_number(rating.get("rating")) for rating in rated]
    match = _SCALE.search(str(row.get("description") or ""))
    scale = match[1] if match else ""
    # Two grades may have one rating; then it is the lower one.
    grades = {float(part.partition("=")[2]): part.partition("=")[0] for part in reversed(scale.split(", ")) if part}
    are_shares = all(value is not None and 0 <= value <= 1 for value in values)

    def describe(rating: Any) -> Any:
        value = _as_number(rating)
        if value is not None and grades:
            return grades.get(value, f"{as_cell(rating)} of {scale}")
        return f"{as_cell(rating)} of 1" if are_shares else rating

    return [
        {
            **query,
            "ratings": [{**rating, "rating": describe(rating.get("rating"))} for rating in query["ratings"]],
        }
        if _is_list(query.get("ratings"))
        else query
        for query in queries
    ]


def _as_number(value: Any) -> float | None:
    try:
        return None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
