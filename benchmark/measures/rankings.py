"""Measures of rankings by ir_measures, and paired tests between two of them (pure)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor
from typing import Any, cast

import numpy as np

from benchmark.significance.paired import LEVEL, Tests
from corpus.errors import BadInput, BadOption

# query id -> document id -> grade; below 0: in the pool, and nobody judged it.
Qrels = Mapping[str, Mapping[str, int]]
# query id -> document id -> score; higher is better, ties by document id descending, as trec_eval has them.
Run = Mapping[str, Mapping[str, float]]

_VALUE = r"(?:[0-9]{1,9}(?:\.[0-9]{0,9})?|\.[0-9]{1,9}|True|False|'[\w-]+'|\"[\w-]+\"|\{(?:[0-9]{1,9}:[0-9]{1,9},?)+\})"
_GIVEN = re.compile(rf"(\w+)={_VALUE}")
_NAME = re.compile(
    rf"[^\W\d]\w*(?:\((?:\w+={_VALUE}(?:,\w+={_VALUE})*)?\))?(?:@(?:[0-9]{{1,9}}(?:\.[0-9]{{1,9}})?|\.[0-9]{{1,9}}))?"
)
_HIT = re.compile(r"Hit(?=[(@])")
# What a parameter may be. trec_eval's C code ends the whole process for others.
RANGES = {"cutoff": (1, 10**9), "rel": (1, 10**9), "recall": (0, 1), "p": (0, 1), "beta": (0.001, 1000)}
# The highest grade that gdeval, the program behind ERR and nDCG with exponential gain, takes.
GDEVAL_GRADES = 4


@dataclass(frozen=True)
class MeasureResult:
    """Means over a file's queries (sums of what is counted), each query's values, and queries that the run lacks."""

    queries: int
    missing: list[str]
    means: dict[str, float]
    per_query: dict[str, dict[str, float]]  # measure -> query id -> value.


@dataclass(frozen=True)
class Paired:
    """The comparison of two runs by one measure: mean difference, interval, and a two-sided p."""

    measure: str
    queries: int
    difference: float
    low: float
    high: float
    p: float
    test: str = "paired randomisation test over queries; 95% interval: the differences that it does not exclude"


def split_measures(text: str) -> list[str]:
    """Return names of measures that white space or commas part; a comma within parentheses is the measure's own."""
    return [name for name in re.split(r"[\s,]+(?![^()]*\))", text.strip().strip(",")) if name]


def parse_measures(measures: str | Sequence[str]) -> dict[str, Any]:
    """ir_measures' objects by the names as given. Raises BadInput for one that does not exist or cannot be computed."""
    names = split_measures(measures) if isinstance(measures, str) else list(measures)
    if not names:
        raise BadOption("measures", "Name at least one measure, such as nDCG@10 or R@100.")
    return {name: _parse_measure(name) for name in names}


def _parse_measure(name: str) -> Any:
    """Read the name of a measure; `Hit@k` is trec_eval's Success@k."""
    import ir_measures

    written = "".join(name.split())
    given = _GIVEN.findall(written)
    try:
        if not _NAME.fullmatch(written) or len(set(given)) < len(given):
            raise ValueError("it is not written as one")
        measure = ir_measures.parse_measure(_HIT.sub("Success", written))
        if "@" in written and measure.AT_PARAM in given:
            raise ValueError(f"{measure.AT_PARAM} is named twice")
        measure = _check_parameters(measure)
    except (ValueError, NameError, AssertionError, SyntaxError) as error:
        why = " ".join(str(error).split())
        raise BadInput(
            f"{name[:100]!r} is no measure that ir_measures knows, such as nDCG@10, Hit@10, R@100, RR, AP ({why})"
        ) from None
    if cast(Any, ir_measures.pyndeval).supports(measure):
        raise BadOption(
            "aspects",
            f"{name!r} needs subtopics, which these qrels do not have: name a file of aspects, and alpha-nDCG@k or "
            "A-Recall@k.",
        )
    if not cast(Any, ir_measures.DefaultPipeline).supports(measure):
        raise BadInput(f"{name!r} cannot be computed here: as it stands it needs a program that is not installed")
    return measure


def _check_parameters(measure: Any) -> Any:
    """The measure with numbers of the types that it wants. Raises ValueError or AssertionError for wrong ones."""
    for key, wanted in measure.SUPPORTED_PARAMS.items():
        if wanted.required and key not in measure.params:
            raise ValueError(f"{key} is missing")
    for key, value in measure.params.items():
        wanted = measure.SUPPORTED_PARAMS.get(key)
        if wanted is None:
            raise ValueError(f"it takes no {key}")
        if wanted.dtype is float and type(value) is int:
            measure = measure(**{key: float(value)})
        if isinstance(value, bool) and wanted.dtype is not bool:
            raise ValueError(f"{key} is a number")
        if (span := RANGES.get(key)) and not (isinstance(value, int | float) and span[0] <= value <= span[1]):
            raise ValueError(f"{key} is a number from {span[0]} to {span[1]:,}")
    measure.validate_params()
    return measure


def evaluate_run(qrels: Qrels, run: Run, measures: str | Sequence[str]) -> MeasureResult:
    """Evaluate every measure on each query of the qrels. Raises BadInput for measures that these qrels do not allow."""
    wanted = parse_measures(measures)
    if not qrels:
        raise BadInput("The qrels hold no query: there is nothing to measure")
    # Scores without ties in trec_eval's order: each program behind ir_measures breaks ties in a way of its own.
    shared = {
        query: {document: float(len(run[query]) - at) for at, document in enumerate(rank_documents(run[query]))}
        for query in qrels
        if run.get(query)
    }
    # All queries of the qrels, as trec_eval -c: a run is not better for the queries that it leaves out.
    per_query = {name: dict.fromkeys(qrels, 0.0) for name in wanted}
    for name, measure in wanted.items():
        for query in qrels.keys() - shared.keys() if is_count(measure) else ():
            # A query that the run lacks counts as a query, and so do its relevant documents.
            if measure.NAME == "NumRel":
                per_query[name][query] = float(sum(grade >= measure["rel"] for grade in qrels[query].values()))
            elif measure.NAME == "NumQ":
                per_query[name][query] = 1.0
    # Two names may be one measure (Hit@5, Success@5), which is computed once.
    names: dict[Any, list[str]] = {}
    for name, measure in wanted.items():
        names.setdefault(measure, []).append(name)
    for measure, query, value in _measure_queries(qrels, shared, list(names)) if shared else ():
        for name in names[measure]:
            per_query[name][query] = value
    means = {
        name: float((np.sum if is_count(wanted[name]) else np.mean)(list(values.values())))
        for name, values in per_query.items()
    }
    return MeasureResult(len(qrels), sorted(set(qrels) - set(shared)), means, per_query)


def rank_documents(scores: Mapping[str, float]) -> list[str]:
    """Documents as trec_eval orders them: score as float32 descending, then id descending."""
    return sorted(sorted(scores, reverse=True), key=lambda document: -float(np.float32(scores[document])))


def _measure_queries(qrels: Qrels, run: Run, wanted: Sequence[Any]) -> Iterator[tuple[Any, str, float]]:
    """(measure, query, value) of every query of the run; some measures leave out a 0."""
    import ir_measures

    # Copies as plain dictionaries: the libraries behind ir_measures check for them.
    kept = {query: dict(qrels[query]) for query in run}
    judged = {query: {document: grade for document, grade in kept[query].items() if grade >= 0} for query in run}
    interpolated = [measure for measure in wanted if getattr(measure, "NAME", "") == "IPrec"]
    for measure in interpolated:
        yield from ((measure, query, interpolated_precision(measure, judged[query], run[query])) for query in run)
    left = [measure for measure in wanted if measure not in interpolated]
    by_trec_eval = [measure for measure in left if ir_measures.pytrec_eval.supports(measure)]
    if by_trec_eval:  # it knows what a grade below 0 means; the others would take it for a judgment
        for one in _run_ir_measures(by_trec_eval, kept, run):
            yield one.measure, one.query_id, float(one.value)
    others = [measure for measure in left if measure not in by_trec_eval]
    if not others:
        return
    for measure in others:
        is_gdeval = measure.NAME == "ERR" or measure.params.get("dcg") == "exp-log2"
        if is_gdeval and max((max(of.values(), default=0) for of in judged.values()), default=0) > GDEVAL_GRADES:
            raise BadInput(f"{measure} is computed for grades up to {GDEVAL_GRADES}, and the qrels have higher ones")
    number = {query: str(place) for place, query in enumerate(run, 1)}  # gdeval takes no other names of queries
    query_of = {place: query for query, place in number.items()}
    numbered = {number[query]: of for query, of in judged.items()}
    for one in _run_ir_measures(others, numbered, {number[query]: of for query, of in run.items()}):
        yield one.measure, query_of[one.query_id], float(one.value)


def interpolated_precision(measure: Any, grades: Mapping[str, int], scores: Mapping[str, float]) -> float:
    """The highest precision of one query at any rank from the one where the recall is reached; 0: it never is."""
    given = measure.params
    relevant = {document for document, grade in grades.items() if grade >= given.get("rel", 1)}
    ranked = sorted(scores, key=lambda document: (scores[document], document), reverse=True)
    if given.get("judged_only", False):
        ranked = [document for document in ranked if grades.get(document, -1) >= 0]
    found = np.cumsum([document in relevant for document in ranked])
    # trec_eval rounds the wanted recall to whole documents (half up).
    wanted = floor(given["recall"] * len(relevant) + 0.5)
    if not len(found) or wanted > found[-1]:
        return 0.0
    precisions = found / np.arange(1, len(found) + 1)
    return float(precisions[np.searchsorted(found, wanted) :].max())


def _run_ir_measures(measures: Sequence[Any], qrels: Qrels, run: Run) -> list[Any]:
    """Compute by ir_measures. Raises BadInput where it fails, by whatever error."""
    import ir_measures

    try:
        return list(ir_measures.iter_calc(list(measures), qrels, run))
    except Exception as error:  # its programs end with assertions, divisions by zero, errors of subprocesses
        names, why = ", ".join(map(str, measures)), " ".join(str(error).split()) or "unexpected error"
        raise BadInput(f"{names} cannot be computed of these qrels and this run ({why[:200]})") from None


def is_count(measure: Any) -> bool:
    """Return whether a measure is summed over queries, as trec_eval's num_ret and num_rel."""
    return bool(measure.NAME.startswith("Num"))


def compare_runs(measure: str, one: Mapping[str, float], other: Mapping[str, float], *, seed: int = 0) -> Paired:
    """`one` minus `other` over the queries that both have. Raises BadInput when they share none."""
    # Paired: only queries that both runs answered.
    shared = sorted(one.keys() & other.keys())
    if not shared:
        raise BadInput(f"The two runs share no query to compare {measure} on")
    values = np.array([[one[query], other[query]] for query in shared])
    # ADR 0035: interval and p are one test, so that they never contradict each other.
    tests = Tests(values, seed)
    low, high = tests.interval(0, 1, LEVEL)
    difference = float((values[:, 0] - values[:, 1]).mean())
    return Paired(measure, len(shared), difference, low, high, tests.p(0, 1))
