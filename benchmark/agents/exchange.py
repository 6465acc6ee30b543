"""Files of agents' work: the sample, traces, judgments and reference answers."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from django.db.models import Sum

from benchmark.agents import grading, jobs, sampling
from benchmark.agents.references import describe_references
from benchmark.models import AgentJob, AnswerAssessment, Trace
from judges.models.retrieval import RetrievalCall


def describe_traces(job: AgentJob) -> Iterator[dict[str, Any]]:
    """The rows of `traces.jsonl`: one for each round, with the answer after it, if any."""
    protocol = job.options["protocol"]
    # Added up by the database: the rows hold whole conversations, and a large job has some ten thousand of them.
    calls = RetrievalCall.objects.filter(campaign=job.campaign or 0, role="search").order_by()
    sums = calls.values_list("query", "topic").annotate(tokens=Sum("tokens_in") + Sum("tokens_out"))
    tokens = {(query or 0, topic): count for query, topic, count in sums}
    rows = Trace.objects.filter(job=job).select_related("query").order_by("query__external_id", "retriever", "agent")
    for trace in rows:
        who = {"query_id": trace.query.external_id, "retriever": trace.retriever, "agent": trace.agent}
        spent = tokens.get((trace.query_id, f"{trace.retriever}/{trace.agent}/{protocol}"), 0)
        answers = {one["round"]: one for one in trace.answers}
        # An adaptive agent may answer without any search; its answer still is a row, of round 0.
        rounds = list(enumerate(trace.rounds, 1)) or [(0, {"search": "", "returned": [], "truncated": []})]
        for number, one in rounds:
            said = answers.get(number, {})
            yield {
                **who,
                "protocol": protocol,
                "round": number,
                "search": one["search"],
                "returned": one["returned"],
                "truncated": one["truncated"],
                "tokens": spent,  # of the whole trace
                "answer": said.get("answer"),
                "confidence": said.get("confidence"),
                "citations": said.get("citations", []),
                "unknown_citations": said.get("unknown_citations", []),
                "stop": trace.stop if number == rounds[-1][0] else None,
            }


def describe_judgments(graded: AgentJob) -> Iterator[dict[str, Any]]:
    """The rows of `judgments.jsonl`, those that could not be graded among them."""
    rows = AnswerAssessment.objects.filter(job=graded).select_related("trace__query", "trace__job")
    for row in rows.order_by("trace__query__external_id", "trace__retriever", "trace__agent", "round"):
        yield {
            "query_id": row.trace.query.external_id,
            "retriever": row.trace.retriever,
            "agent": row.trace.agent,
            "protocol": row.trace.job.options["protocol"],
            "round": row.round,
            "aspect_scores": row.aspect_scores,
            "overall_quality": row.overall_quality,
            "completeness": row.completeness,
            "justification": row.justification,
            "problem": row.problem,
        }


def write_files(job: AgentJob, folder: Path) -> list[Path]:
    """Write what there is of a job to a folder; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [_write_lines(folder / "traces.jsonl", describe_traces(job))]
    if job.sample is not None:
        (folder / "sample.json").write_text(json.dumps(sampling.describe_sample(job.sample), indent=2) + "\n")
        written.append(folder / "sample.json")
    if (graded := grading.newest_grading(job)) is not None:
        written.append(_write_lines(folder / "judgments.jsonl", describe_judgments(graded)))
    if (references := jobs.newest_job(job.collection, AgentJob.Kind.REFERENCE)) is not None:
        written.append(_write_lines(folder / "references.jsonl", describe_references(references)))
    return written


def as_lines(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield the rows as JSON Lines."""
    return (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _write_lines(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(as_lines(rows))
    return path
