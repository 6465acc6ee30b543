"""The images of docker/Dockerfile, really built and run: nobody special on a read-only root imports, judges, backs up.

No registry of images is asked: the base is made of Debian's packages. What pip is told on this
machine (its index, its certificates) is mounted into the build and stays out of the images.
"""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded import postgres, redis_server
from tests.config.other_servers import QUIET, running_postgres
from tests.config.test_serving import status_of
from tests.instances import ROOT, until
from tests.plugin_browser import free_port

TOOLS = ("buildah", "podman", "runc", "mmdebstrap")
MISSING = [tool for tool in TOOLS if shutil.which(tool) is None]
TARGETS = ("web", "worker", "trainer")
BASE = "localhost/quorum-base"
PACKAGES = "ca-certificates,python3,python3-venv,python-is-python3"
# What compose.yml says of all three.
CONFINED = ("--read-only", "--tmpfs=/tmp", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--network=host")
# Of podman: no systemd is asked for anything, and limits stay below this machine's. The tests ask for the health.
RUNTIME = ("--runtime=runc", "--cgroup-manager=cgroupfs")
LIMITS = ("--ulimit=nofile=4096:4096", "--ulimit=nproc=4096:4096", "--no-healthcheck", "--log-driver=k8s-file")
BUILD_S = 1800.0

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"no image is built: {', '.join(MISSING)} not installed"),
    pytest.mark.skipif(os.geteuid() != 0, reason="no image is built: that needs root here"),
]


class Engine:
    """buildah and podman with a storage of their own, which is thrown away."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.storage = [f"--root={place / 'storage'}", f"--runroot={place / 'run'}"]
        self.environment = {**os.environ, "TMPDIR": str(place), "BUILDAH_ISOLATION": "chroot"}

    def call(self, tool: str, *args: str, seconds: float = BUILD_S) -> str:
        command = [tool, *self.storage, *(RUNTIME if tool == "podman" else ()), *args]
        done = subprocess.run(
            command, cwd=ROOT, env=self.environment, capture_output=True, text=True, timeout=seconds, check=False
        )
        assert done.returncode == 0, f"{' '.join(args[:3])}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
        return done.stdout

    def make_base(self) -> None:
        """What stands in for python:3.11-slim-bookworm."""
        archive = self.place / "base.tar"
        made = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(archive)]
        done = subprocess.run(made, env=self.environment, capture_output=True, text=True, timeout=BUILD_S, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        self.call("podman", "import", "--quiet", str(archive), BASE)
        archive.unlink()

    def build(self, target: str, mounts: list[str]) -> None:
        named = [f"--target={target}", f"--tag=localhost/quorum-{target}", "--file=docker/Dockerfile"]
        how = ["--layers", "--network=host", "--pull-never", f"--build-arg=BASE={BASE}", "--format=docker"]
        self.call("buildah", "build", "--quiet", *how, *named, *[f"--volume={one}" for one in mounts], ".")

    def end(self) -> None:
        for tool, *args in (("podman", "rm", "--all", "--force", "--time=5"), ("podman", "rmi", "--all", "--force")):
            command = [tool, *self.storage, *RUNTIME, *args]
            subprocess.run(command, env=self.environment, capture_output=True, check=False)
        subprocess.run(["umount", str(self.place / "storage" / "overlay")], capture_output=True, check=False)
        shutil.rmtree(self.place, ignore_errors=True)


class Containers:
    """The images with what compose.yml gives them: services, keys, a volume for VAR."""

    def __init__(self, engine: Engine, services: dict[str, str], data: Path) -> None:
        self.engine = engine
        values = {**services, "SECRET_KEY": "k" * 50, "ALLOWED_HOSTS": "quorum.example"}
        self.options = [f"--env={name}={value}" for name, value in values.items()]
        self.options += ["--volume=var:/var/lib/quorum", f"--volume={data}:/data:ro", *CONFINED, *LIMITS]

    def run(self, target: str, *command: str) -> str:
        return self.engine.call("podman", "run", "--rm", *self.options, f"localhost/quorum-{target}", *command)

    def manage(self, target: str, *command: str) -> str:
        return self.run(target, "python", "manage.py", *command)

    def start(self, target: str, *command: str) -> str:
        """Start one in the background, with its image's own command unless another is given; its id."""
        started = self.engine.call("podman", "run", "--detach", *self.options, f"localhost/quorum-{target}", *command)
        return started.strip()

    def is_healthy(self, container: str, kind: str) -> bool:
        """What its HEALTHCHECK asks."""
        ask = ["podman", *self.engine.storage, *RUNTIME, "exec", container, "python", "docker/health.py", kind]
        return subprocess.run(ask, env=self.engine.environment, capture_output=True, check=False).returncode == 0


def pip_settings(place: Path) -> list[str]:
    """A pip.conf with what pip is told on this machine, and the folders and files that it names, as mounts."""
    listed = [sys.executable, "-m", "pip", "config", "list"]
    said = subprocess.run(listed, capture_output=True, text=True, check=True).stdout
    found = dict(re.findall(r"^(?:global|:env:)\.([a-z-]+)=(.+)$", said, flags=re.MULTILINE))
    values = {name: str(ast.literal_eval(value)) for name, value in found.items()}
    lines = [f"{name} = {' '.join(value.split())}" for name, value in values.items()]
    (place / "pip.conf").write_text("\n".join(["[global]", *lines, ""]))
    words = {word for value in values.values() for word in value.split()}
    # An index that is a folder has its files beside it.
    paths = {Path(word.removeprefix("file://")).parent for word in words if word.startswith("file://")}
    paths |= {Path(word) for word in words if word.startswith("/")}
    return [f"{place / 'pip.conf'}:/etc/pip.conf:ro", *(f"{one}:{one}:ro" for one in sorted(paths) if one.exists())]


@pytest.fixture(scope="module")
def services() -> Iterator[dict[str, str]]:
    """PostgreSQL and Redis of this machine, on ports of 127.0.0.1."""
    port, redis_port = free_port(), free_port()
    command = [str(redis_server.server_binary()), "--port", str(redis_port), "--bind", "127.0.0.1", "--save", ""]
    redis = subprocess.Popen(command, **QUIET)
    try:
        with running_postgres(postgres.binaries_folder(), "-c", "listen_addresses=127.0.0.1", "-p", str(port)):
            database = f"postgres://postgres@127.0.0.1:{port}/quorum"
            yield {"DATABASE_URL": database, "REDIS_URL": f"redis://127.0.0.1:{redis_port}/0"}
    finally:
        redis.kill()
        redis.wait()


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """The three images, built."""
    place = Path(tempfile.mkdtemp(prefix="quorum-images-", dir="/var/tmp"))
    engine = Engine(place)
    try:
        engine.make_base()
        mounts = pip_settings(place)
        for target in TARGETS:
            engine.build(target, mounts)
        yield engine
    finally:
        engine.end()


@pytest.fixture(scope="module")
def containers(engine: Engine, services: dict[str, str]) -> Containers:
    """A migrated instance whose data folder has a small collection."""
    data = engine.place / "data"
    data.mkdir()
    texts = [{"_id": f"d{n}", "text": f"Owls hunt mice at night {n}."} for n in range(4)]
    (data / "corpus.jsonl").write_text("".join(json.dumps(text) + "\n" for text in texts))
    (data / "queries.jsonl").write_text(json.dumps({"_id": "q1", "text": "what do owls hunt"}) + "\n")
    found = Containers(engine, services, data)
    found.manage("web", "migrate", "-v0")
    return found


@pytest.mark.parametrize("target", TARGETS)
def test_an_image_runs_as_nobody_special_and_writes_nowhere_but_its_volume(containers: Containers, target: str) -> None:
    folders = ("/", "/opt/quorum/src", "/opt/quorum/venv", "/home/quorum", "/tmp", "/var/lib/quorum")
    code = f"import os; print(os.getuid(), *[one for one in {folders} if os.access(one, os.W_OK)])"
    assert containers.run(target, "python", "-c", code).split() == ["10001", "/tmp", "/var/lib/quorum"]


def test_a_collection_is_imported_judged_backed_up_and_restored(containers: Containers) -> None:
    worker = containers.start("worker")
    until(lambda: containers.is_healthy(worker, "judge"), "a healthy worker", seconds=120)
    given = ["--corpus=/data/corpus.jsonl", "--queries=/data/queries.jsonl", "--bm25=3"]
    containers.manage("web", "import_collection", "owls", *given)
    judged = json.loads(containers.manage("worker", "judge", "owls", "--wait", "--json"))
    assert judged["state"] == "finished" and judged["labelled"] + judged["escalated"] == judged["pairs"] == 3
    before = json.loads(containers.manage("web", "status", "owls", "--json"))
    containers.run("web", "mkdir", "-p", "/var/lib/quorum/backups")
    containers.manage("web", "backup", "/var/lib/quorum/backups/one.tar", "--keep=7")
    containers.manage("web", "delete_collection", "owls", "--yes")
    containers.engine.call("podman", "stop", "--time=30", worker)
    containers.manage("web", "restore", "/var/lib/quorum/backups/one.tar", "--json")
    assert json.loads(containers.manage("web", "status", "owls", "--json")) == before


def test_the_site_answers(containers: Containers) -> None:
    port = free_port()
    serve = ["serve", "--bind=127.0.0.1", f"--port={port}", "--judge-workers=0"]
    site = containers.start("web", "python", "manage.py", *serve)

    def answer(path: str) -> int:
        about = {"Host": "quorum.example", "X-Forwarded-Proto": "https"}
        try:
            return status_of(f"http://127.0.0.1:{port}{path}", **about)
        except OSError:
            return 0

    until(lambda: answer("/healthz") == 200, "the site", seconds=120)
    assert (answer("/readyz"), answer("/accounts/login/")) == (200, 200)
    containers.engine.call("podman", "stop", "--time=30", site)


def test_a_trainer_has_torch_and_says_that_it_lives(containers: Containers) -> None:
    assert containers.run("trainer", "python", "-c", "import torch; print(torch.ones(2).sum().item())") == "2.0\n"
    trainer = containers.start("trainer")
    until(lambda: containers.is_healthy(trainer, "gpu"), "a healthy trainer", seconds=180)
    containers.engine.call("podman", "stop", "--time=30", trainer)
