"""`references NAME --judge J`: have reference answers written from the passages of aspects."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from benchmark.agents import exchange
from benchmark.agents.references import REFERENCES, describe_references
from benchmark.models import AgentJob, ReferenceAnswer
from judges.management.job_command import JobCommand


class Command(JobCommand):
    name = "references"
    kind = REFERENCES
    help = "Write reference answers from the passages of a collection's aspects. The same command continues."

    def arguments(self, parser: CommandParser) -> None:
        """Add the options, and the output file."""
        super().arguments(parser)
        self.add_wait(parser)
        parser.add_argument("--out", type=Path, metavar="F", help="write the answers as references.jsonl")

    def summarise(self, job: AgentJob) -> tuple[str, dict[str, Any]]:
        """Return the number of reference answers and the problems, as text and as a document."""
        rows = ReferenceAnswer.objects.filter(job=job).select_related("query")
        problems = {row.query.external_id: row.problem for row in rows if row.problem}
        answer_count = rows.count() - len(problems)
        line = f"{job.collection.name}: {answer_count} of {job.total} reference answers, {job.state}"
        document = {
            "collection": job.collection.name,
            "job": job.number,
            "state": job.state,
            "queries": job.total,
            "written": answer_count,
            "problems": problems,
        }
        return "\n".join([line, *(f"  {query}: {problem}" for query, problem in problems.items())]), document

    def end_job(self, job: AgentJob, options: dict[str, Any]) -> object:
        """Write the answers to the output file, even if some are missing."""
        if options["out"]:
            options["out"].write_text("".join(exchange.as_lines(describe_references(job))), encoding="utf-8")
        return super().end_job(job, options)
