"""The owners' page of backups: one is made by a worker, downloaded after the password was given again, deleted."""

import hashlib
import tarfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.home.inbox.selectors import list_ended
from annotation.models import AuditEntry, User
from config.backups import services
from config.backups.selectors import backups_folder
from corpus.errors import QuorumError
from jobs.leases import claim, perform
from jobs.models import BackgroundJob, JobState
from tests.factories import make_collection, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def olga(client: Client, settings: Any, tmp_path: Path) -> User:
    """An owner of the site, signed in."""
    settings.VAR = tmp_path
    make_collection("books")
    user = make_user("olga", is_owner=True)
    client.force_login(user)
    return user


def work() -> BackgroundJob:
    """Do the waiting job as a worker does."""
    job = claim(BackgroundJob, kind=services.TASK)
    assert job is not None
    perform(job, partial(services.perform_backup, job), expected=QuorumError)
    job.refresh_from_db()
    return job


def write_file(name: str = "quorum-20260101-000000.tar") -> str:
    backups_folder().mkdir(parents=True, exist_ok=True)
    (backups_folder() / name).write_bytes(b"a backup")
    return name


def confirm(client: Client, user: User, method: str, at: float) -> None:
    """Note in the session that its person gave their password, or a code, at a time."""
    session = client.session
    session["account_authentication_methods"] = [{"method": method, "at": at, "reauthenticated": True}]
    session["account_authentication_methods_user"] = str(user.pk)
    session.save()


@pytest.mark.django_db(transaction=True)
def test_a_backup_is_made_while_the_page_waits_and_listed_with_its_checksum(client: Client, olga: User) -> None:
    assert "No backups yet" in client.get(reverse("backups")).text
    for _ in range(2):
        client.post(reverse("make_backup"))
    waiting = client.get(reverse("backups"), headers={"HX-Request": "true"})
    assert waiting.status_code == 200 and "Waiting for a worker." in waiting.text
    job = work()
    assert job.state == JobState.READY, job.error
    assert job.done == job.total > 0 and BackgroundJob.objects.filter(kind=services.TASK).count() == 1
    (path,) = backups_folder().glob("*.tar")
    with tarfile.open(path) as tar:
        assert tar.getnames()[:2] == ["manifest.json", "database.dump"]
    over = client.get(reverse("backups"), headers={"HX-Request": "true"})
    assert over.status_code == 286
    assert path.name in over.text and hashlib.sha256(path.read_bytes()).hexdigest() in over.text
    assert "of disk space are free" in client.get(reverse("backups")).text


def test_a_backup_that_fails_says_why_and_leaves_no_file(client: Client, olga: User, monkeypatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise QuorumError("pg_dump failed: no room")

    monkeypatch.setattr("config.backups.services.write_backup", fail)
    client.post(reverse("make_backup"))
    assert work().state == JobState.FAILED
    assert "pg_dump failed: no room" in client.get(reverse("backups")).text
    birds, stones = make_collection("birds"), make_collection("stones")
    (ended,) = list_ended(birds, olga, timezone.now())
    assert (ended.failed, ended.sentence, ended.address) == (True, "The backup failed.", reverse("backups"))
    assert not list_ended(birds, make_user("alice"), timezone.now()), "it concerns owners alone"
    client.post(reverse("inbox_seen", args=["birds"]), {"until": ended.at.isoformat()})
    assert not list_ended(stones, olga, timezone.now()), "cleared once, it is cleared everywhere"
    assert not list(backups_folder().iterdir())


def test_a_download_takes_the_password_again_and_is_recorded(client: Client, olga: User) -> None:
    name = write_file()
    page, download = reverse("backup", args=[name]), reverse("download_backup", args=[name])
    for answer in (client.get(page), client.post(download), client.post(reverse("delete_backup", args=[name]))):
        assert answer.status_code == 302 and answer["Location"].startswith(reverse("account_reauthenticate"))
        assert answer["Location"].endswith(f"next={page.replace('/', '%2F')}")
    assert client.get(download).status_code == 405
    answer = client.post(client.get(page)["Location"], {"password": "olga-password"})
    assert (answer.status_code, answer["Location"]) == (302, page)
    assert "Download" in client.get(page).text
    assert b"".join(client.post(download)) == b"a backup"
    entry = AuditEntry.objects.get(act="backup.downloaded")
    assert (entry.person, entry.details) == (olga, {"file": name})
    confirm(client, olga, "password", time.time() - 3600)
    assert client.post(download).status_code == 302


def test_with_a_second_factor_the_password_is_not_enough(client: Client, olga: User) -> None:
    name = write_file()
    Authenticator.objects.create(user=olga, type=Authenticator.Type.TOTP, data={})
    confirm(client, olga, "password", time.time())
    answer = client.post(reverse("download_backup", args=[name]))
    assert answer.status_code == 302 and answer["Location"].startswith(reverse("mfa_reauthenticate"))
    confirm(client, olga, "mfa", time.time())
    assert b"".join(client.post(reverse("download_backup", args=[name]))) == b"a backup"


def test_a_backup_is_deleted_with_its_checksum_and_no_name_leads_elsewhere(client: Client, olga: User) -> None:
    name = write_file()
    (backups_folder() / f"{name}.sha256").write_text("0  x\n")
    (backups_folder().parent / "secret.tar").write_text("secret")
    confirm(client, olga, "password", time.time())
    for wrong in ("..%2Fsecret.tar", "secret.tar", f"{name}.sha256"):
        assert client.post(f"/backups/{wrong}/delete/").status_code == 404
    client.post(reverse("delete_backup", args=[name]))
    assert not list(backups_folder().iterdir()) and (backups_folder().parent / "secret.tar").exists()
    assert AuditEntry.objects.get(act="backup.deleted").details == {"file": name}
