"""Tests that share something costly run one after the other in one process, before all others but the pure ones.

xdist's own `--dist loadgroup` marks a test's id, which pytest 9.2 no longer lets it do (ADR 0024):
each process writes down the groups beside the session's services, and the scheduler reads them.

The tests of training are collected by the first process alone, and run there: no other one imports
their libraries, which takes longer than importing all else.
"""

import json
import os
from collections.abc import Generator
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from tests.standing import STANDING, end_standing_worker

FILE = "groups.json"
FIRST = "gw0"
TRAINING = Path(__file__).parent / "training"


def is_first() -> bool:
    return os.environ.get("PYTEST_XDIST_WORKER", FIRST) == FIRST


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """No process but the first collects the tests of training, unless they are asked for by their path."""
    if is_first() or collection_path != TRAINING or any(TRAINING.name in Path(one).parts for one in config.args):
        return None
    return True


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Every second process imports the tests from the end: it finds compiled what another has compiled by then."""
    report = yield
    if isinstance(collector, pytest.Directory) and os.environ.get("PYTEST_XDIST_WORKER", "gw0")[-1] in "13579":
        report.result.reverse()
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Groups first: what takes long shall not be left over when the other process has nothing more to do.

    But before them, while the database is still migrated (tests.migrated), what needs none.
    """
    if os.environ.get("PYTEST_XDIST_WORKER"):
        items.sort(key=lambda item: item.path)  # all processes have one order
    items.sort(key=lambda item: group_of(item) or "~")
    items.sort(key=needs_database)
    if worker := os.environ.get("PYTEST_XDIST_WORKER"):
        session = Path(os.environ["QUORUM_VAR"]).parent
        if is_first():
            (session / f"{FILE}.{worker}").write_text(json.dumps({item.nodeid: group_of(item) for item in items}))
            (session / f"{FILE}.{worker}").rename(session / FILE)


def needs_database(item: pytest.Item) -> bool:
    """Whether it reads or writes the session's own database."""
    known = "django_db_setup" in getattr(item, "fixturenames", ())
    return known or item.get_closest_marker("django_db") is not None


def group_of(item: pytest.Item) -> str:
    """Of a file, those that ask llama.cpp are one group; of all files, those that need the standing worker.

    Of any other file those with a fixture of the module are one.
    """
    found = getattr(item, "_fixtureinfo", None)
    apart = "-browser" if item.get_closest_marker("browser") else ""
    if found is None:
        return ""
    if "llama_server" in found.names_closure:
        return f"{item.path.stem}-llama-server{apart}"
    if STANDING in found.names_closure:
        return f"a-worker{apart}"
    shares = any(one[-1].scope == "module" for one in found.name2fixturedefs.values())
    return item.path.stem + apart if shares else ""


class ByGroup(LoadScopeScheduling):
    """A group is given to one process as a whole, everything else one by one."""

    @cached_property
    def groups(self) -> dict[str, str]:
        return dict(json.loads((Path(os.environ["QUORUM_VAR"]) / FILE).read_text()))

    @cached_property
    def of_first(self) -> dict[str, None]:
        """The scopes that hold a test which the first process alone has collected, in their order."""
        first, *others = self.registered_collections.values()
        common = set(first).intersection(*others)
        return dict.fromkeys(self._split_scope(one) for one in first if one not in common)

    def _split_scope(self, nodeid: str) -> str:
        return self.groups[nodeid] or nodeid

    def schedule(self) -> None:
        """The first process has collected all tests, and says so before the others."""
        for node in [node for node in self.registered_collections if node.gateway.id != FIRST]:
            self.registered_collections[node] = self.registered_collections.pop(node)
        super().schedule()

    def _check_nodes_have_same_collection(self) -> bool:
        """Nobody has collected what the first has not."""
        first, *others = self.registered_collections.values()
        return set(first).issuperset(chain(*others)) or super()._check_nodes_have_same_collection()

    def _assign_work_unit(self, node: WorkerController) -> None:
        """The first process begins with what nobody else can run; a process for which nothing is left ends."""
        if node.gateway.id == FIRST:
            waiting = next((scope for scope in self.of_first if scope in self.workqueue), next(iter(self.workqueue)))
        else:
            waiting = next((scope for scope in self.workqueue if scope not in self.of_first), "")
        if not waiting:
            node.shutdown()
            return
        self.workqueue.move_to_end(waiting, last=False)
        super()._assign_work_unit(node)

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Finished groups are forgotten: they would all be looked at again after each further test."""
        super().mark_test_complete(node, item_index, duration)
        assigned = self.assigned_work[node]
        for group in [group for group, tests in assigned.items() if all(tests.values())]:
            del assigned[group]


@pytest.hookimpl(tryfirst=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """In the order of `items`, not by the number of tests."""
    config.option.loadscopereorder = False
    return ByGroup(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """The standing worker ends with the last test of its group, before the database that it works on."""
    if nextitem is None or STANDING not in getattr(nextitem, "fixturenames", ()):
        end_standing_worker()
