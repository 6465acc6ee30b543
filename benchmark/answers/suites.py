"""Evaluations of a suite's members beside each other, with the unweighted mean (SPEC S8)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmark.answers import contexts, results
from benchmark.answers.tables import MEAN
from benchmark.models import AnswerEvaluation
from benchmark.suites.groups import member_mean
from corpus.errors import BadInput
from corpus.models import Collection
from jobs.models import JobState


@dataclass(frozen=True)
class MemberAnswers:
    """A member of a suite and what its evaluation came to; None: it has none."""

    collection: Collection
    result: Mapping[str, Any] | None

    @property
    def values(self) -> dict[tuple[str, str], Mapping[str, Any]]:
        """RAGAlign by (system, generator); the system is empty for the mean over all systems."""
        if self.result is None or not self.result["complete"]:
            return {}
        cells = {(one["system"], one["generator"]): one["align"] for one in self.result["cells"]}
        return cells | {(MEAN, one["generator"]): one["align"] for one in self.result["means"]}


def member_answers(collection: Collection, k: int, kind: str = contexts.DOCUMENT) -> MemberAnswers:
    """What the newest finished evaluation of a collection at k says."""
    rows = AnswerEvaluation.objects.filter(collection=collection, state=JobState.READY)
    newest = rows.filter(options__k=k, options__contexts=kind).order_by("-pk").first()
    return load_member(collection, newest)


def load_member(collection: Collection, evaluation: AnswerEvaluation | None) -> MemberAnswers:
    """A member with its evaluation."""
    if evaluation is None:
        return MemberAnswers(collection, None)
    try:
        return MemberAnswers(collection, results.load_result(evaluation, results.choose_versions(collection)))
    except BadInput:  # no qrels any more
        return MemberAnswers(collection, None)


def suite_lines(members: Sequence[MemberAnswers]) -> list[dict[str, Any]]:
    """A line for each system and generator that any member has; the mean is blank where a member lacks it.

    The means over all systems come first. They compare only where every member has the same systems: elsewhere they
    are blank, too.
    """
    by_member = [one.values for one in members]
    systems = [{system for system, _generator in values if system != MEAN} for values in by_member]
    alike = all(one == systems[0] for one in systems)
    lines = []
    for system, generator in sorted({key for values in by_member for key in values}):
        found = [values.get((system, generator)) for values in by_member]
        mean = member_mean(found) if system != MEAN or alike else None
        lines.append({"system": system, "generator": generator, "values": found, "mean": mean})
    return lines
