"""Who connects and sends nothing, or half of what they began, keeps nobody else from being answered."""

import re
import time
from collections.abc import Iterator
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from tests.plugin_browser import site
from tests.slow_clients import HALF_BODY, HALF_HEADER, IDLE, clients, longest_of_five
from tests.speed import slowness
from tests.stages import first_slow

KINDS = {"idle": IDLE, "half a header": HALF_HEADER, "half a body": HALF_BODY}
MANY = {"idle": 2500, "half a header": 2500, "half a body": 2000}


@pytest.fixture(scope="module")
def port(instance_environment: dict[str, str]) -> Iterator[int]:
    """A site of one process, which is worse off than several."""
    with site(instance_environment) as address:
        yield urlsplit(address).port or 0


@pytest.mark.parametrize("kind", first_slow(KINDS))
def test_a_site_answers_within_a_second_beside_thousands_of_slow_clients(port: int, kind: str) -> None:
    longest_of_five(port)
    with clients(port, MANY[kind], KINDS[kind]):
        time.sleep(1)
        assert longest_of_five(port) < 1 * slowness()


@pytest.mark.slow
def test_whoever_sends_the_rest_of_a_body_late_is_answered(port: int) -> None:
    with clients(port, 1, HALF_BODY) as (client,):
        time.sleep(0.5)
        client.sendall(b"x" * (900 - len(HALF_BODY.split(b"\r\n\r\n")[1])))
        assert client.recv(15) == b"HTTP/1.1 302 Fo", "a site without accounts leads to its first page"


@pytest.mark.slow
def test_stalled_downloads_keep_nobody_from_being_answered(port: int) -> None:
    with urlopen(f"http://127.0.0.1:{port}/accounts/login/") as page:
        (script,) = re.findall(r"/static/vendor/htmx\.min\.[0-9a-f]+\.js", page.read().decode())
    asked = f"GET {script} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode() * 40
    longest_of_five(port)
    with clients(port, 40, asked):
        time.sleep(0.3)
        assert longest_of_five(port) < 1 * slowness()
