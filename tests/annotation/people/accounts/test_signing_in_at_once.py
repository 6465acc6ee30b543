"""A class signs in at nine, and a stranger tries passwords: everybody who may comes in, and nobody else is held up."""

import json
import multiprocessing
import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier, Event, Thread
from typing import Any

import httpx2
import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import make_password

from tests.instances import Instance
from tests.speed import slowness

PEOPLE, IN_S, PAGE_S = 40, 10.0, 1.0
PASSWORD = "nine o'clock sharp"
CLASS = f"""
from django.contrib.auth.hashers import make_password
from tests.factories import *
books = make_collection("books")
hashed = make_password({PASSWORD!r})
for n in range({PEOPLE} + 10):
    user = make_member(books, f"pupil-{{n}}").user
    user.password = hashed
    user.save()
"""
Answer = tuple[int, float]


class Visitor:
    """A browser of its own, without HTML."""

    def __init__(self, address: str) -> None:
        self.client = httpx2.Client(base_url=address, timeout=60)

    def open(self) -> None:
        """Look at the form of the sign-in page."""
        page = self.client.get("/accounts/login/")
        assert page.status_code == 200
        self.token = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)[-1]

    def look(self) -> Answer:
        began = time.perf_counter()
        return self.client.get("/").status_code, time.perf_counter() - began

    def sign_in(self, name: str, password: str) -> Answer:
        began = time.perf_counter()
        values = {"csrfmiddlewaretoken": self.token, "login": name, "password": password}
        return self.client.post("/accounts/login/", data=values).status_code, time.perf_counter() - began


def at_once(address: str, tries: list[tuple[str, str]]) -> list[Answer]:
    """Sign in with these names and passwords at the same moment, each from a browser of its own."""
    gate = Barrier(len(tries))

    def one(visitor: Visitor, name: str, password: str) -> Answer:
        gate.wait()
        return visitor.sign_in(name, password)

    visitors = [Visitor(address) for _ in tries]
    with ThreadPoolExecutor(8) as few:
        list(few.map(Visitor.open, visitors))
    with ThreadPoolExecutor(len(tries)) as pool:
        return list(pool.map(lambda pair: one(pair[0], *pair[1]), zip(visitors, tries, strict=True)))


def _burn() -> None:
    while os.getppid() != 1:
        sum(range(100_000))


@contextmanager
def busy_cores() -> Iterator[None]:
    """Keep every core busy with something else."""
    load = [multiprocessing.get_context("spawn").Process(target=_burn, daemon=True) for _ in range(os.cpu_count() or 1)]
    for process in load:
        process.start()
    time.sleep(1)
    try:
        yield
    finally:
        for process in load:
            process.kill()
            process.join()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Instance, str]]:
    """A site of two web processes with a class of people, and its address."""
    instance = Instance(tmp_path_factory.mktemp("class") / "var", QUORUM_WEB_PROCESSES="2")
    try:
        child = instance.start("manage.py", "serve", "--port", "0", "--judge-workers", "0")
        address: str = json.loads(child.stdout.readline() if child.stdout else "")["url"]
        done = instance.manage("shell", "-v0", "-c", CLASS)
        assert done.returncode == 0, done.stderr
        yield instance, address
    finally:
        instance.end()


@pytest.fixture
def address(site: tuple[Instance, str]) -> str:
    """The site's address, where nobody has tried a password yet."""
    instance, address = site
    instance.sql("DELETE FROM annotation_cache")
    return address


@pytest.mark.weekly
@pytest.mark.parametrize("count", [PEOPLE, 32])
def test_a_class_signs_in_beside_a_load_that_keeps_all_cores_busy(address: str, count: int) -> None:
    before = slowness()
    with busy_cores():
        answers = at_once(address, [(f"pupil-{n}", PASSWORD) for n in range(count)])
    longest, limit = max(seconds for _status, seconds in answers), IN_S * max(before, slowness())
    print(f"{count} signed in: the last after {longest:.1f} s of {limit:.1f} s")
    assert Counter(status for status, _seconds in answers) == {302: count}
    assert longest < limit


@pytest.mark.slow
def test_who_is_signed_in_is_not_held_up_by_a_stranger_who_tries_passwords(address: str) -> None:
    before, reader, ended = slowness(), Visitor(address), Event()
    reader.open()
    assert reader.sign_in("pupil-0", PASSWORD)[0] == 302
    pages: list[Answer] = []

    def read() -> None:
        while not ended.is_set():
            pages.append(reader.look())
            time.sleep(0.1)

    reading = Thread(target=read)
    reading.start()
    answers = at_once(address, [(f"pupil-{n}", "a wrong password") for n in range(50)])
    ended.set()
    reading.join()
    longest, limit = max(seconds for _status, seconds in pages), PAGE_S * max(before, slowness())
    print(
        f"{Counter(status for status, _ in answers)}; {len(pages)} pages, the slowest {longest:.2f} s of {limit:.2f} s"
    )
    assert {status for status, _seconds in answers} <= {200, 429}
    assert {status for status, _seconds in pages} <= {200, 302} and longest < limit


@pytest.mark.slow
def test_the_limits_on_wrong_passwords_hold_for_those_that_come_at_once(address: str) -> None:
    began = time.perf_counter()
    # One account: five tries, and the right password is too late then.
    answers = Counter(status for status, _seconds in at_once(address, [("pupil-1", f"wrong {n}") for n in range(20)]))
    assert answers == {200: 5, 429: 15}
    assert at_once(address, [("pupil-1", PASSWORD)])[0][0] == 429
    # One address: sixty wrong passwords in a minute, of which five were those above.
    tries = [(f"nobody-{n}", "a wrong password") for n in range(60)]
    answers = Counter(status for status, _seconds in at_once(address, tries))
    if time.perf_counter() - began < 50:
        assert answers == {200: 55, 429: 5}


def test_a_hash_is_of_argon2(settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["annotation.people.accounts.passwords.PasswordHasher"]
    user = get_user_model()(password=make_password("p"))
    assert user.password.startswith("argon2$argon2id$v=19$m=19456,t=2,p=1$")
    assert user.check_password("p") and not user.check_password("q")
