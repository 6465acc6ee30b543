"""Annotators who judge over plain HTTP, each in a thread: for tests of what happens to a served instance meanwhile."""

import json
import random
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener

from tests.instances import Instance


@dataclass
class Person:
    """An annotator over plain HTTP, who sends an answer again until the site says what came of it."""

    address: str
    session: str
    pause: tuple[float, float] = (0.02, 0.1)
    statuses: list[int] = field(default_factory=list)
    judged: list[int] = field(default_factory=list)
    slowest: float = 0.0

    def ask(self, path: str, **values: object) -> tuple[int, str]:
        headers = {"Cookie": f"sessionid={self.session}; csrftoken={'c' * 32}", "X-CSRFToken": "c" * 32}
        headers |= {"HX-Request": "true", "Origin": self.address}
        request = Request(f"{self.address}/c/books/judge/{path}", urlencode(values).encode(), headers)
        began = time.perf_counter()
        try:
            with build_opener(HTTPRedirectHandler).open(request, timeout=30) as answer:
                status, text = answer.status, answer.read().decode()
        except HTTPError as error:
            status, text = error.code, error.read().decode()
        except OSError:
            status, text = 0, ""
        self.slowest = max(self.slowest, time.perf_counter() - began)
        self.statuses.append(status)
        return status, text

    def work(self, ended: Event) -> None:
        dice, page = random.Random(self.session), ""
        while not ended.is_set():
            found = [re.search(rf'name="{name}" value="([^"]*)"', page) for name in ("item", "token")]
            if None in found:
                page = self.ask("next/")[1]
                time.sleep(0.1)
                continue
            item, token = (one[1] for one in found if one)
            time.sleep(dice.uniform(*self.pause))
            status, text = self.ask("submit/", item=item, token=token, grade=1)
            if status == 200:
                self.judged.append(int(item))
            if status in (200, 409):
                page = text
            else:
                time.sleep(0.2)


SCENE = """
import json
from django.test import Client
from allauth.usersessions.models import UserSession
from tests.factories import *
from tests.judging_scene import make_scene
books = make_collection("books")
make_scene(books, 4000, text="A mapping maps.")
keys = []
for n in range(NUMBER):
    client = Client()
    user = make_member(books, f"annotator-{n}").user
    client.force_login(user)
    keys.append(client.cookies["sessionid"].value)
    UserSession.objects.get_or_create(user=user, session_key=keys[-1], ip="127.0.0.1", user_agent="tests")
print(json.dumps(keys))
"""
STORED = "SELECT count(item_id) || ' ' || count(DISTINCT item_id) FROM corpus_judgment"


def make_people(
    instance: Instance, address: str, number: int, pause: tuple[float, float] = (0.02, 0.1)
) -> list[Person]:
    """So many annotators of the collection "books", which has 4,000 open tasks, at a site of this instance."""
    done = instance.manage("shell", "-v0", "-c", SCENE.replace("NUMBER", str(number)))
    assert done.returncode == 0, done.stderr
    return [Person(address, key, pause) for key in json.loads(done.stdout.splitlines()[-1])]


@contextmanager
def at_work(people: Sequence[Person]) -> Iterator[None]:
    """Let all of them judge until the block ends; each ends with what it has begun."""
    ended = Event()
    threads = [Thread(target=person.work, args=[ended]) for person in people]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def count_judged(people: Sequence[Person]) -> int:
    return sum(len(person.judged) for person in people)


def count_stored(instance: Instance) -> tuple[int, int]:
    """Judgments of people that the database has, and of how many tasks."""
    rows, items = map(int, instance.sql(STORED).split())
    return rows, items
