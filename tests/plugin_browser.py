"""Tests in a real browser: find it, say so when there is none, and give pages that fail on console errors."""

import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest

from tests.instances import PATIENCE, ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Playwright

NAMES = ("chromium-headless-shell", "chromium", "google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
ARGUMENTS += ["--disable-background-networking", "--disable-component-update"]
AXE = Path(__file__).parent / "vendor" / "axe.min.js"
COLOURS = ("color-contrast", "link-in-text-block")
"""The rules of axe-core whose outcome another colour scheme changes."""
NO_BROWSER = "no Chromium was found"
HOW_TO_GET = "apt-get install chromium-headless-shell, or set QUORUM_CHROMIUM to one"


def find_chromium() -> str | None:
    """QUORUM_CHROMIUM, or the first that stands on the path."""
    if given := os.environ.get("QUORUM_CHROMIUM"):
        return given if Path(given).exists() else None
    return next((found for name in NAMES if (found := shutil.which(name))), None)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without a browser its tests are skipped; with QUORUM_REQUIRE_BROWSER=1 the session fails.

    They come last: each process has a browser then.
    """
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)
    wanted = [item for item in items if item.get_closest_marker("browser")]
    if not wanted or find_chromium():
        return
    if os.environ.get("QUORUM_REQUIRE_BROWSER") == "1":
        raise pytest.UsageError(f"QUORUM_REQUIRE_BROWSER=1 and {NO_BROWSER}: {HOW_TO_GET}.")
    for item in wanted:
        item.add_marker(pytest.mark.skip(reason=NO_BROWSER))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """How many browser tests did not run, and what would let them."""
    skipped = [report for report in terminalreporter.stats.get("skipped", []) if NO_BROWSER in str(report.longrepr)]
    if skipped:
        terminalreporter.write_line(f"{len(skipped)} browser tests were not run: {NO_BROWSER}. {HOW_TO_GET}.")


@pytest.fixture(scope="session")
def live_site(instance_environment: dict[str, str]) -> Iterator[str]:
    """The address of a real granian with collected, compressed files on the test's database; needs `instance`."""
    with site(instance_environment) as address:
        yield address


@contextmanager
def site(environment: dict[str, str], processes: int = 1) -> Iterator[str]:
    """A real granian in this environment, until the block ends; its address."""
    from config import serving
    from jobs.processes import spawn_child, stop_children

    environment = {**environment, **serving.web_environment(), "QUORUM_DB_POOL": "4"}
    port = free_port()
    log = Path(environment["QUORUM_VAR"]) / f"web-{port}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    put_static_files(Path(environment["QUORUM_VAR"]), environment)
    with log.open("w") as output:
        command = serving.web_command("127.0.0.1", port, processes=processes)
        server = spawn_child(command, environment, cwd=ROOT, stdout=output, stderr=output)
    try:
        wait_for(f"http://127.0.0.1:{port}/healthz", log)
        yield f"http://127.0.0.1:{port}"
    finally:
        stop_children([server])


def put_static_files(var: Path, environment: dict[str, str]) -> None:
    """Collect and compress the site's files, once for all processes of a session of xdist."""
    shared = bool(os.environ.get("PYTEST_XDIST_WORKER")) and str(var) == os.environ["QUORUM_VAR"]
    place = var.parent if shared else var
    collect = [sys.executable, "manage.py", "collectstatic", "--noinput", "-v", "0"]
    with (place / "collecting.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "static" / "staticfiles.json").exists():
            subprocess.run(collect, env={**environment, "QUORUM_VAR": str(place)}, check=True, cwd=ROOT)
    if shared and not (var / "static").exists():
        (var / "static").symlink_to(place / "static")


def free_port() -> int:
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def wait_for(address: str, log: Path) -> None:
    """Until the address answers 200."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            with urlopen(address, timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"{address} did not answer: {log.read_text()[-2000:]}")


_running: "list[tuple[Playwright, Browser]]" = []


@pytest.fixture
def browser() -> "Browser":
    """One Chromium for all tests that follow each other with one."""
    from playwright.sync_api import sync_playwright

    if not _running:
        # Playwright's own event loop runs in this thread; Django takes it for ours and refuses the ORM without this.
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
        playwright = sync_playwright().start()
        _running.append((playwright, playwright.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)))
    return _running[0][1]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """Chromium ends before a test without it: beside Playwright's event loop none could call asyncio.run."""
    result = yield
    while _running and (nextitem is None or nextitem.get_closest_marker("browser") is None):
        playwright, chromium = _running.pop()
        chromium.close()
        playwright.stop()
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]
    return result


@pytest.fixture
def console() -> list[str]:
    """Errors that pages wrote to their consoles. A test that provokes one takes it out; what is left fails it."""
    return []


NewPage = Callable[..., "Page"]


@pytest.fixture
def new_page(live_site: str, browser: "Browser", instance: dict[str, str], console: list[str]) -> "Iterator[NewPage]":
    """Open a page in a context of its own (its own cookies); `user` signs in, options go to Playwright's new_context.

    `new_page(user=alice, viewport={"width": 375, "height": 700}, color_scheme="dark", java_script_enabled=False)`
    """
    contexts = []

    def open_page(user: Any = None, **options: Any) -> "Page":
        context = browser.new_context(base_url=live_site, **options)
        context.set_default_timeout(1000 * PATIENCE)
        contexts.append(context)
        if user is not None:
            context.add_cookies([{"name": "sessionid", "value": session_of(user), "url": live_site}])
        page = context.new_page()
        page.on("console", lambda message: console.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: console.append(str(error)))
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert console == [], f"the browser's console: {console}"


class Clicks:
    """Counts the clicks of a page, from address to address."""

    def __call__(self, page: "Page") -> "Page":
        page.add_init_script(
            "addEventListener('click', event => { if (event.isTrusted && event.detail)"
            " sessionStorage.clicks = 1 + +(sessionStorage.clicks || 0) }, true)"
        )
        return page

    def of(self, page: "Page") -> int:
        """How often the pointer was pressed, presses of labels and fields included."""
        return int(page.evaluate("+(sessionStorage.clicks || 0)"))


@pytest.fixture
def clicks() -> Clicks:
    """`page = clicks(new_page(...))`, then `clicks.of(page)`."""
    return Clicks()


def session_of(user: Any) -> str:
    """The key of a session in which the user is signed in."""
    from django.test import Client

    client = Client()
    client.force_login(user)
    return str(client.cookies["sessionid"].value)


@pytest.fixture
def violations() -> "Callable[..., list[str]]":
    """`violations(page)`: what axe-core finds on it, one line each; empty is good. Names of rules: by these alone."""

    def check(page: "Page", *rules: str) -> list[str]:
        if not page.evaluate("() => 'axe' in window"):
            page.evaluate(AXE.read_text())
        options = {"resultTypes": ["violations"]} | ({"runOnly": list(rules)} if rules else {})
        found = page.evaluate("async (options) => (await axe.run(options)).violations", options)
        return [f"{rule['id']}: {node['html']}" for rule in found for node in rule["nodes"]]

    return check
