"""Messages to the judge workers that a run or a report is to be made; they carry nothing: the rows are the truth."""

from judges.wakeups import messenger

MAKE_RUN = "benchmark.make_run"
MAKE_REPORT = "benchmark.make_report"


def wake_runs() -> None:
    """A run waits; call it through `transaction.on_commit`. A lost message costs seconds: workers look too."""
    messenger().send_task(MAKE_RUN, ignore_result=True)


def wake_reports() -> None:
    """A report waits; as `wake_runs`."""
    messenger().send_task(MAKE_REPORT, ignore_result=True)
