"""The only union of what assessors said: people's judgments, imports, and counted votes.

What does not enter: a debate's turns (their stance is given), withdrawn judgments, grades of an
aspect, adjudications (made with everybody's answer in view), votes of an early-stopping panel
beyond the three drawn first. Policies and the reference enter only by name.
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

from annotation.agreement.resampling import MISSING
from corpus.errors import BadInput
from corpus.models import Assessor, Collection, CurrentJudgment, Judgment
from judges.campaigns.selectors import campaigns_that_count
from judges.domain.copies import kind_of, sample_name
from judges.domain.ensemble import drawn_first, pair_seed
from judges.models import Attempt, Campaign, JudgeVersion
from store.sql import read_sql

Population = Literal["all", "escalated", "audited"]
# A person's first answer on a pair; only one that was given without the debate; only one with the
# debate in view from the start; the last one.
Votes = Literal["first", "blind", "shown", "final"]
READ_GRADES = read_sql(__file__, "read_grades")
READ_VOTES = """
SELECT array_agg(campaign_id) AS campaign, array_agg(pair_id) AS pair, array_agg(judge_id) AS who,
       array_agg(place::bigint) AS place, array_agg(verdict::bigint) AS verdict
FROM counted_attempt
WHERE campaign_id = ANY(%(campaigns)s) AND judge_id = ANY(%(judges)s) AND role = 'vote' AND outcome = 'labelled'
"""
# Pairs that a campaign handed to people, or that were drawn to check its labels.
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
SAMPLES = 1_024  # More votes than one judge can have on a panel.
# Reasons of items that measure a person, not a pair: what is said there enters no agreement.
APART = ("check", "repeat", "qualification")
PEOPLE = (Kind.PERSON, Kind.HUMAN_IMPORT)
JUDGES = (Kind.JUDGE, Kind.JUDGE_IMPORT)
BY_NAME_ONLY = (Kind.POLICY, Kind.REFERENCE)


@dataclass(frozen=True, slots=True)
class KnownAssessors:
    """An assessor whose grades can be compared, among all of a collection.

    The newest version of a judge carries its plain name, older ones `name@version`; where a person
    and an import share a name, both carry `kind:name`. A judge that votes several times on one pair
    is as many assessors, `name #1`, `name #2` and so on: samples of one model.
    """

    kind: str
    id: int  # Of a row of its kind.
    name: str  # Unique in the collection.
    sample: int = 0  # Of a judge named several times on a panel: which of its votes, from 0.
    one: str = ""  # What such a judge is called without its number; "" for others.
    # Of a judge: what it has in common with its copies (judges.domain.copies).
    model: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class GradeMatrix:
    """Grades of assessors x pairs, -1 where there is none. `pairs`: ids of pairs that at least one of them graded."""

    assessors: tuple[KnownAssessors, ...]
    pairs: NDArray[np.int64]
    grades: NDArray[np.int16]

    def counts(self) -> list[int]:
        """Count the pairs that each assessor graded."""
        return [int(n) for n in (self.grades != MISSING).sum(axis=1)]


def known_assessors(collection: Collection) -> list[KnownAssessors]:
    """Find everybody of whom a grade stands that could be compared, or who voted in a campaign, by kind and name."""
    standing = CurrentJudgment.objects.filter(assessor=OuterRef("pk"), aspect=None)
    standing = standing.exclude(item__reason__in=APART)
    rows = (
        Assessor.objects.filter(Exists(standing.exclude(step=Judgment.Step.ADJUDICATION)))
        .filter(collection=collection)
        .exclude(kind=Kind.JUDGE)
        .values_list("kind", "id", "name")
    )
    judging = campaigns_that_count(collection).filter(kind=Campaign.Kind.JUDGING)
    campaigns = judging.order_by().values_list("pk", flat=True)
    found = [*(KnownAssessors(kind, pk, name) for kind, pk, name in rows), *voting_judges(campaigns)]
    uses = Counter(name for _, _, name in {(one.kind, one.id, one.one or one.name) for one in found})
    order = {kind: place for place, kind in enumerate(Kind.values)}
    for place, one in enumerate(found):
        # A name that a person and a judge share gets its kind before it.
        if uses[one.one or one.name] > 1:
            found[place] = replace(one, name=f"{one.kind}:{one.name}", one=one.one and f"{one.kind}:{one.one}")
    return sorted(found, key=lambda one: (order[one.kind], one.one or one.name, one.sample))


def voting_judges(campaigns: Iterable[int]) -> list[KnownAssessors]:
    """Return the judges that voted in some campaigns. A judge with several votes on a panel comes once for each."""
    times, versions = _known_judges(campaigns, ["voters"], ["vote"])
    found = []
    for one, name in versions:
        again = times[one.pk] > 1
        for n in range(times[one.pk]):
            shown = sample_name(name, n) if again else name
            found.append(KnownAssessors(Kind.JUDGE, one.pk, shown, n, name if again else "", kind_of(one)))
    return found


def vote_names(campaigns: Iterable[int]) -> dict[tuple[int, int], str]:
    """Return the names of voters by judge and sample: `name`, or `name #1` for several votes."""
    return {(one.id, one.sample): one.name for one in voting_judges(campaigns)}


def copied_places(panels: Iterable[tuple[int, Sequence[int]]]) -> list[tuple[int, int, int]]:
    """Places where a judge stands again, of campaigns with their voters: (campaign, place, its sample from 1)."""
    return [
        (campaign, at, n)
        for campaign, voters in panels
        if len(set(voters)) < len(voters)
        for at, one in enumerate(voters)
        if (n := voters[:at].count(one))
    ]


def find_copies(chosen: Sequence[KnownAssessors]) -> list[tuple[int, ...]]:
    """Places of assessors that are copies: judges of one model with the same parameters, or samples of one judge."""
    found: dict[object, list[int]] = defaultdict(list)
    for place, one in enumerate(chosen):
        if one.model:
            found[one.model].append(place)
    return [tuple(places) for places in found.values() if len(places) > 1]


def judge_names(campaigns: Iterable[int]) -> dict[int, str]:
    """Names of campaigns' judges by id: the newest version `name`, others `name@version`."""
    _times, versions = _known_judges(campaigns, ["voters", "debaters"], ["vote", "for", "against"])
    return {one.pk: name for one, name in versions}


def _known_judges(
    campaigns: Iterable[int], seats: Sequence[str], roles: Sequence[str]
) -> tuple[Counter[int], list[tuple[JudgeVersion, str]]]:
    """Return how often each judge sits on one panel, and the judges with their names.

    Those of cancelled campaigns who answered nothing are left out: they give nobody another name.
    """
    times: Counter[int] = Counter()
    kept: set[int] = set()
    for *panels, state in Campaign.objects.filter(pk__in=campaigns).values_list(*seats, "state"):
        seated = Counter(chain(*panels))
        times |= seated
        kept |= set() if state == Campaign.State.CANCELLED else set(seated)
    answers = Attempt.objects.filter(judge=OuterRef("pk"), campaign__in=campaigns, role__in=roles, counts=True)
    answered = Exists(answers.filter(outcome=Attempt.Outcome.LABELLED))
    rows = JudgeVersion.objects.filter(Q(pk__in=kept) | answered, pk__in=list(times))
    newest: set[str] = set()
    found = []
    for one in rows.order_by("name", "-version"):
        found.append((one, f"{one.name}@{one.version}" if one.name in newest else one.name))
        newest.add(one.name)
    return times, found


def choose_assessors(
    known: Sequence[KnownAssessors], *, names: Sequence[str] = (), people: bool = False, judges: bool = False
) -> list[KnownAssessors]:
    """Choose the assessors that are named, and all people or judges if asked; without any all judges, people, imports.

    `reference` and `policy` name all of that kind, a judge that gives several samples all of those.
    Raises BadInput for a name that nobody here has.
    """
    by_name: dict[str, list[KnownAssessors]] = {}
    for one in known:
        for name in {one.name, f"{one.kind}:{one.name}", *((one.one, f"{one.kind}:{one.one}") if one.one else ())}:
            by_name.setdefault(name, []).append(one)
    every = {name for name in BY_NAME_ONLY if name in names and name not in by_name}
    every &= {one.kind for one in known}
    names = [name for name in names if name not in every]
    if unknown := [name for name in names if name not in by_name]:
        raise BadInput(
            _("No assessor named %(names)s; this collection has %(known)s")
            % {"names": ", ".join(unknown), "known": ", ".join(o.name for o in known) or _("none")}
        )
    wanted = {one for name in names for one in by_name[name]}
    kinds = {*(PEOPLE if people else ()), *(JUDGES if judges else ()), *every}
    if not kinds and not names:
        kinds = {*PEOPLE, *JUDGES}
    return [one for one in known if one in wanted or one.kind in kinds]


def load_grade_matrix(
    collection: Collection,
    assessors: Sequence[KnownAssessors] | None = None,
    *,
    population: Population = "all",
    votes: Votes = "first",
) -> GradeMatrix:
    """Read what the assessors said about the pairs of the collection; by default every judge, person and import.

    A judge's 0 or 1 stands on the collection's scale as 0 or `relevant_from`; of a judge's votes
    that of the newest campaign counts. Of a person's answers on a pair `votes` says which.
    """
    chosen = list(choose_assessors(known_assessors(collection)) if assessors is None else assessors)
    rows = {(one.kind == Kind.JUDGE, one.id * SAMPLES + one.sample): place for place, one in enumerate(chosen)}
    # Of judgments and votes the one that shall count for a pair comes last, and takes the place of those before it.
    ids = [one.id for one in chosen if one.kind != Kind.JUDGE]
    spoken = fetch_columns(READ_GRADES, apart=list(APART), assessors=ids, collection=collection.pk, votes=votes)
    cast = _load_votes(collection, [one for one in chosen if one.kind == Kind.JUDGE])
    parts = [
        (_matrix_rows(spoken["who"] * SAMPLES, rows, False), spoken["pair"], spoken["grade"]),
        (_matrix_rows(cast["who"], rows, True), cast["pair"], cast["verdict"] * collection.relevant_from),
    ]
    row, pair, grade = (np.concatenate(column) for column in zip(*parts, strict=True))
    if population != "all":
        inside = np.isin(pair, population_of(collection, population))
        row, pair, grade = row[inside], pair[inside], grade[inside]
    pairs, column = np.unique(pair, return_inverse=True)
    grades = np.full((len(chosen), len(pairs)), MISSING, dtype=np.int16)
    grades[row, column] = grade
    return GradeMatrix(tuple(chosen), pairs, grades)


def options_of(cell: str) -> tuple[str, int | None, Population]:
    """Read what a cell compares: `disagree`, `above` or `below` (the first gave the higher or lower
    grade), `agree`, `both`, or two grades as `0x1`; then a bound, then a population.

    `disagree:2` compares grades as 2 and more or not; `disagree:escalated` and `disagree:audited`
    look at such pairs only; both kinds may be given.
    """
    kind, *options = cell.split(":")
    bounds = [int(option) for option in options if option.isdecimal() and len(option) < 4]
    named: list[Population] = ["escalated", "audited"]
    return kind, bounds[-1] if bounds else None, next((one for one in named if one in options), "all")


def pairs_where(collection: Collection, a: str, b: str, cell: str = "disagree") -> NDArray[np.int64]:
    """Find pairs that both graded and where a cell is true; of one name twice, its pairs."""
    known = known_assessors(collection)
    kind, bound, population = options_of(cell)
    chosen = [choose_assessors(known, names=[name])[0] for name in dict.fromkeys((a, b))]
    found = load_grade_matrix(collection, chosen, population=population)
    pairs: NDArray[np.int64] = found.pairs[mask_of_cell(found, kind, bound)]
    return pairs


def mask_of_cell(found: GradeMatrix, kind: str, bound: int | None) -> NDArray[np.bool_]:
    """Tell which pairs of a matrix of two assessors are in a cell (`options_of`)."""
    first, second = found.grades[0], found.grades[-1]
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
    """Rows of the matrix for assessors or judges, by id and sample in one number."""
    unique, inverse = np.unique(ids, return_inverse=True)
    return np.array([rows[judge, int(one)] for one in unique], dtype=np.int64)[inverse]


def _load_votes(collection: Collection, judges: Sequence[KnownAssessors]) -> NDArray[np.void]:
    """Counted votes that may enter agreement, the newest campaign's last. `who`: judge and sample in one number."""
    ids = list({one.id for one in judges})
    campaigns = {one.pk: one for one in Campaign.objects.filter(collection=collection)} if ids else {}
    found = fetch_columns(READ_VOTES, campaigns=list(campaigns), judges=ids)
    found = found[np.lexsort((-found["place"], found["campaign"]))]
    # Without the votes that an early stop left to chance and to the other votes.
    early = [pk for pk, campaign in campaigns.items() if campaign.early_stop and campaign.policy == "ensemble"]
    is_drawn = np.ones(len(found), dtype=np.bool_)
    for at in np.flatnonzero(np.isin(found["campaign"], early)):
        campaign = campaigns[int(found["campaign"][at])]
        seed = pair_seed(campaign.seed, int(found["pair"][at]))
        is_drawn[at] = int(found["place"][at]) in drawn_first(len(campaign.voters), True, seed)
    found = found[is_drawn]
    found["who"] *= SAMPLES
    for number, place, sample in copied_places((pk, one.voters) for pk, one in campaigns.items()):
        found["who"][(found["campaign"] == number) & (found["place"] == place)] += sample
    wanted = [one.id * SAMPLES + one.sample for one in judges]
    return found[np.isin(found["who"], wanted)] if any(one.one for one in judges) else found


def population_of(collection: Collection, population: Population) -> NDArray[np.int64]:
    """Pairs that a campaign handed to people (`escalated`), or that were drawn to check its labels (`audited`)."""
    return fetch_columns(POPULATIONS[population], collection=collection.pk)["pair"]


ELEMENT = np.dtype([("size", ">i4"), ("value", ">i8")])


def fetch_columns(sql: str, **values: Any) -> NDArray[np.void]:
    """Fetch the one row of a statement whose columns are arrays of bigint without nulls, as a structured array.

    They come in PostgreSQL's binary form, so a million votes need no Python object each.
    """
    connection.ensure_connection()
    with psycopg.Cursor(connection.connection) as cursor:
        cursor.execute(sql.encode(), values, binary=True)
        names = [column.name for column in cursor.description or ()]
        result_of_server = cursor.pgresult
        assert result_of_server is not None
        # An array of nothing is null. Else: dimensions, flags, type, length and lower bound, then the elements.
        arrays = [result_of_server.get_value(0, at) or bytes(20) for at in range(len(names))]
    columns = [np.frombuffer(memoryview(array)[20:], ELEMENT)["value"] for array in arrays]
    result = np.empty(len(columns[0]), dtype=[(name, np.int64) for name in names])
    for name, column in zip(names, columns, strict=True):
        result[name] = column
    return result
