"""Generated answers for people to read: the list by query, the contexts of one answer, and all answers to a query."""

from dataclasses import dataclass

from benchmark.answers.contexts import EVIDENCE
from benchmark.answers.evaluations import answered_queries, runs_in
from benchmark.answers.results import VersionPair, grade_runs
from benchmark.measures.graded_runs import stack_rankings
from benchmark.models import AnswerEvaluation, GeneratedAnswer, Qrels, QrelsRow, Run
from benchmark.runs import rankings
from corpus.models import Document, Query
from judges.prompts.conversations import CONTEXT_LIMIT

PAGE_SIZE = 50
# The answers that can be listed: all, those whose verdict contradicts the retrieval, wrong ones, and failed ones.
FILTERS = ("all", "disagree", "wrong", "problems")


@dataclass(frozen=True, slots=True)
class ListedAnswer:
    """An answer in the list, with the outcome of the retrieval of its contexts."""

    query: Query
    answer: GeneratedAnswer
    hits: tuple[bool, ...]  # Whether a relevant document was retrieved, by each version of the qrels.
    disagrees: bool  # Whether the verdict on the answer contradicts the retrieval by the newest version.


@dataclass(frozen=True, slots=True)
class AnswerPage:
    """A page of the list."""

    answers: list[ListedAnswer]
    total_count: int  # Number of answers on all pages.
    number: int  # Number of the page, from 1.
    has_next: bool


def list_answers(
    evaluation: AnswerEvaluation, pair: VersionPair, *, run: Run, generator: str, shown: str, page_number: int
) -> AnswerPage:
    """Return a page of the answers of one generator to the contexts of one run, in the order of the query ids.

    `pair` has the versions of the qrels before and, if there is one, after a change. `shown` is one of FILTERS.
    """
    queries = answered_queries(evaluation.collection)
    stored_answers = GeneratedAnswer.objects.filter(
        evaluation=evaluation, run=run, generator=generator, query__in=queries
    )
    answers_by_query = {answer.query_id: answer for answer in stored_answers.defer("evidence")}
    queries_with_answer = [query for query in queries if query.pk in answers_by_query]
    # For each version of the qrels, whether the run retrieved a relevant document for each of these queries.
    query_keys, depth = [query.pk for query in queries_with_answer], int(evaluation.options["k"])
    documents = stack_rankings([rankings.load([run.pk], depth)[run.pk]], query_keys, depth)
    hits_by_version = [
        (grade_runs(documents, version, query_keys, evaluation.collection).hit[0] > 0).tolist()
        for version in _versions_of(pair)
    ]
    listed_answers = []
    for position, query in enumerate(queries_with_answer):
        answer = answers_by_query[query.pk]
        hits = tuple(version_hits[position] for version_hits in hits_by_version)
        disagrees = answer.correct is not None and hits[-1] != answer.correct
        is_shown = {"disagree": disagrees, "wrong": answer.correct is False, "problems": bool(answer.problem)}
        if is_shown.get(shown, True):
            listed_answers.append(ListedAnswer(query=query, answer=answer, hits=hits, disagrees=disagrees))
    page_end = page_number * PAGE_SIZE
    return AnswerPage(
        answers=listed_answers[page_end - PAGE_SIZE : page_end],
        total_count=len(listed_answers),
        number=page_number,
        has_next=len(listed_answers) > page_end,
    )


@dataclass(frozen=True, slots=True)
class AnswerContext:
    """A document as the generator of an answer saw it."""

    rank: int  # Rank in the run, from 1.
    document: Document
    grades: tuple[int | None, ...]  # Grade by each version of the qrels; None if it does not contain the document.
    is_relevant: bool  # By the newest version.
    text: str
    is_cut: bool  # Whether the generator saw only the beginning.


def list_contexts(answer: GeneratedAnswer, pair: VersionPair) -> list[AnswerContext]:
    """Return the contexts of an answer, in the order of their ranks."""
    evaluation = answer.evaluation
    documents = Document.objects.in_bulk(answer.documents)
    grades_by_version: list[dict[int, int]] = []
    for version in _versions_of(pair):
        row = QrelsRow.objects.filter(qrels=version, query=answer.query).first()
        grades_by_version.append(dict(zip(row.documents, row.grades, strict=True)) if row else {})
    contexts = []
    for rank, document_key in enumerate(answer.documents, 1):
        document = documents[document_key]
        if evaluation.options["contexts"] == EVIDENCE:
            text = answer.evidence[rank - 1]
            limit = CONTEXT_LIMIT
        else:
            text = document.text
            # The title, which the page shows separately, came first in the prompt, and counted within the limit.
            limit = CONTEXT_LIMIT - (len(document.title) + 1 if document.title else 0)
        grades = tuple(version_grades.get(document_key) for version_grades in grades_by_version)
        newest_grade = grades[-1]
        contexts.append(
            AnswerContext(
                rank=rank,
                document=document,
                grades=grades,
                is_relevant=newest_grade is not None and newest_grade >= evaluation.collection.relevant_from,
                text=text[: max(0, limit)],
                is_cut=len(text) > limit,
            )
        )
    return contexts


def _versions_of(pair: VersionPair) -> list[Qrels]:
    """Return the versions of the pair, the oldest first."""
    return [version for version in (pair.before, pair.after) if version is not None]


@dataclass(frozen=True, slots=True)
class AnswerCell:
    """The answer of a generator to the contexts of a run; None if there is none."""

    run: Run
    generator: str
    answer: GeneratedAnswer | None


def list_answers_to_query(evaluation: AnswerEvaluation, query: Query) -> list[AnswerCell]:
    """Return the answers to one query, by run and generator."""
    answers = {
        (answer.run_id, answer.generator): answer
        for answer in GeneratedAnswer.objects.filter(evaluation=evaluation, query=query).defer("evidence")
    }
    return [
        AnswerCell(run=run, generator=generator, answer=answers.get((run.pk, generator)))
        for run in runs_in(evaluation)
        for generator in evaluation.options["generators"]
    ]
