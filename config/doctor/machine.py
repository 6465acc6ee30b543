"""Checks of this machine: Python, packages, folder, disk, store, secret key, settings, static files, mail."""

import importlib.metadata
import os
import re
import shutil
import smtplib
import stat
import sys
import tempfile
from collections.abc import Iterator

from django.conf import settings
from django.core import checks
from django.core.mail import get_connection
from packaging.requirements import Requirement

from config import env, staticfiles
from config.doctor.findings import Finding, first_line, ok, problem, warn
from store import files
from store.objects import StoreUnavailable

PYTHONS = ((3, 11), (3, 14))
PINNED = re.compile(r"^[A-Za-z0-9][^\\\n]*==[^\\\n]*", re.MULTILINE)
FULL, TIGHT = 1_000_000_000, 5_000_000_000  # Free bytes below which there is a problem, or a warning.
FOLDERS = ("exports", "jobs", "logs", "models", "spool", "uploads")
SHORTEST_KEY = 50
MOST = 5


def check_versions() -> Iterator[Finding]:
    """Check that the version of Python is supported, and that packages are those of requirements.txt."""
    python = ".".join(map(str, sys.version_info[:3]))
    if not PYTHONS[0] <= sys.version_info[:2] <= PYTHONS[1]:
        yield problem("versions", f"Python {python} is not supported", "install Python 3.11, 3.12, 3.13 or 3.14")
    missing, mismatched = compare_packages()
    if missing:
        yield problem("versions", f"packages are missing: {_name_some(missing)}", "run `make install`")
    elif mismatched:
        yield warn(
            "versions", f"packages are not those of requirements.txt: {_name_some(mismatched)}", "run `make install`"
        )
    else:
        yield ok("versions", f"Python {python}, packages as in requirements.txt")


def compare_packages() -> tuple[list[str], list[str]]:
    """Return the missing packages, and those whose version differs from requirements.txt."""
    missing, mismatched = [], []
    for line in PINNED.findall((env.ROOT / "requirements.txt").read_text()):
        requirement = Requirement(line.strip())
        if requirement.marker is not None and not requirement.marker.evaluate():
            continue
        try:
            installed_version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            missing.append(requirement.name)
            continue
        # Pre-releases are allowed, because a specifier would otherwise exclude a pinned one.
        if not requirement.specifier.contains(installed_version, prereleases=True):
            mismatched.append(
                f"{requirement.name} {installed_version}, not {str(requirement.specifier).removeprefix('==')}"
            )
    return missing, mismatched


def _name_some(names: list[str]) -> str:
    remaining = len(names) - MOST
    return ", ".join(names[:MOST]) + (f" and {remaining} more" if remaining > 0 else "")


def check_folder() -> Iterator[Finding]:
    """Check that QUORUM_VAR and its folders are writable."""
    var = settings.VAR
    try:
        with tempfile.NamedTemporaryFile(dir=var, prefix=".doctor-") as file:
            file.write(b"written")
    except OSError as error:
        yield problem(
            "folder",
            f"{var} cannot be written ({error.strerror})",
            "let this user own it, or set QUORUM_VAR to a folder of its own",
        )
        return
    unusable = []
    for name in FOLDERS:
        path = var / name
        if path.exists() and not (path.is_dir() and os.access(path, os.W_OK | os.X_OK)):
            unusable.append(name)
    if unusable:
        names = ", ".join(unusable)
        yield problem(
            "folder", f"in {var} these are no folders that can be written: {names}", "move them away or change owner"
        )
    else:
        yield ok("folder", f"{var} can be written")


def check_store() -> Iterator[Finding]:
    """Check that files in the store of QUORUM_STORE, if any, can be written, read and deleted."""
    if not files.is_shared():
        yield ok("store", "files stay in QUORUM_VAR: QUORUM_STORE is not set, as one machine needs it")
        return
    try:
        files.open_store().check()
    except StoreUnavailable as error:
        yield problem("store", first_line(error), "check QUORUM_STORE and the credentials that this machine has for it")
    else:
        yield ok("store", f"{settings.STORE} can be written and read")


def check_disk() -> Iterator[Finding]:
    """Check that the disk of QUORUM_VAR has free space."""
    usage = shutil.disk_usage(settings.VAR)
    says = f"{usage.free / 1e9:.1f} of {usage.total / 1e9:.1f} GB are free for {settings.VAR}"
    remedy = "remove old backups and exports, or move QUORUM_VAR to a larger disk"
    if usage.free < FULL:
        yield problem("disk", says, remedy)
    elif usage.free < TIGHT:
        yield warn("disk", says, remedy)
    else:
        yield ok("disk", says)


def check_secret_key() -> Iterator[Finding]:
    """Check that the secret key is long enough, is no example, and cannot be read by others."""
    remedy = "set SECRET_KEY to 50 random characters (all people sign in again)"
    if len(settings.SECRET_KEY) < SHORTEST_KEY or settings.SECRET_KEY.startswith("django-insecure"):
        yield problem("secret key", f"it has {len(settings.SECRET_KEY)} characters or is an example", remedy)
        return
    file = settings.VAR / "secret_key"
    if file.exists() and stat.S_IMODE(file.stat().st_mode) & 0o077:
        yield problem("secret key", f"others can read {file}", f"chmod 600 {file}")
        return
    yield ok("secret key", "long enough, and closed to others")


def check_settings() -> Iterator[Finding]:
    """Run Django's own checks, in production including those for deployment."""
    if settings.DEBUG and settings.PRODUCTION:
        yield problem("settings", "QUORUM_DEBUG shows visitors the insides of errors", "unset QUORUM_DEBUG")
    all_messages = checks.run_checks(include_deployment_checks=settings.PRODUCTION)
    messages = [message for message in all_messages if not message.is_silenced()]
    for message in messages:
        if message.level >= checks.WARNING:
            make_finding = problem if message.level >= checks.ERROR else warn
            yield make_finding(
                "settings", first_line(Exception(message.msg)), message.hint or f"see Django's check {message.id}"
            )
    if not messages:
        yield ok("settings", "Django's checks have nothing to say")


def check_static_files() -> Iterator[Finding]:
    """Check that the collected static files belong to this version."""
    stamp, root = settings.VAR / "static.stamp", settings.STATIC_ROOT
    if not stamp.exists():
        yield warn("static files", "none are collected: nobody has served this instance", "start `manage.py serve`")
    elif not (root / "staticfiles.json").exists():
        yield problem(
            "static files", f"{root} lacks its list of files", f"remove {stamp} and start `manage.py serve` again"
        )
    elif stamp.read_text() != staticfiles.sources_fingerprint():
        yield problem("static files", "they are of another version", "start `manage.py serve` again")
    else:
        yield ok("static files", "collected, of this version")


def check_mail() -> Iterator[Finding]:
    """Check that the mail server, if one is set, accepts our connection."""
    if not settings.EMAIL_HOST:
        yield ok("mail", "no EMAIL_HOST: links are handed over by people")
        return
    server = f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}"
    try:
        # Opening the connection signs in at the server without sending anything.
        with get_connection("django.core.mail.backends.smtp.EmailBackend"):
            pass
    except (OSError, smtplib.SMTPException) as error:
        yield problem(
            "mail",
            f"{server} does not take mail ({first_line(error)})",
            "check EMAIL_HOST, EMAIL_PORT, EMAIL_HOST_USER, its password and EMAIL_USE_TLS or EMAIL_USE_SSL",
        )
    else:
        yield ok("mail", f"{server} takes mail from {settings.DEFAULT_FROM_EMAIL}")
