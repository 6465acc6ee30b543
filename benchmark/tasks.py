"""Celery's side of benchmark: judge workers make runs and reports, and look how far fillings are."""

from benchmark import hole_filling
from benchmark.models import Report, Run
from benchmark.report import reports
from benchmark.runs import builders
from jobs.tasks import CHORES, JobKind, register

make_run = register(JobKind(builders.MAKE_RUN, Run, builders.work))
make_report = register(JobKind(reports.MAKE_REPORT, Report, reports.work))
CHORES.append(("", hole_filling.advance_due))
