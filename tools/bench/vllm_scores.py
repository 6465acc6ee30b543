"""Pairs per second of vLLM's score endpoint for a published causal reranker, as a user would serve it.

vLLM pins a torch of its own, so it is installed in an environment of its own: `python3 -m venv .venvs/vllm` and
`.venvs/vllm/bin/pip install vllm`, or the environment variable VLLM names its program.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from urllib.error import URLError

from jobs.processes import spawn_child, stop_children
from tests.plugin_browser import free_port

ROUNDS = 3
START_S = 300.0  # Loading its libraries, compiling and reading the weights.
SHARE = 0.6  # Of the GPU's memory: our scorer has the rest.
OWN = Path(__file__).parents[2] / ".venvs" / "vllm" / "bin" / "vllm"


def find_program() -> str | None:
    """Return the path of vLLM's program: VLLM, that of its own environment, of this one, or of PATH; None without."""
    candidates = [os.environ.get("VLLM", ""), str(OWN), str(Path(sys.executable).with_name("vllm"))]
    return next((path for path in candidates if path and Path(path).exists()), shutil.which("vllm"))


@contextmanager
def serve(program: str, folder: Path) -> Iterator[str]:
    """Serve the model, scored by its words for yes and no as Qwen3's rerankers are; yield the server's address.

    Raises RuntimeError with the last line of its log if it does not start or refuses a request.
    """
    from tokenizers import Tokenizer

    record = json.loads((folder / "reranker.json").read_text())
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    overrides = {
        "architectures": ["Qwen3ForSequenceClassification"],
        "classifier_from_token": [tokenizer.id_to_token(record[name]) for name in ("no_id", "yes_id")],
        "is_original_qwen3_reranker": True,
    }
    port = free_port()
    command = [program, "serve", str(folder), "--served-model-name", "model", "--runner", "pooling"]
    command += ["--dtype", "bfloat16", "--gpu-memory-utilization", str(SHARE), "--hf-overrides", json.dumps(overrides)]
    with tempfile.TemporaryFile("w+") as log:
        process = spawn_child([*command, "--host", "127.0.0.1", "--port", str(port)], stdout=log, stderr=log)
        try:
            _wait_until_healthy(process, f"http://127.0.0.1:{port}/health")
            yield f"http://127.0.0.1:{port}"
        except (RuntimeError, URLError) as error:
            log.seek(0)
            raise RuntimeError(f"vllm: {error}: {(log.read().strip().splitlines() or ['no output'])[-1]}") from None
        finally:
            stop_children([process])


def measure_pairs(address: str, pairs: Sequence[tuple[str, str]]) -> tuple[float, list[float]]:
    """Return the pairs per second, by the median of ROUNDS requests with all pairs, and the scores.

    `pairs`: the prompt up to the document, and the rest.
    """
    body = json.dumps({"model": "model", "text_1": [a for a, _ in pairs], "text_2": [b for _, b in pairs]}).encode()
    seconds = []
    for _ in range(1 + ROUNDS):
        started_at = time.perf_counter()
        request = urllib.request.Request(f"{address}/score", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=START_S) as answer:
            rows: list[dict[str, Any]] = json.load(answer)["data"]
        seconds.append(time.perf_counter() - started_at)
    # The first request is a warm-up.
    return len(pairs) / median(seconds[1:]), [float(row["score"]) for row in rows]


def _wait_until_healthy(process: "subprocess.Popen[str]", address: str) -> None:
    deadline = time.monotonic() + START_S
    while True:
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except (OSError, URLError):
            if process.poll() is not None:
                raise RuntimeError(f"the server ended with status {process.returncode}") from None
            if time.monotonic() > deadline:
                raise RuntimeError(f"the server was not ready after {START_S:g} s") from None
            time.sleep(0.2)
