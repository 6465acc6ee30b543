"""Base of the commands that start a job which calls models: cost, confirmation, and waiting for its end."""

import time
from collections.abc import Callable
from typing import Any

from django.core.management.base import CommandError, CommandParser

from actions.options import add_arguments, read_arguments
from actions.services import ACTIONS
from corpus.commands import collection_named
from corpus.errors import Incomplete
from corpus.models import Collection
from jobs import workers
from jobs.models import JobState, LeasedJob
from judges.campaigns.estimates import Estimate
from judges.management.judging_command import JudgingCommand, ShownProgress
from judges.model_jobs.jobs import ModelJobKind
from judges.model_jobs.options import PaidOptions
from judges.workers import worker_pool

LOOK_S = 0.25
CHECK_WORKERS_S = 2.0


class JobCommand(JudgingCommand):
    """A command that starts jobs of a kind. It waits for their end, unless it has the option to (--wait)."""

    act = ""  # The service writes the audit log.

    kind: ModelJobKind[Any]

    @property
    def start(self) -> Callable[..., Any]:
        """The service that starts the job."""
        return self.kind.start

    def arguments(self, parser: CommandParser) -> None:
        """Add the arguments of the collection and of the start's options."""
        parser.add_argument("name", help="name of the collection")
        record = ACTIONS[self.start].options
        assert record is not None
        add_arguments(parser, record)
        self.add_agreement(parser)

    def wanted(self, arguments: dict[str, Any]) -> Any:
        """Return the options of the job. Raises BadInput."""
        record = ACTIONS[self.start].options
        assert record is not None
        return read_arguments(record, arguments)

    def begin(self, collection: Collection, options: Any) -> Any:
        """Start the job, or join it."""
        return self.start(self.actor, collection, options)

    def summarise(self, job: Any) -> tuple[str, dict[str, Any]]:
        """Return a line for people on the job's results, and the document."""
        raise NotImplementedError

    def run(self, **arguments: Any) -> object:
        """Print the estimate and ask for confirmation, start or join the job, and wait for its end."""
        collection, options = collection_named(arguments["name"]), self.wanted(arguments)
        job_options = options.for_job() if isinstance(options, PaidOptions) else options
        estimate = self.kind.estimate_cost(collection, job_options)
        if (document := self.tell_estimate(collection, estimate, arguments)) is not None:
            return document
        job = self.begin(collection, options)
        if job.state == JobState.READY:
            self.note(f"{self.kind.name_of(job)} is there already: nothing to do")
        elif arguments.get("wait", True):
            self.wait_for(job, self.kind.name_of(job))
        elif not job.is_over:
            self.note_wait()
        return self.end_job(job, arguments)

    def end_job(self, job: Any, options: dict[str, Any]) -> object:
        """Print the job's results. Raises Incomplete (exit 3) after a wait if some are missing."""
        line, document = self.summarise(job)
        if job.state != JobState.READY and options.get("wait", True):
            reason = job.error or f"it was {job.state}"
            raise Incomplete(f"{reason}; {line}; the same command continues with the rest", document)
        self.say(line)
        return document

    def add_agreement(self, parser: CommandParser) -> None:
        """Add the options for the estimate and the confirmation."""
        parser.add_argument("--estimate", action="store_true", help="print the expected cost and create nothing")
        parser.add_argument("--yes", action="store_true", help="start paid work without asking for confirmation")

    def add_wait(self, parser: CommandParser) -> None:
        """Add the option to wait for the end."""
        parser.add_argument("--wait", action="store_true", help="wait for the work and show progress")

    def tell_estimate(
        self, collection: Collection, expected: Estimate | None, options: dict[str, Any]
    ) -> dict[str, str] | None:
        """Return the document of `--estimate`, or None once paid work is confirmed. Raises BadInput."""
        if options["estimate"]:
            line = expected.line() if expected else "no calls: it costs nothing"
            self.say(line)
            return {"collection": collection.name, "estimate": line}
        self.agree(expected, options)
        return None

    def agree(self, expected: Estimate | None, options: dict[str, Any]) -> None:
        """Ask for confirmation of paid work. Raises BadInput for any answer but yes."""
        if expected is not None and not expected.free:
            self.note(f"estimate: {expected.line()}")
            self.confirm_start(options)

    def wait_for(self, job: LeasedJob, name: str) -> None:
        """Wait until a job is over, with a worker of our own if no other serves the queue. `name`: for people."""
        progress, checked_at, start, phase = ShownProgress(self), 0.0, (time.monotonic(), job.done), job.phase
        try:
            with worker_pool.WorkerPool(1) as pool:
                while not job.is_over:
                    if time.monotonic() - checked_at > CHECK_WORKERS_S:
                        checked_at = time.monotonic()
                        # A running job has a worker, which only seems to be busy.
                        if job.state != job.RUNNING or not workers.live_workers():
                            pool.serves()
                    if job.phase != phase:  # Each phase counts other things, from 0.
                        start, phase = (time.monotonic(), job.done), job.phase
                    progress.show(format_progress(job, name, start, pool.waits))
                    time.sleep(LOOK_S)
                    job.refresh_from_db()
                progress.show(format_progress(job, name, start), last=True)
        except worker_pool.CannotStart as error:
            raise CommandError(str(error)) from error
        # A worker of `serve` continues the job, or the same command.
        except KeyboardInterrupt:
            self.note(f"interrupted: {name} keeps its results, and the same command continues")
            raise


def format_progress(job: LeasedJob, name: str, start: tuple[float, int], reason: str = "") -> str:
    """Return a line on a job's progress, and its rate since `start` (clock, done); `reason`: what it waits for."""
    if job.state == job.WAITING and reason:
        return f"{name}: waiting: {reason}"
    seconds, done = time.monotonic() - start[0], job.done - start[1]
    rate = f" ({done / seconds:,.1f}/s)" if job.state == JobState.RUNNING and done > 0 and seconds > 1 else ""
    return f"{name}: {job.phase or job.state}, {job.done:,} of {job.total:,}{rate}"
