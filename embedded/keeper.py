"""The keeper: one process per VAR that runs PostgreSQL and Redis as long as other processes use them.

`startup.start_keeper` starts `python -m embedded.keeper VAR LOCK` and passes the locked VAR/keeper.lock on as the
descriptor LOCK, so that it stays locked as long as this process lives. Users hold VAR/users.lock as a shared lock.
"""

import fcntl
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

from embedded import addresses, locks
from embedded.postgres import MAJOR, Failed, Postgres
from embedded.redis_server import Redis

TICK = 0.25
START_TRIES = 3
START_PATIENCE = 60.0
STOP_PATIENCE = 20.0


class Keeper:
    """Starts both services, restarts them if they die, and stops them when they have no more users."""

    def __init__(self, var: Path, lock: int) -> None:
        self.var = var
        self.lock = lock
        self.linger = float(os.environ.get("QUORUM_LINGER") or 20)
        self.sockets = addresses.run_folder(var)
        self.postgres = Postgres(var)
        self.redis = Redis(var)
        self.services: tuple[Postgres | Redis, ...] = (self.postgres, self.redis)
        self.users = locks.open_lock(var / "users.lock")
        self.asked_to_stop = False
        self.last_used = time.monotonic()
        self.last_start = time.time()

    def prepare(self) -> None:
        (self.var / "logs").mkdir(mode=0o700, exist_ok=True)
        # The folder of the sockets must be ours, even if it is in /tmp.
        self.sockets.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.sockets.is_symlink() or self.sockets.lstat().st_uid != os.geteuid():
            raise Failed(f"{self.sockets} is not ours: remove it, or set QUORUM_VAR to a shorter path.", 2)
        self.sockets.chmod(0o700)
        for service in self.services:
            service.prepare()

    def start(self) -> None:
        """Start both services, and announce them when they answer. Raises Failed."""
        for service in self.services:
            service.start()
        end = time.monotonic() + START_PATIENCE
        tries = 0
        while not all(service.ready() for service in self.services):
            for service in self.services:
                if service.process and service.process.poll() is not None:
                    # The limit counts only the attempts that failed for a reason that does not pass.
                    tries += not service.may_try_again()
                    time.sleep(0.2)
                    service.start()
            if tries >= START_TRIES or time.monotonic() > end:
                problem = next((service.complaint() for service in self.services if not service.ready()), "no answer")
                raise Failed(f"The embedded services do not start: {problem}")
            if self.asked_to_stop or self.var_was_removed():
                return
            time.sleep(0.02)
        # Before the announcement, after which others connect to the database by its name.
        self.postgres.make_database()
        self.announce()

    def announce(self) -> None:
        """Write services.json, for which users of the services wait."""
        services = {"postgres": self.postgres.process, "redis": self.redis.process}
        document = {
            "pid": os.getpid(),
            "database": addresses.database_url(self.var),
            "redis": addresses.redis_url(self.var),
            "pids": {name: process.pid if process else None for name, process in services.items()},
        }
        # Atomically, since others may read it at any moment.
        draft = self.var / ".services.json"
        draft.write_text(json.dumps(document))
        draft.rename(self.var / "services.json")

    def keep(self) -> None:
        """Run until nobody has used the services for `linger` seconds, VAR is removed, or a signal arrives."""
        while not self.asked_to_stop and not self.var_was_removed() and not self.nobody_left():
            ended_services = [
                service for service in self.services if service.process and service.process.poll() is not None
            ]
            for service in ended_services:
                service.start()
            if ended_services:
                self.announce()
            time.sleep(TICK)

    def nobody_left(self) -> bool:
        """Return whether nobody used the services for `linger` seconds; new users then wait for the users' lock."""
        if not locks.try_exclusive(self.users):
            self.last_used = time.monotonic()
            return False
        began = (self.var / "users.lock").stat().st_mtime
        if began > self.last_start:  # A user came and went between two checks.
            self.last_start, self.last_used = began, time.monotonic()
        if time.monotonic() - self.last_used >= self.linger:
            return True
        # Released at once so that new users need not wait; it is kept only if the services are about to end.
        fcntl.flock(self.users, fcntl.LOCK_UN)
        return False

    def var_was_removed(self) -> bool:
        """Return whether VAR was removed or replaced, so that its lock file is no longer ours."""
        try:
            return (self.var / "keeper.lock").stat().st_ino != os.fstat(self.lock).st_ino
        except OSError:
            return True

    def stop(self) -> None:
        """End both services. If VAR was removed, nothing can be saved, and a new keeper may use the sockets' paths."""
        var_is_gone = self.var_was_removed()
        for service in self.services:
            if service.process and service.process.poll() is None:
                service.process.send_signal(signal.SIGKILL if var_is_gone else service.stop_signal)
        end = time.monotonic() + STOP_PATIENCE
        for service in self.services:
            while service.process and service.process.poll() is None:
                if time.monotonic() > end:
                    service.process.kill()
                time.sleep(0.02)
        if not var_is_gone:
            (self.var / "services.json").unlink(missing_ok=True)
        if self.sockets.parent != self.var:
            shutil.rmtree(self.sockets, ignore_errors=True)

    def on_term(self, *_: object) -> None:
        self.asked_to_stop = True


def detach(var: Path) -> None:
    """Detach from the command that started us: with a new session, and output to VAR/logs/keeper.log."""
    # The command waits only for this process, whose end means that the checks succeeded.
    if os.fork():
        os._exit(0)
    os.setsid()
    (var / "logs").mkdir(mode=0o700, exist_ok=True)
    log = os.open(var / "logs" / "keeper.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for descriptor in (1, 2):
        os.dup2(log, descriptor)
    os.chdir("/")


def main(var: Path, lock: int) -> None:
    """Check, detach, keep the services running, stop. Failed checks are reported to the command that started us."""
    # The servers must not inherit the lock, or a killed keeper would seem to live as long as they do.
    os.set_inheritable(lock, False)
    failure = var / "keeper.error"
    failure.unlink(missing_ok=True)
    try:
        # Data of another major version is left alone.
        mark = var / "postgres" / "data" / "PG_VERSION"
        if mark.exists() and (version := mark.read_text().strip()) != MAJOR:
            raise Failed(
                f"{mark.parent} was written by PostgreSQL {version}, and this Quorum brings {MAJOR}: "
                "restore a backup into a new QUORUM_VAR.",
                2,
            )
        keeper = Keeper(var, lock)
    except Failed as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.code)
    signal.signal(signal.SIGTERM, keeper.on_term)
    # Ctrl-C is meant for the command at the terminal; others may still use the services.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    detach(var)
    try:
        keeper.prepare()
        keeper.start()
        keeper.keep()
    except (Failed, OSError) as error:
        if not keeper.var_was_removed():
            failure.write_text(f"{error}\n")
    finally:
        keeper.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
