"""Celery tasks of the benchmark: the kinds of jobs, and the regular check of fillings."""

from benchmark.agents.jobs import AGENTS
from benchmark.answers.evaluations import ANSWERS
from benchmark.hole_filling import services
from benchmark.models import Report
from benchmark.report import reports
from benchmark.runs.builders import RUNS
from benchmark.synthesis.lifecycle import SYNTHESES
from jobs.tasks import CHORES, JobKind, register_job_kind

make_run = register_job_kind(JobKind(RUNS.task, RUNS.model, RUNS.perform))
make_report = register_job_kind(JobKind(reports.MAKE_REPORT, Report, reports.work_on_report))
answer_queries = register_job_kind(JobKind(ANSWERS.task, ANSWERS.model, ANSWERS.perform))
make_synthesis = register_job_kind(JobKind(SYNTHESES.task, SYNTHESES.model, SYNTHESES.perform))
work_on_agents = register_job_kind(JobKind(AGENTS.task, AGENTS.model, AGENTS.perform))
CHORES.append(("", services.advance_due))
