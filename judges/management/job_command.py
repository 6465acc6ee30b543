"""Commands that start a job which asks models: about money as `judge` does, and waiting for the job's end."""

import time

from django.core.management.base import CommandError

from jobs.models import JobState, LeasedJob
from judges.engine import worker_pool
from judges.management.commands.judge import Command as Judge
from judges.management.commands.judge import ShownProgress

LOOK_S = 0.25
CHECK_WORKERS_S = 2.0


class JobCommand(Judge):
    """A command that starts jobs and may wait for them."""

    def wait_for(self, job: LeasedJob, name: str) -> None:
        """Wait until a job is over, with a worker of our own where no other serves the queue. `name`: for people."""
        shown, checked, begun = ShownProgress(self), 0.0, (time.monotonic(), job.done)
        try:
            with worker_pool.WorkerPool(1) as own:
                while not job.is_over:
                    if time.monotonic() - checked > CHECK_WORKERS_S:
                        checked = time.monotonic()
                        own.serves()
                    shown.show(format_progress(job, name, begun))
                    time.sleep(LOOK_S)
                    job.refresh_from_db()
                shown.show(format_progress(job, name, begun), last=True)
        except worker_pool.CannotStart as error:
            raise CommandError(str(error)) from error
        # A worker of `serve` goes on with it, or the same command given again.
        except KeyboardInterrupt:
            self.note(f"interrupted: {name} keeps what it has, and the same command goes on")
            raise


def format_progress(job: LeasedJob, name: str, begun: tuple[float, int]) -> str:
    """A line on how far a job is, and how fast since `begun` (clock, done)."""
    seconds, done = time.monotonic() - begun[0], job.done - begun[1]
    rate = f" ({done / seconds:,.1f}/s)" if job.state == JobState.RUNNING and done > 0 and seconds > 1 else ""
    return f"{name}: {job.phase or job.state}, {job.done:,} of {job.total:,}{rate}"
