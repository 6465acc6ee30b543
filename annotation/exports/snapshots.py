"""Making a snapshot: one consistent view of the database, streamed into files with a manifest."""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext as _

from annotation import guidelines
from annotation.audit_log.recording import record
from annotation.exports import files, held_labels
from annotation.exports.formats import EVERY, Format
from annotation.exports.rows import rows_of
from annotation.exports.sets.building import make_set
from annotation.exports.sets.hard_negatives import identify_run
from annotation.exports.sets.options import SetOptions, format_defaults
from annotation.label_sources.aggregated_labels import aggregate_labels
from annotation.label_sources.choices import MADE_OF_GRADES, check_aggregate
from annotation.label_sources.failed_routes import describe_left_out, list_unsettled_pairs
from annotation.models import User
from annotation.models.snapshots import Snapshot
from corpus.document_limit import SHOWN
from corpus.errors import BadInput
from corpus.long_documents import count_long_labels
from corpus.models import Collection, ExportRecord, Label, Pair
from corpus.search.lengths import file_of
from store.files import delete as delete_stored
from store.files import fetch, publish

# Formats that hold neither judgments nor labels: a judgment may be taken back after them.
WITHOUT_JUDGMENTS = frozenset({"debates", "aspects"})

Progress = Callable[[int], None]


def build_snapshot(
    *,
    collection: Collection,
    form: Format,
    folder: Path | None = None,
    origins: Sequence[str] | None = None,
    asked: SetOptions | None = None,
    leave_out_failed: bool = False,
    aggregate: str | None = None,
    assessors: Sequence[str] = (),
    user: User | None = None,
) -> Snapshot:
    """Build the row of a snapshot and do not save it. Without a folder it lies under VAR.

    `origins`: whose labels, for formats of labels; None: everybody's. `asked`: the choices of a training set.
    `leave_out_failed`: without unsettled labels of routes that failed their audit. `aggregate`: labels made of all
    grades, or of those of some `assessors` (AGGREGATES), in place of the collection's. Raises BadInput for what a
    format without labels does not take.
    """
    if origins is not None and not form.labels:
        raise BadInput(_("Format %(form)s has no labels, so it cannot be limited by source") % {"form": form.name})
    if leave_out_failed and not form.labels:
        raise BadInput(_("Format %(form)s has no labels, so none can be left out") % {"form": form.name})
    if aggregate is not None:
        _check_aggregate(form, aggregate, origins)
        if asked is not None:
            # Checked with the other options of a set, too.
            asked = replace(asked, aggregate=aggregate, assessors=tuple(assessors))
    elif assessors:
        raise BadInput(_("Assessors are named where labels are made of their grades alone: choose an aggregate"))
    options: dict[str, Any] = {"origins": sorted(set(origins)) if origins is not None else None}
    options["leave_out_failed"] = leave_out_failed
    options |= {"aggregate": aggregate, "assessors": list(assessors)}
    if form.is_set:
        default = SetOptions(**format_defaults(form.name), aggregate=aggregate, assessors=tuple(assessors))
        options["set"] = (asked or default).in_manifest()
    return Snapshot(
        collection=collection,
        format=form.name,
        options=options,
        folder=str(folder or exports_folder(collection) / uuid4().hex),
        state=Snapshot.State.MAKING,
        made_by=user,
    )


@transaction.atomic
def create_snapshot(*, collection: Collection, form: Format, user: User | None = None, **options: Any) -> Snapshot:
    """Save the row of a snapshot (`options`: as `build_snapshot` takes them); `write_snapshot` makes its files.

    From now on its judgments are locked: nobody takes them back.
    """
    snapshot = build_snapshot(collection=collection, form=form, user=user, **options)
    snapshot.save()
    if form.name not in WITHOUT_JUDGMENTS:
        # Of each collection that a training set is drawn from, too, it is known now that it is exported.
        drawn = snapshot.options.get("set", {}).get("collections") or []
        held = Collection.objects.filter(Q(pk=snapshot.collection_id) | Q(name__in=drawn))
        by_policies = snapshot.options.get("set", {}).get("labels") == "machine"
        about: dict[str, Any] = {"home": collection.name, "number": snapshot.number, "format": form.name}
        about["by_policies"] = by_policies
        ExportRecord.objects.bulk_create(ExportRecord(collection=one, export=snapshot.pk, **about) for one in held)
    record(user, "export.made", collection, snapshot=snapshot.number, format=form.name)
    return snapshot


def write_snapshot(snapshot: Snapshot, progress: Progress = lambda rows: None) -> Snapshot:
    """Write the files and complete the row; a failure leaves neither files nor a folder, and the row says why.

    Raises BadInput when the folder is not new or empty.
    """
    try:
        written = files.ExportFiles(Path(snapshot.folder))
        try:
            moment, manifest = write_files(snapshot, EVERY[snapshot.format], written, progress)
            publish(written.folder)
        # Whatever ended it, the stop of a worker too: half an export must not be taken for one.
        except BaseException:
            written.discard()
            raise
    except BaseException as error:
        snapshot.state, snapshot.error = Snapshot.State.FAILED, " ".join(str(error).split()) or "Unexpected error"
        _record_outcome(snapshot, state=snapshot.state, error=snapshot.error)
        raise
    snapshot.state, snapshot.manifest, snapshot.created_at = Snapshot.State.READY, manifest, moment
    _record_outcome(snapshot, state=snapshot.state, manifest=manifest, created_at=moment)
    return snapshot


def _record_outcome(snapshot: Snapshot, **values: Any) -> None:
    """Record how an export ended, unless another worker has begun again in another folder meanwhile."""
    if Snapshot.objects.filter(pk=snapshot.pk, folder=snapshot.folder).update(**values):
        records = ExportRecord.objects.filter(export=snapshot.pk)
        if snapshot.state == Snapshot.State.READY:
            digest = sha256(_manifest_text(snapshot.manifest).encode()).hexdigest()
            records.update(at=snapshot.created_at, sha256=digest)
        else:
            records.delete()


def begin_again(snapshot: Snapshot) -> None:
    """Drop the files that a worker which died has left under VAR; the next one writes into a folder of its own."""
    left, snapshot.folder = Path(snapshot.folder), str(exports_folder(snapshot.collection) / uuid4().hex)
    snapshot.save(update_fields=["folder"])
    delete_stored(left)
    shutil.rmtree(left, ignore_errors=True)


def write_files(
    snapshot: Snapshot, form: Format, written: files.ExportFiles, progress: Progress = lambda rows: None
) -> tuple[datetime, dict[str, Any]]:
    """Write the files and their manifest. Everything that they hold is read in one transaction."""
    collection, origins = snapshot.collection, snapshot.options["origins"]
    leave_out_failed = snapshot.options["leave_out_failed"]
    # Before the transaction, which would hold back vacuum while the store is waited for.
    for given in (snapshot.options.get("set", {}).get(name) for name in ("run", "tokenizer")):
        if given is not None:
            fetch(Path(given))
    with one_view() as moment:
        manifest = _build_manifest(collection, form, origins)
        if leave_out_failed:
            drawn = snapshot.options.get("set", {}).get("collections") or []
            held = Collection.objects.filter(Q(pk=collection.pk) | Q(name__in=drawn)).order_by("pk")
            manifest["left_out"] = describe_left_out(list(held))
        if not form.is_set:
            left_out = list_unsettled_pairs(collection) if leave_out_failed else []
            aggregated = None
            if (how := snapshot.options["aggregate"]) is not None:
                aggregated = aggregate_labels(collection, how, snapshot.options["assessors"])
                manifest["aggregate"] = {"by": how, "of": {collection.name: aggregated.described}}
                form = form.with_posterior()
            rows = rows_of(form.name, collection, origins, left_out, aggregated)
            manifest["counts"] = files.write_rows(written, form, rows, progress)
            held_labels.hold_rows(snapshot, left_out, aggregated)
        else:
            asked = SetOptions.of(snapshot.options["set"])
            asked = replace(
                asked, origins=None if origins is None else tuple(origins), leave_out_failed=leave_out_failed
            )
            manifest["counts"], details, sides = make_set(collection, form.name, asked, written, progress)
            as_judgments = asked.qrels is not None or asked.aggregate in MADE_OF_GRADES
            held_labels.hold_sets(snapshot, sides, as_judgments=as_judgments)
            manifest |= details
            relevant_from = asked.relevant_from or collection.relevant_from
            run = identify_run(asked.run) if asked.run is not None else None
            tokenizer = identify_run(str(file_of(asked.tokenizer))) if asked.tokenizer is not None else None
            own = {"origins": origins, "relevant_from": relevant_from, "run": run, "tokenizer": tokenizer}
            if asked.qrels is not None:
                own["split"] = None  # The version decides, not a share.
            manifest["options"] |= {**asked.in_manifest(), **own}
        manifest["files"] = written.written
    # The manifest comes last: a folder that has one is whole.
    part = written.folder / f".{files.MANIFEST}.part"
    part.write_text(_manifest_text(manifest), encoding="utf-8")
    part.rename(written.folder / files.MANIFEST)
    return moment, manifest


def _manifest_text(manifest: dict[str, Any]) -> str:
    return json.dumps(manifest, ensure_ascii=False, indent=2, sort_keys=True) + "\n"


def _check_aggregate(form: Format, aggregate: str, origins: Sequence[str] | None) -> None:
    check_aggregate(aggregate)
    if not form.labels:
        raise BadInput(_("Format %(form)s has no labels, so none can be aggregated") % {"form": form.name})
    if origins is not None and aggregate in MADE_OF_GRADES:
        raise BadInput(
            _("Labels by %(aggregate)s are made of all grades, so they cannot be limited by source")
            % {"aggregate": aggregate}
        )


@contextmanager
def one_view() -> Iterator[datetime]:
    """Open a REPEATABLE READ transaction; yields the moment just after its view was taken.

    Inside a transaction that is already open the caller's isolation holds: tests do that, no command or page does.
    """
    fresh = not connection.in_atomic_block
    with transaction.atomic():
        # The first statement takes the view; now() would give the earlier moment at which the transaction began.
        with connection.cursor() as cursor:
            if fresh:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("SELECT clock_timestamp()")
            (moment,) = cursor.fetchone()
        yield moment


def _build_manifest(collection: Collection, form: Format, origins: Sequence[str] | None) -> dict[str, Any]:
    """Say from what an export is made. No time and no host: the same rows give the same manifest."""
    current = Pair.objects.filter(
        collection=collection, is_candidate=True, query__is_current=True, document__is_current=True
    )
    labelled = current.filter(Exists(Label.objects.filter(pair=OuterRef("pk"), aspect=None)))
    pairs, labels = current.count(), labelled.count()
    return {
        "collection": collection.name,
        "format": form.name,
        "filters": {"origins": origins, "texts": "current"},
        "options": {
            "grades": collection.grades,
            "relevant_from": collection.relevant_from,
            "rubric": collection.rubric,
            "instruction": collection.instruction,
            "relevance": {one.name: one.text for one in collection.relevance.definitions()},
        },
        **_describe_long_documents(collection),
        "coverage": {"pairs": pairs, "labelled": labels, "share": round(labels / pairs, 6) if pairs else None},
        "versions": {"manifest": 1, "format": form.version, "guidelines": guidelines.current(collection)[0]},
    }


def _describe_long_documents(collection: Collection) -> dict[str, Any]:
    """Return what the manifest says of labels of documents that judges do not read whole; nothing where none is."""
    if not (labels := count_long_labels(collection)):
        return {}
    return {"long_documents": {"characters": SHOWN, "handling": collection.long_documents, "labels": labels}}


def exports_folder(collection: Collection) -> Path:
    """Return the folder of the snapshots that are made from the page."""
    return Path(settings.VAR) / "exports" / collection.name
