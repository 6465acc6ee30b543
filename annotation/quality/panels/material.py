"""Material for the choice of a panel: candidates' votes on the pairs that all judged, the reference, and prices.

Candidates are judges that voted in this collection and judges whose labels were imported. Grades
count as relevant from the collection's `relevant_from` on.
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
    KnownAssessors,
    choose_assessors,
    find_copies,
    known_assessors,
    load_grade_matrix,
)
from annotation.agreement.resampling import MISSING
from annotation.quality.panels.quality import Truth, Votes
from annotation.quality.panels.subsets import SIZE, most_candidates
from corpus.errors import BadInput, BadOption
from corpus.models import Assessor, Collection
from judges.models import Campaign, JudgeVersion
from store.sql import fetch_rows

PAIRS = 20  # Fewer pairs tell nothing: whoever judged fewer is no candidate, and the candidates share at least so many.
IMPORTED = gettext_noop("imported; %(model)s is configured under this name")
ANOTHER_VERSION = gettext_noop("version %(version)s voted, version %(version2)s is configured now")

# Answers from the cache cost nothing and would make a judge look cheap; tries that failed belong to the vote.
COSTS = """
SELECT judge_id, sum(cost) FILTER (WHERE NOT cached), count(*) FILTER (WHERE counts AND NOT cached),
       count(*) FILTER (WHERE counts AND NOT cached AND outcome = 'labelled' AND cost IS NULL)
FROM judges_attempt WHERE campaign_id = ANY(%(campaigns)s) AND judge_id = ANY(%(judges)s) AND role = 'vote'
GROUP BY judge_id
"""


@dataclass(frozen=True, slots=True)
class PanelCandidate:
    """A candidate for the panel.

    `pairs` and `relevant` count all its own votes, also on pairs that others did not judge.
    """

    known: KnownAssessors
    judge: str  # The name that a panel would give it.
    usable: bool  # A judge of that name is configured now.
    note: str  # What an admin should know before it is put on a panel.
    pairs: int
    relevant: int
    cost: float | None  # USD for a vote; None: unknown, or never asked here.

    @property
    def name(self) -> str:
        """The candidate's name as in agreement: unique in the collection."""
        return self.known.name


@dataclass(frozen=True, slots=True)
class Material:
    """Candidates x shared pairs. Of copies usable ones come first, then cheap ones."""

    candidates: tuple[PanelCandidate, ...]
    pairs: NDArray[np.int64]
    votes: Votes
    truth: Truth
    left_out: tuple[tuple[str, str], ...]  # Judges who are no candidates, and why.
    alike: tuple[tuple[int, ...], ...] = ()  # Places of candidates that are one model with the same parameters.


def read_material(
    collection: Collection,
    names: Sequence[str] = (),
    known: Sequence[KnownAssessors] | None = None,
    *,
    size: int = SIZE,
) -> Material:
    """Read votes and reference. `names`: the candidates; without, every newest judge and import that judged enough.

    `known`: the collection's assessors, where the caller has read them. Raises BadInput for an
    unknown name, for too many candidates, and where they share too few pairs.
    """
    known = known_assessors(collection) if known is None else known
    chosen, left_out = _choose_candidates(known, names)
    references = [one for one in known if one.kind == Assessor.Kind.REFERENCE]
    found = load_grade_matrix(collection, [*chosen, *references])
    # MISSING is not 0: a pair that nobody judged is neither relevant nor not.
    relevant = np.where(found.grades == MISSING, MISSING, found.grades >= collection.relevant_from).astype(np.int8)
    mine, gold = relevant[: len(chosen)], relevant[len(chosen) :]
    enough = (mine != MISSING).sum(axis=1) >= PAIRS
    if names and not enough.all():
        few = ", ".join(one.name for one in compress(chosen, ~enough))
        raise BadInput(
            _("%(few)s judged fewer than %(pairs)s pairs of %(collection)s: leave them out, or have them judge more")
            % {"few": few, "pairs": PAIRS, "collection": collection.name}
        )
    mine = mine[enough]
    for one, count in zip(chosen, found.counts(), strict=False):
        if count < PAIRS:
            words = ngettext(
                "judged %(count)s pair, %(pairs)s are needed", "judged %(count)s pairs, %(pairs)s are needed", count
            )
            left_out.append((one.name, words % {"count": count, "pairs": PAIRS}))
    candidates = _build_candidates(collection, list(compress(chosen, enough)), mine)
    _check_candidates(collection, candidates, mine, size)

    def prefer(place: int) -> tuple[bool, bool, float, str]:
        one = candidates[place]
        # Sums of the same prices in another order differ in their last digits.
        return not one.usable, one.cost is None, round(one.cost or 0.0, 9), one.name

    order = sorted(range(len(candidates)), key=prefer)
    shared = (mine != MISSING).all(axis=0)
    # MISSING where there is no reference, and where several differ.
    yes, no = (gold[:, shared] == 1).any(axis=0), (gold[:, shared] == 0).any(axis=0)
    return Material(
        candidates=tuple(candidates[place] for place in order),
        pairs=found.pairs[shared],
        votes=mine[order][:, shared],
        truth=np.where(yes ^ no, yes, MISSING).astype(np.int8),
        left_out=tuple(left_out),
        alike=tuple(find_copies([candidates[place].known for place in order])),
    )


def _choose_candidates(
    known: Sequence[KnownAssessors], names: Sequence[str]
) -> tuple[list[KnownAssessors], list[tuple[str, str]]]:
    """Split the assessors into candidates, and those who are none with the reason."""
    if names:
        chosen = choose_assessors(known, names=names)
        if others := [one.name for one in chosen if one.kind not in JUDGES]:
            raise BadOption(
                "candidates",
                _("Only judges and imported judges can be candidates, not %(names)s.") % {"names": ", ".join(others)},
            )
        return chosen, []
    judges = [one for one in known if one.kind in JUDGES]
    # Names of judges have no white space, and an older version carries "@" and its number.
    names_of = {one: one.judge_name or one.name for one in judges}  # without the number of a sample
    old = {one for one in judges if one.kind == Assessor.Kind.JUDGE and names_of[one].rpartition("@")[2].isdecimal()}
    old = {one for one in old if names_of[one].rpartition("@")[0] in names_of.values()}
    return [one for one in judges if one not in old], [
        (one.name, _("an older version")) for one in judges if one in old
    ]


def _build_candidates(collection: Collection, chosen: Sequence[KnownAssessors], votes: Votes) -> list[PanelCandidate]:
    versions = JudgeVersion.objects.in_bulk([one.id for one in chosen if one.kind == Assessor.Kind.JUDGE])
    names = [
        versions[one.id].name if one.kind == Assessor.Kind.JUDGE else one.name.removeprefix(f"{one.kind}:")
        for one in chosen
    ]
    current = {one.name: one for one in JudgeVersion.objects.filter(name__in=names, is_current=True)}
    campaigns = list(Campaign.objects.filter(collection=collection).values_list("pk", flat=True))
    rows = fetch_rows(COSTS, campaigns=campaigns, judges=list(versions))
    # USD for a vote; without a known price there is none.
    costs = {judge: cost / count for judge, cost, count, unknown in rows if count and not unknown}
    return [
        PanelCandidate(
            known=one,
            judge=name,
            usable=name in current,
            note=_version_note(versions.get(one.id) if one.kind == Assessor.Kind.JUDGE else None, current.get(name)),
            pairs=int((row != MISSING).sum()),
            relevant=int((row == 1).sum()),
            cost=costs.get(one.id) if one.kind == Assessor.Kind.JUDGE else None,
        )
        for one, name, row in zip(chosen, names, votes, strict=True)
    ]


def _version_note(voted: JudgeVersion | None, current: JudgeVersion | None) -> str:
    if current is None:
        return _("imported; no judge of this name is configured") if voted is None else _("no longer configured")
    if voted is None:
        return _(IMPORTED) % {"model": current.model}
    same = voted.pk == current.pk
    return "" if same else _(ANOTHER_VERSION) % {"version": voted.version, "version2": current.version}


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
    there = votes != MISSING
    shared = int(there.all(axis=0).sum())
    if shared < PAIRS:
        without = [int(np.delete(there, place, axis=0).all(axis=0).sum()) for place in range(len(candidates))]
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
