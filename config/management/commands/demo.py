"""`demo`: import the bundled collection, judge it by real workers, and serve the site."""

import sys
from pathlib import Path
from typing import Any, TextIO

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandParser

from annotation.models.web_search import WebSearch
from benchmark.agents import demo as agents_demo
from config import checks, demo, serving, startup, staticfiles
from config.extra import Extra
from corpus.commands import QuorumCommand
from corpus.errors import BadInput, QuorumError
from corpus.models import Collection
from judges.panels.configuration import store_judges_file
from judges.panels.judges_file import read

PORTS = range(8000, 8020)
INCOMPLETE = 3


class Command(QuorumCommand):
    """The command that imports, judges and serves the bundled collection; running it again resumes."""

    help = "Bring up the site with the bundled collection, judged by the offline panel. Ctrl-C ends it."
    requires_system_checks = (checks.SETTINGS,)

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=int, help="port to listen on (default: the first free one from 8000)")
        parser.add_argument("--judges", type=Path, metavar="F", help="judges file to judge with; may cost money")
        parser.add_argument("--judge-workers", type=int, default=2, help="number of judge worker processes")
        parser.add_argument("--no-training", action="store_true", help="do not install the training dependencies")

    def run(self, **options: Any) -> object:
        children = serving.Children(settings.VAR / "logs")
        extra = Extra(settings.VAR, ready=lambda: children.gpu_workers(1))
        serving.stop_on_signals()
        try:
            with self.listener(options["port"]) as listener:
                self.show(children, listener, options)
                extra.leave_out() if options["no_training"] else extra.start()
                children.watch(also=extra.look)
        except serving.ServingInterrupted as interruption:
            self.say("\nStopping. Run the same command to continue.")
            raise SystemExit(interruption.code) from None
        finally:
            extra.stop()
            children.stop()
        return None

    @property
    def out(self) -> TextIO:
        """The stream for the output of the commands that this one calls."""
        return sys.stderr if self.as_json else sys.stdout

    def listener(self, port: int | None) -> Any:
        """Return the socket of the site, at the requested port or at the first free one."""
        for candidate in [port] if port is not None else PORTS:
            try:
                return serving.listen("127.0.0.1", candidate)
            except BadInput:
                if port is not None:
                    raise
        return serving.listen("127.0.0.1", 0)

    def show(self, children: serving.Children, listener: Any, options: dict[str, Any]) -> None:
        """Import, judge, start the site, and print its address and accounts."""
        children.judge_workers(options["judge_workers"])
        startup.migrate_first_start()
        folder = settings.VAR / "demo"
        collection, counts = demo.load_collection(folder, self.out)
        dropped_text = f"{counts['dropped']} of passages that this Python words differently"
        self.say(f"Gold labels: {counts['pairs']}, and {dropped_text}.")
        panel = self.panel(options["judges"], collection)
        children.wait_until(children.workers_are_ready, "the judge workers")
        self.judge(collection, panel)
        self.measure(children, collection)
        # Failures of these parts are printed, and the site starts without them.
        try:
            searches = agents_demo.start_searches(collection, folder / "aspects.jsonl")
            children.wait_until(lambda: agents_demo.are_over(searches), "the offline agent")
            agents_demo.start_gradings(collection)
        except QuorumError as error:
            self.stderr.write(f"Agents are not shown: {error}")
        try:
            search = demo.start_web_search(folder)
            children.wait_until(lambda: WebSearch.objects.get(pk=search.pk).is_over, "the offline web search")
            demo.start_query_writing(search)
        except QuorumError as error:
            self.stderr.write(f"The web search is not shown: {error}")
        staticfiles.collect()
        address = serving.address_of(listener)
        children.web(listener)
        accounts = demo.ensure_accounts(folder / "accounts.json", collection)
        children.wait_until(lambda: serving.site_answers(address), "the site")
        self.say(f"\nThe site is at {address} (this machine only). Accounts, kept in {folder / 'accounts.json'}:")
        for account in accounts:
            self.say(f"  {account['role']:<12} {account['username']:<16} {account['password']}")
        self.say("Ctrl-C ends it.")
        self.stdout.flush()
        self.print_document({"url": address, "pids": children.pids, "accounts": accounts})

    def panel(self, judges_file: Path | None, collection: Collection) -> str:
        """Return the offline panel, or that of the judges file once the user has confirmed its cost."""
        if judges_file is None:
            return "offline"
        file = read(judges_file)
        if file.panel is None:
            raise BadInput(f"{judges_file.name}: no judge of this file judges pairs: add one that does")
        panel = str(store_judges_file(file)["panel"]["name"])
        line = demo.estimate_line(collection, panel)
        if line is None:
            return panel
        self.stderr.write(f"Judging with panel {panel}: {line}.")
        if not sys.stdin.isatty():
            raise BadInput(
                "This is not a terminal, so the cost cannot be confirmed: run the demo in a terminal, or without JUDGES"
            )
        self.stderr.write("Continue? [y/N] ", ending="")
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise BadInput("Not started: without JUDGES the demo is judged offline and costs nothing")
        return panel

    def measure(self, children: serving.Children, collection: Collection) -> None:
        """Make runs, and start the jobs that use them in the background; the site also starts without a benchmark."""
        try:
            runs = demo.start_runs(collection)
            children.wait_until(lambda: demo.are_ready(runs), "the runs")
            demo.start_fusion(collection)
            demo.start_answers(collection)
            demo.start_synthesis(collection)
        except QuorumError as error:
            self.stderr.write(f"The benchmark is not shown: {error}")

    def judge(self, collection: Collection, panel: str) -> None:
        """Judge by the ordinary command, with its progress; the site also starts if pairs fail."""
        try:
            call_command("judge", collection.name, panel=panel, wait=True, yes=True, stdout=self.out)
        except SystemExit as exit:
            if exit.code != INCOMPLETE:
                raise
