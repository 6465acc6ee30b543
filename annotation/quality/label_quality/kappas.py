"""Kappa of judges and of people over named populations, and over time.

People's agreement is that of their first answers, given without seeing each other's. Where experiment
arms hide or reveal the debate it is that of blind votes alone; answers with the debate in view, and
final answers after the reveal, are separate groups. Votes that an early stop left to chance do not
count (annotation.agreement.grade_matrix).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta

import numpy as np
from django.utils.translation import gettext_noop
from numpy.typing import NDArray

from annotation.access.hidden_names import PEOPLE
from annotation.agreement.grade_matrix import (
    JUDGES,
    GradeMatrix,
    KnownAssessor,
    Population,
    Votes,
    fetch_columns,
    find_copies,
    known_assessors,
    load_grade_matrix,
    population_of,
)
from annotation.agreement.groups import group_agreement
from annotation.agreement.measures import Statistic
from annotation.agreement.resampling import MISSING, RESAMPLES
from annotation.quality.label_quality.records import Kappa, Point
from corpus.models import Collection
from store.sql import fetch_row

MEASURE = gettext_noop("Krippendorff's alpha (nominal), relevant or not")
EPOCH = date(2000, 1, 3)  # A Monday: days are counted from it.
LONG = 31  # Number of days above which agreement is shown by week.
OVER_TIME = gettext_noop("pairs with two or more grades, by the day of their last grade")
FIRST, FINAL = "people", gettext_noop("people (final answers)")
SHOWN = gettext_noop("people (debate shown)")

# For each pair the day on which a campaign last ended it, and the day of people's last answer.
LAST_DAYS = {
    "judges": """
        SELECT array_agg(pair_id) AS pair, array_agg(day) AS day FROM (
            SELECT w.pair_id, max(w.ended_at::date - date '2000-01-03')::bigint AS day
            FROM judges_work w JOIN judges_campaign c ON c.id = w.campaign_id
            WHERE c.collection_id = %(collection)s AND c.policy <> 'evidence' AND w.ended_at IS NOT NULL
            GROUP BY 1) t""",
    FIRST: """
        SELECT array_agg(pair_id) AS pair, array_agg(day) AS day FROM (
            SELECT j.pair_id, max(j.created_at::date - date '2000-01-03')::bigint AS day
            FROM corpus_judgment j JOIN corpus_assessor a ON a.id = j.assessor_id
            WHERE a.collection_id = %(collection)s AND a.kind IN ('person', 'human-import')
              AND j.grade IS NOT NULL AND j.step <> 'adjudication' GROUP BY 1) t""",
}
# Whether there are votes in an arm that hid the debate, and whether there are first votes.
HAS_BLIND_VOTES = """
SELECT EXISTS (SELECT FROM corpus_item i WHERE i.collection_id = %(collection)s AND i.arm IN ('hidden', 'reveal')
               AND EXISTS (SELECT FROM corpus_judgment j WHERE j.item_id = i.id)),
       EXISTS (SELECT FROM corpus_judgment j JOIN corpus_item i ON i.id = j.item_id
               WHERE i.collection_id = %(collection)s AND j.step = 'first')
"""


@dataclass(frozen=True, slots=True)
class BinaryVotes:
    """All assessors' grades as relevant or not, and which assessors are judges."""

    matrix: GradeMatrix  # Of 0, 1 and MISSING.
    judges: NDArray[np.bool_]
    arms: bool = False  # Whether there are votes in an arm that hides the debate, at first or for good.
    both: bool = False  # Whether there are first votes, cast before final ones.


def read_binary_votes(collection: Collection) -> BinaryVotes:
    """Read judges' votes and people's first answers, blind ones where there are arms, as relevant or not."""
    arms, both = fetch_row(HAS_BLIND_VOTES, collection=collection.pk)
    votes = _read_assessor_votes(collection, known_assessors(collection), "blind" if arms else "first")
    return replace(votes, arms=arms, both=both)


def _read_assessor_votes(collection: Collection, assessors: list[KnownAssessor], votes: Votes) -> BinaryVotes:
    kinds = (*JUDGES, *PEOPLE) if votes in ("first", "blind") else PEOPLE
    graders = [assessor for assessor in assessors if assessor.kind in kinds]
    matrix = load_grade_matrix(collection, graders, votes=votes)
    relevant = np.where(matrix.grades == MISSING, MISSING, matrix.grades >= collection.relevant_from)
    is_judge = np.array([assessor.kind in JUDGES for assessor in matrix.assessors], dtype=np.bool_)
    return BinaryVotes(GradeMatrix(matrix.assessors, matrix.pairs, relevant.astype(np.int16)), is_judge)


def measure_judges_alpha(collection: Collection) -> Statistic:
    """Measure the judges' agreement over all pairs, without an interval."""
    judges = [assessor for assessor in known_assessors(collection) if assessor.kind in JUDGES]
    return group_agreement(_read_assessor_votes(collection, judges, "first").matrix.grades).kappa


def measure_kappas(collection: Collection, binary: BinaryVotes) -> Iterator[Kappa]:
    """Yield the agreement of judges and of people over all, escalated and audited pairs, also where there is none."""
    pairs = binary.matrix.pairs
    masks = {"all": np.ones(len(pairs), dtype=np.bool_)}
    parts: tuple[Population, ...] = ("escalated", "audited")
    masks |= {name: np.isin(pairs, population_of(collection, name)) for name in parts}
    for name, rows in (("judges", binary.judges), (FIRST, ~binary.judges)):
        for population, mask in masks.items():
            # Assessors that are the same model, of those who graded a pair of the population.
            has_graded = rows & (binary.matrix.grades[:, mask] != MISSING).any(axis=1)
            graders = [assessor for assessor, graded in zip(binary.matrix.assessors, has_graded, strict=True) if graded]
            copies = tuple(tuple(graders[row].name for row in group) for group in find_copies(graders))
            yield _measure_kappa(name, population, binary.matrix.grades[rows][:, mask], copies)
    people_groups: list[tuple[bool, str, Votes]] = [(binary.arms, SHOWN, "shown"), (binary.both, FINAL, "final")]
    for has_votes, name, votes in people_groups:
        if has_votes:
            step_votes = _read_assessor_votes(collection, known_assessors(collection), votes)
            yield _measure_kappa(name, "all", step_votes.matrix.grades)


def _measure_kappa(
    name: str, population: str, grades: NDArray[np.integer], copies: tuple[tuple[str, ...], ...] = ()
) -> Kappa:
    assessors = int((grades != MISSING).any(axis=1).sum())
    return Kappa(name, population, MEASURE, assessors, *group_agreement(grades, bootstrap=RESAMPLES), copies=copies)


def over_time(collection: Collection, votes: BinaryVotes) -> tuple[str, list[Point]]:
    """Return the unit (day | week) and a point for each group and period that has a pair with two grades."""
    points: list[Point] = []
    last_days = {name: fetch_columns(sql, collection=collection.pk) for name, sql in LAST_DAYS.items()}
    days = np.concatenate([columns["day"] for columns in last_days.values()])
    unit = "week" if len(days) and days.max() - days.min() > LONG else "day"
    for name, rows in (("judges", votes.judges), (FIRST, ~votes.judges)):
        day_of = dict(last_days[name].tolist())
        period = np.array([day_of.get(pair, -1) for pair in votes.matrix.pairs.tolist()], dtype=np.int64)
        if unit == "week":
            # EPOCH is a Monday, so this is the Monday of the week; -1 remains: the pair has no day.
            period = np.where(period >= 0, period - period % 7, period)
        for start in np.unique(period[period >= 0]):
            agreement = group_agreement(votes.matrix.grades[rows][:, period == start], bootstrap=RESAMPLES)
            if agreement.pairs:
                first_day = (EPOCH + timedelta(days=int(start))).isoformat()
                points.append(Point(name, first_day, *agreement[:3]))
    return unit, points
