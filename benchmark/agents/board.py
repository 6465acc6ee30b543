"""The table of agents: retriever by agent, and the mean over the agents. Nothing is a mean of what is not whole.

A cell is whole when every query of the sample has its trace; its grades when every answer of these
was graded, or named as not gradable. Grades are means over the queries of which every answer of
every cell was graded, so that all cells are over the same ones; what was not gradable is counted
beside them.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from django.db.models import Count, Q, Sum
from django.utils.translation import gettext as _

from benchmark.agents import grading, sampling
from benchmark.agents.aspects import SoughtAspect, load_query_aspects, sought_by
from benchmark.agents.grades import UP, efficiency_quality, mean_of, mean_over_agents, order_by_mean
from benchmark.agents.protocol import ADAPTIVE, FIXED
from benchmark.agents.traces import agent_ndcg
from benchmark.models import AgentJob, AnswerAssessment, Trace
from charts.downloads import Cell, DownloadTable, Figure
from judges.costs.accounting import Paid, of_calls
from judges.models.retrieval import RetrievalCall

Values = dict[str, float | None]


@dataclass(frozen=True)
class AgentCell:
    """Figures of one retriever with one agent. `values`: by column; None where not whole, or nothing to measure."""

    retriever: str
    agent: str
    traces: int
    total: int
    graded: int
    not_graded: int  # Answers that the judge did not see, or whose grading could not be read.
    values: Values
    paid: Paid
    tokens: int
    # Over all traces: what went otherwise than asked.
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Return whether every query of the sample has its trace."""
        return self.traces == self.total > 0


@dataclass(frozen=True)
class AgentBoard:
    """The table of an agents job. `columns`: (key, label); `lines`: cells of a retriever, mean."""

    job: AgentJob
    grading: AgentJob | None
    common: int  # Queries of which no answer could not be graded.
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
    """Keys and labels of columns: by round if fixed, of the whole search if adaptive."""
    if protocol == ADAPTIVE:
        return [
            ("aer", _("AER")),
            ("quality", _("Quality")),
            ("completeness", _("Completeness")),
            ("searches", _("Searches")),
            ("ndcg", _("alpha-nDCG@5R")),
            ("ndcg_unique", _("alpha-nDCG@5R, no repeats")),
        ]
    found = []
    for number in range(1, rounds + 1):
        depth = {"round": number, "k": 5 * number}
        found += [
            (f"ndcg-{number}", _("alpha-nDCG@%(k)d") % depth),
            (f"ndcg_unique-{number}", _("alpha-nDCG@%(k)d, no repeats") % depth),
            (f"completeness-{number}", _("Completeness, round %(round)d") % depth),
            (f"quality-{number}", _("Quality, round %(round)d") % depth),
        ]
    return found


def build_board(job: AgentJob) -> AgentBoard:
    """A job's table, with its newest grading."""
    # A job of agents always has a sample; only the other kinds of job have none.
    assert job.sample is not None
    protocol, rounds = str(job.options["protocol"]), int(job.options["rounds"])
    columns = board_columns(protocol, rounds)
    graded = grading.newest_grading(job)
    queries = [one.pk for one in sampling.sampled_queries(job.sample, job.collection)]
    aspects = load_query_aspects(job.collection, queries)
    traces: dict[tuple[str, str], list[Trace]] = defaultdict(list)
    for one in Trace.objects.filter(job=job):
        traces[one.retriever, one.agent].append(one)
    grades: dict[int, dict[int, AnswerAssessment]] = defaultdict(dict)
    fields = ("trace_id", "round", "overall_quality", "completeness", "problem")
    for row in AnswerAssessment.objects.filter(job=graded).only(*fields) if graded else ():
        grades[row.trace_id][row.round] = row
    costs = _load_costs(job)
    asked_of = {one.pk: one.query_id for found in traces.values() for one in found}
    # A query that one cell lacks would make the means of the others easier or harder than its own.
    ungraded = {asked_of[trace] for trace, rows in grades.items() if any(row.problem for row in rows.values())}
    lines = []
    for retriever in (str(one["name"]) for one in job.options["retrievers"]):
        cells = []
        for agent in job.options["agents"]:
            found, cell = traces[retriever, agent], (retriever, agent)
            known = grades if graded else None
            cells.append(_build_cell(job, cell, found, len(queries), aspects, known, ungraded, costs))
        mean = {key: mean_over_agents([cell.values[key] for cell in cells]) for key, _label in columns}
        lines.append({"retriever": retriever, "cells": cells, "mean": mean})
    common = len(set(queries) - ungraded)
    # By AER, or by the quality after the last fixed round; where only one agent searched, by its value.
    key = "aer" if protocol == ADAPTIVE else f"quality-{rounds}"
    by_name: dict[str, dict[str, Any]] = {str(line["retriever"]): line for line in lines}
    means = {name: mean_of([cell.values[key] for cell in line["cells"]]) for name, line in by_name.items()}
    return AgentBoard(job, graded, common, columns, [by_name[name] for name in order_by_mean(means)])


def _load_costs(job: AgentJob) -> dict[str, tuple[Paid, int]]:
    """Return by topic the cost of its calls, and their tokens."""
    if not job.campaign:
        return {}
    sums = (
        RetrievalCall.objects.filter(campaign=job.campaign)
        .values("topic")
        .annotate(
            # Calls out of the cache cost nothing, so only the others can have an unknown price.
            usd=Sum("cost"),
            calls=Count("pk", filter=Q(cached=False)),
            unknown=Count("pk", filter=Q(cached=False, cost=None)),
            tokens=Sum("tokens_in", default=0) + Sum("tokens_out", default=0),
        )
    )
    return {
        one["topic"]: (of_calls(one["usd"] or 0.0, one["calls"], one["unknown"]), int(one["tokens"])) for one in sums
    }


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
    whole = len(traces) == total > 0
    # Every column is there from the start, as None: a table has no missing cell.
    values: Values = dict.fromkeys(key for key, _label in board_columns(protocol, rounds))
    # A mean over some of the queries would favour the retriever whose hard ones are still to come.
    if whole:
        values |= _measure_searches(traces, aspects, protocol, rounds)
    answers = [(trace, one["round"]) for trace in traces for one in trace.answers]
    rows = [grades[trace.pk][number] for trace, number in answers if grades and number in grades[trace.pk]]
    # Graded by half is not graded: the mean would be over whichever answers came first.
    if whole and grades is not None and len(rows) == len(answers):
        common = [trace for trace in traces if trace.query_id not in ungraded]
        values |= _measure_grades(common, grades, protocol, rounds)
    paid, tokens = costs.get(f"{cell[0]}/{cell[1]}/{protocol}", (Paid(0.0), 0))
    # Counted whether or not the cell is whole: they say what went otherwise, and are no measure.
    counts = {
        "empty_rounds": sum(not one["search"] for trace in traces for one in trace.rounds),
        "early_answers": sum(trace.early_answers for trace in traces),
        "several_searches": sum(trace.several_searches for trace in traces),
        "unknown_citations": sum(len(one["unknown_citations"]) for trace in traces for one in trace.answers),
        "forced_answers": sum(trace.stop in ("limit", "empty") for trace in traces),
        "without_answer": sum(not one["answer"] for trace in traces for one in trace.answers),
    }
    missing = sum(bool(row.problem) for row in rows)
    return AgentCell(*cell, len(traces), total, len(rows) - missing, missing, values, paid, tokens, counts)


def _measure_searches(
    traces: Sequence[Trace], aspects: Mapping[int, list[SoughtAspect]], protocol: str, rounds: int
) -> Values:
    """alpha-nDCG over the queries whose aspects have documents, and the mean number of searches."""
    # An aspect without documents can be found by nobody: its query would be 0 for every retriever.
    sought = {query: sought_by(own) for query, own in aspects.items() if any(one.documents for one in own)}
    known = [trace for trace in traces if trace.query_id in sought]

    def mean_ndcg(upto: int | None) -> tuple[float | None, float | None]:
        # With fixed rounds an empty one stays, so that round 3 is the third for every agent; else it is no search.
        lists = [
            [one["returned"] for one in trace.rounds[:upto] if upto is not None or one["search"]] for trace in known
        ]
        pairs = [agent_ndcg(found, sought[trace.query_id]) for found, trace in zip(lists, known, strict=True)]
        return (fmean(one for one, _ in pairs), fmean(one for _, one in pairs)) if pairs else (None, None)

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
    """Means of completeness and quality over the answers to the common queries; AER of each query, then its mean."""

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
