"""`serve`: run the site and its workers as children of one command, until Ctrl-C."""

import json
from typing import Any

from django.core.management.base import CommandParser

from annotation.people.accounts.first_owner import ensure_token
from config import checks, serving, startup, staticfiles
from corpus.commands import QuorumCommand
from corpus.errors import BadInput
from training.jobs import worker_pool


class Command(QuorumCommand):
    """The command that serves the site; it prints one JSON line {url, pids} when it is ready."""

    help = "Serve the site and run its judge workers. Prints one JSON line {url, pids} when ready; Ctrl-C stops both."
    requires_system_checks = (checks.SETTINGS,)

    def arguments(self, parser: CommandParser) -> None:
        add = parser.add_argument
        add("--port", type=int, default=8000, help="port to listen on; 0 takes a free one")
        add("--bind", default="127.0.0.1", help="address to listen on")
        add("--judge-workers", type=int, default=1, help="number of judge worker processes (0: none)")
        add(
            "--gpu-workers",
            type=int,
            help="number of training workers, one per GPU (0: none; default: one where the training extra is "
            "installed, which trains on the CPU without a GPU, and none with --judge-workers 0)",
        )

    def run(self, **options: Any) -> object:
        for name in ("judge_workers", "gpu_workers"):
            if (options[name] or 0) < 0:
                raise BadInput(f"--{name.replace('_', '-')} must be 0 or more")
        trainers: int | None = options["gpu_workers"]
        if trainers is None:
            # A site without judge workers is one of several machines, whose workers run elsewhere.
            trainers = int(worker_pool.is_training_installed() and options["judge_workers"] > 0)
        elif trainers and not worker_pool.is_training_installed():
            raise BadInput("--gpu-workers needs the training extra: `make install-training` sets it up")
        children = serving.Children()
        serving.stop_on_signals()
        try:
            with serving.listen(options["bind"], options["port"]) as listener:
                staticfiles.collect()
                workers = f"{options['judge_workers']} for judging, {trainers} for training"
                self.stderr.write(f"Starting the site and its workers ({workers}) ...")
                children.judge_workers(options["judge_workers"])
                children.gpu_workers(trainers)
                address = serving.address_of(listener)
                children.web(listener)
                startup.migrate_first_start()
                children.wait_until(lambda: children.workers_are_ready() and serving.site_answers(address), "the site")
                self.announce(address)
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

    def announce(self, address: str) -> None:
        """Say where the site is and, while it has no account, the token that creates its owner."""
        self.stderr.write(f"The site is at {address}. Ctrl-C ends it.")
        if token := ensure_token():
            self.stderr.write(f"It has no account yet: open the address and enter this one-time token: {token}")
