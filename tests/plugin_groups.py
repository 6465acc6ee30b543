"""Tests that share something costly run one after the other in one process (`--dist loadgroup`), before all others."""

import pytest

from tests.standing import STANDING, end_standing_worker


def pytest_itemcollected(item: pytest.Item) -> None:
    """Where xdist looks for it."""
    if name := group_of(item):
        item.add_marker(pytest.mark.xdist_group(name))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Groups first: what takes long shall not be left over when the other process has nothing more to do."""
    items.sort(key=lambda item: group_of(item) or "~")


def group_of(item: pytest.Item) -> str:
    """Those that need the standing worker are one group, and of any other file those with a fixture of the module."""
    found = getattr(item, "_fixtureinfo", None)
    apart = "-browser" if item.get_closest_marker("browser") else ""
    if found is None:
        return ""
    if STANDING in found.names_closure:
        return f"a-worker{apart}"
    shares = any(one[-1].scope == "module" for one in found.name2fixturedefs.values())
    return item.path.stem + apart if shares else ""


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """The standing worker ends with the last test of its group."""
    if nextitem is None or STANDING not in getattr(nextitem, "fixturenames", ()):
        end_standing_worker()
