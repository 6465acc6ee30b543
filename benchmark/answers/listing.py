"""Answers to read: a list by query with the outcomes of retrieval and generation, and one answer with its contexts."""

from typing import Any

from benchmark.answers.contexts import EVIDENCE
from benchmark.answers.evaluations import answered_queries, runs_in
from benchmark.answers.results import VersionPair, grade_runs
from benchmark.measures.graded_runs import stack_rankings
from benchmark.models import AnswerEvaluation, GeneratedAnswer, QrelsRow, Run
from benchmark.runs import rankings
from corpus.models import Document, Query
from judges.prompts.conversations import CONTEXT_LIMIT

PAGE = 50
SHOWN = ("all", "disagree", "wrong", "problems")


def list_answers(
    evaluation: AnswerEvaluation, pair: VersionPair, *, run: Run, generator: str, show: str, page: int
) -> dict[str, Any]:
    """Return a page of the answers of one run and generator, in the order of the query ids.

    `hits`: whether retrieval found a relevant document, by the version before and, if there is one, after.
    """
    queries = answered_queries(evaluation.collection)
    stored = GeneratedAnswer.objects.filter(evaluation=evaluation, run=run, generator=generator, query__in=queries)
    by_query = {answer.query_id: answer for answer in stored.defer("evidence")}
    answered = [query for query in queries if query.pk in by_query]
    keys, k = [query.pk for query in answered], int(evaluation.options["k"])
    documents = stack_rankings([rankings.load([run.pk], k)[run.pk]], keys, k)
    hits = [
        (grade_runs(documents, version, keys, evaluation.collection).hit[0] > 0).tolist()
        for version in (pair.before, pair.after)
        if version is not None
    ]
    shown_rows = []
    for position, query in enumerate(answered):
        answer, query_hits = by_query[query.pk], tuple(version_hits[position] for version_hits in hits)
        # The newest version's retrieval outcome against the verdict.
        disagrees = answer.correct is not None and query_hits[-1] != answer.correct
        is_shown = {"disagree": disagrees, "wrong": answer.correct is False, "problems": bool(answer.problem)}
        if is_shown.get(show, True):
            shown_rows.append({"query": query, "answer": answer, "hits": query_hits, "disagrees": disagrees})
    return {
        "rows": shown_rows[(page - 1) * PAGE : page * PAGE],
        "count": len(shown_rows),
        "page": page,
        "has_more": len(shown_rows) > page * PAGE,
    }


def list_contexts(answer: GeneratedAnswer, pair: VersionPair) -> list[dict[str, Any]]:
    """Return the contexts of an answer as its generator saw them, with their grades.

    A grade is None if the document was not judged; `is_relevant` follows the newest version.
    """
    evaluation = answer.evaluation
    documents = Document.objects.in_bulk(answer.documents)
    versions = [version for version in (pair.before, pair.after) if version is not None]
    grades_by_version: list[dict[int, int]] = []
    for version in versions:
        row = QrelsRow.objects.filter(qrels=version, query=answer.query).first()
        grades_by_version.append(dict(zip(row.documents, row.grades, strict=True)) if row else {})
    contexts = []
    for rank, key in enumerate(answer.documents, 1):
        document = documents[key]
        # In the prompt the title came first, within the same limit; the page shows it separately.
        limit, text = CONTEXT_LIMIT - (len(document.title) + 1 if document.title else 0), document.text
        if evaluation.options["contexts"] == EVIDENCE:
            limit, text = CONTEXT_LIMIT, answer.evidence[rank - 1]
        grades = tuple(version_grades.get(key) for version_grades in grades_by_version)
        contexts.append(
            {
                "rank": rank,
                "document": document,
                "grades": grades,
                "is_relevant": grades[-1] is not None and grades[-1] >= evaluation.collection.relevant_from,
                "text": text[: max(0, limit)],
                "is_cut": len(text) > limit,
            }
        )
    return contexts


def side_by_side(evaluation: AnswerEvaluation, query: Query) -> list[dict[str, Any]]:
    """Return the answers to one query, by run and generator."""
    answers = {
        (answer.run_id, answer.generator): answer
        for answer in GeneratedAnswer.objects.filter(evaluation=evaluation, query=query).defer("evidence")
    }
    return [
        {"run": run, "generator": name, "answer": answers.get((run.pk, name))}
        for run in runs_in(evaluation)
        for name in evaluation.options["generators"]
    ]
