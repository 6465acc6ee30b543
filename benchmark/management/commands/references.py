"""`references NAME --judge J`: write reference answers from aspects' passages, to grade agents' answers by."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from benchmark.agents import exchange
from benchmark.agents.references import describe_references, estimate_references, start_references
from benchmark.models import AgentJob, ReferenceAnswer
from corpus.collections.audit_log import shell_user
from corpus.commands import collection_named
from corpus.errors import Incomplete
from jobs import workers
from jobs.models import JobState
from judges.management.job_command import JobCommand
from judges.retrieval.job_campaigns import limits_of


class Command(JobCommand):
    name = "references"
    act = "references.started"
    help = "Write reference answers from the passages of a collection's aspects. The same command continues."

    def arguments(self, parser: CommandParser) -> None:
        """Add who writes, and the limits."""
        parser.add_argument("name", help="name of the collection")
        parser.add_argument("--judge", required=True, help="judge that writes")
        self.add_limits(parser)
        parser.add_argument("--wait", action="store_true", help="wait for the work and show progress")
        parser.add_argument("--out", type=Path, metavar="F", help="write the answers as references.jsonl")

    def run(self, **options: Any) -> object:
        """Estimate, start or go on, wait, and say what there is."""
        collection = collection_named(options["name"])
        expected = estimate_references(collection, options["judge"])
        if (told := self.tell_estimate(collection, expected, options)) is not None:
            return told
        limits = limits_of(options)
        job = start_references(collection, options["judge"], limits=limits, by=shell_user())
        if job.state != JobState.READY and options["wait"]:
            self.wait_for(job, f"{collection.name}, reference answers")
        elif job.state != JobState.READY and not workers.live_workers():
            self.note("no worker serves this instance: start `serve`, or wait here with --wait")
        document = self.describe(job)
        if options["out"]:
            options["out"].write_text("".join(exchange.as_lines(describe_references(job))), encoding="utf-8")
        if options["wait"] and job.state != JobState.READY:
            raise Incomplete(f"{collection.name}: {job.error or job.state}; the same command goes on", document)
        return document

    def describe(self, job: AgentJob) -> dict[str, Any]:
        """Say how many there are, and what could not be written."""
        rows = ReferenceAnswer.objects.filter(job=job).select_related("query")
        problems = {row.query.external_id: row.problem for row in rows if row.problem}
        written = rows.count() - len(problems)
        self.say(f"{job.collection.name}: {written} of {job.total} reference answers, {job.state}")
        for query, problem in problems.items():
            self.say(f"  {query}: {problem}")
        return {
            "collection": job.collection.name,
            "job": job.number,
            "state": job.state,
            "queries": job.total,
            "written": written,
            "problems": problems,
        }
