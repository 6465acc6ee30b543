"""agreement_crowd: 956 assessors, 57,504 votes: seconds and memory of the command, and the page from stored results."""

import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.db import connection
from django.test import Client

from annotation.models import Role
from tests.crowd import judged_by_many
from tests.factories import make_collection, make_member

ASSESSORS, ITEMS, VOTES_EACH = 956, 19_168, 3
PAGES = ("", "?sort=-kappa&page=7", "?by=-graded")
CASE = "956 assessors, 57,504 votes"


def measure() -> list[dict[str, Any]]:
    """The command in a process of its own, and the slowest of the page's first requests after it was measured once."""
    collection = make_collection("crowd")
    judged_by_many(collection, ASSESSORS, ITEMS, VOTES_EACH)
    with connection.cursor() as cursor:  # as autovacuum does: else plans are those of empty tables
        cursor.execute("ANALYZE corpus_judgment, corpus_assessor, corpus_pair, corpus_item")
    seconds, peak = run_command(collection.name)
    pages = time_pages(collection)
    return [
        {"name": "agreement_crowd", "case": f"{CASE}: the command", "value": seconds, "unit": "s", "aim": "under 60"},
        {"name": "agreement_crowd", "case": f"{CASE}: its memory", "value": peak, "unit": "MB", "aim": "under 500"},
        {
            "name": "agreement_crowd",
            "case": f"{CASE}: the page from stored results",
            "value": round(max(pages), 3),
            "unit": "s",
            "aim": "under 2",
            "median_s": round(statistics.median(pages), 3),
        },
    ]


def run_command(name: str) -> tuple[float, int]:
    """(seconds, peak MB) of `manage.py agreement NAME --json`."""
    started, peak = time.perf_counter(), 0
    command = [sys.executable, "manage.py", "agreement", name, "--json"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            peak = max(peak, peak_mb_of(process.pid))
            time.sleep(0.05)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return round(time.perf_counter() - started, 1), peak


def peak_mb_of(pid: int) -> int:
    """What a process held at its peak; 0 when it has just ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM")), 0)


def time_pages(collection: Any) -> list[float]:
    """Seconds of the first request to each form of the page, after a worker has measured."""
    call_command("collectstatic", interactive=False, verbosity=0)
    client = Client(headers={"host": "127.0.0.1"})
    client.force_login(make_member(collection, "charlie", Role.ADMIN).user)
    assert client.post(f"/c/{collection.name}/agreement/measure/").status_code == 302
    seconds = []
    for query in PAGES:
        started = time.perf_counter()
        page = client.get(f"/c/{collection.name}/quality/{query}")
        seconds.append(time.perf_counter() - started)
        assert page.status_code == 200
        assert "worker-" in page.text
    return seconds
