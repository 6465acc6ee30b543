"""Evaluations of a suite's members beside each other, with the unweighted mean."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmark.answers import contexts, results
from benchmark.answers.tables import MEAN
from benchmark.models import AnswerEvaluation
from benchmark.suites.groups import member_mean
from corpus.errors import BadInput
from corpus.models import Collection
from jobs.models import JobState

# What is known of each (system, generator), `align` and `graded` among it; the system is empty for
# the mean over all systems. Nothing without a whole result.
MemberValues = dict[tuple[str, str], Mapping[str, Any]]


def member_answers(collection: Collection, k: int, kind: str = contexts.DOCUMENT) -> MemberValues:
    """Return a collection's newest finished evaluation at k; none without one."""
    rows = AnswerEvaluation.objects.filter(collection=collection, state=JobState.READY)
    newest = rows.filter(options__k=k, options__contexts=kind).order_by("-pk").first()
    return load_member(newest) if newest else {}


def load_member(evaluation: AnswerEvaluation) -> MemberValues:
    """Return the values of an evaluation of a suite's member."""
    try:
        result = results.load_result(evaluation, results.choose_versions(evaluation.collection))
    except BadInput:  # no qrels any more
        return {}
    return values_of(result)


def values_of(result: Mapping[str, Any]) -> MemberValues:
    """The values of a result, once it is whole."""
    if not result["complete"]:
        return {}
    cells = {(one["system"], one["generator"]): one for one in result["cells"]}
    return cells | {(MEAN, one["generator"]): one for one in result["means"]}


def suite_lines(by_member: Sequence[MemberValues]) -> list[dict[str, Any]]:
    """A line for each system and generator that any member has; the mean is blank where a member lacks it.

    The means over all systems come first. They compare only where every member has the same
    systems: elsewhere they are blank, too. `graded`: the same of graded RAGAlign (DREAM table 21).
    """
    systems = [{system for system, _generator in values if system != MEAN} for values in by_member]
    alike = all(one == systems[0] for one in systems)
    lines = []
    for system, generator in sorted({key for values in by_member for key in values}):
        line: dict[str, Any] = {"system": system, "generator": generator}
        for name, place in (("align", line), ("graded", line.setdefault("graded", {}))):
            found = [values[system, generator][name] if (system, generator) in values else None for values in by_member]
            # Means over other sets of systems would differ by which systems they hold.
            place |= {"values": found, "mean": member_mean(found) if system != MEAN or alike else None}
        lines.append(line)
    return lines
