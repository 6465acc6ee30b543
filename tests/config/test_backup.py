"""`backup`, delete, `restore`: nothing differs (issue 3, check 18); what is no whole backup changes nothing."""

import hashlib
import io
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps

from config import backup as backups
from config import restoring
from corpus.errors import BadInput, QuorumError
from embedded import postgres, startup
from store import files
from store.models import StoredFile
from store.paths import VarPathField
from tests.config.other_servers import running_postgres
from tests.factories import make_collection
from tests.instances import PATIENCE, Instance
from training.models import Job

ROWS = """
import hashlib, json
from django.db import connection
with connection.cursor() as cursor:
    cursor.execute("SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace "
                   "WHERE nspname = 'public' AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY 1")
    found = {}
    for (table,) in cursor.fetchall():
        cursor.execute(f'SELECT t::text FROM "{table}" t ORDER BY 1')
        found[table] = hashlib.sha256(repr(cursor.fetchall()).encode()).hexdigest()
    cursor.execute("SELECT sequencename, last_value FROM pg_sequences ORDER BY 1")
    found["sequences"] = repr(cursor.fetchall())
    cursor.execute("SELECT tgname FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1")
    found["triggers"] = repr(cursor.fetchall())
print(json.dumps(found))
"""
SET_UP = """
import sys
from pathlib import Path
from django.core.management import call_command
folder, var = sys.stdin.read().split()
texts = {part: [Path(folder, f"{part}.jsonl")] for part in ("corpus", "queries")}
call_command("import_collection", "owls", **texts, bm25=3)
call_command("judge", "owls", wait=True, workers=1)
call_command("create_users", "owls", role="annotator", count=1)
call_command("export", "owls", format="qrels", out=f"{var}/exports/owls/one")
from training.jobs import lifecycle
from corpus.models import Collection
owls = Collection.objects.get(name="owls")
models = {"tuned": f"{var}/models/owls/one"}
lifecycle.begin_job(kind="rerank", options={"data": f"{var}/exports/owls/one", "models": models}, collection=owls)
vectors = Path(var, "vectors", "ab")
vectors.mkdir(parents=True)
(vectors / "hashes").write_bytes(b"hash" * 8)
"""


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    """An instance with a collection that the offline panel has judged, an account, and an export."""
    folder = tmp_path_factory.mktemp("owls")
    texts = [{"_id": f"d{n}", "text": f"Owls hunt mice at night {n}."} for n in range(4)]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(text) + "\n" for text in texts))
    (folder / "queries.jsonl").write_text(json.dumps({"_id": "q1", "text": "what do owls hunt"}) + "\n")
    place = Path(tempfile.mkdtemp(prefix="quorum-backup-", dir="/tmp"))
    instance = Instance(place / "var", QUORUM_LINGER="20").migrated()
    child = instance.start("manage.py", "shell", "-v0", "-c", SET_UP)
    _, said = child.communicate(f"{folder} {instance.var}", timeout=PATIENCE)
    assert child.returncode == 0, said
    yield instance
    instance.end()
    shutil.rmtree(place, ignore_errors=True)


def run(instance: Instance, *args: object) -> str:
    done = instance.manage(*map(str, args))
    assert done.returncode == 0, done.stderr
    return done.stdout


def everything(instance: Instance) -> dict[str, str]:
    """A hash of every table, what follows on every sequence, and the kept files."""
    paths = (instance.var / "exports").rglob("*.*")
    files = {str(path.relative_to(instance.var)): path.read_bytes().hex() for path in paths}
    return json.loads(run(instance, "shell", "-v0", "-c", ROWS)) | files


@pytest.mark.slow
def test_a_backup_moves_to_another_instance(judged: Instance, make_instance: Callable[..., Instance], tmp_path) -> None:
    run(judged, "backup", tmp_path / "all.tar")
    other = make_instance().migrated()
    assert json.loads(run(other, "restore", tmp_path / "all.tar", "--json"))["before"] is None
    assert json.loads(run(other, "status", "owls", "--json")) == json.loads(run(judged, "status", "owls", "--json"))
    assert other.sql("SELECT folder FROM annotation_snapshot") == "$QUORUM_VAR/exports/owls/one"
    run(other, "judge", "owls", "--wait", "--workers", "1", "--again")

    assert (other.var / "vectors" / "ab" / "hashes").read_bytes() == b"hash" * 8
    stored = {"data": "$QUORUM_VAR/exports/owls/one", "models": {"tuned": "$QUORUM_VAR/models/owls/one"}}
    assert json.loads(other.sql("SELECT options::text FROM training_job")) == stored
    folder = other.sql("SELECT folder FROM training_job").replace("$QUORUM_VAR", str(other.var))
    wanted = {"data": f"{other.var}/exports/owls/one", "models": {"tuned": f"{other.var}/models/owls/one"}}
    asked = json.loads((Path(folder) / "job.json").read_text())
    assert {key: asked[key] for key in wanted} == wanted


def test_after_a_deletion_a_restore_brings_everything_back_and_what_is_no_whole_backup_changes_nothing(
    judged: Instance, tmp_path: Path
) -> None:
    file, before = tmp_path / "all.tar", everything(judged)
    written = json.loads(run(judged, "backup", file, "--json"))
    assert written["rows"] > 20 and written["files"] >= 2 and file.stat().st_mode & 0o077 == 0
    cut, text, other = tmp_path / "cut.tar", tmp_path / "text.tar", tmp_path / "changed.tar"
    cut.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    text.write_text("no backup")
    with tarfile.open(file) as old, tarfile.open(other, "w") as new:
        for entry in old:
            data = old.extractfile(entry)
            assert data is not None
            new.addfile(entry, Spoilt(data.read()) if entry.name == "secret_key" or "qrels" in entry.name else data)
    for bad in (cut, text, other, tmp_path / "missing.tar"):
        done = judged.manage("restore", str(bad), "--no-safety-copy", "--json")
        assert done.returncode == 2 and done.stdout == "" and len(done.stderr.strip().splitlines()) <= 2, done.stderr
    done = judged.manage("restore", str(other))  # before the instance was copied
    assert done.returncode == 2 and "is kept in" not in done.stdout + done.stderr
    assert everything(judged) == before
    assert judged.manage("backup", str(file)).returncode == 2

    run(judged, "delete_collection", "owls", "--yes")
    assert everything(judged)["corpus_pair"] != before["corpus_pair"]
    restored = json.loads(run(judged, "restore", file, "--json"))
    assert everything(judged) == before and Path(restored["before"]).exists()


class Spoilt:
    """A file of the same length with other bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data[::-1] if data != data[::-1] else bytes(len(data))

    def read(self, size: int = -1) -> bytes:
        taken, self.data = (self.data, b"") if size < 0 else (self.data[:size], self.data[size:])
        return taken


GOOD = {
    "quorum_backup": 1,
    "var": "/somewhere/var",
    "migrations": [],
    "rows": {"corpus_pair": 0},
    "files": {"database.dump": hashlib.sha256(b"dump").hexdigest()},
}


def made(path: Path, manifest: object, **files: bytes) -> Path:
    """A tar file with this manifest (text, or what becomes JSON) and these members."""
    text = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
    with tarfile.open(path, "w") as tar:
        for name, data in {"manifest.json": text, **files}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return path


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        (b"{", "cannot be read"),
        (b"[" * 100_000, "cannot be read"),
        ([], "cannot be read"),
        ({}, "a form that this version does not read"),
        (GOOD | {"var": "relative"}, '"var"'),
        (GOOD | {"migrations": None}, '"migrations"'),
        (GOOD | {"migrations": ["corpus.9999_from_the_future"]}, "made by a newer version"),
        (GOOD | {"rows": {"a": "1"}}, '"rows"'),
        (GOOD | {"rows": {'a" ; DROP TABLE b; --': 1}}, '"rows"'),
        (GOOD | {"files": {}}, '"files"'),
        (GOOD | {"files": GOOD["files"] | {"var/jobs/../../x": "0" * 64}}, "var/jobs/../../x"),
        (GOOD | {"files": GOOD["files"] | {"var/logs/x": "0" * 64}}, "var/logs/x"),
        (GOOD | {"files": GOOD["files"] | {"var/jobs/x": "short"}}, "var/jobs/x"),
        (GOOD | {"files": {"database.dump": "0" * 64}}, "is damaged at 'database.dump'"),
        (GOOD | {"files": GOOD["files"] | {"var/jobs/x": "0" * 64}}, "is cut off: 'var/jobs/x' is missing"),
    ],
)
def test_a_bad_manifest_is_refused_before_anything_is_copied(manifest: object, words: str, tmp_path: Path) -> None:
    file = made(tmp_path / "bad.tar", manifest, **{"database.dump": b"dump"})
    with pytest.raises(BadInput) as refused:
        restoring.restore_backup(file, tmp_path, before=lambda: pytest.fail("copied"))
    assert words in str(refused.value) and "\n" not in str(refused.value)
    assert [one.name for one in tmp_path.iterdir()] == ["bad.tar"]


def test_a_backup_is_unpacked_without_tarfiles_filter_of_later_pythons(tmp_path, monkeypatch) -> None:
    """Debian 12's Python 3.11.2 has none: its `extract` takes no such argument."""
    extract, dumps = tarfile.TarFile.extract, []

    def note(folder: Path, *_: object) -> None:
        dumps.append((folder / "database.dump").read_text())
        raise QuorumError("that is all")

    monkeypatch.setattr(tarfile.TarFile, "extract", lambda self, member, path="": extract(self, member, path))
    monkeypatch.setattr(restoring, "_write_script", note)
    with pytest.raises(QuorumError, match="that is all"):
        restoring.restore_backup(made(tmp_path / "good.tar", GOOD, **{"database.dump": b"dump"}), tmp_path)
    assert dumps == ["dump"]


def test_what_is_appended_while_a_backup_is_made_does_not_spoil_it(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    log.write_bytes(b"one\n")

    class Appending(io.BytesIO):
        """The archive: its first bytes bring another line of the log."""

        def write(self, data: Any) -> int:
            with log.open("ab") as more:
                more.write(b"two\n")
            return super().write(data)

    archive = Appending()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        digest = backups._add_file(tar, "var/audit.jsonl", log)
        assert backups._add_file(tar, "var/jobs/gone", tmp_path / "gone") == ""
    with tarfile.open(fileobj=io.BytesIO(archive.getvalue())) as tar:
        (entry,) = tar
        data = tar.extractfile(entry)
        assert data is not None and hashlib.sha256(data.read()).hexdigest() == digest
    assert log.read_bytes().startswith(b"one\ntwo\n")


def test_a_file_that_becomes_shorter_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = tmp_path / "short"
    short.write_bytes(b"text")
    monkeypatch.setattr(backups.HashingReader, "read", lambda self, size=-1: b"")
    with tarfile.open(fileobj=io.BytesIO(), mode="w") as tar, pytest.raises(QuorumError, match="became shorter"):
        backups._add_file(tar, "var/jobs/short", short)


def test_backups_of_this_instance_are_pruned_by_count(tmp_path: Path) -> None:
    mine = GOOD | {"instance": backups.instance_id()}
    for number in range(5):
        os.utime(made(tmp_path / f"{number}.tar", mine), (number, number))
    made(tmp_path / "other.tar", mine | {"instance": "0" * 16})
    made(tmp_path / "older.tar", GOOD)
    os.utime(made(tmp_path / "before-restore-1.tar", mine), (0, 0))
    (tmp_path / "notes.txt").write_text("no backup")
    assert [path.name for path in backups.prune_backups(tmp_path, 2)] == ["2.tar", "1.tar", "0.tar"]
    left = ["3.tar", "4.tar", "before-restore-1.tar", "notes.txt", "older.tar", "other.tar"]
    assert sorted(path.name for path in tmp_path.iterdir()) == left
    os.utime(made(tmp_path / "before-restore-2.tar", mine), (9, 9))
    pruned = backups.prune_backups(tmp_path, 1, backups.BEFORE_RESTORE)
    assert [path.name for path in pruned] == ["before-restore-1.tar"]


@pytest.mark.django_db
def test_base_models_that_a_backup_does_not_hold_are_named_and_columns_of_folders_follow_var(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    owls = make_collection("owls")
    for base in (f"{tmp_path}/here", f"{tmp_path}/gone", "owner/hub-id"):
        Job.objects.create(collection=owls, kind="train", options={"base": base}, folder=base)
    assert restoring.missing_bases(tmp_path) == [f"{tmp_path}/gone"]

    fields = [field for model in apps.get_models() for field in model._meta.get_fields() if field.name == "folder"]
    assert len(fields) == 3 and all(isinstance(field, VarPathField) for field in fields)


def test_paths_in_files_of_jobs_move_and_others_stay(tmp_path: Path) -> None:
    folder = tmp_path / "var" / "jobs" / "owls" / "one"
    folder.mkdir(parents=True)
    given = {"data": "/old/é/exports/x", "base": "/other/old/é/x", "out": "/old/élan/x"}
    (folder / "job.json").write_text(json.dumps(given))
    (folder / "state.json").write_text(json.dumps(given, ensure_ascii=False))
    restoring._move_paths_in_files(tmp_path / "var", Path("/old/é"), Path("/old/é/new"))
    for name in ("job.json", "state.json"):
        assert json.loads((folder / name).read_text()) == given | {"data": "/old/é/new/exports/x"}


@pytest.mark.django_db(transaction=True)
def test_commands_and_backup_look_at_the_server_first(instance_environment, tmp_path, monkeypatch, capsys) -> None:
    for version, words in ((140_012, "PostgreSQL 14"), (190_001, "PostgreSQL 19")):
        assert words in startup.unsupported_reason(version) and "15 to 18" in startup.unsupported_reason(version)
    assert startup.unsupported_reason(150_000) == startup.unsupported_reason(180_004) == ""
    monkeypatch.setenv("DATABASE_URL", instance_environment["DATABASE_URL"])
    startup.check_server(tmp_path)
    monkeypatch.setattr(startup, "OLDEST", 90)
    with pytest.raises(SystemExit) as ended:
        startup.check_server(tmp_path)
    assert ended.value.code == 2 and "PostgreSQL 18" in capsys.readouterr().err
    with pytest.raises(BadInput, match="PostgreSQL 18"):
        backups.write_backup(tmp_path / "all.tar", tmp_path)
    assert not list(tmp_path.iterdir())
    monkeypatch.setenv("DATABASE_URL", f"postgres://postgres@/none?host={tmp_path}")
    with pytest.raises(SystemExit) as ended:
        startup.check_server(tmp_path)
    line = capsys.readouterr().err
    assert ended.value.code == 1 and line.count("\n") == 1 and "does not answer" in line


@pytest.fixture
def older_server() -> Iterator[Path]:
    """The folder of the socket of PostgreSQL 16, which comes in the same package as ours."""
    programs = postgres.binaries_folder().parents[1] / "pginstall" / "bin"
    if not (programs / "postgres").exists():
        pytest.skip("the package holds no older PostgreSQL any more")
    with running_postgres(programs, "-c", "listen_addresses=") as folder:
        yield folder


@pytest.mark.weekly
def test_a_backup_is_restored_on_an_older_postgresql(judged, older_server: Path, make_instance, tmp_path) -> None:
    """Below 17 a setting that pg_restore writes is unknown. There and back, and from 18 to 16."""
    holder = judged.hold()
    address = f"postgres://postgres@/quorum?host={older_server}"
    older = make_instance(DATABASE_URL=address, REDIS_URL=judged.announced()["redis"], QUORUM_PREFIX="older")
    run(older, "migrate", "-v0")
    run(judged, "backup", tmp_path / "new.tar")
    run(older, "restore", tmp_path / "new.tar", "--json")
    status = json.loads(run(older, "status", "owls", "--json"))
    assert status == json.loads(run(judged, "status", "owls", "--json"))
    run(older, "backup", tmp_path / "old.tar")
    run(older, "delete_collection", "owls", "--yes")
    restored = json.loads(run(older, "restore", tmp_path / "old.tar", "--json", "--keep", "1"))
    assert Path(restored["before"]).exists() and json.loads(run(older, "status", "owls", "--json")) == status
    assert holder.poll() is None


def test_a_backup_holds_what_other_machines_published(transactional_db: None, settings, tmp_path, monkeypatch) -> None:
    """It is made on B, which has none of the files, and a store that lost everything is filled from it."""
    settings.STORE, settings.VAR = f"file://{tmp_path / 'store'}", tmp_path / "a"
    published = settings.VAR / "exports" / "owls" / "one"
    published.mkdir(parents=True)
    (published / "qrels.txt").write_text("q1 0 d1 1\n")
    files.publish(published)
    settings.VAR = tmp_path / "b"
    settings.VAR.mkdir()
    (row,) = backups._files_of_other_machines(settings.VAR).values()
    with (tmp_path / "some.tar").open("wb") as file, tarfile.open(fileobj=file, mode="w") as tar:
        assert backups._add_stored_file(tar, f"var/{row.name}", row) == hashlib.sha256(b"q1 0 d1 1\n").hexdigest()
    with tarfile.open(tmp_path / "some.tar") as tar:
        tar.extractall(tmp_path / "out", filter="data")
    assert (tmp_path / "out" / "var" / "exports" / "owls" / "one" / "qrels.txt").read_text() == "q1 0 d1 1\n"
    shutil.rmtree(tmp_path / "store")
    settings.VAR = tmp_path / "out" / "var"
    said: list[str] = []
    restoring._refill_store(said.append)
    settings.VAR = tmp_path / "c"
    assert files.fetch(tmp_path / "c" / "exports" / "owls" / "one" / "qrels.txt").exists() and not said
    shutil.rmtree(tmp_path / "store")
    settings.VAR = tmp_path / "d"
    restoring._refill_store(said.append)
    assert len(said) == 1 and said[0].startswith("1 files are neither") and not StoredFile.objects.exists()
