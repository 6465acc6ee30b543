"""One process, because it holds the model; more threads than requests may wait, so that 503 is said at once."""

import os
from typing import Any

from jobs.processes import watch_parent

worker_class = "gthread"
workers = 1
threads = int(os.environ.get("QUORUM_RERANK_LIMIT", "32")) + 32
timeout = 0  # loading a large model takes minutes
graceful_timeout = 5
keepalive = 5
control_socket_disable = True


def post_fork(server: Any, worker: Any) -> None:
    """The worker is the command's grandchild: it watches by itself."""
    watch_parent()
