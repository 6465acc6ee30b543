"""What commands share that start a campaign: agreement to its cost, waiting with workers of their own, the summary."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import InterfaceError, OperationalError, connection
from redis.exceptions import RedisError

from corpus.commands import QuorumCommand
from corpus.errors import BadInput, BadOption, Incomplete
from corpus.models import Collection
from jobs import workers
from judges.campaigns import selectors
from judges.campaigns.estimates import Estimate
from judges.campaigns.lifecycle import Started
from judges.campaigns.progress import CampaignProgress, count_ended, summary_lines
from judges.costs import collection_budgets
from judges.costs.accounting import describe_assumed_cost
from judges.engine import notifications
from judges.models import Campaign
from judges.workers import worker_pool

LOOK_S = 0.25
LINE_EVERY_S = 10.0
CHECK_WORKERS_S = 3.0
PATIENCE_S = 300.0
AWAY = (OperationalError, InterfaceError, RedisError)


def add_wait_options(parser: CommandParser) -> None:
    """Add how the start is agreed to, and whether and with which workers its end is waited for."""
    parser.add_argument("--workers", type=int, help="with --wait: number of worker processes (default: one per CPU)")
    parser.add_argument("--wait", action="store_true", help="wait for the end and show progress")
    parser.add_argument("--yes", action="store_true", help="start paid work without asking for confirmation")


def check_workers_option(workers: int | None) -> None:
    """Raise BadOption for a number of workers out of bounds: it should not follow a confirmation."""
    if workers is not None and not 1 <= workers <= 64:
        raise BadOption("workers", "give a number from 1 to 64")


class JudgingCommand(QuorumCommand):
    """A command that starts a campaign and may wait for its end."""

    name: str

    def follow(self, collection: Collection, started: Started, options: dict[str, Any]) -> object:
        """Say what was started; wait for it where that was asked for."""
        if started.idle or started.campaign is None:
            self.say(self.idle(collection))
            return self.end(collection, started.campaign, strict=False)
        campaign = started.campaign
        self.note(
            f"campaign {campaign.number} ({campaign.policy}, panel {campaign.panel}) "
            f"{'goes on' if started.joined else 'begins'}: {started.added:,} pairs added"
            + (f", {started.retried:,} failed pairs again" if started.retried else "")
        )
        if not options["wait"]:
            # Without --wait nobody would otherwise notice that the campaign stands still.
            self.note_wait()
            return selectors.campaign_status(collection, campaign)
        with self.interruptible(collection, campaign):
            self.wait(collection, campaign, options["workers"])
        return self.end(collection, campaign, strict=True)

    def idle(self, collection: Collection) -> str:
        if not collection.pair_set.filter(is_candidate=True).exists():
            return f"nothing to do: {collection.name} has no pairs: import some with --bm25, --runs or --pairs"
        return f"nothing to do: this panel and policy have judged all that was asked for of {collection.name}"

    def wait(self, collection: Collection, campaign: Campaign, workers: int | None) -> None:
        """Wait until the campaign runs no more, with workers of our own where no other serves the queue."""
        shown = ShownProgress(self)
        status = selectors.campaign_status(collection, campaign)
        progress = CampaignProgress(status)
        checked = away = 0.0
        notifications.clear_errors(campaign.pk)  # what broke before is forgotten
        with worker_pool.WorkerPool(workers) as own:
            while status["state"] == Campaign.State.RUNNING:
                try:
                    # Less often than the state is read: workers come and go slowly.
                    if time.monotonic() - checked > CHECK_WORKERS_S:
                        self.check_workers(own, campaign)
                        checked = time.monotonic()
                    shown.show(progress.line(status) + (f"; waits: {own.waits}" if own.waits else ""))
                    time.sleep(LOOK_S)
                    status, away = selectors.campaign_status(collection, campaign), 0.0
                except AWAY as error:
                    away = self.patience(away, campaign, error)
            shown.show(progress.line(status), last=True)

    def check_workers(self, own: worker_pool.WorkerPool, campaign: Campaign) -> None:
        """Make sure that a worker works on the campaign, or starts. Raises CommandError."""
        if said := notifications.repeated_error(campaign.pk):
            raise CommandError(f"no worker can work on campaign {campaign.number}: {said}")
        try:
            own.ensure(campaign)
        except worker_pool.CannotStart as error:
            raise CommandError(str(error)) from error

    def patience(self, away: float, campaign: Campaign, error: Exception) -> float:
        """Wait for PostgreSQL or Redis, as the workers do; return since when. Raises CommandError in the end."""
        # A broken connection stays broken: the next query opens a new one.
        connection.close()
        now = time.monotonic()
        if not away:
            self.note(f"PostgreSQL or Redis is away, waiting for it: {str(error).splitlines()[0]}")
        elif now - away > PATIENCE_S:
            raise CommandError(
                f"PostgreSQL or Redis did not come back in {PATIENCE_S:g} s: the same command goes on with "
                f"campaign {campaign.number}"
            ) from error
        time.sleep(LOOK_S)
        return away or now

    def end(self, collection: Collection, campaign: Campaign | None, *, strict: bool) -> object:
        """Print the summary; raise Incomplete (exit 3) when something is left."""
        status = selectors.campaign_status(collection, campaign)
        if campaign is None:
            return status
        for line in summary_lines(status):
            self.say(line)
        # A budget that is reached is no failure, but a script must see that pairs are left.
        if strict and status["state"] == Campaign.State.BUDGET:
            left = status["pairs"] - count_ended(status)
            cause, goes_on = collection_budgets.describe_budget_stop(collection, status.get("stopped_by", ""))
            raise Incomplete(
                f"Stopped by {cause}{describe_assumed_cost(status)} with {left:,} pairs left: {goes_on}", status
            )
        if strict and status["state"] in (Campaign.State.PAUSED, Campaign.State.CANCELLED):
            because = status["paused_because"]
            mend = f"mend it, then `campaign {collection.name} resume`"
            raise Incomplete(
                f"Campaign {campaign.number} is paused: {because}; {mend}"
                if because
                else f"Campaign {campaign.number} was {status['state']} before its end",
                status,
            )
        if strict and status["failed"]:
            last = selectors.failed_of(campaign).last()
            error = f"; the last one: {last.error}" if last is not None and last.error else ""
            raise Incomplete(
                f"{status['failed']:,} pairs failed{error}; judge them again with "
                f"`{self.name} {collection.name} ... --retry-failed`",
                status,
            )
        return status

    def confirm_cost(self, collection: Collection, forecast: Estimate | None, options: dict[str, Any]) -> None:
        """Print what a paid campaign may cost, and ask on a terminal. Raises BadInput for anything but yes."""
        if forecast is None or forecast.free:
            return
        self.note(f"estimate: {forecast.line()}")
        budget = collection_budgets.collection_budget(collection)
        if line := budget.line():
            short = "; this campaign is expected to stop there" if budget.is_short_for(forecast.known.expected) else ""
            self.note(f"{line}{short}")
        self.confirm_start(options)

    def confirm_start(self, options: dict[str, Any]) -> None:
        """Ask on a terminal whether to start what has no limit of its own. Raises BadInput for anything but yes."""
        bounded = options["budget"] is not None or options["max_calls"] is not None
        # A script has nobody to ask: its options and the collection's caps bound it.
        if options["yes"] or bounded or not (sys.stdin.isatty() and sys.stderr.isatty()):
            return
        self.stderr.write("Continue? [y/N] ", ending="")
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise BadInput("Not started: set a --budget, or answer yes")

    @contextmanager
    def interruptible(self, collection: Collection, campaign: Campaign) -> Iterator[None]:
        """Say what goes on after Ctrl-C."""
        try:
            yield
        except KeyboardInterrupt:
            others = "the workers of `serve` continue it" if workers.live_workers() else "no worker is running it now"
            self.note(
                f"\ninterrupted: campaign {campaign.number} keeps what was judged; {others}; "
                f"the same `{self.name} {collection.name}` command goes on, "
                f"`campaign {collection.name} pause` stops it"
            )
            raise

    def note_wait(self) -> None:
        """Say for what the work waits that was just asked for, if no worker is free for it."""
        if not workers.live_workers():
            self.note("no worker serves this instance: start `serve`, or wait here with --wait")
        elif waits := workers.describe_wait():
            self.note(f"it waits: {waits}; with --wait a worker is started for it")

    def note(self, line: str) -> None:
        self.stderr.write(line)
        self.stderr.flush()


class ShownProgress:
    """The progress line: redrawn on a terminal, printed now and then elsewhere."""

    def __init__(self, command: JudgingCommand) -> None:
        self.command = command
        self.live = sys.stderr.isatty()
        self.told = time.monotonic()

    def show(self, line: str, last: bool = False) -> None:
        if self.live:
            self.command.stderr.write(f"\r\x1b[K{line}", ending="\n" if last else "")
            self.command.stderr.flush()
        elif last or time.monotonic() - self.told > LINE_EVERY_S:
            self.told = time.monotonic()
            self.command.note(line)
