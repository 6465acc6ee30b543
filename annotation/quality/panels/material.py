"""Material for the choice of a panel: candidates' votes on the pairs that all judged, the reference, and prices.

Candidates are judges that voted in the collection, and judges whose labels were imported. Grades from
the collection's `relevant_from` on count as relevant.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext
from numpy.typing import NDArray

from annotation.agreement.grade_matrix import (
    JUDGES,
    KnownAssessor,
    choose_assessors,
    find_copies,
    known_assessors,
    load_grade_matrix,
)
from annotation.agreement.resampling import MISSING
from annotation.quality.panels.quality import ReferenceGrades, Votes
from annotation.quality.panels.subsets import SIZE, most_candidates
from corpus.errors import BadInput, BadOption
from corpus.models import Assessor, Collection
from judges.models import Campaign, JudgeVersion
from store.sql import fetch_rows

PAIRS = 20  # Least number of pairs that a candidate must have judged, and that the candidates must share.
IMPORTED = gettext_noop("imported; %(model)s is configured under this name")
ANOTHER_VERSION = gettext_noop("version %(version)s voted, version %(version2)s is configured now")

# Without cached answers, which cost nothing and would make a judge look cheap; failed attempts are part of a vote.
SUM_COSTS = """
SELECT judge_id, sum(cost) FILTER (WHERE NOT cached), count(*) FILTER (WHERE counts AND NOT cached),
       count(*) FILTER (WHERE counts AND NOT cached AND outcome = 'labelled' AND cost IS NULL)
FROM judges_attempt WHERE campaign_id = ANY(%(campaigns)s) AND judge_id = ANY(%(judges)s) AND role = 'vote'
GROUP BY judge_id
"""


@dataclass(frozen=True, slots=True)
class PanelCandidate:
    """A candidate for the panel. `pairs` and `relevant` count all its votes, not only those on shared pairs."""

    assessor: KnownAssessor
    judge: str  # Its name on a panel.
    usable: bool  # Whether a judge of that name is configured.
    note: str  # Note for the admin about its version.
    pairs: int
    relevant: int
    cost: float | None  # USD for a vote; None: unknown, or it has not voted in the collection.

    @property
    def name(self) -> str:
        """The assessor's name, which is unique in the collection."""
        return self.assessor.name


@dataclass(frozen=True, slots=True)
class PanelMaterial:
    """Candidates x shared pairs. Usable candidates come first, then cheap ones."""

    candidates: tuple[PanelCandidate, ...]
    pairs: NDArray[np.int64]
    votes: Votes
    reference: ReferenceGrades
    left_out: tuple[tuple[str, str], ...]  # Judges that are not candidates, with the reason.
    alike: tuple[tuple[int, ...], ...] = ()  # Groups of candidates that are the same model with the same parameters.


def read_material(
    collection: Collection,
    names: Sequence[str] = (),
    assessors: Sequence[KnownAssessor] | None = None,
    *,
    size: int = SIZE,
) -> PanelMaterial:
    """Read the votes of candidates and the reference.

    `names`: the candidates; by default all current judges and imported ones that judged enough pairs.
    `assessors`: those of the collection, if already read. Raises BadInput for an unknown name, for too
    many candidates, and where they share too few pairs.

    1. Choose the candidates, and read their votes and the reference.
    2. Leave out those that judged too few pairs.
    3. Sort them, so that of copies a usable and cheap one is proposed.
    4. Reduce votes and reference to the pairs that all have judged.
    """
    assessors = known_assessors(collection) if assessors is None else assessors
    judges, left_out = _choose_candidates(assessors, names)
    references = [assessor for assessor in assessors if assessor.kind == Assessor.Kind.REFERENCE]
    matrix = load_grade_matrix(collection, [*judges, *references])
    # A missing grade must remain missing: by the comparison alone it would become 0.
    relevant = np.where(matrix.grades == MISSING, MISSING, matrix.grades >= collection.relevant_from).astype(np.int8)
    votes, gold = relevant[: len(judges)], relevant[len(judges) :]
    has_enough = (votes != MISSING).sum(axis=1) >= PAIRS
    if names and not has_enough.all():
        few = ", ".join(judge.name for judge in compress(judges, ~has_enough))
        raise BadInput(
            _("%(few)s judged fewer than %(pairs)s pairs of %(collection)s: leave them out, or have them judge more")
            % {"few": few, "pairs": PAIRS, "collection": collection.name}
        )
    votes = votes[has_enough]
    for judge, count in zip(judges, matrix.counts(), strict=False):
        if count < PAIRS:
            words = ngettext(
                "judged %(count)s pair, %(pairs)s are needed", "judged %(count)s pairs, %(pairs)s are needed", count
            )
            left_out.append((judge.name, words % {"count": count, "pairs": PAIRS}))
    candidates = _build_candidates(collection, list(compress(judges, has_enough)), votes)
    _check_candidates(collection, candidates, votes, size)
    # Rounded, because sums of the same prices in another order differ in their last digits.
    preferences = [
        (not candidate.usable, candidate.cost is None, round(candidate.cost or 0.0, 9), candidate.name)
        for candidate in candidates
    ]
    order = sorted(range(len(candidates)), key=preferences.__getitem__)
    shared = (votes != MISSING).all(axis=0)
    # MISSING where there is no reference, and where references differ.
    yes, no = (gold[:, shared] == 1).any(axis=0), (gold[:, shared] == 0).any(axis=0)
    return PanelMaterial(
        candidates=tuple(candidates[position] for position in order),
        pairs=matrix.pairs[shared],
        votes=votes[order][:, shared],
        reference=np.where(yes ^ no, yes, MISSING).astype(np.int8),
        left_out=tuple(left_out),
        alike=tuple(find_copies([candidates[position].assessor for position in order])),
    )


def _choose_candidates(
    assessors: Sequence[KnownAssessor], names: Sequence[str]
) -> tuple[list[KnownAssessor], list[tuple[str, str]]]:
    """Split judges into candidates, and the names of the others with the reason."""
    if names:
        candidates = choose_assessors(assessors, names=names)
        if others := [assessor.name for assessor in candidates if assessor.kind not in JUDGES]:
            raise BadOption(
                "candidates",
                _("Only judges and imported judges can be candidates, not %(names)s.") % {"names": ", ".join(others)},
            )
        return candidates, []
    judges = [assessor for assessor in assessors if assessor.kind in JUDGES]
    # The name of an older version ends with "@" and its number.
    names_of = {judge: judge.judge_name or judge.name for judge in judges}  # Without the number of a sample.
    old_versions = set()
    for judge in judges:
        base_name, _sign, number = names_of[judge].rpartition("@")
        if judge.kind == Assessor.Kind.JUDGE and number.isdecimal() and base_name in names_of.values():
            old_versions.add(judge)
    return [judge for judge in judges if judge not in old_versions], [
        (judge.name, _("an older version")) for judge in judges if judge in old_versions
    ]


def _build_candidates(collection: Collection, assessors: Sequence[KnownAssessor], votes: Votes) -> list[PanelCandidate]:
    versions = JudgeVersion.objects.in_bulk(
        [assessor.id for assessor in assessors if assessor.kind == Assessor.Kind.JUDGE]
    )
    # The version that voted, by assessor; imported judges have none.
    voters = [versions[assessor.id] if assessor.kind == Assessor.Kind.JUDGE else None for assessor in assessors]
    names = [
        voter.name if voter else assessor.name.removeprefix(f"{assessor.kind}:")
        for assessor, voter in zip(assessors, voters, strict=True)
    ]
    current = {version.name: version for version in JudgeVersion.objects.filter(name__in=names, is_current=True)}
    campaigns = list(Campaign.objects.filter(collection=collection).values_list("pk", flat=True))
    rows = fetch_rows(SUM_COSTS, campaigns=campaigns, judges=list(versions))
    # USD for a vote, of judges whose price is known.
    costs = {judge: cost / count for judge, cost, count, unknown in rows if count and not unknown}
    return [
        PanelCandidate(
            assessor=assessor,
            judge=name,
            usable=name in current,
            note=_version_note(voter, current.get(name)),
            pairs=int((row != MISSING).sum()),
            relevant=int((row == 1).sum()),
            cost=costs.get(assessor.id) if voter else None,
        )
        for assessor, voter, name, row in zip(assessors, voters, names, votes, strict=True)
    ]


def _version_note(voter: JudgeVersion | None, current: JudgeVersion | None) -> str:
    """Return what an admin should know of a judge: `voter` is the version that voted, `current` the configured one."""
    if current is None:
        return _("imported; no judge of this name is configured") if voter is None else _("no longer configured")
    if voter is None:
        return _(IMPORTED) % {"model": current.model}
    if voter.pk == current.pk:
        return ""
    return _(ANOTHER_VERSION) % {"version": voter.version, "version2": current.version}


def _check_candidates(collection: Collection, candidates: Sequence[PanelCandidate], votes: Votes, size: int) -> None:
    if len(candidates) < 2:
        name = _("only %(name)s did") % {"name": candidates[0].name} if candidates else _("none did")
        raise BadInput(
            _(
                "%(collection)s: a panel needs candidates that all judged the same %(pairs)s or"
                " more pairs, and %(name)s: run a campaign, or import labels"
            )
            % {"collection": collection.name, "pairs": PAIRS, "name": name}
        )
    if len(candidates) > (most := most_candidates(size)):
        raise BadOption(
            "candidates",
            _("There are %(candidates)s candidates: choose at most %(most)s.")
            % {"candidates": len(candidates), "most": most},
        )
    has_vote = votes != MISSING
    shared = int(has_vote.all(axis=0).sum())
    if shared < PAIRS:
        without = [int(np.delete(has_vote, position, axis=0).all(axis=0).sum()) for position in range(len(candidates))]
        worst = int(np.argmax(without))
        values = {"shared": shared, "name": candidates[worst].name, "without": without[worst]}
        raise BadOption(
            "candidates",
            _(
                "The %(candidates)s candidates share %(shared)s pairs, and %(pairs)s are needed. Without %(name)s the "
                "others share %(without)s: choose them alone."
            )
            % {"candidates": len(candidates), "pairs": PAIRS, **values},
        )
