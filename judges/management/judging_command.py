"""Base of the commands that start a campaign: confirmation of its cost, waiting with workers, and the summary."""

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
    """Add the options for the confirmation, the wait and its workers."""
    parser.add_argument("--workers", type=int, help="with --wait: number of worker processes (default: one per CPU)")
    parser.add_argument("--wait", action="store_true", help="wait for the end and show progress")
    parser.add_argument("--yes", action="store_true", help="start paid work without asking for confirmation")


def check_workers_option(workers: int | None) -> None:
    """Raise BadOption for a number of workers out of bounds; called before the confirmation."""
    if workers is not None and not 1 <= workers <= 64:
        raise BadOption("workers", "give a number from 1 to 64")


class JudgingCommand(QuorumCommand):
    """A command that starts a campaign and may wait for its end."""

    name: str

    def follow(self, collection: Collection, started: Started, options: dict[str, Any]) -> object:
        """Print what was started, and wait for its end if asked to; return the status document."""
        if started.idle or started.campaign is None:
            self.say(self.idle(collection))
            return self.end(collection, started.campaign, strict=False)
        campaign = started.campaign
        self.note(
            f"campaign {campaign.number} ({campaign.policy}, panel {campaign.panel}) "
            f"{'continues' if started.joined else 'begins'}: {started.added:,} pairs added"
            + (f", {started.retried:,} failed pairs again" if started.retried else "")
        )
        if not options["wait"]:
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
        """Wait until the campaign no longer runs, with workers of our own if no other serves the queue.

        While PostgreSQL or Redis is away, wait for it as the workers do. Raises CommandError after PATIENCE_S, and
        if no worker can work on the campaign.
        """
        progress_line = ShownProgress(self)
        status = selectors.campaign_status(collection, campaign)
        progress = CampaignProgress(status)
        checked_at = away_since = 0.0
        notifications.clear_errors(campaign.pk)
        with worker_pool.WorkerPool(workers) as pool:
            while status["state"] == Campaign.State.RUNNING:
                try:
                    if time.monotonic() - checked_at > CHECK_WORKERS_S:
                        if error_line := notifications.repeated_error(campaign.pk):
                            raise CommandError(f"no worker can work on campaign {campaign.number}: {error_line}")
                        pool.ensure(campaign)
                        checked_at = time.monotonic()
                    progress_line.show(progress.line(status) + (f"; waits: {pool.waits}" if pool.waits else ""))
                    time.sleep(LOOK_S)
                    status, away_since = selectors.campaign_status(collection, campaign), 0.0
                except worker_pool.CannotStart as error:
                    raise CommandError(str(error)) from error
                except AWAY as error:
                    away_since = self.wait_for_services(away_since, campaign, error)
            progress_line.show(progress.line(status), last=True)

    def wait_for_services(self, away_since: float, campaign: Campaign, error: Exception) -> float:
        """Wait a moment for PostgreSQL or Redis; return since when it is away. Raises CommandError after PATIENCE_S."""
        # A broken connection stays broken: the next query opens a new one.
        connection.close()
        now = time.monotonic()
        if not away_since:
            self.note(f"PostgreSQL or Redis is away, waiting for it: {str(error).splitlines()[0]}")
        elif now - away_since > PATIENCE_S:
            raise CommandError(
                f"PostgreSQL or Redis did not come back in {PATIENCE_S:g} s: the same command continues "
                f"campaign {campaign.number}"
            ) from error
        time.sleep(LOOK_S)
        return away_since or now

    def end(self, collection: Collection, campaign: Campaign | None, *, strict: bool) -> object:
        """Print the summary; with `strict`, raise Incomplete (exit 3) if pairs are left or failed."""
        status = selectors.campaign_status(collection, campaign)
        if campaign is None:
            return status
        for line in summary_lines(status):
            self.say(line)
        if strict and status["state"] == Campaign.State.BUDGET:
            open_pairs = status["pairs"] - count_ended(status)
            cause, remedy = collection_budgets.describe_budget_stop(collection, status.get("stopped_by", ""))
            raise Incomplete(
                f"Stopped by {cause}{describe_assumed_cost(status)} with {open_pairs:,} pairs left: {remedy}", status
            )
        if strict and status["state"] in (Campaign.State.PAUSED, Campaign.State.CANCELLED):
            reason = status["paused_because"]
            remedy = f"mend it, then `campaign {collection.name} resume`"
            raise Incomplete(
                f"Campaign {campaign.number} is paused: {reason}; {remedy}"
                if reason
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
        """Print a paid campaign's estimate, and ask for confirmation. Raises BadInput for any answer but yes."""
        if forecast is None or forecast.free:
            return
        self.note(f"estimate: {forecast.line()}")
        budget = collection_budgets.collection_budget(collection)
        if line := budget.line():
            warning = (
                "; this campaign is expected to stop there" if budget.is_short_for(forecast.known.expected) else ""
            )
            self.note(f"{line}{warning}")
        self.confirm_start(options)

    def confirm_start(self, options: dict[str, Any]) -> None:
        """Ask on a terminal whether to start work without a limit. Raises BadInput for any answer but yes."""
        has_limit = options["budget"] is not None or options["max_calls"] is not None
        # Without a terminal nobody can be asked: options and the collection's budgets limit a script.
        if options["yes"] or has_limit or not (sys.stdin.isatty() and sys.stderr.isatty()):
            return
        self.stderr.write("Continue? [y/N] ", ending="")
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise BadInput("Not started: set a --budget, or answer yes")

    @contextmanager
    def interruptible(self, collection: Collection, campaign: Campaign) -> Iterator[None]:
        """Print after Ctrl-C what continues, and how to stop it."""
        try:
            yield
        except KeyboardInterrupt:
            others = "the workers of `serve` continue it" if workers.live_workers() else "no worker is running it now"
            self.note(
                f"\ninterrupted: campaign {campaign.number} keeps what was judged; {others}; "
                f"the same `{self.name} {collection.name}` command continues, "
                f"`campaign {collection.name} pause` stops it"
            )
            raise

    def note_wait(self) -> None:
        """Print what the work that was just started waits for, if no worker is free."""
        if not workers.live_workers():
            self.note("no worker serves this instance: start `serve`, or wait here with --wait")
        elif reason := workers.describe_wait():
            self.note(f"it waits: {reason}; with --wait a worker is started for it")

    def note(self, line: str) -> None:
        self.stderr.write(line)
        self.stderr.flush()


class ShownProgress:
    """The progress line: redrawn on a terminal, printed every LINE_EVERY_S seconds elsewhere."""

    def __init__(self, command: JudgingCommand) -> None:
        self.command = command
        self.is_live = sys.stderr.isatty()
        self.printed_at = time.monotonic()

    def show(self, line: str, last: bool = False) -> None:
        if self.is_live:
            self.command.stderr.write(f"\r\x1b[K{line}", ending="\n" if last else "")
            self.command.stderr.flush()
        elif last or time.monotonic() - self.printed_at > LINE_EVERY_S:
            self.printed_at = time.monotonic()
            self.command.note(line)
