"""The keeper: one process for each VAR that owns PostgreSQL and Redis as long as somebody uses them.

`python -m embedded.keeper VAR LOCK` is started by `startup.start_keeper`, which hands over the
locked VAR/keeper.lock as descriptor LOCK: while this process lives the lock is held. Users hold
VAR/users.lock shared.
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
from embedded.postgres import Failed, Postgres, check_version
from embedded.redis_server import Redis

TICK = 0.25
START_TRIES = 3
START_PATIENCE = 60.0
STOP_PATIENCE = 20.0


class Keeper:
    """Starts both services, restarts what dies, stops both when nobody is left."""

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
        private_folder(self.sockets)
        for service in self.services:
            service.prepare()

    def start(self) -> None:
        """Start both and announce them when they answer. Raises Failed."""
        for service in self.services:
            service.start()
        end = time.monotonic() + START_PATIENCE
        tries = 0
        while not all(service.ready() for service in self.services):
            tries += self._start_again()
            if tries >= START_TRIES or time.monotonic() > end:
                raise Failed(f"The embedded services do not start: {self._complaint()}")
            if self.asked_to_stop or self.var_was_removed():
                return
            time.sleep(0.02)
        # Not before: whoever finds the announcement connects to the database by its name.
        self.postgres.make_database()
        self.announce()

    def _start_again(self) -> int:
        """Start ended services again; return how many waiting does not mend."""
        wrong = 0
        for service in self.services:
            if service.process and service.process.poll() is not None:
                wrong += not service.may_try_again()
                time.sleep(0.2)
                service.start()
        return wrong

    def _complaint(self) -> str:
        return next((s.complaint() for s in self.services if not s.ready()), "no answer")

    def announce(self) -> None:
        """Write services.json: whoever waits for the services looks at it."""
        services = {"postgres": self.postgres.process, "redis": self.redis.process}
        document = {
            "pid": os.getpid(),
            "database": addresses.database_url(self.var),
            "redis": addresses.redis_url(self.var),
            "pids": {name: process.pid if process else None for name, process in services.items()},
        }
        # Whole or not at all, since others read it at any moment.
        draft = self.var / ".services.json"
        draft.write_text(json.dumps(document))
        draft.rename(self.var / "services.json")

    def keep(self) -> None:
        """Run until nobody has used the services for `linger` seconds, VAR is gone, or somebody asks to stop."""
        while not self.asked_to_stop and not self.var_was_removed() and not self.nobody_left():
            ended = [service for service in self.services if service.process and service.process.poll() is not None]
            for service in ended:
                service.start()
            if ended:
                self.announce()
            time.sleep(TICK)

    def nobody_left(self) -> bool:
        """Return whether nobody used the services for `linger` seconds; newcomers then wait for the users' lock."""
        if not locks.try_exclusive(self.users):
            self.last_used = time.monotonic()
            return False
        began = (self.var / "users.lock").stat().st_mtime
        if began > self.last_start:  # somebody came and went between two looks
            self.last_start, self.last_used = began, time.monotonic()
        if time.monotonic() - self.last_used >= self.linger:
            return True
        # Held for an instant only, or newcomers would wait for us; where nobody is left it is kept, so that they do.
        fcntl.flock(self.users, fcntl.LOCK_UN)
        return False

    def var_was_removed(self) -> bool:
        """Return whether VAR was removed, or replaced by another: the keeper's lock is then not the one in VAR."""
        try:
            return (self.var / "keeper.lock").stat().st_ino != os.fstat(self.lock).st_ino
        except OSError:
            return True

    def stop(self) -> None:
        """End both services. When VAR is gone there is nothing to save, and a newcomer may own the sockets' paths."""
        gone = self.var_was_removed()
        for service in self.services:
            if service.process and service.process.poll() is None:
                service.process.send_signal(signal.SIGKILL if gone else service.stop_signal)
        end = time.monotonic() + STOP_PATIENCE
        for service in self.services:
            while service.process and service.process.poll() is None:
                if time.monotonic() > end:
                    service.process.kill()
                time.sleep(0.02)
        if not gone:
            (self.var / "services.json").unlink(missing_ok=True)
        if self.sockets.parent != self.var:
            shutil.rmtree(self.sockets, ignore_errors=True)

    def on_term(self, *_: object) -> None:
        self.asked_to_stop = True


def private_folder(folder: Path) -> None:
    """Make a folder only for us. Raises Failed where somebody else made it, as in /tmp."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if folder.is_symlink() or found.st_uid != os.geteuid():
        raise Failed(f"{folder} is not ours: remove it, or set QUORUM_VAR to a shorter path.", 2)
    folder.chmod(0o700)


def detach(var: Path) -> None:
    """Leave the command that started us: a session of our own, output to VAR/logs/keeper.log."""
    # The command waits for this process alone: its end says that the checks found nothing.
    if os.fork():
        os._exit(0)
    os.setsid()
    (var / "logs").mkdir(mode=0o700, exist_ok=True)
    log = os.open(var / "logs" / "keeper.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for descriptor in (1, 2):
        os.dup2(log, descriptor)
    os.chdir("/")


def main(var: Path, lock: int) -> None:
    """Check, detach, serve, stop. What a check refuses is told to the command that started us."""
    # The servers must not inherit it, or a killed keeper would seem to live as long as they do.
    os.set_inheritable(lock, False)
    failure = var / "keeper.error"
    failure.unlink(missing_ok=True)
    try:
        check_version(var)
        keeper = Keeper(var, lock)
    except Failed as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.code)
    signal.signal(signal.SIGTERM, keeper.on_term)
    # Ctrl-C is meant for the command at the terminal; others may use the services still.
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
