"""The scale study on stored votes: the same pairs, judged on several scales."""

import json
from collections.abc import Sequence
from typing import Any

from annotation.quality.scale_study.scales import ScoredScale, measure_scale, score_of
from corpus.errors import BadInput
from corpus.labels import reference_grades
from corpus.models import Collection
from judges.costs.judge_records import judge_of
from judges.models import JudgeVersion
from judges.records import Turn
from store.sql import fetch_rows

# A judge's newest counted vote on each pair.
READ_VOTES = """
SELECT DISTINCT ON (a.pair_id) a.pair_id, p.query_id, a.verdict, a.score, a.probabilities
FROM counted_attempt a JOIN corpus_pair p ON p.id = a.pair_id
WHERE p.collection_id = %(collection)s AND a.judge_id = %(judge)s AND a.role = 'vote' AND a.outcome = 'labelled'
ORDER BY a.pair_id, a.id DESC
"""


def study_scales(collection: Collection, names: Sequence[str]) -> dict[str, Any]:
    """Measure judges' scores on the pairs that all of them judged, and return them as JSON. Raises BadInput."""
    current = {version.name: version for version in JudgeVersion.objects.filter(name__in=names, is_current=True)}
    if unknown := [name for name in names if name not in current]:
        raise BadInput(f"There is no judge {unknown[0]!r}: load it with configure_judges.")
    judges = [judge_of(current[name]) for name in names]
    # By judge: the newest vote on each pair, with its query.
    votes: list[dict[int, tuple[int, Turn]]] = []
    for judge in judges:
        rows = fetch_rows(READ_VOTES, collection=collection.pk, judge=judge.id)
        judge_votes = {}
        for pair, query, verdict, score, stored in rows:
            probabilities = json.loads(stored) if isinstance(stored, str) else stored
            judge_votes[pair] = query, Turn(verdict, "", (), score, probabilities)
        votes.append(judge_votes)
    if missing := [judge.name for judge, judge_votes in zip(judges, votes, strict=True) if not judge_votes]:
        raise BadInput(
            f"{missing[0]} has not voted in {collection.name}: start a campaign with the policy single and this judge."
        )
    shared = set.intersection(*(set(judge_votes) for judge_votes in votes))
    if not shared:
        raise BadInput(f"{', '.join(names)} have no pair of {collection.name} in common: let all judge the same pairs.")
    grades = reference_grades(collection, shared)
    scales = []
    for judge, judge_votes in zip(judges, votes, strict=True):
        turns = {pair: judge_votes[pair] for pair in sorted(shared)}
        scored = [
            ScoredScale(query, score_of(vote, judge.grades), grades.get(pair)) for pair, (query, vote) in turns.items()
        ]
        row = {
            "judge": judge.name,
            "model": judge.model,
            "scale": judge.parameters.get("scale", "binary"),
            "probabilities": sum(vote.probabilities is not None for _query, vote in turns.values()),
        }
        scales.append(row | measure_scale(scored))
    return {"collection": collection.name, "pairs": len(shared), "scales": scales}
