"""Simulated people: they sign in, make an access token on its page, and judge over the REST API like anybody."""

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.cookiejar import CookieJar
from typing import Any
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener

from tools.proof.instance import ROOT, Instance

sys.path.insert(0, str(ROOT / "client"))
Grading = Callable[[str, str], int]
"""Of the text of a query and the text of a document, the grade that a person gives."""
TOKEN = re.compile(r"quorum_[\w-]{43}")


def make_token(address: str, account: Mapping[str, str]) -> str:
    """Sign in with {username, password} and create an access token, on the pages for both. Raises ValueError."""
    cookies = CookieJar()
    opener = build_opener(HTTPCookieProcessor(cookies))

    def post(path: str, fields: dict[str, Any]) -> str:
        opener.open(f"{address}{path}", timeout=60).read()
        token = next(cookie.value for cookie in cookies if cookie.name.endswith("csrftoken"))
        body = urlencode({**fields, "csrfmiddlewaretoken": token}, doseq=True).encode()
        request = Request(f"{address}{path}", body, {"Referer": f"{address}{path}", "Origin": address})
        return str(opener.open(request, timeout=60).read().decode())

    post("/accounts/login/", {"login": account["username"], "password": account["password"]})
    page = post("/accounts/tokens/", {"token_name": "proof", "scopes": ["read", "judge", "manage"], "days": 1})
    token = TOKEN.search(page)
    if token is None:
        raise ValueError(f"no access token for {account['username']}")
    return token[0]


@contextmanager
def member(instance: Instance, address: str, collection: str, role: str) -> Iterator[Any]:
    """Create an account with a role in a collection, sign in, and yield its client of the REST API."""
    from quorum_client import Quorum

    (account,) = instance.manage("create_users", collection, "--role", role)
    with Quorum(address, make_token(address, account)) as client:
        yield client


def judge_all(people: Sequence[Any], collection: str, grading: Grading) -> int:
    """Have the clients of people judge in turn until nothing waits for any of them; return the number of judgments."""
    judged, path = 0, f"collections/{collection}/task"
    # Each request that judges claims the next pair, too.
    tasks = {person: person.request("POST", f"{path}/claim")["task"] for person in people}
    while tasks := {person: task for person, task in tasks.items() if task is not None}:
        for person, task in tasks.items():
            grade = grading(task["query"], task["document"])
            answer = {"item": task["item"], "token": task["token"], "grade": grade, "milliseconds": 5_000}
            tasks[person] = person.request("POST", f"{path}/judge", answer)["task"]
            judged += 1
    return judged
