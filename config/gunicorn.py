"""How gunicorn serves the site: threads, and a connection for each, which it keeps (MECHANICS M6, docs/adr/0039)."""

import gc
import itertools
import os
from typing import Any

from config import env, memory, web_worker
from jobs.processes import watch_parent

worker_class = "config.web_worker.Worker"
workers = int(env.number("QUORUM_WEB_PROCESSES", 2))
threads = int(env.number("QUORUM_WEB_THREADS", 8))
keepalive = 5
timeout = 60
graceful_timeout = 5
worker_tmp_dir = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # heartbeats must not wait for a disk
control_socket_disable = True
os.environ["QUORUM_DB_KEEP"] = "1"


def pre_fork(server: Any, worker: Any) -> None:
    """A place where the others read how many connections it holds."""
    web_worker.enter(worker)


def child_exit(server: Any, worker: Any) -> None:
    """It holds none any more."""
    web_worker.leave(worker)


def post_fork(server: Any, worker: Any) -> None:
    """Workers are gunicorn's children and the command's grandchildren: they watch by themselves."""
    watch_parent()


def post_worker_init(worker: Any) -> None:
    """What is loaded stays: with the usual thresholds a tenth of each request goes into looking at it again."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    worker.keep_to_a_processor()


WARM = 200
"""Requests after which a worker has its templates, routes, plans and catalogues."""
_answered = itertools.count(1)


def post_request(worker: Any, request: Any, environ: Any, response: Any) -> None:
    """Once, when all is loaded: a tenth less time for the same work."""
    if next(_answered) == WARM:
        memory.collapse()
