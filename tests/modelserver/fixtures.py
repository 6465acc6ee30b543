"""The fixture `model_server`: one server process a session, a fresh script and log for each test."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from config.env import ROOT
from judges.records import Judge
from tests.modelserver.batches import Batches
from tests.modelserver.presets import LOOK_ALIKES

KEY_ENV = "QUORUM_TEST_KEY"
KEY = "test-key-0123456789"


class LocalModels:
    """A running server. `openai`, `anthropic`, `google`: base URLs as a judges file has them."""

    def __init__(self, port: int, log: Path) -> None:
        self.port, self.log = port, log
        self.google = self.anthropic = f"http://127.0.0.1:{port}"
        self.openai = f"{self.google}/v1"
        self.offset = 0

    def base_url(self, provider: str) -> str:
        return {"anthropic": self.anthropic, "google": self.google}.get(provider, self.openai)

    def alike(self, preset: str, model: str = "yes", **values: Any) -> Judge:
        """A judge of the preset's look-alike; further keywords as in `judge`."""
        alike = LOOK_ALIKES[preset]
        base_url = f"{self.google}/{preset}{alike.home}"
        return self.judge(model, preset, **{"base_url": base_url, **alike.judge, **values})

    def script(self, models: dict[str, Any] | None = None, **more: Any) -> None:
        """Replace the script: {model: behaviour or list of them}, see behaviours.Behaviour; "*" for all others."""
        self._control("script", json.dumps({**(models or {}), **more}).encode())

    def batch_delay(self, seconds: float) -> None:
        """How long a batch takes from now on."""
        self.batches(delay=seconds)

    def batches(self, **settings: Any) -> None:
        """Change the batches' settings (batches.Batches); those that are not named stay."""
        self._control("batch", json.dumps(settings).encode())

    def limit(self, **settings: Any) -> None:
        """Limit the rate of all calls (rates.RateLimit); nothing given: no limit."""
        self._control("rate", json.dumps(settings).encode())

    def reset(self) -> None:
        """No script, no limit, batches as always, and `requests` begins anew."""
        self.script({})
        self.limit()
        self.batches(**Batches.NORMAL)
        self.offset = self.log.stat().st_size

    def requests(self) -> list[dict[str, Any]]:
        """The calls of this test that ended, in that order: seq, arrived, answered, model, side, round, user ..."""
        with self.log.open("rb") as log:
            log.seek(self.offset)
            # Read at once: between two reads the server may write the rest of a line, which then begins in the middle.
            whole, _, _ = log.read().rpartition(b"\n")
        return [json.loads(line) for line in whole.splitlines()]

    def stats(self) -> dict[str, Any]:
        """Counters since the server began: number of calls, connections, open, in_flight, batch_posts."""
        return self._control("stats")

    def judge(self, model: str, provider: str = "openai-compatible", **values: Any) -> Judge:
        """A judge of this server; further keywords are fields of Judge, the rest its parameters."""
        fields = {name: values.pop(name) for name in list(values) if name in Judge.__dataclass_fields__}
        fields = {"id": 1, "name": model, "api_key_env": KEY_ENV, "base_url": self.base_url(provider), **fields}
        fields["parameters"] = {**fields.get("parameters", {}), **values}
        return Judge(provider=provider, model=model, **fields)

    def _control(self, name: str, body: bytes | None = None) -> dict[str, Any]:
        address = f"{self.google}/control/{name}"
        with urllib.request.urlopen(urllib.request.Request(address, data=body)) as answer:
            return dict(json.load(answer))


def start(log: Path, *options: str) -> tuple["subprocess.Popen[str]", LocalModels]:
    """A server process of its own, for tests and benches that need other options. Terminate it yourself."""
    log.touch()
    command = [sys.executable, "-m", "tests.modelserver", "--log", str(log), "--with-parent", *options]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, LocalModels(json.loads(process.stdout.readline())["port"], log)


@pytest.fixture(scope="session")
def _model_server_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalModels]:
    process, models = start(tmp_path_factory.mktemp("models") / "requests.jsonl")
    with process:  # Closes its pipes, at which it ends.
        yield models
        process.terminate()


@pytest.fixture
def model_server(_model_server_process: LocalModels, monkeypatch: pytest.MonkeyPatch) -> LocalModels:
    """A local model server without a script; QUORUM_TEST_KEY is set, and no other host can be called."""
    monkeypatch.setenv(KEY_ENV, KEY)
    monkeypatch.setenv("QUORUM_LOOPBACK_ONLY", "1")
    _model_server_process.reset()
    return _model_server_process
