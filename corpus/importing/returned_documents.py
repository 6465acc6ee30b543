"""Documents as a search engine returned them: stored as they were then, in a few statements for many of them."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from django.db.models import Max

from corpus.holding import hold
from corpus.importing.table_records import content_hash
from corpus.models import Collection, Document
from store.sql import fetch_rows

CURRENT = """
SELECT external_id, id, content_hash, html <> '' FROM corpus_document
WHERE collection_id = %(collection)s AND is_current AND external_id = ANY(%(ids)s)
"""
# Of an earlier version with the same text, which becomes the current one again.
RESTORE = """
UPDATE corpus_document d SET is_current = true
FROM unnest(%(ids)s::text[], %(hashes)s::text[]) AS returned (external_id, content_hash)
WHERE d.collection_id = %(collection)s AND NOT d.is_current
  AND d.external_id = returned.external_id AND d.content_hash = returned.content_hash
RETURNING d.external_id, d.id
"""
ADD = """
INSERT INTO corpus_document (collection_id, external_id, title, text, metadata, content_hash, version, is_current)
SELECT %(collection)s, returned.*, true
FROM unnest(%(ids)s::text[], %(titles)s::text[], %(texts)s::text[], %(metadata)s::jsonb[], %(hashes)s::text[],
            %(versions)s::int[]) AS returned
RETURNING external_id, id
"""


class ReturnedDocument(NamedTuple):
    """A document of an answer, of characters that PostgreSQL can store. `text`: "" if the answer had none."""

    id: str
    title: str
    text: str
    metadata: Mapping[str, Any]

    @property
    def hash(self) -> str:
        """Return the sha256 of all that a reader sees."""
        return content_hash(self.title, self.text)


class StoredDocuments(NamedTuple):
    """Primary keys by id, how many documents were new, and the versions of those with another text than before."""

    keys: dict[str, int]
    new: int
    replaced: list[int]

    @property
    def changed(self) -> int:
        """Return how many documents had another text than before."""
        return len(self.replaced)


def store_returned(collection: Collection, documents: Iterable[ReturnedDocument]) -> StoredDocuments:
    """Store documents, each id once; call it inside a transaction.

    1. Lock the collection against imports, and read its current versions.
    2. Where title or text differ, an earlier version with the same text becomes current again, or a new one is added.
    3. Add the documents that the collection lacks.

    What has the same title and text is not written, nor is a document without text that the collection has.
    Raises Deleted if the collection no longer exists.
    """
    by_id = {document.id: document for document in documents}
    if not by_id:
        return StoredDocuments({}, 0, [])
    hold(Collection.objects, collection.pk, no_key=True)
    current = {name: row for name, *row in fetch_rows(CURRENT, collection=collection.pk, ids=list(by_id))}
    keys = {name: key for name, (key, _hash, _html) in current.items()}
    changed = {name: keys[name] for name, (_key, digest, _html) in current.items()
               if by_id[name].text and by_id[name].hash != digest}  # fmt: skip
    # The hash of an imported HTML document is that of its source, too.
    html = [changed[name] for name in changed if current[name][2]]
    for name, title, text in Document.objects.filter(pk__in=html).values_list("external_id", "title", "text"):
        if (title, text) == (by_id[name].title, by_id[name].text):
            del changed[name]
    versions: dict[str, int] = {}
    if changed:
        Document.objects.filter(pk__in=changed.values()).update(is_current=False)
        hashes = [by_id[name].hash for name in changed]
        keys |= dict(fetch_rows(RESTORE, collection=collection.pk, ids=list(changed), hashes=hashes))
        rows = Document.objects.filter(collection=collection, external_id__in=changed)
        versions = dict(rows.values_list("external_id").annotate(Max("version")))
    added = [document for name, document in by_id.items() if name not in keys or keys[name] == changed.get(name)]
    columns = {
        "ids": [document.id for document in added],
        "titles": [document.title for document in added],
        "texts": [document.text for document in added],
        "metadata": [json.dumps(document.metadata, ensure_ascii=False) for document in added],
        "hashes": [document.hash for document in added],
        "versions": [versions.get(document.id, 0) + 1 for document in added],
    }
    keys |= dict(fetch_rows(ADD, collection=collection.pk, **columns)) if added else {}
    return StoredDocuments(keys, len(by_id) - len(current), [*changed.values()])
