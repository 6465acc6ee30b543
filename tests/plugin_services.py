"""Gives the tests a PostgreSQL and a Redis of their own before anything reads the settings.

Loaded with `-p` (pyproject.toml), because pytest-django reads the settings before it imports
conftest.py: started later, tests would run on a developer's own instance. Workers of xdist inherit
the environment. With DATABASE_URL and REDIS_URL set, those are used and nothing is started.
"""

import atexit
import gc
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from config import loopback
from tests import migrated
from tests.stages import DAYS, is_left_out, mark_worker_tests

_own_services: list[Path] = []
"""The VAR of services that end with this session."""
_migrating: list["subprocess.Popen[bytes]"] = []
"""What runs the migrations for the workers of xdist."""


def set_environment() -> None:
    """A fresh VAR, the addresses in it, and the line between this session and everything else."""
    var = Path(tempfile.mkdtemp(prefix="quorum-test-"))
    atexit.register(shutil.rmtree, var, ignore_errors=True)  # the keeper sees it go, and goes
    os.environ["QUORUM_VAR"] = str(var)
    os.environ.setdefault("QUORUM_LINGER", "2")
    os.environ.setdefault("QUORUM_DURABLE", "0")
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # models are tiny, and the processes of a session share the cores
    if os.environ.get("DATABASE_URL") and os.environ.get("REDIS_URL"):
        return
    import embedded
    from embedded.addresses import DATABASE_NAME, database_url

    _own_services.append(var)
    if (kept := migrated.kept_cluster()).exists():
        shutil.copytree(kept, var / "postgres")
        (var / migrated.FILE).write_text(DATABASE_NAME)
    embedded.ensure_services(var)
    os.environ["DATABASE_URL"], os.environ["REDIS_URL"] = database_url(var), embedded.redis_url(var)


def keep_what_python_compiles() -> None:
    """Tests start hundreds of Python processes: without its compiled files each of them takes twice as long."""
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def part_from_other_workers(worker: str) -> None:
    """Workers of one session share the services; prefix and VAR keep them apart (pytest-django parts the databases)."""
    os.environ["QUORUM_PREFIX"] = f"{os.environ.get('QUORUM_PREFIX', 'test')}-{worker}"
    os.environ["QUORUM_VAR"] = str(Path(os.environ["QUORUM_VAR"]) / worker)


os.environ["QUORUM_LOOPBACK_ONLY"] = "1"
for variable in (
    *("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"),
    *("QUORUM_PRODUCTION", "QUORUM_STORE"),
):
    os.environ.pop(variable, None)
loopback.enforce()
keep_what_python_compiles()
if not {"-h", "--help", "--version", "-V"} & set(sys.argv):
    if worker := os.environ.get("PYTEST_XDIST_WORKER"):
        part_from_other_workers(worker)
    else:
        set_environment()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the tests of the second stage as well (make test-all)")
    parser.addoption(
        "--weekly", default="", choices=["all", *DAYS], help="run weekly tests as well: of a day (1 is Monday), or all"
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What the tests import stays: a sixth of the time of importing it would go into looking for garbage in it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(20_000, 20, 20)  # a test ends before it has left much


@pytest.hookimpl(tryfirst=True)  # before `-m` looks at the marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the slow ones out unless they are asked for."""
    mark_worker_tests(items)
    stages = {"slow": config.getoption("--slow"), "weekly": config.getoption("--weekly")}
    later = [item for item in items if is_left_out(item, **stages)]
    if later:
        config.hook.pytest_deselected(items=later)
        items[:] = [item for item in items if not is_left_out(item, **stages)]


def pytest_xdist_setupnodes() -> None:
    """The migrations run beside the start of xdist's workers, where no earlier session has left what they make."""
    if migrated.database(Path(os.environ["QUORUM_VAR"])):
        return
    _migrating.append(migrated.begin(Path(os.environ["QUORUM_VAR"])))


def pytest_unconfigure() -> None:
    while _migrating:
        migrated.end(_migrating.pop(), keep=bool(_own_services))
