"""Files that machines share: published on one, fetched on another, verified, replaced, deleted, swept."""

import os
import shutil
import sys
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings
from django.utils import timezone
from fsspec.registry import _registry
from hypothesis import given
from hypothesis import strategies as st

from config.checks import usable_store
from store import files, paths
from store.models import StoredContent, StoredFile
from store.nodes import node_id
from store.objects import ObjectStore, StoreUnavailable
from tests.factories import make_collection
from tests.machines import Turn, turn_to
from training.models import Job, Model

__all__ = ["turn_to"]

pytestmark = pytest.mark.django_db


def write(folder: Path, **contents: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_text(content)
    return folder


def objects(tmp_path: Path) -> set[str]:
    return {path.name for path in (tmp_path / "store" / "objects").rglob("*") if path.is_file()}


def test_a_folder_of_one_machine_is_on_another_once_it_is_asked_for(turn_to: Turn) -> None:
    a = write(turn_to("a") / "exports" / "birds" / "one", qrels="1 2 3", manifest="{}")
    write(a / "deep", more="deep")
    files.publish(a)
    b = turn_to("b") / "exports" / "birds" / "one"
    assert not b.exists() and files.exists(b)
    assert files.fetch(b) == b
    texts = {str(path.relative_to(b)): path.read_text() for path in b.rglob("*") if path.is_file()}
    assert texts == {"qrels": "1 2 3", "manifest": "{}", "deep/more": "deep"}
    assert not list(b.rglob(".*")), "nothing half-written is left"


def test_one_file_of_a_folder_can_be_fetched_or_read_without_the_others(turn_to: Turn) -> None:
    files.publish(write(turn_to("a") / "models" / "m", small="card", weights="many"))
    b = turn_to("b") / "models" / "m"
    assert files.fetch(b / "small").read_text() == "card" and not (b / "weights").exists()
    with files.open_stream(b / "weights") as file:
        assert file.read() == b"many"
    assert not (b / "weights").exists()
    with pytest.raises(FileNotFoundError):
        files.open_stream(b / "absent")
    part = write(turn_to("a") / "uploads" / "birds", part="1") / "part"
    files.publish_once(part)
    with pytest.raises(FileExistsError):
        files.publish_once(part)


def test_files_are_found_by_a_pattern_whoever_made_them(turn_to: Turn) -> None:
    files.publish(write(turn_to("a") / "exports" / "birds" / "one", manifest="a"))
    files.publish(write(turn_to("a") / "exports" / "birds" / "one" / "deeper", manifest="no"))
    folder = turn_to("b") / "exports" / "birds"
    write(folder / "two", manifest="b")
    found = files.fetch_matching(folder, "*/manifest")
    assert sorted(one.read_text() for one in found) == ["a", "b"] and not (folder / "one" / "deeper").exists()


def test_equal_contents_are_stored_once_and_not_sent_again(turn_to: Turn, tmp_path: Path, monkeypatch) -> None:
    folder = write(turn_to("a") / "exports" / "birds", one="same", two="same")
    files.publish(folder)
    assert objects(tmp_path) == {sha256(b"same").hexdigest()} and StoredFile.objects.count() == 2
    monkeypatch.setattr(ObjectStore, "put", None)
    assert files.publish(folder) == 2
    turn_to("b")
    assert files.publish(write(tmp_path / "b" / "exports" / "owls", three="same")) == 1


def test_a_folder_that_is_published_again_replaces_what_it_was(turn_to: Turn) -> None:
    folder = write(turn_to("a") / "jobs" / "birds" / "one", state="1", old="x", ask="mine", **{".part": "no"})
    write(folder / "checkpoints", kept="c")
    files.publish(folder / "checkpoints")
    files.publish(folder, leave_out=("ask", "checkpoints"))
    (folder / "old").unlink()
    (folder / "state").write_text("2")
    files.publish(folder, leave_out=("ask", "checkpoints"), changing=True)
    names = set(StoredFile.objects.values_list("name", flat=True))
    assert names == {"jobs/birds/one/state", "jobs/birds/one/checkpoints/kept"}
    assert files.fetch(turn_to("b") / "jobs" / "birds" / "one" / "state").read_text() == "2"


def test_what_grows_is_fetched_anew_and_never_over_what_this_machine_writes(turn_to: Turn) -> None:
    def log(machine: str) -> Path:
        return turn_to(machine) / "jobs" / "birds" / "log"

    files.publish(write(log("a").parent, log="1").joinpath("log"))
    assert files.fetch(log("b"), newest=True).read_text() == "1"
    log("a").write_text("2")
    files.publish(log("a"))
    assert files.fetch(log("b")).read_text() == "1", "a name that is published once is not asked for again"
    assert files.fetch(log("b"), newest=True).read_text() == "2"
    log("a").write_text("3, not published yet")
    assert files.fetch(log("a"), newest=True).read_text() == "3, not published yet"
    files.publish(log("b"))  # now B works on it
    assert files.fetch(log("a"), newest=True).read_text() == "2"


def test_a_path_outside_of_var_and_an_instance_without_a_store_are_left_alone(turn_to, settings, tmp_path) -> None:
    elsewhere = write(tmp_path / "elsewhere", one="1")
    turn_to("a")
    assert files.publish(elsewhere) == 0 and files.fetch(elsewhere) == elsewhere
    assert files.publish(settings.VAR / ".." / "elsewhere") == 0
    settings.STORE = ""
    inside = write(settings.VAR / "exports", one="1")
    assert files.publish(inside) == 0 and files.fetch(inside / "none") == inside / "none"
    assert not StoredFile.objects.exists() and files.exists(inside) and not files.exists(inside / "none")


def test_a_damaged_content_is_refused_and_leaves_nothing(turn_to: Turn, tmp_path: Path) -> None:
    files.publish(write(turn_to("a") / "exports" / "birds", one="right"))
    own = node_id()
    digest = sha256(b"right").hexdigest()
    (tmp_path / "store" / "objects" / digest[:2] / digest).write_text("wrong")
    b = turn_to("b") / "exports" / "birds"
    with pytest.raises(StoreUnavailable, match="other bytes"):
        files.fetch(b / "one")
    assert not any(b.iterdir())
    other = node_id()
    turn_to("a")
    assert node_id() == own != other and len(own) == 32, "each VAR has a name of its own and keeps it"


def test_contents_that_no_file_has_are_swept_after_a_day(turn_to: Turn, tmp_path: Path, monkeypatch) -> None:
    folder = write(turn_to("a") / "exports" / "birds", one="first", two="second")
    files.publish(folder)
    files.delete(folder / "one")
    assert (folder / "one").exists() and not StoredFile.objects.filter(name="exports/birds/one").exists()
    monkeypatch.setattr(files, "_swept", -files.SWEEP_S)
    files.sweep_contents()
    assert len(objects(tmp_path)) == 2, "somebody may be about to publish it"
    StoredContent.objects.update(used_at=timezone.now() - timedelta(days=2))
    files.sweep_contents()
    assert len(objects(tmp_path)) == 2, "at most every ten minutes"
    monkeypatch.setattr(files, "_swept", -files.SWEEP_S)
    files.sweep_contents()
    assert objects(tmp_path) == {sha256(b"second").hexdigest()} and StoredContent.objects.count() == 1


def test_a_store_that_is_away_or_unknown_is_named_in_one_line(turn_to: Turn, settings: Any, tmp_path: Path) -> None:
    folder = write(turn_to("a") / "exports" / "birds", one="1")
    (tmp_path / "store").write_text("a file where the folder should be")
    with pytest.raises(StoreUnavailable, match=r"^The store file://\S+ failed \(.+\): see docs/operators.md$"):
        files.publish(folder)
    assert not StoredFile.objects.exists()
    settings.STORE = "nowhere://x"
    assert [found.id for found in usable_store(None)] == ["quorum.E002"]
    settings.STORE = ""
    assert usable_store(None) == []
    for address, said in (("nowhere://x", "is no address of a store"), ("sftp://x/y", "needs a package")):
        with pytest.raises(StoreUnavailable, match=said):
            ObjectStore(address)


def test_a_missing_library_of_a_cloud_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for scheme, package in (("s3", "s3fs"), ("gs", "gcsfs"), ("az", "adlfs"), ("abfs", "adlfs")):
        monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
        monkeypatch.delitem(_registry, scheme, raising=False)
        with pytest.raises(StoreUnavailable, match=rf"^QUORUM_STORE={scheme}://\.\.\. needs the cloud extra"):
            ObjectStore(f"{scheme}://bucket/folder")


def test_any_protocol_of_fsspec_is_a_store(turn_to: Turn, settings: Any) -> None:
    """Here one that keeps files in this process: nothing but the address says which library is behind it."""
    a = write(turn_to("a") / "exports" / "birds", one="first", two="second")
    settings.STORE = "memory://quorum/instance"
    store = files.open_store()
    store.check()
    assert files.publish(a) == 2
    b = turn_to("b") / "exports" / "birds"
    with files.open_stream(b / "two") as file:
        assert file.read() == b"second"
    assert files.fetch(b / "one").read_text() == "first" and not (b / "two").exists()
    digest = StoredFile.objects.get(name="exports/birds/two").content_id
    store.delete(digest)
    assert not store.has(digest)
    with pytest.raises(StoreUnavailable, match=r"memory://quorum/instance failed"):
        files.fetch(b / "two")
    store.files.store.clear()


def test_contents_that_the_store_lost_come_from_a_machine_that_has_them(turn_to: Turn, tmp_path: Path) -> None:
    folder = write(turn_to("a") / "exports" / "birds", one="1", two="2")
    files.publish(folder)
    shutil.rmtree(tmp_path / "store")
    (folder / "two").write_text("changed")
    (gone,) = files.refill_contents()
    assert StoredFile.objects.get(pk=gone).name == "exports/birds/two"
    assert objects(tmp_path) == {sha256(b"1").hexdigest()} and files.refill_contents() == [gone]


def test_a_folder_that_is_removed_while_files_are_listed_is_left_out(tmp_path: Path, monkeypatch) -> None:
    # As a training prunes its oldest checkpoint between a look at its folder and a look into it.
    for name in ("checkpoint-1", "checkpoint-2"):
        write(tmp_path / "job" / name, weights="many")
    scan = os.scandir

    def look(path: Any) -> Any:
        if Path(path).name == "checkpoint-1" and Path(path).exists():
            (Path(path) / "weights").unlink()
            Path(path).rmdir()
        return scan(path)

    monkeypatch.setattr(os, "scandir", look)
    assert list(files.files_below(tmp_path / "job")) == [tmp_path / "job" / "checkpoint-2" / "weights"]


TEXTS = st.text(max_size=20) | st.sampled_from(["$QUORUM_VAR", "$QUORUM_VAR/x", "$QUORUM_VAR$/x", "/v", "/v/", "/v/x"])


@given(st.recursive(TEXTS | st.integers() | st.none(), lambda part: st.lists(part) | st.dictionaries(TEXTS, part)))
def test_whatever_is_stored_comes_back(document: object) -> None:
    with override_settings(VAR=Path("/v")):
        assert paths.change_texts(paths.change_texts(document, paths.encode_path), paths.decode_path) == document


def test_a_path_moves_with_var_and_a_text_with_the_mark_does_not(settings: Any) -> None:
    settings.VAR = Path("/one")
    stored = [paths.encode_path(text) for text in ("/one/models/m", "/one", "/oneself/x", "$QUORUM_VAR/etc", "a/b")]
    assert stored == ["$QUORUM_VAR/models/m", "/one", "/oneself/x", "$QUORUM_VAR$/etc", "a/b"]
    settings.VAR = Path("/two")
    decoded = [paths.decode_path(text) for text in stored]
    assert decoded == ["/two/models/m", "/one", "/oneself/x", "$QUORUM_VAR/etc", "a/b"]
    names = [paths.name_below_var(Path(path)) for path in ("/two/x/../../etc", "/two", "/elsewhere/x", "relative")]
    assert names == [None] * 4 and paths.name_below_var(Path("/two/a/b")) == "a/b", "only paths below VAR have a name"


@pytest.mark.django_db
def test_rows_name_var_by_its_mark_and_are_found_by_their_path(settings: Any, tmp_path: Path) -> None:
    settings.VAR = tmp_path
    folder = f"{tmp_path}/models/m"
    options = {"data": f"{tmp_path}/exports/x", "models": {"tuned": folder}, "base": "a/b"}
    job = Job.objects.create(collection=make_collection("birds"), folder=f"{tmp_path}/jobs/one", options=options)
    Model.objects.create(job=job, name="m", recipe="prism", base="tiny:qwen3", folder=folder)
    with connection.cursor() as cursor:
        cursor.execute("SELECT folder, options FROM training_job")
        ((stored, options),) = cursor.fetchall()
    assert stored == "$QUORUM_VAR/jobs/one" and str(tmp_path) not in str(options)
    assert Model.objects.filter(folder=folder).exists() and Model.objects.filter(folder__in=[folder]).exists()
    assert Job.objects.filter(options__models__tuned=folder).exists()
    assert list(Job.objects.values_list("options__models__tuned", flat=True)) == [folder]
    settings.VAR = tmp_path / "other"
    again = Job.objects.get()
    assert again.folder == f"{tmp_path}/other/jobs/one"
    assert again.options["models"]["tuned"] == f"{tmp_path}/other/models/m" and again.options["base"] == "a/b"
