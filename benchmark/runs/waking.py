"""Messages to the judge workers that a run or a report is to be made; they carry nothing: the rows are the truth."""

from judges.engine import notifications

MAKE_RUN = "benchmark.make_run"
MAKE_REPORT = "benchmark.make_report"


def wake_runs() -> None:
    """A run waits; call it through `transaction.on_commit`. A lost message costs seconds: workers look too."""
    notifications.post(MAKE_RUN)


def wake_reports() -> None:
    """A report waits; as `wake_runs`."""
    notifications.post(MAKE_REPORT)
