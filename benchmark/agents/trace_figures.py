"""Figures of all traces of a job, and one trace as its page shows it. Reads only."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from django.utils.translation import gettext as _

from benchmark.agents import grading, sampling
from benchmark.agents.aspects import SoughtAspect, load_query_aspects
from benchmark.agents.traces import read_searches, unreached_aspects
from benchmark.models import AgentJob, AnswerAssessment, Trace
from charts import Chart
from charts.downloads import DownloadTable
from charts.lines import draw_lines
from corpus.aspects.entries import importance_weights
from corpus.models import Document, Query
from judges.costs.accounting import of_calls
from judges.models.retrieval import RetrievalCall

LATEST = 20  # Rounds of the picture.
SHOWN = 100  # Aspects that no search reached, the heaviest first.
# Columns of the table of traces, before the gold share of each round.
FIGURES = ("retriever", "agent", "traces", "without_gold", "repeated", "after_last_gold", "unreached")


@dataclass(frozen=True)
class TraceSummary:
    """The traces of a job together: a line for each retriever with each agent, and aspects that searches missed."""

    job: AgentJob
    lines: list[dict[str, Any]]
    unreached: list[dict[str, Any]]
    queries: int  # With aspects that have documents: the others say nothing about gold.

    @property
    def chart(self) -> Chart:
        """The gold share of the slots by round."""
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
        """Return both tables of trace figures for download."""
        rounds = max((len(line["gold_by_round"]) for line in self.lines), default=0)
        header = (
            *(_("retriever"), _("agent"), _("traces"), _("rounds without gold"), _("repeated documents")),
            *(_("rounds after the last new gold"), _("weight never reached")),
            *(_("gold in round %(round)d") % {"round": number} for number in range(1, rounds + 1)),
        )
        rows = []
        for one in self.lines:
            shares = [*one["gold_by_round"], *[None] * (rounds - len(one["gold_by_round"]))]
            rows.append((*(one[name] for name in FIGURES), *shares))
        aspects = tuple(
            (one["query"].external_id, *(one[name] for name in ("id", "text", "weight", "missed", "traces")))
            for one in self.unreached
        )
        names = (_("query"), _("aspect"), _("text"), _("weight"), _("traces that missed it"), _("traces"))
        return [
            DownloadTable("traces", _("Traces by retriever and agent"), header, tuple(rows), numbers=2),
            DownloadTable("unreached", _("Aspects never reached"), names, aspects, numbers=3),
        ]


def summarise_traces(job: AgentJob) -> TraceSummary:
    """Read all traces of a job whose queries have aspects with documents."""
    assert job.sample is not None
    queries = {one.pk: one for one in sampling.sampled_queries(job.sample, job.collection)}
    aspects = {
        query: [one for one in own if one.documents]
        for query, own in load_query_aspects(job.collection, queries).items()
        if any(one.documents for one in own)
    }
    cells: dict[tuple[str, str], list[Trace]] = defaultdict(list)
    for trace in Trace.objects.filter(job=job, query__in=aspects).order_by("query"):
        cells[trace.retriever, trace.agent].append(trace)
    wanted = [(str(one["name"]), agent) for one in job.options["retrievers"] for agent in job.options["agents"]]
    lines = [_summarise_cell(cell, cells[cell], aspects) for cell in wanted]
    missed = _count_missed([trace for found in cells.values() for trace in found], aspects, queries)
    return TraceSummary(job, lines, missed[:SHOWN], len(aspects))


def _summarise_cell(
    cell: tuple[str, str], traces: Sequence[Trace], aspects: Mapping[int, list[SoughtAspect]]
) -> dict[str, Any]:
    """All traces of one retriever with one agent; None where there is no round.

    `without_gold` is a share of rounds, `repeated` a share of slots, `after_last_gold` the mean
    number of rounds of a trace, `unreached` the mean weight of a query's aspects with documents
    that no search reached.
    """
    gold = {query: {document for one in own for document in one.documents} for query, own in aspects.items()}
    found = [(trace, read_searches(searched_lists(trace), gold[trace.query_id])) for trace in traces]
    rounds = [len(one.gold_share) for _trace, one in found]
    slots = sum(one.slots for _trace, one in found)
    missed = [
        sum(weight for _aspect, weight in unreached_with_weights(trace, aspects[trace.query_id])) for trace in traces
    ]
    return {
        "retriever": cell[0],
        "agent": cell[1],
        "traces": len(traces),
        # A trace that ended has no further rounds: counted as 0 it would say that searching on finds nothing.
        "gold_by_round": [
            fmean(one.gold_share[at] for _trace, one in found if at < len(one.gold_share))
            for at in range(max(rounds, default=0))
        ],
        "without_gold": sum(one.without_gold for _trace, one in found) / sum(rounds) if sum(rounds) else None,
        "repeated": sum(one.repeated for _trace, one in found) / slots if slots else None,
        "after_last_gold": fmean(one.after_last_gold for _trace, one in found) if found else None,
        "unreached": fmean(missed) if missed else None,
    }


def searched_lists(trace: Trace) -> list[list[str]]:
    """Return the documents of each search of a trace, without empty rounds."""
    return [one["returned"] for one in trace.rounds if one["search"]]


def _count_missed(
    traces: Sequence[Trace], aspects: Mapping[int, list[SoughtAspect]], queries: Mapping[int, Query]
) -> list[dict[str, Any]]:
    """Aspects that traces never reached: those that most missed first, then the heaviest.

    `missed`: traces that never reached it, of so many `traces`.
    """
    by_query: dict[int, list[Trace]] = defaultdict(list)
    for trace in traces:
        by_query[trace.query_id].append(trace)
    found = []
    for query, own in by_query.items():
        weights = importance_weights([one.importance for one in aspects[query]])
        for aspect, weight in zip(aspects[query], weights, strict=True):
            missed = sum(bool(unreached_aspects(searched_lists(one), {"": aspect.documents})) for one in own)
            if missed:
                told = {"query": queries[query], "id": aspect.id, "text": aspect.text, "weight": weight}
                found.append(told | {"missed": missed, "traces": len(own)})

    def order(one: dict[str, Any]) -> tuple[float, float, str, str]:
        return -one["missed"] / one["traces"], -one["weight"], one["query"].external_id, one["id"]

    return sorted(found, key=order)


def show_trace(trace: Trace) -> dict[str, Any]:
    """Return a trace's page: rounds with documents, graded answers, and the cost."""
    aspects = load_query_aspects(trace.job.collection, [trace.query_id]).get(trace.query_id, [])
    graded = grading.newest_grading(trace.job)
    grades = {row.round: row for row in AnswerAssessment.objects.filter(job=graded, trace=trace) if graded is not None}
    topic = f"{trace.retriever}/{trace.agent}/{trace.job.options['protocol']}"
    calls = RetrievalCall.objects.filter(campaign=trace.job.campaign, query=trace.query_id, topic=topic)
    made = [one for one in calls if not one.cached]
    others = Trace.objects.filter(job=trace.job, query=trace.query_id).order_by("retriever", "agent")
    return {
        "rounds": _show_rounds(trace, aspects),
        "answers": [_show_answer(one, grades.get(one["round"]), aspects) for one in trace.answers],
        "unreached": unreached_with_weights(trace, aspects),
        "aspects": aspects,
        "paid": of_calls(sum(one.cost or 0.0 for one in made), len(made), sum(one.cost is None for one in made)),
        "tokens": sum(one.tokens_in + one.tokens_out for one in calls),
        "calls": len(calls),
        "others": others,
    }


def _show_rounds(trace: Trace, aspects: Sequence[SoughtAspect]) -> list[dict[str, Any]]:
    names = {document for one in trace.rounds for document in one["returned"]}
    rows = Document.objects.filter(collection=trace.job.collection, external_id__in=names, is_current=True)
    documents, seen = {one.external_id: one for one in rows}, set[str]()
    rounds = []
    for number, one in enumerate(trace.rounds, 1):
        returned = []
        for name in one["returned"]:
            supports = [aspect.id for aspect in aspects if name in aspect.documents]
            told = {"id": name, "document": documents.get(name), "aspects": supports, "is_repeated": name in seen}
            returned.append({**told, "is_cut": name in one["truncated"]})
            seen.add(name)
        rounds.append({"number": number, "search": one["search"], "returned": returned})
    return rounds


def _show_answer(
    answer: Mapping[str, Any], grade: AnswerAssessment | None, aspects: Sequence[SoughtAspect]
) -> dict[str, Any]:
    texts = {one.id: one.text for one in aspects}
    scores = [
        {"id": name, "text": texts.get(name, ""), "score": score, "importance": one.importances.get(name)}
        for one in ([grade] if grade else [])
        for name, score in one.aspect_scores.items()
    ]
    return {**answer, "grade": grade, "scores": scores}


def unreached_with_weights(trace: Trace, aspects: Sequence[SoughtAspect]) -> list[tuple[SoughtAspect, float]]:
    """The aspects that a trace never reached, with their weights, the heaviest first."""
    weights = importance_weights([one.importance for one in aspects])
    missed = set(unreached_aspects(searched_lists(trace), {one.id: one.documents for one in aspects}))
    found = [(one, weight) for one, weight in zip(aspects, weights, strict=True) if one.id in missed]
    return sorted(found, key=lambda row: -row[1])
