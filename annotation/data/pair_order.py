"""The order of the list of pairs by any of its columns, in pages by key: (value, id), never by offset.

Pairs without a value come last in either direction.
"""

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet

from annotation.data.pair_filters import STATES
from corpus.models import Collection, Pair
from judges.models import Campaign

Keys = list[tuple[int, Any]]
GREATEST = "\U0010ffff"  # After every text in the order of the code points.


@dataclass(frozen=True, slots=True)
class SortColumn:
    """A value in SQL of `m` (id, query_id, document_id), with its tables; it may be NULL."""

    value: str
    joins: str
    is_number: bool = True


_LABEL = "LEFT JOIN corpus_label l ON l.pair_id = m.id AND l.aspect_id IS NULL"
# As the rows show it: the judges' state, or people's where the pair was escalated or is in no campaign.
_STATE = """CASE WHEN w.state IS NULL OR w.state = 'escalated' THEN COALESCE((
    SELECT i.state FROM corpus_item i WHERE i.pair_id = m.id AND i.state <> 'withdrawn' ORDER BY i.id DESC LIMIT 1
), w.state, 'new') ELSE w.state END"""
_WHOLE = """CASE WHEN s.state IS NULL OR s.state = 'open' THEN COALESCE((
    SELECT i.state FROM corpus_item i WHERE i.pair_id = m.id AND i.state <> 'withdrawn' ORDER BY i.id DESC LIMIT 1
), 'new') ELSE s.state END::text"""
COLUMNS = {
    "query": SortColumn("q.external_id", "JOIN corpus_query q ON q.id = m.query_id", is_number=False),
    "document": SortColumn("d.external_id", "JOIN corpus_document d ON d.id = m.document_id", is_number=False),
    "state": SortColumn(
        f"array_position(ARRAY[{', '.join(repr(state) for state, _ in STATES)}]::text[], ({_STATE})::text)",
        "LEFT JOIN judges_work w ON w.pair_id = m.id AND w.campaign_id = %(campaign)s",
    ),
    # Like "state", but in the whole collection instead of one campaign.
    "whole": SortColumn(
        f"array_position(ARRAY[{', '.join(repr(state) for state, _ in STATES)}]::text[], {_WHOLE})",
        "LEFT JOIN pair_states(ARRAY[%(collection)s::bigint]) s ON s.pair = m.id",
    ),
    "label": SortColumn("l.grade", _LABEL),
    "origin": SortColumn("l.origin", _LABEL, is_number=False),
    "gold": SortColumn("g.grade", "LEFT JOIN reference_grades(%(collection)s) g ON g.pair_id = m.id"),
    "priority": SortColumn(
        "i.priority",
        """LEFT JOIN (SELECT pair_id, min(priority) AS priority FROM corpus_item
            WHERE collection_id = %(collection)s AND state IN ('open', 'conflict') GROUP BY pair_id) i
            ON i.pair_id = m.id""",
    ),
}


@dataclass(frozen=True, slots=True)
class PageKey:
    """A page's position in the table: after (or before) this id and sort value; 0: the start."""

    pair: int = 0
    value: str = ""
    backwards: bool = False


FIRST_PAGE = PageKey()


def list_keys(
    pairs: QuerySet[Pair], sort: str, key: PageKey, most: int, *, collection: Collection, campaign: Campaign | None
) -> Keys:
    """Return (id, value) of at most `most` pairs beyond a key, nearest first; by id where `sort` names no column."""
    name = sort.removeprefix("-")
    column = COLUMNS.get("whole" if name == "state" and campaign is None else name)
    if column is None:
        backwards = key.backwards and key.pair
        rows = (
            pairs.filter(pk__lt=key.pair).order_by("-pk") if backwards else pairs.filter(pk__gt=key.pair).order_by("pk")
        )
        return [(pk, "") for pk in rows.values_list("pk", flat=True)[:most]]
    downwards = sort.startswith("-")
    start: str | float | None = None
    if key.pair and column.is_number:
        # Numbers are text in a URL; a text that is not a number starts at the first page.
        with suppress(ValueError):
            start = None if math.isnan(number := float(key.value)) else number
    elif key.pair:
        start = key.value.replace("\0", "")
    try:
        sql, parameters = pairs.order_by().values_list("pk", "query_id", "document_id").query.sql_with_params()
    except EmptyResultSet:
        # Django writes no SQL for a filter that nothing can match.
        return []
    joins = column.joins % {
        "campaign": campaign.pk if campaign else 0,
        "collection": int(collection.pk),
    }
    sign, direction = ("<", "DESC") if downwards != key.backwards else (">", "ASC")
    beyond = "" if start is None else f"WHERE (value, id) {sign} (%s, %s)"
    # NULL becomes a value that comes last.
    if column.is_number:
        value = f"COALESCE({column.value}::float8, '{'-' if downwards else ''}infinity')"
    else:
        value = f"""COALESCE({column.value}, '{"" if downwards else GREATEST}') COLLATE "C" """
    statement = f"""SELECT id, value FROM (
        SELECT m.id, {value} AS value
        FROM ({sql}) m (id, query_id, document_id) {joins}) pairs
        {beyond} ORDER BY value {direction}, id {direction} LIMIT {int(most)}"""
    with connection.cursor() as cursor:
        cursor.execute(statement, [*parameters, *([start, key.pair] if beyond else [])])
        return list(cursor.fetchall())
