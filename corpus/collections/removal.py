"""Deleting a collection: the one service that may remove evidence, and logs it."""

import json
import shutil
from datetime import UTC, datetime
from graphlib import TopologicalSorter

import pgtrigger
from django.conf import settings
from django.db import connection, models, transaction

from corpus.collections.audit_log import record_act, shell_user
from corpus.holding import hold
from corpus.models import Collection, LastNumber
from corpus.search.bm25 import delete_indexes
from store.files import delete as delete_stored

FOLDERS = ("exports", "jobs", "models", "uploads")  # Of VAR, with a folder for each collection.

# Relations of rows that stay: what only mentions the collection, and the audit log.
OUTLIVES = (models.SET_NULL, models.DO_NOTHING)

# For each model the SQL condition that picks the collection's rows in its table.
Rows = dict[type[models.Model], str]


def rows_of(collection: Collection) -> Rows:
    """Return every table that hangs on the collection, in every layer, nearer relations first."""
    found: Rows = {Collection: f"id = {int(collection.pk)}"}
    waiting: list[type[models.Model]] = [Collection]
    while waiting:
        parent = waiting.pop(0)
        # Hidden ones have no accessor (related_name="+"), and their rows hang on the collection all the same.
        for relation in parent._meta.get_fields(include_hidden=True):
            if not isinstance(relation, models.ManyToOneRel) or relation.on_delete in OUTLIVES:
                continue
            child, column = relation.related_model, relation.field.column
            if not isinstance(child, type) or not child._meta.managed or child._meta.proxy:
                continue
            if child not in found:
                key = parent._meta.pk.column
                owner = f"SELECT {key} FROM {parent._meta.db_table} WHERE {found[parent]}"
                direct = parent is Collection
                found[child] = f"{column} = {int(collection.pk)}" if direct else f"{column} IN ({owner})"
                waiting.append(child)
    return found


def _leaves_first(rows: Rows) -> list[type[models.Model]]:
    """Return an order in which no row is deleted while another of the set still points to it."""
    points_to: dict[type[models.Model], set[type[models.Model]]] = {
        model: {
            field.related_model
            for field in model._meta.concrete_fields
            if field.is_relation and field.related_model in rows and field.related_model is not model
        }
        for model in rows
    }
    return list(TopologicalSorter(points_to).static_order())[::-1]


def counts_of(collection: Collection) -> dict[str, int]:
    """Count the rows that would go, by the models' plural names; kinds without rows, and counters, are left out."""
    counts = {}
    with connection.cursor() as cursor:
        for model, condition in rows_of(collection).items():
            cursor.execute(f"SELECT count(*) FROM {model._meta.db_table} WHERE {condition}")
            (count,) = cursor.fetchone()
            if count and model not in (Collection, LastNumber):
                counts[str(model._meta.verbose_name_plural)] = int(count)
    return counts


def delete_collection(collection: Collection) -> dict[str, int]:
    """Remove the collection with everything that hangs on it or lies in VAR; return the numbers of `counts_of`."""
    # Triggers refuse any DELETE from the append-only tables; the end of a collection is the one exception.
    with transaction.atomic(), pgtrigger.ignore(), connection.cursor() as cursor:
        hold(Collection.objects, collection.pk)
        counts = counts_of(collection)
        # While the documents are still there: the folders have the hash of their contents as names.
        delete_indexes(collection)
        rows = rows_of(collection)
        for model in _leaves_first(rows):
            cursor.execute(f"DELETE FROM {model._meta.db_table} WHERE {rows[model]}")
        record_act(None, "collection.deleted", collection, shell=shell_user(), **counts)
        # The audit log's rows may go with a database; this line stays with the folder VAR.
        now = datetime.now(UTC).isoformat(timespec="seconds")
        line: dict[str, str | int] = {"at": now, "deleted_collection": collection.name, "by": shell_user(), **counts}
        settings.VAR.mkdir(parents=True, exist_ok=True)
        with (settings.VAR / "audit.jsonl").open("a", encoding="utf-8") as log:
            log.write(json.dumps(line) + "\n")
    # After the commit: files would not come back with rows that were rolled back.
    for kind in FOLDERS:
        delete_stored(settings.VAR / kind / collection.name)
        shutil.rmtree(settings.VAR / kind / collection.name, ignore_errors=True)
    return counts
