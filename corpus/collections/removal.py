"""Deletion of a collection, the only service that may delete evidence; it is logged."""

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

FOLDERS = ("exports", "jobs", "models", "uploads")  # Folders of VAR with a subfolder for each collection.

# Relations whose rows stay: those that only mention the collection, and the audit log.
OUTLIVES = (models.SET_NULL, models.DO_NOTHING)

# The SQL condition for the collection's rows in the table of each model.
Rows = dict[type[models.Model], str]


def rows_of(collection: Collection) -> Rows:
    """Return every table with rows of the collection, in all apps, closer relations first."""
    conditions: Rows = {Collection: f"id = {int(collection.pk)}"}
    queue: list[type[models.Model]] = [Collection]
    while queue:
        parent = queue.pop(0)
        # Hidden relations (related_name="+") belong to the collection as well.
        for relation in parent._meta.get_fields(include_hidden=True):
            if not isinstance(relation, models.ManyToOneRel) or relation.on_delete in OUTLIVES:
                continue
            child, column = relation.related_model, relation.field.column
            if not isinstance(child, type) or not child._meta.managed or child._meta.proxy:
                continue
            if child not in conditions:
                key = parent._meta.pk.column
                owner = f"SELECT {key} FROM {parent._meta.db_table} WHERE {conditions[parent]}"
                is_direct = parent is Collection
                conditions[child] = f"{column} = {int(collection.pk)}" if is_direct else f"{column} IN ({owner})"
                queue.append(child)
    return conditions


def counts_of(collection: Collection) -> dict[str, int]:
    """Count the rows that would be deleted, by the models' plural names; empty tables and counters are left out."""
    counts = {}
    with connection.cursor() as cursor:
        for model, condition in rows_of(collection).items():
            cursor.execute(f"SELECT count(*) FROM {model._meta.db_table} WHERE {condition}")
            (count,) = cursor.fetchone()
            if count and model not in (Collection, LastNumber):
                counts[str(model._meta.verbose_name_plural)] = int(count)
    return counts


def delete_collection(collection: Collection) -> dict[str, int]:
    """Delete the collection with all its rows and files; return the numbers of `counts_of`."""
    # Triggers reject any DELETE from append-only tables; deleting a collection is the only exception.
    with transaction.atomic(), pgtrigger.ignore(), connection.cursor() as cursor:
        hold(Collection.objects, collection.pk)
        counts = counts_of(collection)
        # Before the documents, whose hash is the name of the folder.
        delete_indexes(collection)
        rows = rows_of(collection)
        # In an order in which no row is deleted while another one refers to it.
        references: dict[type[models.Model], set[type[models.Model]]] = {
            model: {
                field.related_model
                for field in model._meta.concrete_fields
                if field.is_relation and field.related_model in rows and field.related_model is not model
            }
            for model in rows
        }
        for model in reversed(list(TopologicalSorter(references).static_order())):
            cursor.execute(f"DELETE FROM {model._meta.db_table} WHERE {rows[model]}")
        record_act(None, "collection.deleted", collection, shell=shell_user(), **counts)
        # This line is kept in VAR, even if the database with the audit log is lost.
        now = datetime.now(UTC).isoformat(timespec="seconds")
        line: dict[str, str | int] = {"at": now, "deleted_collection": collection.name, "by": shell_user(), **counts}
        settings.VAR.mkdir(parents=True, exist_ok=True)
        with (settings.VAR / "audit.jsonl").open("a", encoding="utf-8") as log:
            log.write(json.dumps(line) + "\n")
    # After the commit, since deleted files would not come back after a rollback.
    for kind in FOLDERS:
        delete_stored(settings.VAR / kind / collection.name)
        shutil.rmtree(settings.VAR / kind / collection.name, ignore_errors=True)
    return counts
