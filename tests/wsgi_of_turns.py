"""What test_web_worker serves by gunicorn: answers that tell who answered, and answers that wait for a file."""

import json
import os
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from config.threads import NAME
from corpus import turns


def application(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
    """/ at once; /holds and /gives-up when the file that QUORUM_TEST_GATE names is there."""
    path = environ["PATH_INFO"]
    if path == "/gives-up":
        turns.give_up()
    while path != "/" and not Path(os.environ["QUORUM_TEST_GATE"]).exists():
        time.sleep(0.01)
    pool = sum(thread.name == NAME for thread in threading.enumerate())
    told = {"pid": os.getpid(), "threads": pool, "processors": sorted(os.sched_getaffinity(0))}
    body = json.dumps(told).encode()
    start("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]
