"""Pairs that are nearly the same and carry different labels: one of the two labels is probably wrong.

Few labels are compared while the page waits; of many, a worker finds the groups and stores their pairs beside the
collection's other statistics. Labels and texts are read when the page is shown.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from annotation.models import Computed
from annotation.quality_control.matching import balance_labels
from corpus.models import Collection, Document, Label, Query
from corpus.search.near import DOCUMENT_WORDS, QUERY_WORDS, groups_of
from jobs import background, workers

QUERIES_ALIKE = 0.9
DOCUMENTS_ALIKE = 0.8  # Jaccard similarity of shingles from which texts count as near-duplicates.
AT_ONCE = 2_000  # Labels that are compared while the page waits.
MOST = 200_000  # Newest labels that a worker compares: their texts are in memory together.
SHOWN = 100
SIDES = 4  # Groups, and pairs of each, that are shown.
COMPUTE = "annotation.compare_near_pairs"
KEY = "near"  # Under which `Computed.values` keeps what was found beside the other statistics.


def near_pairs(collection: Collection) -> dict[str, Any]:
    """Groups of near-duplicate pairs whose labels differ: found now where there are few labels, else as stored.

    `compared`: how many labels; `all`: every one was; `stored`: a worker found them, at `at` (None: never); `job`: of a
    worker that compares, or the last that did.
    """
    labels = Label.objects.filter(pair__collection=collection, aspect=None).order_by()
    # Counted up to the limit only: a full count would read every label.
    if len(labels.values_list("pk")[: AT_ONCE + 1]) <= AT_ONCE:
        return _current_groups(collection, find_groups(collection)) | {"stored": False}
    row = Computed.objects.filter(collection=collection).first()
    kept: dict[str, Any] = row.values.get(KEY, {}) if row else {}
    job = background.last(COMPUTE, collection.pk)
    return _current_groups(collection, kept) | {"stored": True, "job": job}


def refresh_groups(collection: Collection) -> bool:
    """Compare the labels anew: by a worker where one lives (False), else now (True)."""
    if not workers.has_workers():
        store_groups(collection)
        return True
    background.enqueue(COMPUTE, collection.pk)
    return False


def store_groups(collection: Collection) -> None:
    """Compare the labels now and store the groups with their time."""
    values = {"at": timezone.now().isoformat()} | find_groups(collection)
    with transaction.atomic():
        # Locked and merged: other statistics are kept in the same row by another worker.
        row, _made = Computed.objects.select_for_update().get_or_create(collection=collection)
        row.values[KEY] = row.values.get(KEY, {}) | values
        row.save(update_fields=["values"])


def find_groups(collection: Collection) -> dict[str, Any]:
    """Return groups of near-duplicate pairs.

    {"groups": [[pair, ...], ...], "sizes": [n, ...], "compared", "all"}; the largest groups first.
    """
    labels = Label.objects.filter(pair__collection=collection, aspect=None).order_by("-pk")
    rows = list(labels.values_list("pair", "pair__query", "pair__document", "grade")[: MOST + 1])
    # One row more than the limit tells whether some were left out.
    complete, rows = len(rows) <= MOST, rows[:MOST]
    query_group = groups_of(_read_texts(Query, {row[1] for row in rows}), QUERIES_ALIKE, QUERY_WORDS)
    document_group = groups_of(_read_texts(Document, {row[2] for row in rows}), DOCUMENTS_ALIKE, DOCUMENT_WORDS)
    found: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for pair, query, document, grade in rows:
        # Pairs are nearly the same when both their queries and their documents are.
        found[query_group[query], document_group[document]].append((pair, grade))
    mark = collection.relevant_from
    differing = [sides for sides in found.values() if len({grade >= mark for _pair, grade in sides}) > 1]
    differing.sort(key=len, reverse=True)
    shown = differing[:SHOWN]
    return {
        "groups": [balance_labels(sides, mark, SIDES) for sides in shown],
        "sizes": [len(sides) for sides in shown],
        "compared": len(rows),
        "all": complete,
    }


def _read_texts(model: type[Query] | type[Document], ids: Iterable[int]) -> dict[int, str]:
    return dict(model.objects.filter(pk__in=list(ids)).values_list("pk", "text"))


def _current_groups(collection: Collection, kept: dict[str, Any]) -> dict[str, Any]:
    """Return kept groups with the labels and texts of now. A group whose labels agree by now is left out."""
    pairs = [pair for group in kept.get("groups", ()) for pair in group]
    texts = {
        "query": F("pair__query__text"),
        "title": F("pair__document__title"),
        "document": F("pair__document__text"),
    }
    labels = Label.objects.filter(pair__in=pairs, aspect=None)
    sides = {side["pair"]: side for side in labels.values("pair", "grade", "origin", **texts)}
    groups = []
    for members, size in zip(kept.get("groups", ()), kept.get("sizes", ()), strict=True):
        here = [sides[pair] for pair in members if pair in sides]
        here.sort(key=lambda side: (-side["grade"], side["pair"]))
        if len({side["grade"] >= collection.relevant_from for side in here}) > 1:
            groups.append({"sides": here, "more": size - len(members)})
    at = parse_datetime(kept["at"]) if kept.get("at") else None
    return {"groups": groups, "compared": kept.get("compared", 0), "all": kept.get("all", True), "at": at}
