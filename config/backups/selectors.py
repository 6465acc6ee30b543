"""What owners see of backups: the files with size, time and checksum, the one that is being written, and free space."""

import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from django.conf import settings
from django.http import Http404
from django.utils.translation import gettext as _

from store.files import fetch_matching, stored_files

CHECKSUM = ".sha256"  # Suffix of the file beside a backup, in the format of sha256sum.


@dataclass(frozen=True, slots=True)
class BackupFile:
    """A backup. `sha256` is empty where a command wrote it elsewhere and moved it here."""

    name: str
    size: int
    at: datetime
    sha256: str

    @property
    def path(self) -> Path:
        return backups_folder() / self.name


def backups_folder() -> Path:
    """Return the folder of backups, which no backup contains."""
    return Path(settings.VAR) / "backups"


def list_backups() -> list[BackupFile]:
    """Return the backups of this machine and of the store, the newest first."""
    folder = backups_folder()
    files = {Path(row.name).name: (row.content.size, row.changed_at) for row in stored_files(folder)}
    for path in folder.glob("*.tar"):
        status = path.stat()
        files[path.name] = (status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))
    checksums = {
        path.name.removesuffix(CHECKSUM): path.read_text().partition(" ")[0]
        for path in fetch_matching(folder, f"*{CHECKSUM}")
    }
    backups = [
        BackupFile(name, size, at, checksums.get(name, ""))
        for name, (size, at) in files.items()
        if name.endswith(".tar") and not name.startswith(".")
    ]
    return sorted(backups, key=lambda backup: (backup.at, backup.name), reverse=True)


def find_backup(name: str) -> BackupFile:
    """Return a backup by its name, which leads to no other folder. Raises Http404."""
    backup = next((backup for backup in list_backups() if backup.name == name), None)
    if backup is None:
        raise Http404(_("File not found."))
    return backup


def free_bytes() -> int:
    """Return the free space of the disk with VAR."""
    return shutil.disk_usage(settings.VAR).free
