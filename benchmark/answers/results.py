"""Figures of stored answers under two versions of the qrels."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple, cast

import numpy as np
from django.core.cache import cache
from django.db.models import Count, Max
from django.utils.translation import gettext as _

from benchmark.answers.alignment import AnswerOutcomes, RetrievalOutcomes, compare_versions
from benchmark.answers.evaluations import runs_in, split_queries
from benchmark.measures import arrays as measures
from benchmark.measures.graded_runs import Ints, Version, encode_pairs, stack_rankings
from benchmark.models import AnswerEvaluation, GeneratedAnswer, Qrels, Run
from benchmark.qrels import versions
from benchmark.report.inputs import load_judgments
from benchmark.runs import rankings
from corpus.errors import BadInput
from corpus.models import Collection, Query
from judges.model_jobs.jobs import ledger_sum_of

VERSION = 3  # Of the result's structure, as part of its cache key.
SEED = 0
CACHED_S = 90 * 86_400


@dataclass(frozen=True)
class VersionPair:
    """Two versions of the qrels to compare; `after` is None while nothing is filled."""

    before: Qrels
    after: Qrels | None


def choose_versions(collection: Collection, before: int | None = None, after: int | None = None) -> VersionPair:
    """Return the versions with these numbers; by default the original, and the newest filled one or that of all labels.

    Raises BadInput for an unknown number, and if there is no version yet.
    """
    qrels_versions = list(Qrels.objects.filter(collection=collection).order_by("-number"))
    if not qrels_versions:
        raise BadInput(_("%(name)s has no qrels yet: import or judge some pairs first") % {"name": collection.name})
    first = _numbered(qrels_versions, before) or _newest(qrels_versions, Qrels.Kind.ORIGINAL) or qrels_versions[0]
    # An instance without fillings has only a version of all labels.
    later = (
        _numbered(qrels_versions, after)
        or _newest(qrels_versions, Qrels.Kind.FILLED)
        or _newest(qrels_versions, Qrels.Kind.LABELS)
    )
    return VersionPair(first, None if later is None or later.pk == first.pk else later)


def _newest(qrels_versions: Sequence[Qrels], kind: str) -> Qrels | None:
    return next((version for version in qrels_versions if version.kind == kind), None)


def _numbered(qrels_versions: Sequence[Qrels], number: int | None) -> Qrels | None:
    """Return the version with this number. Raises BadInput that lists the existing ones."""
    version = next((version for version in qrels_versions if version.number == number), None)
    return version if version or number is None else versions.version_numbered(qrels_versions[0].collection, number)


def load_result(evaluation: AnswerEvaluation, pair: VersionPair) -> dict[str, Any]:
    """Return all figures of an evaluation, cached by its answers and the two versions."""
    stored = GeneratedAnswer.objects.filter(evaluation=evaluation)
    # The newest id and the count together change with every answer, so the cache needs no clearing.
    answers_state = stored.aggregate(newest=Max("pk"), count=Count("pk"))
    queries, left_out = split_queries(evaluation.collection)
    cache_text = repr((VERSION, evaluation.pk, answers_state, left_out, [query.pk for query in queries], pair.before.pk,
                  pair.after and pair.after.pk, evaluation.collection.relevant_from))  # fmt: skip
    key = f"rag-align:{sha256(cache_text.encode()).hexdigest()}"
    if (result := cache.get(key)) is None:
        result = compute_result(evaluation, queries, pair) | {"no_answers": left_out}
        cache.set(key, result, CACHED_S)
    return cast(dict[str, Any], result)


class StoredAnswer(NamedTuple):
    """The columns of a stored answer that figures need; `correct` is None without a verdict."""

    correct: bool | None
    is_exact_match: bool
    problem: str
    document_length: int
    context_length: int
    without_evidence: int


@dataclass(frozen=True)
class EvaluationAnswers:
    """The answers of an evaluation by query, run and generator."""

    runs: list[Run]
    generators: list[str]
    rows: dict[tuple[int, int, str], StoredAnswer]

    def units(self, query: int) -> list[StoredAnswer | None]:
        """Return the answers to a query by run and generator, None for a missing one."""
        return [self.rows.get((query, run.pk, name)) for run in self.runs for name in self.generators]

    def outcomes(self, queries: Sequence[int]) -> AnswerOutcomes:
        """Return the outcomes of queries whose answers are complete, as arrays."""
        units = [answer for query in queries for answer in self.units(query) if answer is not None]
        # The units come by query first; the axes are reordered below.
        shape = len(queries), len(self.runs), len(self.generators)
        correct = np.array([bool(answer.correct) for answer in units], dtype=np.bool_).reshape(shape)
        exact = np.array([answer.is_exact_match for answer in units], dtype=np.bool_).reshape(shape)
        return AnswerOutcomes(correct.transpose(1, 2, 0), exact.transpose(1, 2, 0))


def compute_result(evaluation: AnswerEvaluation, queries: Sequence[Query], pair: VersionPair) -> dict[str, Any]:
    """Compute the figures over the queries with all verdicts, so that all cells compare the same queries."""
    rows = GeneratedAnswer.objects.filter(evaluation=evaluation)
    values = rows.values_list("query_id", "run_id", "generator", *StoredAnswer._fields)
    answers = {(query, run, generator): StoredAnswer(*rest) for query, run, generator, *rest in values}
    stored = EvaluationAnswers(runs_in(evaluation), list(evaluation.options["generators"]), answers)
    complete, unanswered, unjudged = [], 0, 0
    for query in queries:
        units = stored.units(query.pk)
        if None in units:
            unanswered += 1
        # A query that will never get all its verdicts is left out of every cell, and counted for the reader.
        elif any(answer is not None and answer.correct is None for answer in units):
            unjudged += 1
        else:
            complete.append(query.pk)
    result: dict[str, Any] = {
        "evaluation": evaluation.number,
        "collection": evaluation.collection.name,
        **{name: evaluation.options[name] for name in ("k", "contexts", "characters", "generators", "judge")},
        "before": pair.before.number,
        # None without a filled version: the page then shows only one version.
        "after": pair.after.number if pair.after else None,
        "queries": len(complete),
        "waiting": unanswered,
        "no_verdict": unjudged,
        "complete": not unanswered,
        "seed": SEED,
        **{key: [] for key in ("cells", "means", "systems", "correlation")},
        "moved": None,
    }
    if not complete:
        return result
    runs = stored.runs
    # To the depth that the generators saw.
    k = evaluation.options["k"]
    loaded = rankings.load([run.pk for run in runs], k)
    documents = stack_rankings([loaded[run.pk] for run in runs], complete, k)
    # A query without judgments in a version counts as a miss under it, as in every report (ADR 0088).
    before = grade_runs(documents, pair.before, complete, evaluation.collection)
    after = grade_runs(documents, pair.after, complete, evaluation.collection) if pair.after else None
    names = [run.name for run in runs]
    result |= compare_versions(names, stored.generators, before, after, stored.outcomes(complete), SEED)
    _add_counts(result, stored)
    # Cells are shown as soon as they have queries; a mean over systems waits until all are answered.
    if unanswered:
        result["means"] = []
    return result


def grade_runs(documents: Ints, version: Qrels, queries: Sequence[int], collection: Collection) -> RetrievalOutcomes:
    """Measure Hit@k and nDCG@k (exponential gain, DREAM J.1) by one version of the qrels."""
    judgments = Version.of(load_judgments(version), queries)
    grades = judgments.look_up(encode_pairs(documents))
    graded = measures.Graded(documents, grades, judgments, collection.relevant_from)
    return RetrievalOutcomes(measures.hit(graded), measures.ndcg_exp(graded))


def _add_counts(result: dict[str, Any], stored: EvaluationAnswers) -> None:
    """Add the counts of failed answers and the lengths of contexts to each cell, over all stored answers."""
    names = {run.pk: run.name for run in stored.runs}
    by_cell: dict[tuple[str, str], list[StoredAnswer]] = defaultdict(list)
    for (_query, run, generator), answer in stored.rows.items():
        by_cell[names[run], generator].append(answer)
    for cell in result["cells"]:
        rows = by_cell[cell["system"], cell["generator"]]
        documents, contexts = (
            sum(getattr(answer, name) for answer in rows) for name in ("document_length", "context_length")
        )
        cell |= {
            # Answers in a wrong format that were judged nonetheless.
            "malformed": sum(answer.correct is not None and bool(answer.problem) for answer in rows),
            "no_verdict": sum(answer.correct is None for answer in rows),
            "document_length": documents,
            "context_length": contexts,
            "saved": 1 - contexts / documents if documents else None,
            "without_evidence": sum(answer.without_evidence for answer in rows),
        }


def cost_of(evaluation: AnswerEvaluation) -> dict[str, Any]:
    """Return the calls, tokens and cost of generators and judge; `paid` is None before the first call."""
    costs = ledger_sum_of(evaluation)
    counts = {name: getattr(costs, name, 0) for name in ("calls", "cached", "tokens_in", "tokens_out")}
    return {**counts, "paid": costs and costs.paid}
