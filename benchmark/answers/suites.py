"""Evaluations of the members of a suite side by side, with their unweighted mean."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmark.answers import contexts, results
from benchmark.answers.tables import MEAN
from benchmark.models import AnswerEvaluation
from benchmark.suites.groups import member_mean
from corpus.errors import BadInput
from corpus.models import Collection
from jobs.models import JobState

# The figures of each (system, generator), such as `align` and `graded`, with the number of `queries`; the
# system is empty for the mean over all systems. Empty without a complete result.
MemberValues = dict[tuple[str, str], Mapping[str, Any]]


def member_answers(collection: Collection, k: int, kind: str = contexts.DOCUMENT) -> MemberValues:
    """Return the values of a collection's newest finished evaluation at k; empty without one."""
    rows = AnswerEvaluation.objects.filter(collection=collection, state=JobState.READY)
    newest = rows.filter(options__k=k, options__contexts=kind).order_by("-pk").first()
    return load_member(newest) if newest else {}


def load_member(evaluation: AnswerEvaluation) -> MemberValues:
    """Return the values of one evaluation; empty if its collection no longer has qrels."""
    try:
        result = results.load_result(evaluation, results.choose_versions(evaluation.collection))
    except BadInput:
        return {}
    return values_of(result)


def values_of(result: Mapping[str, Any]) -> MemberValues:
    """Return the values of a result; empty until all queries are answered."""
    if not result["complete"]:
        return {}
    cells = {(cell["system"], cell["generator"]): cell for cell in result["cells"]}
    cells |= {(MEAN, row["generator"]): row for row in result["means"]}
    return {key: {**cell, "queries": result["queries"]} for key, cell in cells.items()}


def count_queries(by_member: Sequence[MemberValues]) -> list[int | None]:
    """Return the number of queries behind each member's values; None for a member without a complete result."""
    return [next((values["queries"] for values in member.values()), None) for member in by_member]


def suite_lines(by_member: Sequence[MemberValues]) -> list[dict[str, Any]]:
    """Return a line for each system and generator of any member; its mean is None if a member lacks it.

    The means over all systems come first. They are comparable only if every member has the same
    systems, and None otherwise. `graded`: the same for graded RAGAlign (DREAM table 21).
    """
    systems = [{system for system, _generator in values if system != MEAN} for values in by_member]
    same_systems = all(member_systems == systems[0] for member_systems in systems)
    lines = []
    for system, generator in sorted({key for values in by_member for key in values}):
        line: dict[str, Any] = {"system": system, "generator": generator}
        for name, target in (("align", line), ("graded", line.setdefault("graded", {}))):
            member_values = [
                values[system, generator][name] if (system, generator) in values else None for values in by_member
            ]
            is_comparable = system != MEAN or same_systems
            target |= {"values": member_values, "mean": member_mean(member_values) if is_comparable else None}
        lines.append(line)
    return lines
