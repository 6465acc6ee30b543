"""Snapshots: one consistent view of the database, streamed into files with a manifest."""

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q

from annotation.exports import files, held_labels
from annotation.exports.formats import Format, Row
from annotation.exports.label_sources.aggregated_labels import aggregate_labels
from annotation.exports.label_sources.comparisons import read_grades
from annotation.exports.label_sources.failed_routes import describe_left_out, list_unsettled_pairs
from annotation.exports.options import MADE_OF_GRADES, ExportOptions
from annotation.exports.rated_labels import write_ratings
from annotation.exports.rows import rows_of
from annotation.exports.sets.building import make_set
from annotation.exports.sets.hard_negatives import identify_run
from annotation.models import User
from annotation.models.snapshots import Snapshot
from annotation.work.settings import guidelines
from corpus.document_limit import SHOWN
from corpus.long_documents import LABELS
from corpus.models import Collection, ExportRecord, Label, Pair
from corpus.search.lengths import file_of
from store.files import delete as delete_stored
from store.files import fetch, publish
from store.sql import fetch_row

# Formats without judgments and labels, which do not lock judgments.
WITHOUT_JUDGMENTS = frozenset({"debates", "aspects", "preferences", "preference-grades"})


def build_snapshot(
    collection: Collection, options: ExportOptions, folder: Path | None = None, user: User | None = None
) -> Snapshot:
    """Build the row of a snapshot without saving it. `folder`: by default one under VAR."""
    return Snapshot(
        collection=collection,
        format=options.format,
        options=options.model_dump(mode="json", exclude_unset=True),
        folder=str(folder or exports_folder(collection) / uuid4().hex),
        state=Snapshot.State.MAKING,
        made_by=user,
    )


@transaction.atomic
def create_snapshot(
    collection: Collection, options: ExportOptions, folder: Path | None = None, user: User | None = None
) -> Snapshot:
    """Save the row of a snapshot, which locks its judgments; `write_snapshot` makes its files."""
    snapshot = build_snapshot(collection, options, folder, user)
    snapshot.save()
    if options.format not in WITHOUT_JUDGMENTS:
        about: dict[str, Any] = {"home": collection.name, "number": snapshot.number, "format": options.format}
        about["by_policies"] = options.labels == "machine"
        held = _held_collections(collection, options)
        ExportRecord.objects.bulk_create(ExportRecord(collection=row, export=snapshot.pk, **about) for row in held)
    return snapshot


def _held_collections(collection: Collection, options: ExportOptions) -> list[Collection]:
    """Return the collections from which an export is drawn."""
    collections = Collection.objects.filter(Q(pk=collection.pk) | Q(name__in=options.collections))
    return list(collections.order_by("pk"))


def write_snapshot(snapshot: Snapshot, progress: files.Progress = lambda rows: None) -> Snapshot:
    """Write the files and complete the row. After a failure there are no files, and the row has the error.

    Raises BadInput if the folder is not new or empty.
    """
    try:
        export_files = files.ExportFiles(Path(snapshot.folder))
        try:
            moment, manifest = write_files(snapshot, export_files, progress)
            publish(export_files.folder)
        # Also after the stop of a worker: an incomplete export must not look complete.
        except BaseException:
            export_files.discard()
            raise
    except BaseException as error:
        snapshot.state, snapshot.error = Snapshot.State.FAILED, " ".join(str(error).split()) or "Unexpected error"
        _record_outcome(snapshot, state=snapshot.state, error=snapshot.error)
        raise
    snapshot.state, snapshot.manifest, snapshot.created_at = Snapshot.State.READY, manifest, moment
    _record_outcome(snapshot, state=snapshot.state, manifest=manifest, created_at=moment)
    return snapshot


def _record_outcome(snapshot: Snapshot, **values: Any) -> None:
    """Record the outcome of an export, unless another worker has begun again in another folder."""
    if Snapshot.objects.filter(pk=snapshot.pk, folder=snapshot.folder).update(**values):
        records = ExportRecord.objects.filter(export=snapshot.pk)
        if snapshot.state == Snapshot.State.READY:
            digest = sha256(_manifest_text(snapshot.manifest).encode()).hexdigest()
            records.update(at=snapshot.created_at, sha256=digest)
        else:
            records.delete()


def begin_again(snapshot: Snapshot) -> None:
    """Give the snapshot a new folder, and delete the files that an interrupted worker has left in the old one."""
    old_folder, snapshot.folder = Path(snapshot.folder), str(exports_folder(snapshot.collection) / uuid4().hex)
    snapshot.save(update_fields=["folder"])
    delete_stored(old_folder)
    shutil.rmtree(old_folder, ignore_errors=True)


def write_files(
    snapshot: Snapshot, export_files: files.ExportFiles, progress: files.Progress = lambda rows: None
) -> tuple[datetime, dict[str, Any]]:
    """Write the files and their manifest. Return the moment that they show, and the manifest.

    1. Fetch the run and the tokenizer from the store.
    2. In one transaction, read the rows, write the files, and record the exported labels.
    3. Write the manifest.
    """
    collection, options = snapshot.collection, ExportOptions.read(snapshot.options)
    form, origins = options.form, list(options.origins) if options.origins is not None else None
    # Before the transaction, which holds back vacuum for as long as it is open.
    for path in (options.run, options.tokenizer):
        if path is not None:
            fetch(Path(path))
    with one_view() as moment:
        manifest = _build_manifest(collection, form, origins)
        if options.leave_out_failed:
            manifest["left_out"] = describe_left_out(_held_collections(collection, options))
        as_judgments = options.qrels is not None or options.aggregate in MADE_OF_GRADES
        if not form.is_set:
            left_out = list_unsettled_pairs(collection) if options.leave_out_failed else []
            aggregated = None
            if options.aggregate is not None:
                aggregated = aggregate_labels(collection, options.aggregate, options.assessors)
                manifest["aggregate"] = {"by": options.aggregate, "of": {collection.name: aggregated.described}}
                form = form.with_posterior()
            if form.rates is not None:
                labels = {"collection": collection.pk, "origins": origins, "left_out": left_out}
                manifest["counts"], manifest["ratings"] = write_ratings(
                    export_files, collection, options, labels, aggregated, progress
                )
            else:
                if form.name == "preference-grades":
                    graded, manifest["grades_from"] = read_grades(collection, options)
                    rows: Iterable[Sequence[Row]] = [graded]
                else:
                    rows = rows_of(form.name, collection, origins, left_out, aggregated)
                manifest["counts"] = files.write_rows(export_files, form, rows, progress)
            held_labels.hold_rows(snapshot, origins, left_out, aggregated, by_grades=as_judgments)
        else:
            manifest["counts"], details, sides = make_set(collection, options, export_files, progress)
            held_labels.hold_sets(snapshot, sides, as_judgments=as_judgments)
            manifest |= details
            tokenizer = options.tokenizer
            resolved_options: dict[str, Any] = {
                "relevant_from": options.relevant_from or collection.relevant_from,
                "run": identify_run(options.run) if options.run is not None else None,
                "tokenizer": identify_run(str(file_of(tokenizer))) if tokenizer is not None else None,
            }
            if options.qrels is not None:
                resolved_options["split"] = None  # All queries of a version are test.
            manifest["options"] |= {**options.in_manifest(), **resolved_options}
        manifest["files"] = export_files.written
    # The manifest is written last, so that a folder with a manifest is complete.
    part = export_files.folder / f".{files.MANIFEST}.part"
    part.write_text(_manifest_text(manifest), encoding="utf-8")
    part.rename(export_files.folder / files.MANIFEST)
    return moment, manifest


def _manifest_text(manifest: dict[str, Any]) -> str:
    return json.dumps(manifest, ensure_ascii=False, indent=2, sort_keys=True) + "\n"


@contextmanager
def one_view() -> Iterator[datetime]:
    """Open a REPEATABLE READ transaction, and yield the moment just after its view of the database was taken.

    Inside an open transaction, as in tests, its isolation level applies.
    """
    is_outermost = not connection.in_atomic_block
    with transaction.atomic():
        # The first statement takes the view; now() would be the earlier moment at which the transaction began.
        with connection.cursor() as cursor:
            if is_outermost:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("SELECT clock_timestamp()")
            (moment,) = cursor.fetchone()
        yield moment


def _build_manifest(collection: Collection, form: Format, origins: Sequence[str] | None) -> dict[str, Any]:
    """Return the manifest without counts. It has no time and no host, so that the same rows give the same manifest."""
    current = Pair.objects.filter(
        collection=collection, is_candidate=True, query__is_current=True, document__is_current=True
    )
    labelled = current.filter(Exists(Label.objects.filter(pair=OuterRef("pk"), aspect=None)))
    pairs, labels = current.count(), labelled.count()
    # Labels of documents that are too long for judges to read as a whole.
    long_documents = {}
    if long_labels := int(fetch_row(LABELS, collection=collection.pk, shown=SHOWN)[0]):
        handling = {"characters": SHOWN, "handling": collection.long_documents, "labels": long_labels}
        long_documents = {"long_documents": handling}
    return {
        "collection": collection.name,
        "format": form.name,
        "filters": {"origins": origins, "texts": "current"},
        "options": {
            "grades": collection.grades,
            "grade_names": collection.grade_names,
            "relevant_from": collection.relevant_from,
            "rubric": collection.rubric,
            "instruction": collection.instruction,
            "relevance": {definition.name: definition.text for definition in collection.relevance.definitions()},
        },
        **long_documents,
        "coverage": {"pairs": pairs, "labelled": labels, "share": round(labels / pairs, 6) if pairs else None},
        "versions": {"manifest": 1, "format": form.version, "guidelines": guidelines.current(collection)[0]},
    }


def exports_folder(collection: Collection) -> Path:
    """Return the folder of snapshots that are made from the page."""
    return Path(settings.VAR) / "exports" / collection.name
