"""The table of agents: retriever by agent, and the mean over the agents. No mean is shown over incomplete results.

A cell is complete when every query of the sample has its trace; its grades are complete when each
answer in these traces was graded or was found not to be gradable. Grades are averaged over the
queries whose answers were graded in every cell, so that all cells compare the same queries; answers
that could not be graded are counted beside them.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from django.db.models import Count, Q, Sum
from django.utils.translation import gettext as _

from benchmark.agents import grading, sampling
from benchmark.agents.aspects import SoughtAspect, load_query_aspects
from benchmark.agents.grades import UP, efficiency_quality, mean_of, mean_over_agents, order_by_mean
from benchmark.agents.protocol import ADAPTIVE, FIXED
from benchmark.agents.traces import measure_ndcg
from benchmark.measures.aspects import QueryAspects
from benchmark.models import AgentJob, AnswerAssessment, Trace
from charts.downloads import Cell, DownloadTable, Figure
from judges.costs.accounting import Paid, of_calls
from judges.models.retrieval import RetrievalCall

Values = dict[str, float | None]


@dataclass(frozen=True)
class AgentCell:
    """Figures of one retriever with one agent; `values` by column, None where incomplete or not measurable."""

    retriever: str
    agent: str
    traces: int
    total: int
    graded: int
    not_graded: int  # Answers that the judge did not see, or whose grading could not be read.
    values: Values
    paid: Paid
    tokens: int
    # Deviations from the protocol, over all traces.
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Return whether every query of the sample has its trace."""
        return self.traces == self.total > 0


@dataclass(frozen=True)
class AgentBoard:
    """The table of a search job. `columns`: (key, label); `lines`: a retriever's cells and their mean."""

    job: AgentJob
    grading: AgentJob | None
    common: int  # Queries whose answers could all be graded.
    columns: list[tuple[str, str]]
    lines: list[dict[str, Any]]

    @property
    def table(self) -> DownloadTable:
        """Return the table for download: the mean of each retriever above its agents."""
        header = (_("retriever"), _("agent"), *(label for _key, label in self.columns), _("queries"), _("not graded"))
        header += (_("USD per query"), _("tokens per query"))
        rows: list[tuple[Cell, ...]] = []
        for line in self.lines:
            means = (Figure(line["mean"][key]) for key, _label in self.columns)
            rows.append((line["retriever"], _("mean"), *means, None, None, None, None))
            for cell in line["cells"]:
                figures = (Figure(cell.values[key]) for key, _label in self.columns)
                # A mean over no trace is unknown, not 0.
                usd = None if cell.paid.usd is None or not cell.traces else cell.paid.usd / cell.traces
                tokens = cell.tokens / cell.traces if cell.traces else None
                rows.append((line["retriever"], cell.agent, *figures, cell.traces, cell.not_graded, usd, tokens))
        title = _("Agents with %(protocol)s rounds on %(name)s")
        values = {"protocol": self.job.options["protocol"], "name": self.job.collection.name}
        return DownloadTable("agents", title % values, header, tuple(rows), numbers=2)

    @property
    def document(self) -> dict[str, Any]:
        """The table as JSON."""
        return {
            "collection": self.job.collection.name,
            "job": self.job.number,
            "state": self.job.state,
            "protocol": self.job.options["protocol"],
            "rounds": self.job.options["rounds"],
            "tokenizer": self.job.options["tokenizer"],
            "tokens": self.job.options["tokens"],
            "graded_by": next(iter(self.grading.options["judge"])) if self.grading else None,
            "halves": self.grading.options.get("halves", UP) if self.grading else None,
            "grading": self.grading and self.grading.state,
            "common_queries": self.common if self.grading else None,
            "retrievers": [
                {
                    "retriever": line["retriever"],
                    "mean": line["mean"],
                    "agents": [
                        {
                            "agent": cell.agent,
                            "traces": cell.traces,
                            "queries": cell.total,
                            "graded": cell.graded,
                            "not_graded": cell.not_graded,
                            "usd": cell.paid.usd,
                            "tokens": cell.tokens,
                            **cell.counts,
                            "values": cell.values,
                        }
                        for cell in line["cells"]
                    ],
                }
                for line in self.lines
            ],
        }


def board_columns(protocol: str, rounds: int) -> list[tuple[str, str]]:
    """Return the keys and labels of the columns: one set for each fixed round, or one for an adaptive search."""
    if protocol == ADAPTIVE:
        return [
            ("aer", _("AER")),
            ("quality", _("Quality")),
            ("completeness", _("Completeness")),
            ("searches", _("Searches")),
            ("ndcg", _("alpha-nDCG@5R")),
            ("ndcg_unique", _("alpha-nDCG@5R, no repeats")),
        ]
    columns = []
    for number in range(1, rounds + 1):
        depth = {"round": number, "k": 5 * number}
        columns += [
            (f"ndcg-{number}", _("alpha-nDCG@%(k)d") % depth),
            (f"ndcg_unique-{number}", _("alpha-nDCG@%(k)d, no repeats") % depth),
            (f"completeness-{number}", _("Completeness, round %(round)d") % depth),
            (f"quality-{number}", _("Quality, round %(round)d") % depth),
        ]
    return columns


def build_board(job: AgentJob) -> AgentBoard:
    """Build the table of a search job, with its newest grading."""
    # A search always has a sample; only the other kinds of job have none.
    assert job.sample is not None
    protocol, rounds = str(job.options["protocol"]), int(job.options["rounds"])
    columns = board_columns(protocol, rounds)
    newest_grading = grading.newest_grading(job)
    queries = [query.pk for query in sampling.sampled_queries(job.sample, job.collection)]
    aspects = load_query_aspects(job.collection, queries)
    traces: dict[tuple[str, str], list[Trace]] = defaultdict(list)
    for trace in Trace.objects.filter(job=job):
        traces[trace.retriever, trace.agent].append(trace)
    grades: dict[int, dict[int, AnswerAssessment]] = defaultdict(dict)
    fields = ("trace_id", "round", "overall_quality", "completeness", "problem")
    for row in AnswerAssessment.objects.filter(job=newest_grading).only(*fields) if newest_grading else ():
        grades[row.trace_id][row.round] = row
    # The cost and the tokens of a job's calls, by topic.
    if not job.campaign:
        costs = {}
    else:
        sums = (
            RetrievalCall.objects.filter(campaign=job.campaign)
            .values("topic")
            .annotate(
                # Cached calls cost nothing, so only the others can have an unknown price.
                usd=Sum("cost"),
                calls=Count("pk", filter=Q(cached=False)),
                unknown=Count("pk", filter=Q(cached=False, cost=None)),
                tokens=Sum("tokens_in", default=0) + Sum("tokens_out", default=0),
            )
        )
        costs = {
            row["topic"]: (of_calls(row["usd"] or 0.0, row["calls"], row["unknown"]), int(row["tokens"]))
            for row in sums
        }
    query_of = {trace.pk: trace.query_id for cell_traces in traces.values() for trace in cell_traces}
    # A query that one cell lacks would make the means of the others easier or harder than its own.
    ungraded = {query_of[trace] for trace, rows in grades.items() if any(row.problem for row in rows.values())}
    lines = []
    for options in job.options["retrievers"]:
        retriever, cells = str(options["name"]), []
        for agent in job.options["agents"]:
            cell_traces, cell = traces[retriever, agent], (retriever, agent)
            job_grades = grades if newest_grading else None
            cells.append(_build_cell(job, cell, cell_traces, len(queries), aspects, job_grades, ungraded, costs))
        mean = {key: mean_over_agents([cell.values[key] for cell in cells]) for key, _label in columns}
        lines.append({"retriever": retriever, "cells": cells, "mean": mean})
    common = len(set(queries) - ungraded)
    # By AER, or by the quality after the last fixed round; where only one agent searched, by its value.
    key = "aer" if protocol == ADAPTIVE else f"quality-{rounds}"
    by_name: dict[str, dict[str, Any]] = {str(line["retriever"]): line for line in lines}
    means = {name: mean_of([cell.values[key] for cell in line["cells"]]) for name, line in by_name.items()}
    return AgentBoard(job, newest_grading, common, columns, [by_name[name] for name in order_by_mean(means)])


def _build_cell(
    job: AgentJob,
    cell: tuple[str, str],
    traces: Sequence[Trace],
    total: int,
    aspects: Mapping[int, list[SoughtAspect]],
    grades: Mapping[int, Mapping[int, AnswerAssessment]] | None,
    ungraded: Set[int],
    costs: Mapping[str, tuple[Paid, int]],
) -> AgentCell:
    protocol, rounds = str(job.options["protocol"]), int(job.options["rounds"])
    is_whole = len(traces) == total > 0
    # Every column exists from the start, as None: a table has no missing cell.
    values: Values = dict.fromkeys(key for key, _label in board_columns(protocol, rounds))
    # A mean over some of the queries would favour the retriever whose hard ones are still to come.
    if is_whole:
        values |= _measure_searches(traces, aspects, protocol, rounds)
    answers = [(trace, answer["round"]) for trace in traces for answer in trace.answers]
    rows = [grades[trace.pk][number] for trace, number in answers if grades and number in grades[trace.pk]]
    # With only half of the grades, the mean would be over whichever answers came first.
    if is_whole and grades is not None and len(rows) == len(answers):
        common = [trace for trace in traces if trace.query_id not in ungraded]
        values |= _measure_grades(common, grades, protocol, rounds)
    paid, tokens = costs.get(f"{cell[0]}/{cell[1]}/{protocol}", (Paid(0.0), 0))
    # Counted even in an incomplete cell: these are deviations from the protocol, not measures.
    counts = {
        "empty_rounds": sum(not search_round["search"] for trace in traces for search_round in trace.rounds),
        "early_answers": sum(trace.early_answers for trace in traces),
        "several_searches": sum(trace.several_searches for trace in traces),
        "unknown_citations": sum(len(answer["unknown_citations"]) for trace in traces for answer in trace.answers),
        "forced_answers": sum(trace.stop in ("limit", "empty") for trace in traces),
        "without_answer": sum(not answer["answer"] for trace in traces for answer in trace.answers),
    }
    missing = sum(bool(row.problem) for row in rows)
    return AgentCell(*cell, len(traces), total, len(rows) - missing, missing, values, paid, tokens, counts)


def _measure_searches(
    traces: Sequence[Trace], aspects: Mapping[int, list[SoughtAspect]], protocol: str, rounds: int
) -> Values:
    """Return alpha-nDCG over the queries whose aspects have documents, and the mean number of searches."""
    # No retriever can find an aspect without documents: its query would count 0 for all of them.
    sought = {
        query: QueryAspects.of([(aspect.importance, sorted(aspect.documents)) for aspect in query_aspects])
        for query, query_aspects in aspects.items()
        if any(aspect.documents for aspect in query_aspects)
    }
    graded_traces = [trace for trace in traces if trace.query_id in sought]

    def mean_ndcg(upto: int | None) -> tuple[float | None, float | None]:
        # An empty fixed round counts, so that round 3 is the third for every agent; an adaptive one is no search.
        lists = [
            [
                search_round["returned"]
                for search_round in trace.rounds[:upto]
                if upto is not None or search_round["search"]
            ]
            for trace in graded_traces
        ]
        ndcgs = [
            measure_ndcg(returned, sought[trace.query_id]) for returned, trace in zip(lists, graded_traces, strict=True)
        ]
        if not ndcgs:
            return None, None
        return fmean(ndcg.with_repeats for ndcg in ndcgs), fmean(ndcg.without_repeats for ndcg in ndcgs)

    if protocol == ADAPTIVE:
        ndcg, unique = mean_ndcg(None)
        return {"searches": fmean(trace.searches for trace in traces), "ndcg": ndcg, "ndcg_unique": unique}
    values: Values = {}
    for number in range(1, rounds + 1):
        values[f"ndcg-{number}"], values[f"ndcg_unique-{number}"] = mean_ndcg(number)
    return values


def _measure_grades(
    traces: Sequence[Trace], grades: Mapping[int, Mapping[int, AnswerAssessment]], protocol: str, rounds: int
) -> Values:
    """Return mean completeness and quality of the answers to the common queries, and the mean of their AER."""

    def means(rows: Sequence[AnswerAssessment]) -> tuple[float | None, float | None]:
        complete = [row.completeness for row in rows if row.completeness is not None]
        quality = [row.overall_quality for row in rows if row.overall_quality is not None]
        return fmean(complete) if complete else None, fmean(quality) if quality else None

    if protocol == FIXED:
        values: Values = {}
        for number in range(1, rounds + 1):
            rows = [grades[trace.pk][number] for trace in traces if number in grades[trace.pk]]
            values[f"completeness-{number}"], values[f"quality-{number}"] = means(rows)
        return values
    pairs = [(trace, row) for trace in traces for row in grades[trace.pk].values()]
    complete, quality = means([row for _trace, row in pairs])
    rated = [
        efficiency_quality(row.overall_quality, trace.searches)
        for trace, row in pairs
        if row.overall_quality is not None
    ]
    return {"completeness": complete, "quality": quality, "aer": fmean(rated) if rated else None}
