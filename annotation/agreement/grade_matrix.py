"""The matrix of all grades: judgments by people, imported grades, and counted votes of judges.

It leaves out turns of debates (whose stance is assigned), withdrawn judgments, grades of an aspect,
adjudications (which are made with all answers in view), and votes of a panel with early stopping
beyond the three that are drawn first. Policies and reference grades are included only by name.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal

import numpy as np
import psycopg
from django.db import connection
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from annotation.access.hidden_names import PEOPLE, number_people
from annotation.agreement.resampling import MISSING
from corpus.errors import BadInput
from corpus.models import Assessor, Collection, CurrentJudgment, Judgment
from judges.campaigns.selectors import campaigns_that_count
from judges.domain.copies import kind_of, sample_name
from judges.domain.ensemble import drawn_first, pair_seed
from judges.models import Attempt, Campaign, JudgeVersion
from store.sql import read_sql

Population = Literal["all", "escalated", "audited"]
# Which of a person's judgments on a pair: the first; the first if it was blind; the final one if the debate was
# shown from the start; the final one.
Votes = Literal["first", "blind", "shown", "final"]
READ_GRADES = read_sql(__file__, "read_grades")
READ_VOTES = """
SELECT array_agg(campaign_id) AS campaign, array_agg(pair_id) AS pair, array_agg(judge_id) AS who,
       array_agg(place::bigint) AS place, array_agg(verdict::bigint) AS verdict
FROM counted_attempt
WHERE campaign_id = ANY(%(campaigns)s) AND judge_id = ANY(%(judges)s) AND role = 'vote' AND outcome = 'labelled'
"""
# Pairs that a campaign escalated to people, or that were drawn for a label audit.
POPULATIONS = {
    "escalated": """
        SELECT array_agg(DISTINCT pair_id) AS pair FROM corpus_item
        WHERE collection_id = %(collection)s AND reason <> 'audit' AND NOT is_measuring(reason)
    """,
    "audited": """
        SELECT array_agg(DISTINCT pair_id) AS pair FROM corpus_item
        WHERE collection_id = %(collection)s AND reason = 'audit'
    """,
}
Kind = Assessor.Kind
SAMPLES = 1_024  # More than a judge has votes on a panel.
# Reasons of items that measure a person and not a pair, whose judgments are left out.
APART = ("check", "repeat", "qualification")
JUDGES = (Kind.JUDGE, Kind.JUDGE_IMPORT)
BY_NAME_ONLY = (Kind.POLICY, Kind.REFERENCE)


@dataclass(frozen=True, slots=True)
class KnownAssessor:
    """An assessor of a collection whose grades can be compared.

    The newest version of a judge has its plain name, older ones are `name@version`. Where a person and
    an import have the same name, both are `kind:name`. A judge with several votes on a pair is several
    assessors, `name #1`, `name #2` and so on: samples of one model.
    """

    kind: str
    id: int  # The id of an Assessor, or of a JudgeVersion for a judge.
    name: str  # Unique in the collection.
    sample: int = 0  # The number of the vote, from 0, of a judge with several votes on a panel.
    judge_name: str = ""  # The name of such a judge without the number; "" for others.
    # A judge's model and parameters, which its copies share (judges.domain.copies).
    model: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class GradeMatrix:
    """Grades (assessors x pairs, -1 without a grade). `pairs`: the ids of pairs that at least one assessor graded."""

    assessors: tuple[KnownAssessor, ...]
    pairs: NDArray[np.int64]
    grades: NDArray[np.int16]

    def counts(self) -> list[int]:
        """Return the number of pairs that each assessor graded."""
        return [int(n) for n in (self.grades != MISSING).sum(axis=1)]


def visible_assessors(collection: Collection, *, hides_people: bool) -> list[KnownAssessor]:
    """Return the known assessors; people have a number in place of their name where the reader may not know it."""
    assessors = known_assessors(collection)
    if not hides_people:
        return assessors
    numbers = number_people(collection)
    return [
        replace(assessor, name=numbers[assessor.id]) if assessor.kind in PEOPLE else assessor for assessor in assessors
    ]


def known_assessors(collection: Collection) -> list[KnownAssessor]:
    """Return all assessors with a current grade that can be compared or a vote in a campaign, by kind and name."""
    judgments = CurrentJudgment.objects.filter(assessor=OuterRef("pk"), aspect=None)
    judgments = judgments.exclude(item__reason__in=APART)
    rows = (
        Assessor.objects.filter(Exists(judgments.exclude(step=Judgment.Step.ADJUDICATION)))
        .filter(collection=collection)
        .exclude(kind=Kind.JUDGE)
        .values_list("kind", "id", "name")
    )
    judging = campaigns_that_count(collection).filter(kind=Campaign.Kind.JUDGING)
    campaigns = judging.order_by().values_list("pk", flat=True)
    assessors = [*(KnownAssessor(kind, pk, name) for kind, pk, name in rows), *voting_judges(campaigns)]
    uses = Counter(
        name
        for _, _, name in {(assessor.kind, assessor.id, assessor.judge_name or assessor.name) for assessor in assessors}
    )
    order = {kind: position for position, kind in enumerate(Kind.values)}
    for position, assessor in enumerate(assessors):
        # A name that assessors of two kinds share is prefixed with the kind.
        if uses[assessor.judge_name or assessor.name] > 1:
            assessors[position] = replace(
                assessor,
                name=f"{assessor.kind}:{assessor.name}",
                judge_name=assessor.judge_name and f"{assessor.kind}:{assessor.judge_name}",
            )
    assessors.sort(key=lambda assessor: (order[assessor.kind], assessor.judge_name or assessor.name, assessor.sample))
    return assessors


def voting_judges(campaigns: Iterable[int]) -> list[KnownAssessor]:
    """Return the judges that voted in some campaigns, a judge with several votes on a panel once for each vote."""
    times, versions = _known_judges(campaigns, ["voters"], ["vote"])
    assessors = []
    for judge, name in versions:
        is_sampled = times[judge.pk] > 1
        for n in range(times[judge.pk]):
            shown_name, judge_name = (sample_name(name, n), name) if is_sampled else (name, "")
            assessors.append(KnownAssessor(Kind.JUDGE, judge.pk, shown_name, n, judge_name, kind_of(judge)))
    return assessors


def vote_names(campaigns: Iterable[int]) -> dict[tuple[int, int], str]:
    """Return the names of voters by judge and sample: `name`, or `name #1` and so on for several votes."""
    return {(assessor.id, assessor.sample): assessor.name for assessor in voting_judges(campaigns)}


def copied_places(panels: Iterable[tuple[int, Sequence[int]]]) -> list[tuple[int, int, int]]:
    """Return the repeated positions of judges on panels: (campaign, position, number of the sample from 1)."""
    return [
        (campaign, position, sample)
        for campaign, voters in panels
        if len(set(voters)) < len(voters)
        for position, voter in enumerate(voters)
        if (sample := voters[:position].count(voter))
    ]


def find_copies(assessors: Sequence[KnownAssessor]) -> list[tuple[int, ...]]:
    """Return the positions of copies: judges of one model with the same parameters, or samples of one judge."""
    positions_by_model: dict[object, list[int]] = defaultdict(list)
    for position, assessor in enumerate(assessors):
        if assessor.model:
            positions_by_model[assessor.model].append(position)
    return [tuple(positions) for positions in positions_by_model.values() if len(positions) > 1]


def judge_names(campaigns: Iterable[int]) -> dict[int, str]:
    """Return the names of campaigns' judges by id: `name` for the newest version, `name@version` for others."""
    _times, versions = _known_judges(campaigns, ["voters", "debaters"], ["vote", "for", "against"])
    return {judge.pk: name for judge, name in versions}


def _known_judges(
    campaigns: Iterable[int], panel_fields: Sequence[str], roles: Sequence[str]
) -> tuple[Counter[int], list[tuple[JudgeVersion, str]]]:
    """Return the number of votes of each judge on a panel, and the judges with their names.

    Judges of cancelled campaigns without an answer are left out, so that they change no other judge's name.
    """
    times: Counter[int] = Counter()
    active: set[int] = set()
    for *panels, state in Campaign.objects.filter(pk__in=campaigns).values_list(*panel_fields, "state"):
        judges = Counter(chain(*panels))
        times |= judges
        active |= set() if state == Campaign.State.CANCELLED else set(judges)
    answers = Attempt.objects.filter(judge=OuterRef("pk"), campaign__in=campaigns, role__in=roles, counts=True)
    has_answer = Exists(answers.filter(outcome=Attempt.Outcome.LABELLED))
    rows = JudgeVersion.objects.filter(Q(pk__in=active) | has_answer, pk__in=list(times))
    newest: set[str] = set()
    names = []
    for judge in rows.order_by("name", "-version"):
        names.append((judge, f"{judge.name}@{judge.version}" if judge.name in newest else judge.name))
        newest.add(judge.name)
    return times, names


def choose_assessors(
    assessors: Sequence[KnownAssessor], *, names: Sequence[str] = (), people: bool = False, judges: bool = False
) -> list[KnownAssessor]:
    """Return the named assessors, and all people or judges if requested; without any choice all of these.

    `reference` and `policy` name all assessors of that kind, and the name of a judge all its samples.
    Raises BadInput for an unknown name.
    """
    by_name: dict[str, list[KnownAssessor]] = {}
    for assessor in assessors:
        for name in {
            assessor.name,
            f"{assessor.kind}:{assessor.name}",
            *((assessor.judge_name, f"{assessor.kind}:{assessor.judge_name}") if assessor.judge_name else ()),
        }:
            by_name.setdefault(name, []).append(assessor)
    named_kinds = {name for name in BY_NAME_ONLY if name in names and name not in by_name}
    named_kinds &= {assessor.kind for assessor in assessors}
    names = [name for name in names if name not in named_kinds]
    if unknown := [name for name in names if name not in by_name]:
        raise BadInput(
            _("No assessor named %(names)s; this collection has %(known)s")
            % {"names": ", ".join(unknown), "known": ", ".join(assessor.name for assessor in assessors) or _("none")}
        )
    named = {assessor for name in names for assessor in by_name[name]}
    kinds = {*(PEOPLE if people else ()), *(JUDGES if judges else ()), *named_kinds}
    if not kinds and not names:
        kinds = {*PEOPLE, *JUDGES}
    return [assessor for assessor in assessors if assessor in named or assessor.kind in kinds]


def load_grade_matrix(
    collection: Collection,
    assessors: Sequence[KnownAssessor] | None = None,
    *,
    population: Population = "all",
    votes: Votes = "first",
) -> GradeMatrix:
    """Read the assessors' grades of the collection's pairs; by default of every judge, person and import.

    A judge's vote of 0 or 1 becomes 0 or `relevant_from` on the collection's scale; the vote of the
    newest campaign counts. `votes` selects among a person's judgments on a pair.
    """
    compared = list(choose_assessors(known_assessors(collection)) if assessors is None else assessors)
    rows = {
        (assessor.kind == Kind.JUDGE, assessor.id * SAMPLES + assessor.sample): row_number
        for row_number, assessor in enumerate(compared)
    }
    # The judgment or vote that counts for a pair comes last and overwrites earlier ones.
    ids = [assessor.id for assessor in compared if assessor.kind != Kind.JUDGE]
    judgments = fetch_columns(READ_GRADES, apart=list(APART), assessors=ids, collection=collection.pk, votes=votes)
    judge_votes = _load_votes(collection, [assessor for assessor in compared if assessor.kind == Kind.JUDGE])
    parts = [
        (_matrix_rows(judgments["who"] * SAMPLES, rows, False), judgments["pair"], judgments["grade"]),
        (
            _matrix_rows(judge_votes["who"], rows, True),
            judge_votes["pair"],
            judge_votes["verdict"] * collection.relevant_from,
        ),
    ]
    row, pair, grade = (np.concatenate(column) for column in zip(*parts, strict=True))
    if population != "all":
        inside = np.isin(pair, population_of(collection, population))
        row, pair, grade = row[inside], pair[inside], grade[inside]
    pairs, column = np.unique(pair, return_inverse=True)
    grades = np.full((len(compared), len(pairs)), MISSING, dtype=np.int16)
    grades[row, column] = grade
    return GradeMatrix(tuple(compared), pairs, grades)


def options_of(cell: str) -> tuple[str, int | None, Population]:
    """Parse a cell into the compared grades, a bound, and a population.

    The grades are `disagree`, `agree`, `above` or `below` (the first assessor's grade is higher or lower),
    `both`, or two grades as `0x1`. `disagree:2` compares whether grades are at least 2;
    `disagree:escalated` and `disagree:audited` select such pairs. Both options can be combined.
    """
    kind, *options = cell.split(":")
    bounds = [int(option) for option in options if option.isdecimal() and len(option) < 4]
    populations: list[Population] = ["escalated", "audited"]
    return (
        kind,
        bounds[-1] if bounds else None,
        next((population for population in populations if population in options), "all"),
    )


def pairs_where(collection: Collection, a: str, b: str, cell: str = "disagree") -> NDArray[np.int64]:
    """Return the pairs that both assessors graded and that are in a cell; for the same name twice, its pairs."""
    assessors = known_assessors(collection)
    kind, bound, population = options_of(cell)
    couple = [choose_assessors(assessors, names=[name])[0] for name in dict.fromkeys((a, b))]
    matrix = load_grade_matrix(collection, couple, population=population)
    pairs: NDArray[np.int64] = matrix.pairs[mask_of_cell(matrix, kind, bound)]
    return pairs


def mask_of_cell(matrix: GradeMatrix, kind: str, bound: int | None) -> NDArray[np.bool_]:
    """Return which pairs of a matrix of two assessors are in a cell (`options_of`)."""
    first, second = matrix.grades[0], matrix.grades[-1]
    both = (first != MISSING) & (second != MISSING)
    if bound is not None:
        first, second = first >= bound, second >= bound
    cells = {
        "disagree": both & (first != second),
        "agree": both & (first == second),
        "above": both & (first > second),
        "below": both & (first < second),
    }
    x, cross, y = kind.partition("x")
    if cross and x.isdecimal() and y.isdecimal() and len(kind) < 8:
        cells[kind] = both & (first == int(x)) & (second == int(y))
    mask: NDArray[np.bool_] = cells.get(kind, both)
    return mask


def _matrix_rows(ids: NDArray[np.int64], rows: dict[tuple[bool, int], int], judge: bool) -> NDArray[np.int64]:
    """Return the rows of the matrix for assessors or judges, given id and sample in one number."""
    unique, inverse = np.unique(ids, return_inverse=True)
    return np.array([rows[judge, int(number)] for number in unique], dtype=np.int64)[inverse]


def _load_votes(collection: Collection, judges: Sequence[KnownAssessor]) -> NDArray[np.void]:
    """Return the counted votes, those of the newest campaign last. `who`: judge and sample in one number."""
    ids = list({judge.id for judge in judges})
    campaigns = {campaign.pk: campaign for campaign in Campaign.objects.filter(collection=collection)} if ids else {}
    votes = fetch_columns(READ_VOTES, campaigns=list(campaigns), judges=ids)
    votes = votes[np.lexsort((-votes["place"], votes["campaign"]))]
    # Without the votes whose being cast depended on other votes, because of early stopping.
    early = [pk for pk, campaign in campaigns.items() if campaign.early_stop and campaign.policy == "ensemble"]
    is_drawn = np.ones(len(votes), dtype=np.bool_)
    for row in np.flatnonzero(np.isin(votes["campaign"], early)):
        campaign = campaigns[int(votes["campaign"][row])]
        seed = pair_seed(campaign.seed, int(votes["pair"][row]))
        is_drawn[row] = int(votes["place"][row]) in drawn_first(len(campaign.voters), True, seed)
    votes = votes[is_drawn]
    votes["who"] *= SAMPLES
    for number, position, sample in copied_places((pk, campaign.voters) for pk, campaign in campaigns.items()):
        votes["who"][(votes["campaign"] == number) & (votes["place"] == position)] += sample
    voters = [judge.id * SAMPLES + judge.sample for judge in judges]
    return votes[np.isin(votes["who"], voters)] if any(judge.judge_name for judge in judges) else votes


def population_of(collection: Collection, population: Population) -> NDArray[np.int64]:
    """Return the pairs that a campaign escalated to people (`escalated`) or that an audit drew (`audited`)."""
    return fetch_columns(POPULATIONS[population], collection=collection.pk)["pair"]


ELEMENT = np.dtype([("size", ">i4"), ("value", ">i8")])


def fetch_columns(sql: str, **values: Any) -> NDArray[np.void]:
    """Fetch the only row of a statement, whose columns are arrays of bigint without nulls, as a structured array.

    The arrays come in PostgreSQL's binary format, so that a million votes need no Python objects.
    """
    connection.ensure_connection()
    with psycopg.Cursor(connection.connection) as cursor:
        cursor.execute(sql.encode(), values, binary=True)
        names = [column.name for column in cursor.description or ()]
        pgresult = cursor.pgresult
        assert pgresult is not None
        # An empty array is null. Else: dimensions, flags, type, length and lower bound, then the elements.
        arrays = [pgresult.get_value(0, column) or bytes(20) for column in range(len(names))]
    columns = [np.frombuffer(memoryview(array)[20:], ELEMENT)["value"] for array in arrays]
    result = np.empty(len(columns[0]), dtype=[(name, np.int64) for name in names])
    for name, column in zip(names, columns, strict=True):
        result[name] = column
    return result
