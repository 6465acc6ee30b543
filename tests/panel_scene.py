"""A collection whose candidates are known: seven honest judges, one by coin, an imported copy, and the reference."""

from collections.abc import Iterable

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from corpus.models import Collection, Document, Judgment, Pair
from judges.models import Attempt, Campaign, JudgeVersion
from tests.evidence import build_attempt, make_assessor, make_campaign, make_judge, make_prompt
from tests.factories import make_query

PAIRS = 120
HONEST = [f"j{n}" for n in range(7)]


def answers(seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Seven honest judges and one by coin, 0 and 1; and the truth."""
    random = np.random.default_rng(seed)
    truth = random.random(PAIRS) < 0.4
    honest = [np.where(random.random(PAIRS) < 0.85, truth, ~truth) for _ in HONEST]
    return np.array([*honest, random.random(PAIRS) < 0.5]).astype(int), truth.astype(int)


def add_pairs(collection: Collection, query: str, documents: list[str]) -> None:
    """Pairs of a new query with new documents, in their order."""
    asked = make_query(collection, external_id=query)
    made = Document.objects.bulk_create(
        Document(collection=collection, external_id=name, text=name, content_hash=name) for name in documents
    )
    Pair.objects.bulk_create(Pair(collection=collection, query=asked, document=one) for one in made)


def pairs_of(collection: Collection) -> list[Pair]:
    """In the order in which they were made."""
    return list(Pair.objects.filter(collection=collection).order_by("pk"))


def cast(
    campaign: Campaign, judge: JudgeVersion, verdicts: Iterable[int | None], place: int = 0, **values: object
) -> None:
    """One judge's votes on all pairs, as the engine stores them."""
    key, prompt = f"{campaign.pk}-{judge.pk}", make_prompt()
    Attempt.objects.bulk_create(
        build_attempt(campaign, pair, judge, verdict, prompt, place=place, cache_key=f"{key}-{pair.pk}", **values)
        for pair, verdict in zip(pairs_of(campaign.collection), verdicts, strict=True)
    )


def vote(collection: Collection, votes: NDArray[np.int64]) -> None:
    """Judges j0 to j6 and `coin` voted in one campaign; the first is the cheapest."""
    judges = [make_judge(name) for name in [*HONEST, "coin"]]
    campaign = make_campaign(collection, judges)
    cast(campaign, judges[0], votes[0], cost=0.001)
    for place, (judge, verdicts) in enumerate(zip(judges[1:], votes[1:], strict=True), 1):
        cast_as(judges[0], campaign, judge, verdicts, place)


def cast_as(first: JudgeVersion, campaign: Campaign, judge: JudgeVersion, votes: NDArray[np.int64], place: int) -> None:
    """What `first` cast in the campaign with another judge's verdicts: one statement, since a scene has hundreds."""
    own = ("judge_id", "place", "cost", "cache_key", "verdict")
    columns = [field.column for field in Attempt._meta.concrete_fields if not field.primary_key]
    same = ", ".join(connection.ops.quote_name(name) for name in columns if name not in own)
    values = f"{same}, %s, %s, %s, campaign_id || '-' || %s || '-' || pair_id, other.vote"
    pairs = [pair.pk for pair in pairs_of(campaign.collection)]
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO judges_attempt ({same}, {', '.join(own)}) SELECT {values} FROM judges_attempt "
            "JOIN unnest(%s::bigint[], %s::smallint[]) other(pair, vote) ON other.pair = pair_id "
            "WHERE campaign_id = %s AND judge_id = %s ORDER BY id",
            [judge.pk, place, 0.001 * (place + 1), judge.pk, pairs, votes.tolist(), campaign.pk, first.pk],
        )


def refer(collection: Collection, truth: Iterable[int], name: str = "qrels") -> None:
    """Reference grades: 3 for relevant, 1 (below a `relevant_from` of 2) for not."""
    grade(collection, name, "reference", [3 if true else 1 for true in truth])


def grade(collection: Collection, name: str, kind: str, grades: Iterable[int]) -> None:
    """Grades of an import on all pairs."""
    assessor = make_assessor(collection, name, kind)
    Judgment.objects.bulk_create(
        Judgment(pair=pair, assessor=assessor, step="import", grade=one)
        for pair, one in zip(pairs_of(collection), grades, strict=True)
    )
