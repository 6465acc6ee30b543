"""Where the extra of real models is not installed their tests say so, and where it is required they fail."""

from pathlib import Path
from typing import Any

import pytest

from tests import plugin_models


class Item:
    """A test as pytest collects it, with the marks that it gets."""

    def __init__(self, *fixtures: str) -> None:
        self.fixturenames = fixtures
        self.marks: list[Any] = []

    def add_marker(self, mark: Any) -> None:
        self.marks.append(getattr(mark, "mark", mark))


@pytest.mark.parametrize("installed", [True, False])
def test_a_test_that_takes_a_model_is_one_of_real_models_and_is_skipped_without_it(monkeypatch, installed):
    monkeypatch.setattr(plugin_models, "find_spec", lambda package: installed)
    monkeypatch.delenv("QUORUM_REQUIRE_MODELS", raising=False)
    items = [Item("tmp_path", "smollm_gguf"), Item("tmp_path")]
    plugin_models.pytest_collection_modifyitems(items)  # type: ignore[arg-type]
    assert [[mark.name for mark in item.marks] for item in items] == [
        ["models"] if installed else ["models", "skip"],
        [],
    ]
    monkeypatch.setenv("QUORUM_REQUIRE_MODELS", "1")
    if installed:
        plugin_models.pytest_collection_modifyitems(items)  # type: ignore[arg-type]
        return
    with pytest.raises(pytest.UsageError, match="make install-models"):
        plugin_models.pytest_collection_modifyitems(items)  # type: ignore[arg-type]


def test_all_of_them_lie_in_this_folder():
    """Their stage in `.ci/run` collects no other."""
    models = Path(__file__).parent
    others = [file for file in models.parent.rglob("test_*.py") if models not in file.parents]
    assert not [file for file in others if any(f"{name}:" in file.read_text() for name in plugin_models.FIXTURES)]
