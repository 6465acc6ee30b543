"""A worker's side of an evaluation: ask for every answer that is missing, batch by batch, and store each batch."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from django.db import transaction
from django.utils.translation import gettext as _

from benchmark.answers import evaluations, generation
from benchmark.answers.contexts import load_contexts
from benchmark.answers.generation import AnswerTask
from benchmark.models import AnswerEvaluation, GeneratedAnswer, Run
from corpus.errors import Incomplete, QuorumError
from corpus.models import Query
from jobs import leases
from judges.records import Judge
from judges.retrieval import job_campaigns, model_requests

TOGETHER = 256  # Conversations between two stores of rows, at least one query's.


def work_on_evaluation(evaluation: AnswerEvaluation, shutting_down: Callable[[], bool]) -> None:
    """Work on a claimed evaluation until it ends, its lease is lost, or this worker shuts down."""
    leases.perform(
        evaluation,
        lambda lease: answer_queries(evaluation, lease),
        stopping=shutting_down,
        expected=QuorumError,
        last=lambda: evaluations.progress_of(evaluation),
    )


@dataclass(frozen=True)
class MissingAnswers:
    """The answers that an evaluation wants, and those that are there: (query, run, generator)."""

    evaluation: AnswerEvaluation
    runs: Sequence[Run]
    writers: Sequence[Judge]
    queries: Sequence[Query]
    there: frozenset[tuple[int, int, str]]

    @classmethod
    def of(cls, evaluation: AnswerEvaluation, judges: dict[str, Judge]) -> "MissingAnswers":
        """Read which of the evaluation's answers are stored."""
        queries = evaluations.answered_queries(evaluation.collection)
        rows = GeneratedAnswer.objects.filter(evaluation=evaluation, query__in=queries)
        return cls(
            evaluation,
            evaluations.runs_in(evaluation),
            [judges[name] for name in evaluation.options["generators"]],
            queries,
            frozenset(rows.values_list("query_id", "run_id", "generator")),
        )

    @property
    def total(self) -> int:
        """The number of answers that an evaluation wants."""
        return len(self.queries) * len(self.runs) * len(self.writers)

    def batches(self) -> Iterator[list[AnswerTask]]:
        """Yield what is missing, query by query: where a budget ends, most queries with answers have them all."""
        # By whole queries: a query that has all its answers can be measured when the budget ends.
        size = max(1, TOGETHER // (len(self.runs) * len(self.writers)))
        waiting = [query for query in self.queries if any(not self._is_there(query, *one) for one in self._cells())]
        for begin in range(0, len(waiting), size):
            yield self._tasks_of(waiting[begin : begin + size])

    def _cells(self) -> Iterator[tuple[Run, Judge]]:
        return ((run, writer) for run in self.runs for writer in self.writers)

    def _is_there(self, query: Query, run: Run, writer: Judge) -> bool:
        return (query.pk, run.pk, writer.name) in self.there

    def _tasks_of(self, queries: Sequence[Query]) -> list[AnswerTask]:
        options = self.evaluation.options
        shown = load_contexts(self.runs, queries, options["k"], options["contexts"])
        return [
            AnswerTask(query, run.pk, writer, shown[run.pk, query.pk])
            for query in queries
            for run, writer in self._cells()
            if not self._is_there(query, run, writer)
        ]


def answer_queries(evaluation: AnswerEvaluation, lease: leases.Lease) -> None:
    """Ask for every answer that is not there yet.

    Raises Incomplete when the limits are reached, when nobody answers, and in the end when some answers are missing.
    """
    judges_of = partial(evaluations.judges_of, evaluation.options)
    campaign = job_campaigns.campaign_of(evaluation, judges_of, f"answers {evaluation.pk}")
    judges = {one.name: one for one in model_requests.judges_in(campaign)}
    missing = MissingAnswers.of(evaluation, judges)
    done, failed, total = len(missing.there), 0, missing.total

    def note(count: int) -> None:
        lease.note(done + count, total)

    lease.progress(done, total)
    for tasks in missing.batches():
        if lease.should_stop():
            return
        judge = judges[evaluation.options["judge"]]
        found = generation.ask_answers(campaign, judge, tasks, stopped=lease.should_stop, done=note)
        stored = _store_answers(evaluation, tasks, found.results)
        done, failed = done + stored, failed + len(tasks) - stored
        lease.progress(done, total)
        if found.stopped:
            return
        # Not one answer in a batch: the models are away, and the other batches would only wait for it.
        _check_results(evaluation, found.spent, answered=bool(stored))
    if failed:
        told = _("%(failed)s of %(total)s answers are missing because a model did not respond. Resume to retry them")
        raise Incomplete(told % {"failed": f"{failed:,}", "total": f"{total:,}"})


def _store_answers(
    evaluation: AnswerEvaluation, tasks: Sequence[AnswerTask], results: Sequence[generation.JudgedAnswer | None]
) -> int:
    """Write the answers that came, once each. Raises LeaseLost where somebody else holds the evaluation by now."""
    rows = [
        generation.answer_row(evaluation, task, found)
        for task, found in zip(tasks, results, strict=True)
        if found is not None
    ]
    # Whoever lost the lease stores nothing: the new holder asks from what is there, and finds the paid calls in the
    # cache.
    with transaction.atomic():
        leases.lock_held(evaluation)
        # An answer that another worker stored first stays.
        GeneratedAnswer.objects.bulk_create(rows, batch_size=500, ignore_conflicts=True)
    return len(rows)


def _check_results(evaluation: AnswerEvaluation, spent: str, *, answered: bool) -> None:
    """Raises Incomplete when the limits are reached, or when not one of a batch was answered."""
    if spent:
        raise job_campaigns.describe_stop(evaluation, spent)
    if not answered:
        raise Incomplete(_("No model responds, so nothing was answered. Resume to try again"))
