"""Files of agents' work: the sample, traces, judgments and reference answers."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from django.db.models import Sum

from benchmark.agents import grading, jobs
from benchmark.agents.references import describe_references
from benchmark.models import AgentJob, AnswerAssessment, Trace
from corpus.models import Collection, Query
from judges.models.retrieval import RetrievalCall


def describe_traces(job: AgentJob) -> Iterator[dict[str, Any]]:
    """Yield the rows of `traces.jsonl`: one for each round, with the answer after it, if any."""
    protocol = job.options["protocol"]
    # Summed by the database: each row stores a whole conversation, and a large job has some ten thousand of them.
    calls = RetrievalCall.objects.filter(campaign=job.campaign or 0, role="search").order_by()
    sums = calls.values_list("query", "topic").annotate(tokens=Sum("tokens_in") + Sum("tokens_out"))
    tokens = {(query or 0, topic): count for query, topic, count in sums}
    rows = Trace.objects.filter(job=job).select_related("query").order_by("query__external_id", "retriever", "agent")
    for trace in rows:
        cell = {"query_id": trace.query.external_id, "retriever": trace.retriever, "agent": trace.agent}
        trace_tokens = tokens.get((trace.query_id, f"{trace.retriever}/{trace.agent}/{protocol}"), 0)
        answers = {answer["round"]: answer for answer in trace.answers}
        # An adaptive agent may answer without any search; its answer is then the row of round 0.
        rounds = list(enumerate(trace.rounds, 1)) or [(0, {"search": "", "returned": [], "truncated": []})]
        for number, search_round in rounds:
            answer = answers.get(number, {})
            yield {
                **cell,
                "protocol": protocol,
                "round": number,
                "search": search_round["search"],
                "returned": search_round["returned"],
                "truncated": search_round["truncated"],
                "tokens": trace_tokens,
                "answer": answer.get("answer"),
                "confidence": answer.get("confidence"),
                "citations": answer.get("citations", []),
                "unknown_citations": answer.get("unknown_citations", []),
                "stop": trace.stop if number == rounds[-1][0] else None,
            }


def describe_judgments(grading_job: AgentJob) -> Iterator[dict[str, Any]]:
    """Yield the rows of `judgments.jsonl`, including those that could not be graded."""
    rows = AnswerAssessment.objects.filter(job=grading_job).select_related("trace__query", "trace__job")
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
    """Write the sample, traces, judgments and references of a search, as far as they exist; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [_write_lines(folder / "traces.jsonl", describe_traces(job))]
    if job.sample is not None:
        sample = job.sample
        names = dict(Collection.objects.filter(pk__in=sample.queries).values_list("pk", "name"))
        rows = Query.objects.in_bulk([key for keys in sample.queries.values() for key in keys])
        queries = [
            {"collection": names[int(member)], "query_id": rows[key].external_id}
            for member, keys in sample.queries.items()
            if int(member) in names
            for key in keys
            if key in rows
        ]
        document = {"seed": sample.seed, "per_domain": sample.per_member, "queries": queries}
        (folder / "sample.json").write_text(json.dumps(document, indent=2) + "\n")
        files.append(folder / "sample.json")
    if (grading_job := grading.newest_grading(job)) is not None:
        files.append(_write_lines(folder / "judgments.jsonl", describe_judgments(grading_job)))
    if (references := jobs.newest_job(job.collection, AgentJob.Kind.REFERENCE)) is not None:
        files.append(_write_lines(folder / "references.jsonl", describe_references(references)))
    return files


def as_lines(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield the rows as JSON Lines."""
    return (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _write_lines(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(as_lines(rows))
    return path
