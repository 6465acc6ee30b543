"""Files as downloads: ranges, conditions by ETag, memory that does not grow, and files that only the store has."""

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.signals import request_finished
from django.db import close_old_connections
from django.http import Http404
from django.test import RequestFactory

from store.downloads import find_version, send_file
from store.files import publish
from tests.machines import Turn, turn_to

__all__ = ["turn_to"]

CONTENT = bytes(range(256)) * 4


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "labels.bin"
    path.write_bytes(CONTENT)
    return path


ANSWERS: list[Any] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Close the answers that nobody read, as Django's test client does: connections that other tests left are kept."""
    yield
    request_finished.disconnect(close_old_connections)
    while ANSWERS:
        ANSWERS.pop().close()
    request_finished.connect(close_old_connections)


def ask(path: Path, **headers: str) -> Any:
    ANSWERS.append(send_file(RequestFactory().get("/", headers=headers), path, name="labels.bin"))
    return ANSWERS[-1]


def body_of(response: Any) -> bytes:
    return b"".join(response.streaming_content)


def test_the_whole_file_says_that_parts_can_be_had(path: Path) -> None:
    response = ask(path)
    assert (response.status_code, body_of(response)) == (200, CONTENT)
    assert response["Accept-Ranges"] == "bytes" and response["Content-Length"] == "1024"
    assert response["Content-Disposition"] == 'attachment; filename="labels.bin"'
    assert response["ETag"] == ask(path)["ETag"]


def test_a_range_is_answered_with_its_bytes(path: Path) -> None:
    for asked, first, last in (
        ("bytes=0-0", 0, 0), ("bytes=10-19", 10, 19), ("bytes=1000-", 1000, 1023), ("bytes=-24", 1000, 1023),
        ("bytes=1023-9999", 1023, 1023), ("bytes=-5000", 0, 1023), ("bytes=0-", 0, 1023),
    ):  # fmt: skip
        response = ask(path, range=asked)
        assert (response.status_code, response["Content-Range"]) == (206, f"bytes {first}-{last}/1024")
        assert body_of(response) == CONTENT[first : last + 1]
        assert response["Content-Length"] == str(last + 1 - first)


def test_a_range_behind_the_end_is_refused_and_what_is_none_gets_the_whole(path: Path) -> None:
    for asked in ("bytes=1024-", "bytes=5000-6000", "bytes=-0"):
        response = ask(path, range=asked)
        assert (response.status_code, response["Content-Range"]) == (416, "bytes */1024"), asked
    for asked in ("bytes=", "bytes=-", "bytes=5-2", "bytes=0-1,4-5", "lines=0-1", "bytes=٣-", "bytes=a-b", "0-1"):
        response = ask(path, range=asked.encode().decode("latin-1"))
        assert (response.status_code, body_of(response)) == (200, CONTENT), asked
    path.write_bytes(b"")
    assert (ask(path).status_code, ask(path)["Content-Length"]) == (200, "0")
    assert ask(path, range="bytes=0-").status_code == 416


def test_a_download_goes_on_only_in_the_same_version(path: Path) -> None:
    etag = ask(path)["ETag"]
    assert ask(path, range="bytes=1000-", if_range=etag).status_code == 206
    path.write_bytes(b"another " * 200)
    later = ask(path, range="bytes=1000-", if_range=etag)
    assert (later.status_code, body_of(later)) == (200, b"another " * 200)
    assert ask(path, range="bytes=0-1", if_range="Thu, 26 Nov 2026 07:00:00 GMT").status_code == 200


def test_who_has_the_file_already_is_told_so(path: Path) -> None:
    etag = ask(path)["ETag"]
    same = ask(path, if_none_match=etag)
    assert (same.status_code, same["ETag"]) == (304, etag)
    assert ask(path, if_none_match='"other"').status_code == 200
    assert ask(path, if_match='"other"').status_code == 412
    for name in ("missing", "."):
        with pytest.raises(Http404):
            ask(path.parent / name)


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(300 << 20)
    tracemalloc.start()
    try:
        sent = sum(len(block) for block in ask(path, range=f"bytes={100 << 20}-").streaming_content)
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sent == 200 << 20 and peak < 4 << 20


@pytest.mark.django_db
def test_a_file_of_another_machine_is_sent_from_the_store_without_a_copy(turn_to: Turn) -> None:
    a = turn_to("a")
    (a / "exports").mkdir()
    (a / "exports" / "labels.bin").write_bytes(CONTENT)
    publish(a / "exports")
    here = ask(a / "exports" / "labels.bin")
    assert body_of(here) == CONTENT
    b = turn_to("b")
    there = ask(b / "exports" / "labels.bin", range="bytes=100-", if_range=here["ETag"])
    assert (there.status_code, body_of(there)) == (206, CONTENT[100:])
    assert there["ETag"] == here["ETag"] and not (b / "exports").exists()


@pytest.mark.django_db
def test_a_file_that_grows_is_fetched_anew(turn_to: Turn) -> None:
    a = turn_to("a")
    (a / "jobs").mkdir()
    found = []
    for text in ("one\n", "one\ntwo\n"):
        turn_to("a")
        (a / "jobs" / "log.txt").write_text(text)
        publish(a / "jobs", changing=True)
        found.append(find_version(turn_to("b") / "jobs" / "log.txt", grows=True))
    first, second = found
    assert first and second and (first.size, second.size) == (4, 8) and first.etag != second.etag
