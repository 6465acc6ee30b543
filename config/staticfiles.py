"""Collecting of static files into VAR, compressed and with fingerprints, whenever their sources have changed."""

import fcntl
import hashlib
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command

from embedded import locks
from embedded.refuse import say


def collect() -> bool:
    """Bring VAR/static up to date; return whether anything was collected."""
    settings.VAR.mkdir(mode=0o700, parents=True, exist_ok=True)
    stamp: Path = settings.VAR / "static.stamp"
    # Two commands that start at the same time would each clear the other's files.
    lock = locks.open_lock(settings.VAR / "static.lock")
    with open(lock):  # noqa: PTH123 - closes the descriptor, and releases the lock
        fcntl.flock(lock, fcntl.LOCK_EX)
        fingerprint = sources_fingerprint()
        if stamp.exists() and stamp.read_text() == fingerprint and Path(settings.STATIC_ROOT).exists():
            return False
        say("Preparing static files ...")
        call_command("collectstatic", interactive=False, verbosity=0, clear=True)
        stamp.write_text(fingerprint)
        return True


def sources_fingerprint() -> str:
    """Return the sha256 of the names, sizes and modification times of all sources."""
    digest = hashlib.sha256()
    for finder in get_finders():
        for name, storage in finder.list([]):
            status = Path(storage.path(name)).stat()
            # Not of their contents, because this runs at each start.
            digest.update(f"{name}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()
