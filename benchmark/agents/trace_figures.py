"""Figures over all traces of a search, and the contents of one trace's page."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from django.utils.translation import gettext as _

from benchmark.agents import grading, sampling
from benchmark.agents.aspects import SoughtAspect, load_query_aspects
from benchmark.agents.traces import find_unreached_aspects, measure_searches
from benchmark.models import AgentJob, AnswerAssessment, Trace
from charts import Chart
from charts.downloads import DownloadTable
from charts.lines import draw_lines
from corpus.aspects.entries import importance_weights
from corpus.models import Document, Query
from judges.costs.accounting import of_calls
from judges.models.retrieval import RetrievalCall

LATEST = 20  # Rounds on the chart.
SHOWN = 100  # Aspects that no search reached, the heaviest first.
# Columns of the table of traces, before the gold share of each round.
FIGURES = ("retriever", "agent", "traces", "without_gold", "repeated", "after_last_gold", "unreached")


@dataclass(frozen=True)
class TraceSummary:
    """Figures over all traces of a search: a line for each retriever with each agent, and the aspects missed."""

    job: AgentJob
    lines: list[dict[str, Any]]
    unreached: list[dict[str, Any]]
    queries: int  # With aspects that have documents; only these can be searched for gold.

    @property
    def chart(self) -> Chart:
        """The chart of the share of gold among the documents of each round."""
        series = {
            f"{line['retriever']}, {line['agent']}": [
                (number, share) for number, share in enumerate(line["gold_by_round"][:LATEST], 1)
            ]
            for line in self.lines
            if line["gold_by_round"]
        }
        title = _("Gold documents by round")
        return draw_lines("gold", title, series, x=_("round"), y=_("share of the documents"), low=0.0)

    @property
    def tables(self) -> list[DownloadTable]:
        """The tables for download: traces by retriever and agent, and aspects never reached."""
        rounds = max((len(line["gold_by_round"]) for line in self.lines), default=0)
        header = (
            *(_("retriever"), _("agent"), _("traces"), _("rounds without gold"), _("repeated documents")),
            *(_("rounds after the last new gold"), _("weight never reached")),
            *(_("gold in round %(round)d") % {"round": number} for number in range(1, rounds + 1)),
        )
        rows = []
        for line in self.lines:
            shares = [*line["gold_by_round"], *[None] * (rounds - len(line["gold_by_round"]))]
            rows.append((*(line[name] for name in FIGURES), *shares))
        aspects = tuple(
            (aspect["query"].external_id, *(aspect[name] for name in ("id", "text", "weight", "missed", "traces")))
            for aspect in self.unreached
        )
        names = (_("query"), _("aspect"), _("text"), _("weight"), _("traces that missed it"), _("traces"))
        return [
            DownloadTable("traces", _("Traces by retriever and agent"), header, tuple(rows), numbers=2),
            DownloadTable("unreached", _("Aspects never reached"), names, aspects, numbers=3),
        ]


def summarise_traces(job: AgentJob) -> TraceSummary:
    """Summarise the traces of a search for the queries that have aspects with documents."""
    assert job.sample is not None
    queries = {query.pk: query for query in sampling.sampled_queries(job.sample, job.collection)}
    aspects = {
        query: [aspect for aspect in query_aspects if aspect.documents]
        for query, query_aspects in load_query_aspects(job.collection, queries).items()
        if any(aspect.documents for aspect in query_aspects)
    }
    cells: dict[tuple[str, str], list[Trace]] = defaultdict(list)
    for trace in Trace.objects.filter(job=job, query__in=aspects).order_by("query"):
        cells[trace.retriever, trace.agent].append(trace)
    cell_keys = [
        (str(retriever["name"]), agent) for retriever in job.options["retrievers"] for agent in job.options["agents"]
    ]
    lines = [_summarise_cell(cell, cells[cell], aspects) for cell in cell_keys]
    missed = _count_missed([trace for cell_traces in cells.values() for trace in cell_traces], aspects, queries)
    return TraceSummary(job, lines, missed[:SHOWN], len(aspects))


def _summarise_cell(
    cell: tuple[str, str], traces: Sequence[Trace], aspects: Mapping[int, list[SoughtAspect]]
) -> dict[str, Any]:
    """Summarise all traces of one retriever with one agent; a figure is None if there is no round.

    `without_gold` is a share of rounds, `repeated` a share of slots, `after_last_gold` the mean
    number of rounds of a trace, `unreached` the mean weight of a query's aspects with documents
    that no search reached.
    """
    gold = {
        query: {document for aspect in query_aspects for document in aspect.documents}
        for query, query_aspects in aspects.items()
    }
    findings_by_trace = [(trace, measure_searches(searched_lists(trace), gold[trace.query_id])) for trace in traces]
    rounds = [len(findings.gold_shares) for _trace, findings in findings_by_trace]
    slots = sum(findings.slots for _trace, findings in findings_by_trace)
    missed = [
        sum(weight for _aspect, weight in unreached_with_weights(trace, aspects[trace.query_id])) for trace in traces
    ]
    return {
        "retriever": cell[0],
        "agent": cell[1],
        "traces": len(traces),
        # A trace counts only up to its last round: a 0 would say that further searching finds nothing.
        "gold_by_round": [
            fmean(
                findings.gold_shares[position]
                for _trace, findings in findings_by_trace
                if position < len(findings.gold_shares)
            )
            for position in range(max(rounds, default=0))
        ],
        "without_gold": sum(findings.searches_without_gold for _trace, findings in findings_by_trace) / sum(rounds)
        if sum(rounds)
        else None,
        "repeated": sum(findings.repeated_slots for _trace, findings in findings_by_trace) / slots if slots else None,
        "after_last_gold": fmean(findings.searches_after_last_gold for _trace, findings in findings_by_trace)
        if findings_by_trace
        else None,
        "unreached": fmean(missed) if missed else None,
    }


def searched_lists(trace: Trace) -> list[list[str]]:
    """Return the documents of each search of a trace, without empty rounds."""
    return [search_round["returned"] for search_round in trace.rounds if search_round["search"]]


def _count_missed(
    traces: Sequence[Trace], aspects: Mapping[int, list[SoughtAspect]], queries: Mapping[int, Query]
) -> list[dict[str, Any]]:
    """Return the aspects that traces never reached, the most often missed first, then the heaviest.

    `missed` counts the traces that never reached the aspect, `traces` all traces of its query.
    """
    by_query: dict[int, list[Trace]] = defaultdict(list)
    for trace in traces:
        by_query[trace.query_id].append(trace)
    rows = []
    for query, query_traces in by_query.items():
        weights = importance_weights([aspect.importance for aspect in aspects[query]])
        for aspect, weight in zip(aspects[query], weights, strict=True):
            missed = sum(
                bool(find_unreached_aspects(searched_lists(trace), {"": aspect.documents})) for trace in query_traces
            )
            if missed:
                row = {"query": queries[query], "id": aspect.id, "text": aspect.text, "weight": weight}
                rows.append(row | {"missed": missed, "traces": len(query_traces)})
    return sorted(
        rows, key=lambda row: (-row["missed"] / row["traces"], -row["weight"], row["query"].external_id, row["id"])
    )


def show_trace(trace: Trace) -> dict[str, Any]:
    """Return the context of a trace's page: rounds with documents, graded answers, and the cost."""
    aspects = load_query_aspects(trace.job.collection, [trace.query_id]).get(trace.query_id, [])
    newest_grading = grading.newest_grading(trace.job)
    grade_rows = AnswerAssessment.objects.filter(job=newest_grading, trace=trace) if newest_grading else ()
    grades = {row.round: row for row in grade_rows}
    texts = {aspect.id: aspect.text for aspect in aspects}
    answers = []
    for answer in trace.answers:
        grade = grades.get(answer["round"])
        scores = [
            {"id": name, "text": texts.get(name, ""), "score": score, "importance": grade.importances.get(name)}
            for name, score in grade.aspect_scores.items()
        ] if grade else []  # fmt: skip
        answers.append({**answer, "grade": grade, "scores": scores})
    topic = f"{trace.retriever}/{trace.agent}/{trace.job.options['protocol']}"
    calls = RetrievalCall.objects.filter(campaign=trace.job.campaign, query=trace.query_id, topic=topic)
    paid_calls = [call for call in calls if not call.cached]
    total_cost = sum(call.cost or 0.0 for call in paid_calls)
    others = Trace.objects.filter(job=trace.job, query=trace.query_id).order_by("retriever", "agent")
    names = {document for search_round in trace.rounds for document in search_round["returned"]}
    rows = Document.objects.filter(collection=trace.job.collection, external_id__in=names, is_current=True)
    documents, seen = {document.external_id: document for document in rows}, set[str]()
    rounds = []
    for number, search_round in enumerate(trace.rounds, 1):
        returned = []
        for name in search_round["returned"]:
            supports = [aspect.id for aspect in aspects if name in aspect.documents]
            returned.append(
                {
                    "id": name,
                    "document": documents.get(name),
                    "aspects": supports,
                    "is_repeated": name in seen,
                    "is_cut": name in search_round["truncated"],
                }
            )
            seen.add(name)
        rounds.append({"number": number, "search": search_round["search"], "returned": returned})
    return {
        "rounds": rounds,
        "answers": answers,
        "unreached": unreached_with_weights(trace, aspects),
        "aspects": aspects,
        "paid": of_calls(total_cost, len(paid_calls), sum(call.cost is None for call in paid_calls)),
        "tokens": sum(call.tokens_in + call.tokens_out for call in calls),
        "calls": len(calls),
        "others": others,
    }


def unreached_with_weights(trace: Trace, aspects: Sequence[SoughtAspect]) -> list[tuple[SoughtAspect, float]]:
    """Return the aspects that a trace never reached with their weights, the heaviest first."""
    weights = importance_weights([aspect.importance for aspect in aspects])
    missed = set(find_unreached_aspects(searched_lists(trace), {aspect.id: aspect.documents for aspect in aspects}))
    pairs = [(aspect, weight) for aspect, weight in zip(aspects, weights, strict=True) if aspect.id in missed]
    return sorted(pairs, key=lambda row: -row[1])
