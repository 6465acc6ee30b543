"""Answers to read: a list by query with both outcomes; one answer, its contexts and verdict."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmark.answers.contexts import EVIDENCE
from benchmark.answers.evaluations import answered_queries, runs_in
from benchmark.answers.results import VersionPair, grade_runs
from benchmark.models import AnswerEvaluation, GeneratedAnswer, Qrels, QrelsRow, Run
from benchmark.report.graded_runs import stack_rankings
from benchmark.runs import rankings
from corpus.models import Document, Query
from judges.prompts.conversations import CONTEXT_LIMIT

PAGE = 50
SHOWN = ("all", "disagree", "wrong", "problems")


def list_answers(
    evaluation: AnswerEvaluation, chosen: VersionPair, *, run: Run, generator: str, show: str, page: int
) -> dict[str, Any]:
    """A page of one run's and generator's answers, by query id.

    `hits`: what retrieval came to, by the version before, and after where there is one.
    """
    queries = answered_queries(evaluation.collection)
    stored = GeneratedAnswer.objects.filter(evaluation=evaluation, run=run, generator=generator, query__in=queries)
    by_query = {one.query_id: one for one in stored.defer("evidence")}
    present = [query for query in queries if query.pk in by_query]
    hits = _hits_of(evaluation, run, [query.pk for query in present], chosen)
    rows = [
        {"query": query, "answer": answer, "hits": found, "disagrees": _disagrees(answer, found)}
        for query in present
        for answer, found in [(by_query[query.pk], hits[query.pk])]
    ]
    kept = [one for one in rows if _is_shown(one, show)]
    return {
        "rows": kept[(page - 1) * PAGE : page * PAGE],
        "count": len(kept),
        "page": page,
        "has_more": len(kept) > page * PAGE,
    }


def _disagrees(answer: GeneratedAnswer, hits: tuple[bool, ...]) -> bool:
    """Return whether the newest version's retrieval outcome differs from the verdict."""
    return answer.correct is not None and hits[-1] != answer.correct


def _is_shown(one: Mapping[str, Any], show: str) -> bool:
    if show == "disagree":
        return bool(one["disagrees"])
    if show == "wrong":
        return one["answer"].correct is False
    return bool(one["answer"].problem) if show == "problems" else True


def _hits_of(
    evaluation: AnswerEvaluation, run: Run, queries: Sequence[int], chosen: VersionPair
) -> dict[int, tuple[bool, ...]]:
    k = int(evaluation.options["k"])
    documents = stack_rankings([rankings.load([run.pk], k)[run.pk]], queries, k)
    found = [
        grade_runs(documents, version, queries, evaluation.collection).hit[0] > 0
        for version in (chosen.before, chosen.after)
        if version is not None
    ]
    columns = np.array(found).T.tolist() if queries else []
    return {query: tuple(row) for query, row in zip(queries, columns, strict=True)}


def list_contexts(answer: GeneratedAnswer, chosen: VersionPair) -> list[dict[str, Any]]:
    """The contexts of an answer, as its generator was shown them.

    Grades None: nobody judged the document; it is relevant by the newest version.
    """
    evaluation = answer.evaluation
    documents = Document.objects.in_bulk(answer.documents)
    versions = [one for one in (chosen.before, chosen.after) if one is not None]
    grades = [_grades_of(answer.query, version) for version in versions]
    found = []
    for at, key in enumerate(answer.documents):
        document = documents[key]
        # Of a document the title came first, within the same limit; the page shows it apart.
        room, whole = CONTEXT_LIMIT - (len(document.title) + 1 if document.title else 0), document.text
        if evaluation.options["contexts"] == EVIDENCE:
            room, whole = CONTEXT_LIMIT, answer.evidence[at]
        given = tuple(one.get(key) for one in grades)
        is_relevant = given[-1] is not None and given[-1] >= evaluation.collection.relevant_from
        told = {"rank": at + 1, "document": document, "grades": given, "is_relevant": is_relevant}
        found.append(told | {"text": whole[: max(0, room)], "is_cut": len(whole) > room})
    return found


def _grades_of(query: Query, version: Qrels) -> dict[int, int]:
    row = QrelsRow.objects.filter(qrels=version, query=query).first()
    return dict(zip(row.documents, row.grades, strict=True)) if row else {}


def side_by_side(evaluation: AnswerEvaluation, query: Query) -> list[dict[str, Any]]:
    """Return the answers to one query, by run and generator."""
    found = {
        (one.run_id, one.generator): one
        for one in GeneratedAnswer.objects.filter(evaluation=evaluation, query=query).defer("evidence")
    }
    return [
        {"run": run, "generator": name, "answer": found.get((run.pk, name))}
        for run in runs_in(evaluation)
        for name in evaluation.options["generators"]
    ]
