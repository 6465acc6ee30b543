"""The life of an import: begin, correct, check, start, cancel; and the work of its job."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.utils.translation import get_language, override
from django.utils.translation import gettext as _

from actions.services import Actor, Unchanged, action
from annotation.access.audit_log.recording import record
from annotation.access.permissions import Scope
from annotation.data.imports.files import (
    RecognisedFile,
    correct_files,
    place_corrections,
    plan_files,
    recognise_files,
)
from annotation.data.imports.uploads import count_received, delete_complete, delete_upload, store_whole
from annotation.models import User
from annotation.models.imports import FileImport, Upload
from corpus.errors import BadInput
from corpus.importing.confinement import confined
from corpus.importing.detection import DetectedFile
from corpus.importing.options import ImportOptions
from corpus.importing.service import import_collection
from corpus.models import Collection
from jobs import leases
from jobs.notifications import notify

TASK = "annotation.import_files"
LOOKING = "files"  # The phase in which a worker finds out what the files contain.
ACTS = ("start", "cancel", "go-on")


def import_files(
    collection: Collection, owner: User, files: Iterable[Any], uploads: Iterable[Upload] = ()
) -> FileImport:
    """Make an import of a form's files and of earlier uploads. Raises BadInput, and then keeps none of the files."""
    stored: list[Upload] = []
    try:
        for file in files:
            stored.append(store_whole(collection, owner, file))
        stored = [*uploads, *stored]
        return begin_import(collection, owner, stored)
    except BadInput:
        # The form will be sent again with all its files: these would count twice against the quota.
        delete_complete(stored)
        raise


def begin_import(collection: Collection, owner: User, uploads: Sequence[Upload]) -> FileImport:
    """Make an import, which a worker checks. Raises BadInput for an upload that is incomplete or in another import."""
    if not uploads:
        raise BadInput(_("Choose one or more files."))
    for upload in uploads:
        if count_received(upload) != upload.size:
            raise BadInput(_("%(name)s has not been uploaded completely; choose it again") % {"name": upload.name})
    with transaction.atomic():
        row = FileImport.objects.create(
            collection=collection,
            owner=owner,
            made_by=owner.username,
            # Their contents are not known yet.
            files=[asdict(RecognisedFile(upload.pk, upload.name, "", DetectedFile(""))) for upload in uploads],
            options={"keep_runs": True},
            language=get_language() or "",
        )
        # Two requests may name one upload, and a third may delete it: only a free one is taken.
        free = Upload.objects.filter(pk__in=[upload.pk for upload in uploads], file_import=None)
        if free.update(file_import=row) < len(uploads):
            raise BadInput(_("One of the files is in another import already, or was deleted; choose it again"))
        transaction.on_commit(partial(notify, TASK))
    return row


@action("import.corrected")
def correct_import(
    actor: Actor, row: FileImport, options: ImportOptions, form_fields: Mapping[str, str] | None = None
) -> FileImport | Unchanged:
    """Correct what the files contain and how they are imported; a worker checks them again.

    Files that `kinds` and `columns` do not name stay as they are. Raises BadInput where the import has started.
    """
    # `form_fields`: the fields of the page's form, which name files and columns by their numbers.
    corrections = {"kinds": options.kinds, "columns": options.columns} if form_fields is None else {"said": form_fields}
    if row.looked_at and form_fields is None:
        place_corrections(row.files, options.kinds, options.columns)
    values = options.model_dump(exclude_unset=True, exclude={"kinds", "columns"})
    changes: dict[str, Any] = {"corrections": corrections, "options": {**row.options, **values}, "dry_run": True}
    changes |= {"report": {}, "done": 0, "total": 0, "phase": ""}
    free = Q(dry_run=True) | Q(state__in=[FileImport.FAILED, FileImport.CANCELLED])
    if not _queue_again(row, free, **changes):
        raise BadInput(_("This import has already started."))
    row.refresh_from_db()
    return Unchanged(row)  # A check changes nothing: only the import itself goes into the audit log.


@transaction.atomic
def control_import(scope: Scope, row: FileImport, act: str) -> None:
    """Start, cancel or resume an import. `act`: one of ACTS. Raises BadInput where its state forbids it."""
    if act == "cancel":
        leases.cancel(row)
        return
    if act == "start":
        if not _queue_again(row, Q(dry_run=True, state=FileImport.READY), dry_run=False, done=0):
            raise BadInput(_("This import cannot start now: its check is not complete, or it has already started."))
    elif not _queue_again(row, Q(state__in=[FileImport.FAILED, FileImport.CANCELLED]), done=0, phase=""):
        raise BadInput(_("Only an import that was cancelled or failed can be resumed."))
    row.refresh_from_db()
    if not row.dry_run:  # A check changes nothing: only the import itself goes into the audit log.
        # Details of the audit log are short lists, and an archive may hold a thousand files.
        names = [file["name"] for file in row.files][:50]
        record(scope, "import.files", files=list(dict.fromkeys(names)), number=row.number)


def _queue_again(row: FileImport, free: Q, **changes: Any) -> bool:
    """Queue an import again if it matches `free`, and end the lease of its worker. Return whether it did."""
    reset = {"attempts": 0, "error": "", "lease_until": None, "ended_at": None, "cancel_asked": False}
    reset |= {"language": get_language() or "", **changes}
    rows = FileImport.objects.filter(free, pk=row.pk)
    with transaction.atomic():
        transaction.on_commit(partial(notify, TASK))
        return bool(rows.update(state=FileImport.WAITING, fencing_token=F("fencing_token") + 1, **reset))


def discard_import(row: FileImport) -> None:
    """Cancel an import and delete it with its files; of one that succeeded only the files."""
    leases.cancel(row)
    for upload in row.uploads.select_related("collection"):
        delete_upload(upload)
    FileImport.objects.filter(pk=row.pk).exclude(dry_run=False, state=FileImport.READY).delete()


def perform_import(job: FileImport, should_stop: Callable[[], bool] = lambda: False) -> None:
    """Do the work of a claimed row: check its files, or import them. Errors are in its owner's language."""
    with override(job.language or settings.LANGUAGE_CODE):
        leases.perform(job, partial(_import_files, job), should_stop=should_stop, expected=BadInput)
    # Only imported files are deleted: after a check or a failure they may still be corrected.
    if FileImport.objects.filter(pk=job.pk, state=FileImport.READY, dry_run=False).exists():
        for upload in job.uploads.select_related("collection"):
            delete_upload(upload)


def _import_files(job: FileImport, lease: leases.Lease) -> None:
    """Check or import the files of a claimed row. Raises BadInput.

    1. Recognise the files and apply corrections, and store the result.
    2. Check or import them. An import's rows and the end of its job are one transaction, so that it is done once.
    """
    read: dict[str, int] = {}
    expected = sum(job.report.get("read", {}).values())

    def check_lease() -> None:
        if lease.should_stop():
            raise leases.LeaseLost

    def report_rows(kind: str, rows: int) -> None:
        check_lease()
        read[kind] = rows
        lease.note(sum(read.values()), expected, kind)

    with confined(check_lease):
        if not job.looked_at or job.corrections:
            lease.note(0, 0, LOOKING)
            uploads = {upload.pk: upload for upload in job.uploads.select_related("collection").order_by("pk")}
            if not job.looked_at:
                job.files = recognise_files(uploads.values())
            if corrections := dict(job.corrections):
                form_fields = corrections.get("said")
                fields = place_corrections(job.files, **corrections) if form_fields is None else form_fields
                job.files = correct_files([RecognisedFile.of(file) for file in job.files], fields, uploads)
            job.looked_at, job.corrections = True, {}
            if not leases.held_row(job).update(files=job.files, looked_at=True, corrections={}):
                raise leases.LeaseLost
        files = plan_files(job)
    with confined(check_lease), transaction.atomic():
        report = import_collection(job.collection.name, files, report_rows)
        report = {**report, "read": read}
        if lease.should_stop() or not leases.finish(job, FileImport.READY, report=report, done=sum(read.values())):
            raise leases.LeaseLost
