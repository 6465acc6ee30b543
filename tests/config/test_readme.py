"""docs/index.md, "Your first label by a real model": its file and its three commands, read from there and run."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from config.env import ROOT
from judges.presets import PRESETS
from tests.instances import PATIENCE, Instance
from tests.modelserver.fixtures import KEY

START = (ROOT / "docs" / "index.md").read_text()
SECTION = START.partition("## Your first label by a real model\n")[2].partition("\n## ")[0]
(FILE,) = re.findall(r"^```toml\n(.*?)^```$", SECTION, re.DOTALL | re.MULTILINE)
COMMANDS = re.findall(r"^    (.+)$", SECTION, re.MULTILINE)
PYTHON = ".venv/bin/python manage.py "


class Reader:
    """Somebody with a fresh instance and an empty folder who follows the page to the letter."""

    def __init__(self, instance: Instance, folder: Path, file: str) -> None:
        self.instance, self.folder = instance, folder
        (folder / "judges.toml").write_text(file)
        corpus = ("Water boils at 100 degrees Celsius.", "Tides follow the moon.")
        for name, texts in (("corpus", corpus), ("queries", ("When does water boil?",))):
            lines = [json.dumps({"_id": f"{name[0]}{n}", "text": text}) for n, text in enumerate(texts)]
            (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")

    def run(self, command: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        """A command of the page with this test's Python."""
        assert command.startswith(PYTHON)
        return subprocess.run(
            [sys.executable, str(ROOT / "manage.py"), *shlex.split(command.removeprefix(PYTHON))],
            cwd=self.folder, env={**self.instance.environment, **variables}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip


@pytest.mark.slow
def test_a_fresh_instance_has_its_first_label_after_three_commands(model_server, make_instance, tmp_path) -> None:
    """Only the address is another: the provider's look-alike, which refuses what the provider refuses."""
    preset = PRESETS["deepseek"]
    assert f'provider = "{preset.name}"' in FILE and preset.key_env in SECTION
    instance = make_instance(QUORUM_LOOPBACK_ONLY="1")
    instance.environment.pop(preset.key_env, None)
    reader = Reader(instance, tmp_path, f'{FILE}base_url = "{model_server.google}/deepseek"\n')
    configure, load, judge = COMMANDS
    assert len(FILE.splitlines()) <= 8

    early = reader.run(judge)
    lines = [line for line in early.stderr.splitlines() if not line.startswith("Preparing the database")]
    assert early.returncode == 2 and len(lines) == 1 and "mine" in lines[0]
    configured = reader.run(configure)
    assert configured.returncode == 0, configured.stderr
    assert f"{preset.key_env} is not set" in configured.stdout
    loaded = reader.run(load)
    assert loaded.returncode == 0, loaded.stderr
    keyless = reader.run(judge)
    assert keyless.returncode == 3 and f"environment variable {preset.key_env} to" in keyless.stderr
    assert model_server.requests() == []

    assert reader.run(f"{PYTHON}campaign mine resume").returncode == 0
    judged = reader.run(judge, **{preset.key_env: KEY})
    assert judged.returncode == 0, judged.stderr
    status = json.loads(reader.run(f"{PYTHON}status mine --json").stdout)
    assert status["labelled"] == status["pairs"] >= 1
    sent = model_server.requests()
    assert {one["path"] for one in sent} == {"/deepseek/chat/completions"} and {one["key"] for one in sent} == {KEY}
    assert {one["body"]["response_format"]["type"] for one in sent} == {"json_object"}


def test_a_key_that_is_not_accepted_and_a_misspelt_provider_say_so(tmp_path, manage: Callable[..., object]) -> None:
    file = tmp_path / "judges.toml"
    file.write_text(FILE.replace('"deepseek"\nmodel', '"deepsek"\nmodel'))
    done = manage("configure_judges", file, check=False)
    assert done.code == 2 and all(part in done.err for part in ("line 3", "provider", '"deepsek"', "deepseek, "))
    assert done.err.count("\n") == 1
