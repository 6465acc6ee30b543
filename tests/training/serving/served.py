"""The real `serve_model` beside a test."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.instances import PATIENCE, ROOT


@contextmanager
def serve_model(folder: Path | str, environment: Mapping[str, str], *options: str) -> Iterator[dict[str, Any]]:
    """What the command prints once it answers."""
    args = [sys.executable, "manage.py", "serve_model", "--model", str(folder), "--port", "0", *options]
    environment = {**environment, "OMP_NUM_THREADS": "1"}
    child = subprocess.Popen(args, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        yield json.loads(child.stdout.readline())
    finally:
        child.terminate()
        child.communicate(timeout=PATIENCE)
