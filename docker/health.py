"""Health of a container, for Docker: `python docker/health.py web|judge|gpu`. Exit 0: well."""

import os
import socket
import sys
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

SITE = "http://127.0.0.1:8000/healthz"


def web() -> bool:
    """The site answers: its probes need no name of ALLOWED_HOSTS."""
    with build_opener(ProxyHandler({})).open(SITE, timeout=8) as answer:
        return bool(answer.status == 200)


def worker(kind: str) -> bool:
    """A worker of this container has said within the last seconds that it lives."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    from jobs.workers import live_workers

    return any(one.host == socket.gethostname() for one in live_workers(kind))


def main(kind: str) -> int:
    """The exit code."""
    try:
        return 0 if (web() if kind == "web" else worker(kind)) else 1
    # Redis' errors are no OSErrors; whatever it is, the log of the probes shows one line.
    except Exception as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
