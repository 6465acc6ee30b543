"""What is generated of the client is what the generator gives now; its wheel has all of it."""

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from shutil import copytree, ignore_patterns
from zipfile import ZipFile

import pytest

from config.env import ROOT

CLIENT = ROOT / "client"


def test_generating_the_client_again_changes_nothing(tmp_path: Path) -> None:
    spec = spec_from_file_location("generate", CLIENT / "generate.py")
    assert spec and spec.loader
    generate = module_from_spec(spec)
    spec.loader.exec_module(generate)
    generate.write_all(tmp_path)
    names = list(generate.generated_files(tmp_path))
    assert names == list(generate.generated_files(CLIENT / "quorum_client")) and len(names) == 17
    different = [str(name) for name in names if (tmp_path / name).read_text() != (generate.PACKAGE / name).read_text()]
    assert different == [], "run: python client/generate.py"


@pytest.mark.slow
def test_the_wheel_has_both_clients_and_says_that_it_is_typed(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(tmp_path),
    ]
    # setuptools builds beside the source.
    source = copytree(CLIENT, tmp_path / "source", ignore=ignore_patterns("build", "*.egg-info", "__pycache__"))
    done = subprocess.run([*command, str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(next(name for name in names if name.endswith("METADATA"))).decode()
    assert {"quorum_client/py.typed", "quorum_client/models.py"} < set(names)
    assert {"quorum_client/_sync/client.py", "quorum_client/_async/client.py"} < set(names)
    required = [line for line in metadata.splitlines() if line.startswith("Requires-Dist") and "extra" not in line]
    assert [line.split()[1].split("<")[0].split(">")[0] for line in required] == [
        "httpx2", "pydantic", "standardwebhooks",
    ]  # fmt: skip
