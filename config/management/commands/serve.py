"""`serve`: run the site and its workers as children of one command, until Ctrl-C."""

import importlib.util
import json
from typing import Any

from django.core.management.base import CommandParser

from config import checks, serving, startup, staticfiles
from corpus.commands import QuorumCommand
from corpus.errors import BadInput


class Command(QuorumCommand):
    """The command that serves the site; it prints one JSON line {url, pids} when it is ready."""

    help = "Serve the site and run its judge workers. Prints one JSON line {url, pids} when ready; Ctrl-C stops both."
    requires_system_checks = (checks.SETTINGS,)

    def arguments(self, parser: CommandParser) -> None:
        add = parser.add_argument
        add("--port", type=int, default=8000, help="port to listen on; 0 takes a free one")
        add("--bind", default="127.0.0.1", help="address to listen on")
        add("--judge-workers", type=int, default=1, help="number of judge worker processes (0: none)")
        add("--gpu-workers", type=int, default=0, help="number of training workers, one per GPU (0: none)")

    def run(self, **options: Any) -> object:
        for name in ("judge_workers", "gpu_workers"):
            if options[name] < 0:
                raise BadInput(f"--{name.replace('_', '-')} must be 0 or more")
        if options["gpu_workers"] and importlib.util.find_spec("torch") is None:
            raise BadInput("--gpu-workers needs the training extra: `make install-training` sets it up")
        children = serving.Children()
        serving.stop_on_signals()
        try:
            with serving.listen(options["bind"], options["port"]) as listener:
                staticfiles.collect()
                self.stderr.write("Starting the site and its workers ...")
                children.judge_workers(options["judge_workers"])
                children.gpu_workers(options["gpu_workers"])
                address = serving.address_of(listener)
                children.web(listener)
                startup.migrate_first_start()
                children.wait_until(lambda: children.workers_are_ready() and serving.site_answers(address), "the site")
                self.stdout.write(json.dumps({"url": address, "pids": children.pids}))
                self.stdout.flush()
                children.watch()
        except serving.ServingInterrupted as interruption:
            self.stderr.write("Stopping; unfinished work continues at the next start.")
            # Not after Ctrl-C, because a person waits at the terminal.
            if not interruption.code:
                children.announce_shutdown()
            raise SystemExit(interruption.code) from None
        finally:
            children.stop()
        return None
