"""agreement_crowd: seconds and memory of the command, and seconds of the page, for 956 assessors with 57,504 votes."""

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
    """Return the figures of the command, in a separate process, and of the slowest first request to the page."""
    collection = make_collection("crowd")
    judged_by_many(collection, ASSESSORS, ITEMS, VOTES_EACH)
    # As autovacuum would do, or queries would be planned for empty tables.
    with connection.cursor() as cursor:
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
    """Return the seconds and the peak memory in MB of `manage.py agreement NAME --json`."""
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
    """Return the peak memory of a process in MB, 0 if it has just ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM")), 0)


def time_pages(collection: Any) -> list[float]:
    """Return the seconds of the first request to each form of the page, after a worker has computed the measures."""
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
