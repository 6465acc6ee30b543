"""Where there is no Linux: what only its kernel does is left out, here as there, and all the same works."""

import json
import os
import re
import signal
import subprocess
import sys
from http.cookiejar import CookieJar
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener

import pytest

from tests.instances import PATIENCE, ROOT, until

# Python runs a module of this name when it starts, also in all that the first process starts.
WITHOUT_LINUX = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from jobs import system

class Missing:
    def __getattr__(self, name):
        raise OSError(name + " is a call of Linux")

system.LINUX, system._libc = False, Missing()
"""
AS_NOBODY = ("unshare", "--user", "--map-user=65534", "--map-group=65534")
COUNT = "from corpus.models import Judgment as J; print(J.objects.filter(assessor__kind='person').count())"


def test_one_module_alone_asks_linux() -> None:
    asking = re.compile(r'"/proc/|f"/proc/|import ctypes|CDLL\(|os\.(setresuid|unshare)')
    rooms = {path.parent for path in ROOT.glob("*/__init__.py")} - {ROOT / "tests", ROOT / "tools"}
    asks = [path for room in rooms for path in room.rglob("*.py") if asking.search(path.read_text())]
    assert asks == [ROOT / "jobs" / "system.py"]


class Visitor:
    """A person in a browser without JavaScript."""

    def __init__(self, address: str) -> None:
        self.address, self.cookies = address, CookieJar()
        self.opener = build_opener(HTTPCookieProcessor(self.cookies))

    def open(self, path: str, **values: str) -> str:
        token = next((cookie.value or "" for cookie in self.cookies if cookie.name == "csrftoken"), "")
        data = urlencode({"csrfmiddlewaretoken": token, **values}).encode() if values else None
        with self.opener.open(Request(self.address + path, data), timeout=60) as answer:
            return str(answer.read().decode())


@pytest.mark.slow
def test_start_demo_and_a_judgment_work_without_the_calls_of_linux(make_instance, tmp_path) -> None:
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_LINUX)
    instance = make_instance(PYTHONPATH=str(tmp_path))
    # Without Linux's help PostgreSQL does not run as root, who is an ordinary user in there.
    program = (*(AS_NOBODY if os.geteuid() == 0 else ()), sys.executable)
    if subprocess.run([*program, "-c", "pass"], capture_output=True, check=False).returncode:
        pytest.skip("this machine does not allow namespaces")

    def count_judgments() -> int:
        child = instance.start("manage.py", "shell", "-v0", "-c", COUNT, program=program)
        out, err = child.communicate(timeout=PATIENCE)
        assert child.returncode == 0, err
        return int(out)

    demo = instance.start("manage.py", "demo", "--no-training", "--port", "0", "--json", program=program)
    line = demo.stdout.readline() if demo.stdout else ""
    assert line, demo.stderr.read() if demo.stderr else ""
    document = json.loads(line)
    account = next(one for one in document["accounts"] if one["role"] == "annotator")
    alice = Visitor(document["url"])
    alice.open("/accounts/login/")
    alice.open("/accounts/login/", login=account["username"], password=account["password"])
    page = alice.open("/c/python-reference/judge/next/", next="1")
    item, token = (re.search(rf'name="{name}" value="([^"]*)"', page) for name in ("item", "token"))
    assert item and token, page

    def submit() -> bool:
        try:
            return bool(alice.open("/c/python-reference/judge/submit/", item=item[1], token=token[1], grade="1"))
        except HTTPError as error:  # Sooner than anybody reads.
            assert error.code == 422
            return False

    until(submit, "the judgment")
    assert count_judgments() == 1
    demo.kill()
    demo.wait()
    until(instance.nothing_left, "the end of all processes")
    # A killed keeper leaves PostgreSQL and Redis behind: the next start ends them, and nothing is lost.
    holder = instance.hold(program=program)
    os.kill(instance.announced()["pid"], signal.SIGKILL)
    assert holder.stdin
    assert count_judgments() == 1
    holder.kill()
    holder.wait()
    until(instance.nothing_left, "the end of all processes")
