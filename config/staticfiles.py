"""Collected, compressed, fingerprinted static files in VAR, remade on changes."""

import fcntl
import hashlib
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command

from embedded import locks
from embedded.refuse import say


def collect() -> bool:
    """Bring VAR/static up to date; return whether anything had to be done."""
    settings.VAR.mkdir(mode=0o700, parents=True, exist_ok=True)
    stamp: Path = settings.VAR / "static.stamp"
    # Two commands that start at once would each clear what the other one collects.
    lock = locks.open_lock(settings.VAR / "static.lock")
    with open(lock) as _held:  # noqa: PTH123 - closes the descriptor, and with it the lock
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = sources_fingerprint()
        if stamp.exists() and stamp.read_text() == wanted and Path(settings.STATIC_ROOT).exists():
            return False
        say("Preparing static files ...")
        call_command("collectstatic", interactive=False, verbosity=0, clear=True)
        stamp.write_text(wanted)
        return True


def sources_fingerprint() -> str:
    """Return the sha256 of names, sizes and times of all sources."""
    digest = hashlib.sha256()
    for finder in get_finders():
        for name, storage in finder.list([]):
            found = Path(storage.path(name)).stat()
            # Not their bytes: this runs at each start.
            digest.update(f"{name}\0{found.st_size}\0{found.st_mtime_ns}\n".encode())
    return digest.hexdigest()
