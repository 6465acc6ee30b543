"""The scale study over stored votes: the same pairs, judged on several scales."""

import json
from collections.abc import Sequence
from typing import Any

from annotation.quality.scale_study.scales import ScoredScale, measure_scale, score_of
from corpus.errors import BadInput
from corpus.labels import reference_grades
from corpus.models import Collection
from judges.engine.plan import judge_of
from judges.models import JudgeVersion
from judges.records import Judge, Turn
from store.sql import fetch_rows

# A judge's newest counted vote on each pair.
VOTES = """
SELECT DISTINCT ON (a.pair_id) a.pair_id, p.query_id, a.verdict, a.score, a.probabilities
FROM counted_attempt a JOIN corpus_pair p ON p.id = a.pair_id
WHERE p.collection_id = %(collection)s AND a.judge_id = %(judge)s AND a.role = 'vote' AND a.outcome = 'labelled'
ORDER BY a.pair_id, a.id DESC
"""


def study_scales(collection: Collection, names: Sequence[str]) -> dict[str, Any]:
    """Measure judges' scores on pairs that all judged: the JSON document. BadInput."""
    current = {one.name: one for one in JudgeVersion.objects.filter(name__in=names, is_current=True)}
    if unknown := [name for name in names if name not in current]:
        raise BadInput(f"There is no judge {unknown[0]!r}; load it with configure_judges")
    judges = [judge_of(current[name]) for name in names]
    votes = [_read_votes(collection, judge) for judge in judges]
    if missing := [judge.name for judge, found in zip(judges, votes, strict=True) if not found]:
        raise BadInput(
            f"{missing[0]} has not voted in {collection.name}: start a campaign with the policy single and this judge"
        )
    shared = set.intersection(*(set(found) for found in votes))
    if not shared:
        raise BadInput(f"{', '.join(names)} have no pair of {collection.name} in common: let all judge the same pairs")
    truth = reference_grades(collection, shared)
    rows = []
    for judge, found in zip(judges, votes, strict=True):
        turns = {pair: found[pair] for pair in sorted(shared)}
        scored = [
            ScoredScale(query, score_of(vote, judge.grades), truth.get(pair)) for pair, (query, vote) in turns.items()
        ]
        told = {
            "judge": judge.name,
            "model": judge.model,
            "scale": judge.parameters.get("scale", "binary"),
            "probabilities": sum(vote.probabilities is not None for _query, vote in turns.values()),
        }
        rows.append(told | measure_scale(scored))
    return {"collection": collection.name, "pairs": len(shared), "scales": rows}


def _read_votes(collection: Collection, judge: Judge) -> dict[int, tuple[int, Turn]]:
    """Read the newest votes by pair, each with its query."""
    found = {}
    for pair, query, verdict, score, shares in fetch_rows(VOTES, collection=collection.pk, judge=judge.id):
        told = json.loads(shares) if isinstance(shares, str) else shares
        found[pair] = query, Turn(verdict, "", (), score, told)
    return found
