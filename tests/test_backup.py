"""`backup`, delete, `restore`: nothing differs (issue 3, check 18)."""

import json
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.instances import PATIENCE, Instance

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
from django.core.management import call_command
folder, var = sys.stdin.read().split()
call_command("import_collection", "owls", corpus=f"{folder}/corpus.jsonl", queries=f"{folder}/queries.jsonl", bm25=3)
call_command("judge", "owls", wait=True, workers=1)
call_command("create_users", "owls", role="annotator", count=1)
call_command("export", "owls", format="qrels", out=f"{var}/exports/owls/one")
"""


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    """An instance with a collection that the offline panel has judged, an account, and an export."""
    folder = tmp_path_factory.mktemp("owls")
    texts = [{"_id": f"d{n}", "text": f"Owls hunt mice at night {n}."} for n in range(4)]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(text) + "\n" for text in texts))
    (folder / "queries.jsonl").write_text(json.dumps({"_id": "q1", "text": "what do owls hunt"}) + "\n")
    place = Path(tempfile.mkdtemp(prefix="quorum-backup-", dir="/tmp"))
    instance = Instance(place / "var", QUORUM_LINGER="20")
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
    files = {
        str(one.relative_to(instance.var)): one.read_bytes().hex() for one in (instance.var / "exports").rglob("*.*")
    }
    return json.loads(run(instance, "shell", "-v0", "-c", ROWS)) | files


@pytest.mark.slow
def test_after_a_deletion_a_restore_brings_everything_back(judged: Instance, tmp_path: Path) -> None:
    file = tmp_path / "all.tar"
    before = everything(judged)
    written = json.loads(run(judged, "backup", file, "--json"))
    assert written["rows"] > 20 and written["files"] >= 2 and file.stat().st_mode & 0o077 == 0

    run(judged, "delete_collection", "owls", "--yes")
    assert everything(judged)["corpus_pair"] != before["corpus_pair"]
    restored = json.loads(run(judged, "restore", file, "--json"))

    assert everything(judged) == before
    assert Path(restored["before"]).exists()


@pytest.mark.slow
def test_a_backup_moves_to_another_instance(
    judged: Instance, make_instance: Callable[..., Instance], tmp_path: Path
) -> None:
    run(judged, "backup", tmp_path / "all.tar")
    other = make_instance()
    restored = json.loads(run(other, "restore", tmp_path / "all.tar", "--json"))
    assert restored["before"] is None
    assert json.loads(run(other, "status", "owls", "--json")) == json.loads(run(judged, "status", "owls", "--json"))
    assert str(other.var) in other.sql("SELECT folder FROM annotation_snapshot")
    run(other, "judge", "owls", "--wait", "--workers", "1", "--again")


@pytest.mark.slow
def test_what_is_no_whole_backup_is_refused_and_changes_nothing(judged: Instance, tmp_path: Path) -> None:
    file = tmp_path / "all.tar"
    run(judged, "backup", file)
    before = everything(judged)
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
    assert everything(judged) == before
    assert judged.manage("backup", str(file)).returncode == 2


class Spoilt:
    """A file of the same length with other bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data[::-1] if data != data[::-1] else bytes(len(data))

    def read(self, size: int = -1) -> bytes:
        taken, self.data = (self.data, b"") if size < 0 else (self.data[:size], self.data[size:])
        return taken
