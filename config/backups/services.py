"""Actions on backups: have a worker write one, note its download, delete it."""

from datetime import UTC, datetime
from pathlib import Path

from django.conf import settings

from actions.services import Actor, action
from annotation.home.inbox.selectors import BACKUP_TASK
from config.backup import write_backup
from config.backups.selectors import CHECKSUM, BackupFile, backups_folder
from jobs.background import enqueue
from jobs.leases import Lease
from jobs.models import BackgroundJob
from store.files import delete, hash_file, publish

TASK = BACKUP_TASK
SITE = 0  # The subject of its jobs: the whole instance.


@action("backup.asked", role="own-site")
def ask_backup(actor: Actor, site: None) -> BackgroundJob:
    """Have a worker write a backup; one that is being written is joined."""
    return enqueue(TASK, SITE)[0]


def perform_backup(job: BackgroundJob, lease: Lease) -> None:
    """Write a backup below VAR, and its checksum beside it. Raises QuorumError."""
    folder = backups_folder()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"quorum-{datetime.now(UTC):%Y%m%d-%H%M%S}.tar"
    write_backup(path, Path(settings.VAR), progress=lease.progress)
    checksum = path.with_name(path.name + CHECKSUM)
    checksum.write_text(f"{hash_file(path)}  {path.name}\n")
    for file in (path, checksum):
        publish(file.resolve())


@action("backup.downloaded", role="own-site", noted=lambda options, name: {"file": name})
def note_download(actor: Actor, site: None, backup: BackupFile) -> str:
    """Note in the audit log that an owner downloads a backup, which holds everything and its secrets."""
    return backup.name


@action("backup.deleted", role="own-site", noted=lambda options, name: {"file": name})
def delete_backup(actor: Actor, site: None, backup: BackupFile) -> str:
    """Delete a backup and its checksum, here and in the store."""
    for path in (backup.path, backup.path.with_name(backup.name + CHECKSUM)):
        delete(path.resolve())
        path.unlink(missing_ok=True)
    return backup.name
