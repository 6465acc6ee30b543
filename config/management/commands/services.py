"""`services status|stop`: show or stop the embedded PostgreSQL and Redis of this instance."""

import contextlib
import json
import os
import signal
import time
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from corpus.commands import QuorumCommand
from corpus.errors import BadInput, QuorumError
from embedded import are_embedded, locks
from jobs.system import lock_holders

PATIENCE = 30.0


class Command(QuorumCommand):
    """The command that shows or stops the embedded services, and never starts them."""

    help = "Show the status of this instance's embedded PostgreSQL and Redis, or stop them."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("act", choices=["status", "stop"], help="what to do")

    def run(self, **options: Any) -> object:
        """Show or stop the services.

        Returns {"state": running|stopped|external, "pid", "database", "redis", "pids", "users": [pid]}.
        """
        document = self.status()
        if options["act"] == "stop":
            # Wait until the keeper is neither starting nor ending.
            end = time.monotonic() + PATIENCE
            while document["state"] == "starting":
                if time.monotonic() > end:
                    log = settings.VAR / "logs" / "keeper.log"
                    raise QuorumError(f"The keeper neither came up nor ended in {PATIENCE:.0f} s: see {log}")
                time.sleep(0.05)
                document = self.status()
            if document["state"] == "running":
                self.stop(document)
                document = self.status()
        self.say(f"{settings.VAR}: {document['state']}")
        if document.get("users"):
            self.say("used by processes " + ", ".join(str(pid) for pid in document["users"]))
        return document

    def status(self) -> dict[str, Any]:
        """Return the state of the services, with the announcement of a running keeper."""
        if not are_embedded():
            return {"state": "external"}
        lock = settings.VAR / "keeper.lock"
        if not lock.exists() or not locks.is_held(lock):
            return {"state": "stopped"}
        try:
            announcement = json.loads((settings.VAR / "services.json").read_text())
        except FileNotFoundError:
            return {"state": "starting"}
        # The keeper itself takes the lock for a moment every second if nobody else holds it.
        users = [pid for pid in lock_holders(settings.VAR / "users.lock") if pid != announcement["pid"]]
        return {"state": "running", **announcement, "users": users}

    def stop(self, document: dict[str, Any]) -> None:
        """Ask the keeper to end both services. Raises BadInput if processes use them."""
        if document["users"]:
            pids = ", ".join(str(pid) for pid in document["users"])
            raise BadInput(f"The services are in use by processes {pids}: end those first")
        with contextlib.suppress(ProcessLookupError):  # It may have ended by itself.
            os.kill(document["pid"], signal.SIGTERM)
        end = time.monotonic() + PATIENCE
        while locks.is_held(settings.VAR / "keeper.lock"):
            if time.monotonic() > end:
                raise QuorumError(f"The keeper (process {document['pid']}) did not end in {PATIENCE:.0f} s")
            time.sleep(0.05)
