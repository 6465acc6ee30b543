"""Versions of the qrels as an export reads them: rows of the benchmark's tables, which this app shares by SQL alone."""

import json
from typing import Any

from django.db import connection

from corpus.errors import BadInput
from corpus.models import Collection

KNOWN = """
    SELECT number, kind, note, content_hash, counts FROM benchmark_qrels WHERE collection_id = %s ORDER BY number
"""


def find_version(collection: Collection, number: int) -> dict[str, Any]:
    """Return what the manifest says of a version of the qrels. Raises BadInput that names those that exist."""
    versions = {one["number"]: one for one in list_versions(collection)}
    if number not in versions:
        known = ", ".join(map(str, list(versions)[:20])) or "none yet"
        raise BadInput(f"{collection.name} has no qrels version {number}; there are: {known}")
    return versions[number]


def list_versions(collection: Collection) -> list[dict[str, Any]]:
    """Return the versions of the qrels, the oldest first: number, kind, note, sha256 and how many pairs are judged."""
    with connection.cursor() as cursor:
        cursor.execute(KNOWN, [collection.pk])
        rows = cursor.fetchall()
    return [
        {"number": number, "kind": kind, "note": note, "sha256": digest, "judged": _judged_pairs(counts)}
        for number, kind, note, digest, counts in rows
    ]


def _judged_pairs(counts: Any) -> int:
    # A cursor of Django's gives JSON as text.
    found: dict[str, Any] = json.loads(counts) if isinstance(counts, str) else counts
    return int(found.get("judged", 0))
