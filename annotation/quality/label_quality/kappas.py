"""Kappa of judges and of people over named populations, and over time.

People's agreement is that of their first answers, given without each other's in view. Where arms
hide or reveal the debate it is that of blind votes alone; answers with the debate in view, and
final ones after the reveal, are groups of their own. Votes that an early stop left to chance are
not in it (annotation.agreement.grade_matrix).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta

import numpy as np
from django.utils.translation import gettext_noop
from numpy.typing import NDArray

from annotation.agreement.grade_matrix import (
    JUDGES,
    PEOPLE,
    GradeMatrix,
    KnownAssessors,
    Population,
    Votes,
    fetch_columns,
    find_copies,
    known_assessors,
    load_grade_matrix,
    population_of,
)
from annotation.agreement.groups import group_agreement
from annotation.agreement.resampling import MISSING, RESAMPLES
from annotation.quality.label_quality.records import Kappa, Point
from corpus.models import Collection
from store.sql import fetch_row

MEASURE = gettext_noop("Krippendorff's alpha (nominal), relevant or not")
EPOCH = date(2000, 1, 3)  # A Monday: days are counted from it.
LONG = 31  # Days from which agreement is shown by week.
OVER_TIME = gettext_noop("pairs with two or more grades, by the day of their last grade")
FIRST, FINAL = "people", gettext_noop("people (final answers)")
SHOWN = gettext_noop("people (debate shown)")


# The day on which the newest campaign ended each pair, and that of people's last answer on it.
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
# Votes in an arm that hid the debate; first votes.
HAS = """
SELECT EXISTS (SELECT FROM corpus_item i WHERE i.collection_id = %(collection)s AND i.arm IN ('hidden', 'reveal')
               AND EXISTS (SELECT FROM corpus_judgment j WHERE j.item_id = i.id)),
       EXISTS (SELECT FROM corpus_judgment j JOIN corpus_item i ON i.id = j.item_id
               WHERE i.collection_id = %(collection)s AND j.step = 'first')
"""


@dataclass(frozen=True, slots=True)
class BinaryVotes:
    """Everybody's grades as relevant or not, and which assessors are judges."""

    found: GradeMatrix  # Of 0, 1 and MISSING.
    judges: NDArray[np.bool_]
    arms: bool = False  # Somebody has voted where an arm hid the debate at first, or altogether.
    both: bool = False  # Somebody has cast a first vote before the final one.


def read_binary_votes(collection: Collection) -> BinaryVotes:
    """Read everybody's votes and first answers, blind ones where there are arms, as yes or no."""
    arms, both = fetch_row(HAS, collection=collection.pk)
    found = _read_assessor_votes(collection, known_assessors(collection), "blind" if arms else "first")
    return replace(found, arms=arms, both=both)


def _read_assessor_votes(collection: Collection, known: list[KnownAssessors], votes: Votes) -> BinaryVotes:
    chosen = [one for one in known if one.kind in ((*JUDGES, *PEOPLE) if votes in ("first", "blind") else PEOPLE)]
    found = load_grade_matrix(collection, chosen, votes=votes)
    relevant = np.where(found.grades == MISSING, MISSING, found.grades >= collection.relevant_from)
    is_judge = np.array([one.kind in JUDGES for one in found.assessors], dtype=np.bool_)
    return BinaryVotes(GradeMatrix(found.assessors, found.pairs, relevant.astype(np.int16)), is_judge)


def measure_kappas(collection: Collection, known: BinaryVotes) -> Iterator[Kappa]:
    """Measure judges and people over all, escalated and audited pairs; those without a pair of grades are kept."""
    pairs = known.found.pairs
    masks = {"all": np.ones(len(pairs), dtype=np.bool_)}
    parts: tuple[Population, ...] = ("escalated", "audited")
    masks |= {name: np.isin(pairs, population_of(collection, name)) for name in parts}
    for name, rows in (("judges", known.judges), (FIRST, ~known.judges)):
        for population, mask in masks.items():
            # Judges that are one model, of those who graded a pair of the mask.
            graded = rows & (known.found.grades[:, mask] != MISSING).any(axis=1)
            there = [one for one, here in zip(known.found.assessors, graded, strict=True) if here]
            copies = tuple(tuple(there[place].name for place in places) for places in find_copies(there))
            yield _measure_kappa(name, population, known.found.grades[rows][:, mask], copies)
    apart: list[tuple[bool, str, Votes]] = [(known.arms, SHOWN, "shown"), (known.both, FINAL, "final")]
    for there_are, name, votes in apart:
        if there_are:
            said = _read_assessor_votes(collection, known_assessors(collection), votes)
            yield _measure_kappa(name, "all", said.found.grades)


def _measure_kappa(
    name: str, population: str, grades: NDArray[np.integer], copies: tuple[tuple[str, ...], ...] = ()
) -> Kappa:
    assessors = int((grades != MISSING).any(axis=1).sum())
    return Kappa(name, population, MEASURE, assessors, *group_agreement(grades, bootstrap=RESAMPLES), copies=copies)


def over_time(collection: Collection, known: BinaryVotes) -> tuple[str, list[Point]]:
    """The unit (day | week) and a point for each group and period with a pair of two grades."""
    points: list[Point] = []
    whens = {name: fetch_columns(sql, collection=collection.pk) for name, sql in LAST_DAYS.items()}
    days = np.concatenate([when["day"] for when in whens.values()])
    unit = "week" if len(days) and days.max() - days.min() > LONG else "day"
    for name, rows in (("judges", known.judges), (FIRST, ~known.judges)):
        day_of = dict(whens[name].tolist())
        period = np.array([day_of.get(pair, -1) for pair in known.found.pairs.tolist()], dtype=np.int64)
        if unit == "week":
            # EPOCH is a Monday, so this is the Monday of the week; -1 stays: the pair has no day.
            period = np.where(period >= 0, period - period % 7, period)
        for start in np.unique(period[period >= 0]):
            measured = group_agreement(known.found.grades[rows][:, period == start], bootstrap=RESAMPLES)
            if measured.pairs:
                begins = (EPOCH + timedelta(days=int(start))).isoformat()
                points.append(Point(name, begins, *measured[:3]))
    return unit, points
