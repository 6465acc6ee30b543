"""Measures of rankings by ir_measures, and paired tests between two of them (pure)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor
from typing import Any, cast

import numpy as np

from benchmark.significance.paired import LEVEL, Tests
from corpus.errors import BadInput, BadOption

# query id -> document id -> grade; below 0: the pair is in the pool and not judged.
Qrels = Mapping[str, Mapping[str, int]]
# query id -> document id -> score; higher is better, ties by document id descending, as trec_eval has them.
Run = Mapping[str, Mapping[str, float]]

# A measure in ir_measures' notation: a name, parameters in parentheses, and a cutoff, as in nDCG(dcg='exp-log2')@10.
# The value of a parameter is a number, a boolean, a quoted word, or a gain for each grade, as {1:3,2:7}.
_VALUE = r"(?:[0-9]{1,9}(?:\.[0-9]{0,9})?|\.[0-9]{1,9}|True|False|'[\w-]+'|\"[\w-]+\"|\{(?:[0-9]{1,9}:[0-9]{1,9},?)+\})"
_PARAMETER = re.compile(rf"(\w+)={_VALUE}")
_NAME = re.compile(
    rf"[^\W\d]\w*(?:\((?:\w+={_VALUE}(?:,\w+={_VALUE})*)?\))?(?:@(?:[0-9]{{1,9}}(?:\.[0-9]{{1,9}})?|\.[0-9]{{1,9}}))?"
)
_HIT = re.compile(r"Hit(?=[(@])")
# The lowest and highest value of a parameter. trec_eval's C code ends the whole process for others.
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
    """Return names of measures, separated by white space or commas; commas within parentheses belong to a name."""
    return [name for name in re.split(r"[\s,]+(?![^()]*\))", text.strip().strip(",")) if name]


def parse_measures(measures: str | Sequence[str]) -> dict[str, Any]:
    """Return ir_measures' objects by name. Raises BadInput for a measure that is unknown or cannot be computed."""
    names = split_measures(measures) if isinstance(measures, str) else list(measures)
    if not names:
        raise BadOption("measures", "Name at least one measure, such as nDCG@10 or R@100.")
    return {name: _parse_measure(name) for name in names}


def _parse_measure(name: str) -> Any:
    """Read the name of a measure; `Hit@k` is trec_eval's Success@k."""
    import ir_measures

    notation = "".join(name.split())
    parameters = _PARAMETER.findall(notation)
    try:
        if not _NAME.fullmatch(notation) or len(set(parameters)) < len(parameters):
            raise ValueError("invalid notation")
        measure = ir_measures.parse_measure(_HIT.sub("Success", notation))
        if "@" in notation and measure.AT_PARAM in parameters:
            raise ValueError(f"{measure.AT_PARAM} is named twice")
        measure = _check_parameters(measure)
    except (ValueError, NameError, AssertionError, SyntaxError) as error:
        reason = " ".join(str(error).split())
        raise BadInput(
            f"{name[:100]!r} is not a measure that ir_measures knows ({reason}). "
            "Use names such as nDCG@10, Hit@10, R@100, RR, AP."
        ) from None
    if cast(Any, ir_measures.pyndeval).supports(measure):
        raise BadOption(
            "aspects",
            f"{name!r} needs subtopics, which these qrels do not have. Name a file of aspects and use alpha-nDCG@k or "
            "A-Recall@k.",
        )
    if not cast(Any, ir_measures.DefaultPipeline).supports(measure):
        raise BadInput(f"{name!r} cannot be computed: it needs a program that is not installed. Use another measure.")
    return measure


def _check_parameters(measure: Any) -> Any:
    """Return the measure with its parameters converted. Raises ValueError or AssertionError for invalid ones."""
    for key, specification in measure.SUPPORTED_PARAMS.items():
        if specification.required and key not in measure.params:
            raise ValueError(f"{key} is missing")
    for key, value in measure.params.items():
        specification = measure.SUPPORTED_PARAMS.get(key)
        if specification is None:
            raise ValueError(f"there is no parameter {key}")
        if specification.dtype is float and type(value) is int:
            measure = measure(**{key: float(value)})
        if isinstance(value, bool) and specification.dtype is not bool:
            raise ValueError(f"{key} must be a number")
        if (bounds := RANGES.get(key)) and not (isinstance(value, int | float) and bounds[0] <= value <= bounds[1]):
            raise ValueError(f"{key} must be a number from {bounds[0]} to {bounds[1]:,}")
    measure.validate_params()
    return measure


def evaluate_run(qrels: Qrels, run: Run, measures: str | Sequence[str]) -> MeasureResult:
    """Evaluate every measure on each query of the qrels. Raises BadInput for measures that these qrels do not allow."""
    measure_of = parse_measures(measures)
    if not qrels:
        raise BadInput("The qrels contain no queries. Add judgments before measuring.")
    # Scores without ties in trec_eval's order: each program behind ir_measures breaks ties in its own way.
    ranked_run: dict[str, dict[str, float]] = {}
    for query in qrels:
        if scores := run.get(query):
            ranked = rank_documents(scores)
            ranked_run[query] = {document: float(len(ranked) - position) for position, document in enumerate(ranked)}
    # All queries of the qrels, as trec_eval -c: a run is not better for the queries that it leaves out.
    per_query = {name: dict.fromkeys(qrels, 0.0) for name in measure_of}
    for name, measure in measure_of.items():
        # A query that the run lacks counts as a query, and so do its relevant documents.
        for query in qrels.keys() - ranked_run.keys():
            if measure.NAME == "NumRel":
                per_query[name][query] = float(sum(grade >= measure["rel"] for grade in qrels[query].values()))
            elif measure.NAME == "NumQ":
                per_query[name][query] = 1.0
    # Two names may be one measure (Hit@5, Success@5), which is computed once.
    names: dict[Any, list[str]] = {}  # By measure.
    for name, measure in measure_of.items():
        names.setdefault(measure, []).append(name)
    if ranked_run:
        for measure, query, value in _measure_queries(qrels, ranked_run, list(names)):
            for name in names[measure]:
                per_query[name][query] = value
    means: dict[str, float] = {}
    for name, by_query in per_query.items():
        summarise = np.sum if is_count(measure_of[name]) else np.mean
        means[name] = float(summarise(list(by_query.values())))
    return MeasureResult(len(qrels), sorted(set(qrels) - set(ranked_run)), means, per_query)


def rank_documents(scores: Mapping[str, float]) -> list[str]:
    """Return documents in trec_eval's order: score as float32 descending, then id descending."""
    return sorted(sorted(scores, reverse=True), key=lambda document: -float(np.float32(scores[document])))


def _measure_queries(qrels: Qrels, run: Run, measures: Sequence[Any]) -> Iterator[tuple[Any, str, float]]:
    """Yield (measure, query, value) for every query of the run; some measures leave out a 0."""
    import ir_measures

    # Copies as plain dictionaries: the libraries behind ir_measures check for them.
    all_grades = {query: dict(qrels[query]) for query in run}
    judged = {
        query: {document: grade for document, grade in grades.items() if grade >= 0}
        for query, grades in all_grades.items()
    }
    by_trec_eval, others = [], []
    for measure in measures:
        if getattr(measure, "NAME", "") == "IPrec":
            for query in run:
                yield measure, query, interpolated_precision(measure, judged[query], run[query])
        elif ir_measures.pytrec_eval.supports(measure):
            by_trec_eval.append(measure)
        else:
            others.append(measure)
    # trec_eval knows what a grade below 0 means; the others would take it for a judgment.
    if by_trec_eval:
        for result in _run_ir_measures(by_trec_eval, all_grades, run):
            yield result.measure, result.query_id, float(result.value)
    if not others:
        return
    highest = max((max(grades.values(), default=0) for grades in judged.values()), default=0)
    for measure in others:
        is_gdeval = measure.NAME == "ERR" or measure.params.get("dcg") == "exp-log2"
        if is_gdeval and highest > GDEVAL_GRADES:
            raise BadInput(
                f"{measure} is computed for grades up to {GDEVAL_GRADES}, and the qrels have higher ones. "
                "Use another measure, or map the grades."
            )
    # gdeval accepts only numbers as query ids.
    number_of = {query: str(number) for number, query in enumerate(run, 1)}
    query_of = {number: query for query, number in number_of.items()}
    numbered_qrels = {number_of[query]: grades for query, grades in judged.items()}
    numbered_run = {number_of[query]: scores for query, scores in run.items()}
    for result in _run_ir_measures(others, numbered_qrels, numbered_run):
        yield result.measure, query_of[result.query_id], float(result.value)


def interpolated_precision(measure: Any, grades: Mapping[str, int], scores: Mapping[str, float]) -> float:
    """Return a query's highest precision at any rank from which the recall is reached; 0 if it never is."""
    parameters = measure.params
    relevant = {document for document, grade in grades.items() if grade >= parameters.get("rel", 1)}
    ranked = sorted(scores, key=lambda document: (scores[document], document), reverse=True)
    if parameters.get("judged_only", False):
        ranked = [document for document in ranked if grades.get(document, -1) >= 0]
    hits = np.cumsum([document in relevant for document in ranked])
    # trec_eval rounds the recall to whole documents (half up).
    target = floor(parameters["recall"] * len(relevant) + 0.5)
    if not len(hits) or target > hits[-1]:
        return 0.0
    precisions = hits / np.arange(1, len(hits) + 1)
    return float(precisions[np.searchsorted(hits, target) :].max())


def _run_ir_measures(measures: Sequence[Any], qrels: Qrels, run: Run) -> list[Any]:
    """Compute measures by ir_measures. Raises BadInput for any of its failures."""
    import ir_measures

    try:
        return list(ir_measures.iter_calc(list(measures), qrels, run))
    # Its programs fail with assertions, divisions by zero, and errors of subprocesses.
    except Exception as error:
        names, reason = ", ".join(map(str, measures)), " ".join(str(error).split()) or "unexpected error"
        raise BadInput(f"{names} cannot be computed from these qrels and this run ({reason[:200]}).") from None


def is_count(measure: Any) -> bool:
    """Return whether a measure is summed over queries, as trec_eval's num_ret and num_rel."""
    return bool(measure.NAME.startswith("Num"))


def compare_runs(measure: str, first: Mapping[str, float], second: Mapping[str, float], *, seed: int = 0) -> Paired:
    """Compare two runs by their values of a measure by query: `first` minus `second`, over the queries of both.

    Raises BadInput when they share no query.
    """
    shared = sorted(first.keys() & second.keys())
    if not shared:
        raise BadInput(f"The two runs share no query, so {measure} cannot be compared.")
    values = np.array([[first[query], second[query]] for query in shared])
    # Interval and p are of the same test, so that they never contradict each other (ADR 0035).
    tests = Tests(values, seed)
    low, high = tests.interval(0, 1, LEVEL)
    difference = float((values[:, 0] - values[:, 1]).mean())
    return Paired(measure, len(shared), difference, low, high, tests.p(0, 1))
