"""A room stays small enough to be read: tests/rooms.py has the limits and prints the table."""

from pathlib import Path

import pytest

from tests import rooms


def test_every_app_and_every_room_keeps_its_size():
    assert rooms.too_large() == []


def test_what_grows_too_large_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "corpus" / "search").mkdir(parents=True)
    (tmp_path / "corpus" / "search" / "long.py").write_text("\n" * 5_001)
    for number in range(rooms.MODULES_AT_TOP + 1):
        (tmp_path / "corpus" / f"module_{number}.py").write_text("")
    monkeypatch.setattr(rooms, "ROOT", tmp_path)
    assert rooms.too_large() == ["corpus/: 13 modules at the top", "corpus/search: 5,001 lines"]
