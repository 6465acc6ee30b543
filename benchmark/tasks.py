"""Celery's side of benchmark: judge workers make runs and reports, and look how far fillings are."""

from benchmark.agents import jobs as agents
from benchmark.answers.evaluation_job import work_on_evaluation
from benchmark.answers.evaluations import ANSWER_QUERIES
from benchmark.hole_filling import services
from benchmark.models import AgentJob, AnswerEvaluation, Report, Run
from benchmark.report import reports
from benchmark.runs import builders
from benchmark.synthesis.lifecycle import SYNTHESES
from jobs.tasks import CHORES, JobKind, register_job_kind

make_run = register_job_kind(JobKind(builders.MAKE_RUN, Run, builders.work_on_run))
make_report = register_job_kind(JobKind(reports.MAKE_REPORT, Report, reports.work_on_report))
answer_queries = register_job_kind(JobKind(ANSWER_QUERIES, AnswerEvaluation, work_on_evaluation))
make_synthesis = register_job_kind(JobKind(SYNTHESES.task, SYNTHESES.model, SYNTHESES.perform))
work_on_agents = register_job_kind(JobKind(agents.WORK_ON_AGENTS, AgentJob, agents.work_on_agents))
CHORES.append(("", services.advance_due))
