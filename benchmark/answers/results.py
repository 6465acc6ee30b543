"""Figures of stored answers under two versions of the qrels. Reads only."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from django.core.cache import cache
from django.db.models import Count, Max
from django.utils.translation import gettext as _

from benchmark.answers.alignment import AnswerOutcomes, RetrievalOutcomes, compare_versions
from benchmark.answers.evaluations import runs_in, split_queries
from benchmark.models import AnswerEvaluation, GeneratedAnswer, Qrels, Run
from benchmark.qrels import versions
from benchmark.report import measures
from benchmark.report.graded_runs import Ints, Version, encode_pairs, stack_rankings
from benchmark.report.inputs import load_judgments
from benchmark.runs import rankings
from corpus.errors import BadInput
from corpus.models import Collection, Query
from judges.model_jobs.jobs import ledger_sum_of

VERSION = 3  # Of the result's shape: part of what it is cached by.
SEED = 0
KEPT_S = 90 * 86_400


@dataclass(frozen=True)
class VersionPair:
    """Two versions of the qrels to compare; `after` is None while nothing is filled."""

    before: Qrels
    after: Qrels | None


def choose_versions(collection: Collection, before: int | None = None, after: int | None = None) -> VersionPair:
    """Return the versions of these numbers; by default the original, and the newest filled one or that of all labels.

    Raises BadInput for a number that is none, and where there is no version yet.
    """
    known = list(Qrels.objects.filter(collection=collection).order_by("-number"))
    if not known:
        raise BadInput(_("%(name)s has no qrels yet: import or judge some pairs first") % {"name": collection.name})
    first = _numbered(known, before) or _newest(known, Qrels.Kind.ORIGINAL) or known[0]
    # A version of all labels is what an instance without fillings has.
    later = _numbered(known, after) or _newest(known, Qrels.Kind.FILLED) or _newest(known, Qrels.Kind.LABELS)
    return VersionPair(first, None if later is None or later.pk == first.pk else later)


def _newest(known: Sequence[Qrels], kind: str) -> Qrels | None:
    return next((one for one in known if one.kind == kind), None)


def _numbered(known: Sequence[Qrels], number: int | None) -> Qrels | None:
    """The version of this number. Raises BadInput that names those that exist."""
    found = next((one for one in known if one.number == number), None)
    return found if found or number is None else versions.version_numbered(known[0].collection, number)


def load_result(evaluation: AnswerEvaluation, chosen: VersionPair) -> dict[str, Any]:
    """All figures of an evaluation, cached by its answers and the two versions; no figures before a query is whole."""
    stored = GeneratedAnswer.objects.filter(evaluation=evaluation)
    # The newest id and the count together change with every answer, so the cache needs no clearing.
    there = stored.aggregate(newest=Max("pk"), count=Count("pk"))
    queries, left_out = split_queries(evaluation.collection)
    asked = repr((VERSION, evaluation.pk, there, left_out, [query.pk for query in queries], chosen.before.pk,
                  chosen.after and chosen.after.pk, evaluation.collection.relevant_from))  # fmt: skip
    key = f"rag-align:{sha256(asked.encode()).hexdigest()}"
    if (known := cache.get(key)) is None:
        known = compute_result(evaluation, queries, chosen) | {"no_answers": left_out}
        cache.set(key, known, KEPT_S)
    found: dict[str, Any] = known
    return found


class StoredAnswer(NamedTuple):
    """The columns of a stored answer that figures need. `correct` None: no verdict."""

    correct: bool | None
    is_exact_match: bool
    problem: str
    document_length: int
    context_length: int
    without_evidence: int


@dataclass(frozen=True)
class StoredAnswers:
    """The answers of an evaluation by query, run and generator."""

    runs: list[Run]
    generators: list[str]
    rows: dict[tuple[int, int, str], StoredAnswer]

    def units(self, query: int) -> list[StoredAnswer | None]:
        """Return answers to a query, by runs and generators; None where one is missing."""
        return [self.rows.get((query, run.pk, name)) for run in self.runs for name in self.generators]

    def outcomes(self, queries: Sequence[int]) -> AnswerOutcomes:
        """Arrays over queries that are whole."""
        units = [one for query in queries for one in self.units(query) if one is not None]
        # Query first here, as the units come; the axes are turned below.
        shape = len(queries), len(self.runs), len(self.generators)
        correct = np.array([bool(one.correct) for one in units], dtype=np.bool_).reshape(shape)
        exact = np.array([one.is_exact_match for one in units], dtype=np.bool_).reshape(shape)
        return AnswerOutcomes(correct.transpose(1, 2, 0), exact.transpose(1, 2, 0))


def compute_result(evaluation: AnswerEvaluation, queries: Sequence[Query], chosen: VersionPair) -> dict[str, Any]:
    """The figures over the queries for which every run and generator has a verdict: all cells are of the same ones."""
    rows = GeneratedAnswer.objects.filter(evaluation=evaluation)
    values = rows.values_list("query_id", "run_id", "generator", *StoredAnswer._fields)
    answers = {(query, run, generator): StoredAnswer(*rest) for query, run, generator, *rest in values}
    stored = StoredAnswers(runs_in(evaluation), list(evaluation.options["generators"]), answers)
    whole, waiting, unjudged = [], 0, 0
    for query in queries:
        units = stored.units(query.pk)
        if None in units:
            waiting += 1
        # A verdict that is missing for good keeps its query out of every cell, and is counted for the reader.
        elif any(one is not None and one.correct is None for one in units):
            unjudged += 1
        else:
            whole.append(query.pk)
    found: dict[str, Any] = {
        "evaluation": evaluation.number,
        "collection": evaluation.collection.name,
        **{name: evaluation.options[name] for name in ("k", "contexts", "characters", "generators", "judge")},
        "before": chosen.before.number,
        # None, while nothing is filled: the page then shows one version alone.
        "after": chosen.after.number if chosen.after else None,
        "queries": len(whole),
        "waiting": waiting,
        "no_verdict": unjudged,
        "complete": not waiting,
        "seed": SEED,
        **{key: [] for key in ("cells", "means", "systems", "correlation")},
        "moved": None,
    }
    if not whole:
        return found
    runs = stored.runs
    # To the same depth as the answers saw: what lies below was shown to nobody.
    k = evaluation.options["k"]
    loaded = rankings.load([run.pk for run in runs], k)
    documents = stack_rankings([loaded[run.pk] for run in runs], whole, k)
    # A query that a version does not judge at all is a miss under it, as in every report (ADR 0088).
    before = grade_runs(documents, chosen.before, whole, evaluation.collection)
    after = grade_runs(documents, chosen.after, whole, evaluation.collection) if chosen.after else None
    names = [run.name for run in runs]
    found |= compare_versions(names, stored.generators, before, after, stored.outcomes(whole), SEED)
    _add_counts(found, stored)
    if waiting:
        found["means"] = []  # what is whole is shown; a mean over systems waits for the rest
    return found


def grade_runs(documents: Ints, version: Qrels, queries: Sequence[int], collection: Collection) -> RetrievalOutcomes:
    """Hit@k and nDCG@k (exponential gain, DREAM J.1) by one version."""
    known = Version.of(load_judgments(version), queries)
    graded = measures.Graded(documents, known.look_up(encode_pairs(documents)), known, collection.relevant_from)
    return RetrievalOutcomes(measures.hit(graded), measures.ndcg_exp(graded))


def _add_counts(found: dict[str, Any], stored: StoredAnswers) -> None:
    """Add what went wrong and how much was shown, over all answers that there are."""
    names = {run.pk: run.name for run in stored.runs}
    # By name, as the cells have it.
    by_cell: dict[tuple[str, str], list[StoredAnswer]] = defaultdict(list)
    for (_query, run, generator), one in stored.rows.items():
        by_cell[names[run], generator].append(one)
    for cell in found["cells"]:
        rows = by_cell[cell["system"], cell["generator"]]
        documents, contexts = (
            sum(getattr(one, name) for one in rows) for name in ("document_length", "context_length")
        )
        cell |= {
            # An answer that broke its format and was judged all the same.
            "malformed": sum(one.correct is not None and bool(one.problem) for one in rows),
            "no_verdict": sum(one.correct is None for one in rows),
            "document_length": documents,
            "context_length": contexts,
            "saved": 1 - contexts / documents if documents else None,
            "without_evidence": sum(one.without_evidence for one in rows),
        }


def cost_of(evaluation: AnswerEvaluation) -> dict[str, Any]:
    """Calls, tokens and money of generators and judge; `paid` None: nobody was asked yet."""
    spent = ledger_sum_of(evaluation)
    counts = {name: getattr(spent, name, 0) for name in ("calls", "cached", "tokens_in", "tokens_out")}
    return {**counts, "paid": spent and spent.paid}
