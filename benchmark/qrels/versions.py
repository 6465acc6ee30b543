"""Versions of the qrels: they never change, and equal content is not stored twice in a row."""

from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from django.db import connection, transaction
from django.utils.translation import gettext as _

from benchmark.models import Qrels, QrelsRow
from benchmark.qrels.reading import ReadQrel, fetch_rows
from corpus.errors import BadInput
from corpus.models import Collection, Label
from store.sql import read_sql

ORIGINAL = "original"  # Where the grades of imported qrels come from.
# The reference assessor of the collection's experts, whose gold labels measure people and belong to no qrels.
EXPERTS = "experts"
BATCH = 500

REFERENCE = read_sql(__file__, "read_reference")
# Queries that a model wrote are not used to measure.
LABELS = """
SELECT p.query_id, array_agg(p.document_id ORDER BY p.document_id), array_agg(l.grade ORDER BY p.document_id),
       array_agg(l.origin ORDER BY p.document_id)
FROM corpus_label l JOIN corpus_pair p ON p.id = l.pair_id
JOIN corpus_query q ON q.id = p.query_id AND q.is_current
JOIN corpus_document d ON d.id = p.document_id AND d.is_current
WHERE p.collection_id = %(collection)s AND l.aspect_id IS NULL AND NOT q.metadata @> '{"synthetic": true}'
GROUP BY p.query_id
"""


def latest_version(collection: Collection, *kinds: str) -> Qrels | None:
    """Return the newest version, of one of `kinds` where any are named; None when there is none yet."""
    versions = Qrels.objects.filter(collection=collection)
    return (versions.filter(kind__in=kinds) if kinds else versions).order_by("-number").first()


def version_numbered(collection: Collection, number: int) -> Qrels:
    """Return the version with this number. Raises BadInput that lists the existing numbers."""
    version = Qrels.objects.filter(collection=collection, number=number).first()
    if version is None:
        numbers = ", ".join(map(str, Qrels.objects.filter(collection=collection).values_list("number", flat=True)[:20]))
        raise BadInput(
            _("%(collection)s has no qrels version %(number)s; there are: %(known)s")
            % {"collection": collection.name, "number": number, "known": numbers or _("none yet")}
        )
    return version


@transaction.atomic
def original_version(collection: Collection, by: str = "") -> Qrels:
    """Return the version of the imported reference grades; a new one is made where they changed since the last."""
    _lock_numbering(collection)
    rows = fetch_rows(REFERENCE, {"collection": collection.pk})
    return store_version(collection, Qrels.Kind.ORIGINAL, rows, by=by)


def first_version(collection: Collection, by: str = "") -> Qrels:
    """Return the first version of a collection: the reference grades, or all labels where there are none."""
    if Label.objects.filter(pair__collection=collection).exists() and not fetch_rows(
        REFERENCE, {"collection": collection.pk}
    ):
        return labels_version(collection, by)
    return original_version(collection, by)


def labels_version(collection: Collection, by: str = "") -> Qrels:
    """Return a version of all current labels, from people and models."""
    rows = fetch_rows(LABELS, {"collection": collection.pk})
    if not rows:
        raise BadInput(
            _("%(collection)s has no labels yet. Judge some pairs or import judgments first")
            % {"collection": collection.name}
        )
    return store_version(collection, Qrels.Kind.LABELS, rows, by=by)


@transaction.atomic
def store_version(
    collection: Collection,
    kind: str,
    rows: Mapping[int, ReadQrel],
    *,
    note: str = "",
    parent: Qrels | None = None,
    by: str = "",
    once: bool = True,
    unjudged: int = 0,
) -> Qrels:
    """Store a new version of these rows; with `once`, return the newest of the kind if its content is the same.

    `unjudged`: rows of its file that were skipped because they had no grade.
    """
    _lock_numbering(collection)
    digest = content_hash(rows)
    latest = latest_version(collection, kind)
    # Labels exported twice without a change in between give one version, not two.
    if once and latest is not None and latest.content_hash == digest:
        return latest
    newest = latest_version(collection)
    version = Qrels.objects.create(
        collection=collection,
        number=newest.number + 1 if newest else 1,
        kind=kind,
        note=note,
        parent=parent,
        counts=counts_of(rows, collection.relevant_from) | ({"not_judged": unjudged} if unjudged else {}),
        content_hash=digest,
        made_by=by,
    )
    QrelsRow.objects.bulk_create(
        (
            QrelsRow(
                qrels=version,
                query_id=query,
                documents=row.documents.tolist(),
                grades=row.grades.tolist(),
                origins=row.origins,
            )
            for query, row in sorted(rows.items())
        ),
        batch_size=BATCH,
    )
    return version


def counts_of(rows: Mapping[int, ReadQrel], relevant_from: int) -> dict[str, Any]:
    """Count queries, judged pairs, relevant pairs, and pairs by origin."""
    origins: Counter[str] = Counter()
    for row in rows.values():
        origins.update(row.origins)
    return {
        "queries": len(rows),
        "judged": sum(len(row.documents) for row in rows.values()),
        "relevant": sum(int((row.grades >= relevant_from).sum()) for row in rows.values()),
        "origins": dict(sorted(origins.items())),
    }


def content_hash(rows: Mapping[int, ReadQrel]) -> str:
    """Return the sha256 of all rows, in hex."""
    digest = sha256()
    for query, row in sorted(rows.items()):
        digest.update(f"{query}:{len(row.documents)}:".encode())
        digest.update(row.documents.astype("<i8").tobytes() + row.grades.astype("<i2").tobytes())
        digest.update(",".join(row.origins).encode())
    return digest.hexdigest()


def _lock_numbering(collection: Collection) -> None:
    """Take the lock under which versions of a collection are numbered, until the transaction ends."""
    with connection.cursor() as cursor:
        # An advisory lock, so that numbering does not wait for locks on the collection's row; 7109
        # keeps it apart from other advisory locks.
        cursor.execute("SELECT pg_advisory_xact_lock(7109, %s)", [collection.pk])
