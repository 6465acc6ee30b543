"""The choice of a panel in words and as the document of the command `panel`."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from annotation.agreement.grade_matrix import KnownAssessors
from annotation.agreement.measures import Statistic
from annotation.quality.panels.choosing import PanelChoice, Proposal, choose_judges
from annotation.quality.panels.material import Material, read_material
from annotation.quality.panels.quality import BALANCED
from annotation.quality.panels.self_checks import SelfCheckState, newest_self_checks
from annotation.quality.panels.subsets import SIZE, SIZES_TO_CHOOSE
from corpus.errors import BadOption
from corpus.models import Collection
from judges.domain.ensemble import usual_majority

MEASURES = {
    BALANCED: gettext_noop("balanced accuracy"),
    "kappa_majority": gettext_noop("kappa with the majority of the others"),
}

WORTH_SAYING = 0.01  # A difference of balanced accuracy that is worth a sentence.


@dataclass(frozen=True, slots=True)
class Chosen:
    """The candidates for a panel and the choice that was made among them."""

    collection: str
    found: Material
    choice: PanelChoice
    checks: dict[str, SelfCheckState]  # Self-checks by name of the judge, of those who are configured.
    size: int = SIZE  # Judges of a proposed panel.

    @property
    def majority(self) -> int:
        """Return the number of votes that decides on a panel of this size."""
        return usual_majority(self.size)

    def name(self, place: int) -> str:
        """Return the name of the candidate at a place."""
        return self.found.candidates[place].name

    def names(self, places: Sequence[int]) -> list[str]:
        """Return the names of the candidates at some places."""
        return [self.name(place) for place in places]

    def listed(self, places: Sequence[int]) -> str:
        """Return the names of the candidates at some places as a sentence says them."""
        *names, last = self.names(places)
        return ", ".join(names) + " and " + last

    def usable(self, proposal: Proposal) -> bool:
        """Return whether all members are configured judges, each a different one."""
        members = [self.found.candidates[place] for place in proposal.members]
        return all(one.usable for one in members) and len({one.judge for one in members}) == len(members)

    def quality(self, place: int) -> Statistic:
        """The figure that is held to the floor."""
        one = self.choice.qualities[place]
        return one.balanced if self.choice.floor.measure == BALANCED else one.kappa

    def error_correlation(self, a: int, b: int) -> float | None:
        """Return the correlation of two candidates' errors on gold; None where one makes none."""
        value = float(self.choice.correlations[a, b])
        # The matrix holds nan where a candidate made no errors, and JSON has no such number.
        return value if isfinite(value) else None


def choose_panel(
    collection: Collection,
    names: Sequence[str] = (),
    *,
    known: Sequence[KnownAssessors] | None = None,
    floor: float | None = None,
    bootstrap: int = 0,
    size: int = SIZE,
) -> Chosen:
    """Read votes, labels made elsewhere and reference, and choose. Raises BadInput."""
    if size not in SIZES_TO_CHOOSE:
        raise BadOption("size", _("Choose 3, 5, 7 or 9 judges."))
    found = read_material(collection, names, known, size=size)
    costs = [one.cost for one in found.candidates]
    choice = choose_judges(
        found.votes, found.truth, costs=costs, floor=floor, bootstrap=bootstrap, size=size, alike=found.alike
    )
    # Only who can be chosen has a self-check worth reading.
    checks = newest_self_checks(collection, dict.fromkeys(one.judge for one in found.candidates if one.usable))
    return Chosen(collection.name, found, choice, checks, size)


def build_json_document(chosen: Chosen) -> dict[str, Any]:
    """Return the report as JSON; undefined values are null, statistics carry the reason."""
    choice = chosen.choice
    return {
        "collection": chosen.collection,
        "pairs": choice.pairs,
        "size": chosen.size,
        "gold": {"pairs": sum(choice.gold), "relevant": choice.gold[1], "unused": choice.floor.no_gold or None},
        "floor": {"measure": choice.floor.measure, "value": choice.floor.value, "given": choice.floor.given},
        "candidates": [_candidate_document(chosen, place) for place in range(len(choice.qualities))],
        "left_out": [{"name": name, "reason": reason} for name, reason in chosen.found.left_out],
        "pairwise": [
            {
                "a": chosen.name(pair.a),
                "b": chosen.name(pair.b),
                "n": pair.n,
                "kappa": asdict(pair.kappa),
                "percent": asdict(pair.percent),
                "error_correlation": chosen.error_correlation(pair.a, pair.b),
            }
            for pair in choice.pairwise
        ],
        "copies": [chosen.names(group) for group in choice.copies],
        "subsets": choice.sets,
        "by_mean": [_proposal_document(chosen, one) for one in choice.by_mean],
        "by_largest": [_proposal_document(chosen, one) for one in choice.by_largest],
        "proposed": _proposal_document(chosen, choice.proposed) if choice.proposed else None,
        "reason": choice.reason or None,
    }


def _candidate_document(chosen: Chosen, place: int) -> dict[str, Any]:
    one, quality = chosen.found.candidates[place], chosen.choice.qualities[place]
    check = chosen.checks.get(one.judge)
    return {
        "name": one.name,
        "kind": one.known.kind,
        "pairs": one.pairs,
        "relevant": one.relevant,
        "balanced_accuracy": asdict(quality.balanced),
        "kappa_majority": asdict(quality.kappa),
        "leave_one_out": asdict(quality.left_out),
        "chance": quality.chance,
        "passes": quality.passes,
        "why_not": quality.why or None,
        "mean_kappa": chosen.choice.means[place],
        "cost_per_pair": one.cost,
        "usable": one.usable,
        "self_check": check.document if check else None,
        "note": one.note or None,
    }


def _proposal_document(chosen: Chosen, one: Proposal) -> dict[str, Any]:
    names = chosen.names(one.members)
    return {
        "judges": names,
        "mean_kappa": one.subset.mean,
        "largest_kappa": one.subset.largest,
        "largest_between": chosen.names(one.subset.between),
        "error_correlation": one.correlation,
        "effective_votes": one.effective,
        "balanced_accuracy": asdict(one.majority),
        "without": dict(zip(names, one.without, strict=True)),
        "cost_per_pair": one.cost,
        "usable": chosen.usable(one),
    }


def summarise_choice(chosen: Chosen) -> list[str]:
    """Say in a few sentences what the choice rests on, who fails or is a copy, the proposal."""
    choice, floor = chosen.choice, chosen.choice.floor
    if floor.no_gold:
        words = _("Quality measure: %(name)s (%(why)s). Floor: %(floor_value)s (%(source)s).")
    else:
        words = _("Quality measure: %(name)s on %(sum)s reference grades. Floor: %(floor_value)s (%(source)s).")
    bound = words % {
        # Names of measures are marked where they stand and translated here, once a reader's language is known.
        "name": _(MEASURES[floor.measure]),
        "why": floor.no_gold,
        "sum": f"{sum(choice.gold):,}",
        "floor_value": f"{floor.value:.3f}",
        "source": _("as set") if floor.given else _("derived from all candidates"),
    }
    lines = [
        _("%(qualities)s candidates judged the same %(pairs)s pairs. %(floor)s")
        % {"qualities": len(choice.qualities), "pairs": f"{choice.pairs:,}", "floor": bound}
    ]
    failed = [f"{chosen.name(at)}, {one.why}" for at, one in enumerate(choice.qualities) if not one.passes]
    if failed:
        lines.append(_("Below the floor: %(candidates)s.") % {"candidates": "; ".join(failed)})
    lines += [
        _("%(listed)s are copies: they count as one vote, not %(group)s.")
        % {"listed": chosen.listed(group), "group": len(group)}
        for group in choice.copies
    ]
    lines += [
        _("%(listed)s are the same model with the same parameters: kappa between them measures consistency only.")
        % {"listed": chosen.listed(group)}
        for group in chosen.found.alike
    ]
    if choice.proposed is None:
        return [*lines, _("No panel recommended: %(reason)s.") % {"reason": choice.reason}]
    return [*lines, *_describe_proposal(chosen, choice.proposed)]


def _describe_proposal(chosen: Chosen, best: Proposal) -> list[str]:
    """Say which set is proposed, and which of the others is right more often: low kappas come from errors too."""
    words = ngettext(
        "The most independent of %(sets)s set of %(size)s judges is %(members)s: mean "
        "kappa %(mean)s, largest %(largest)s between %(between)s.",
        "The most independent of %(sets)s sets of %(size)s judges is %(members)s: mean "
        "kappa %(mean)s, largest %(largest)s between %(between)s.",
        chosen.choice.sets,
    )
    lines = [
        words
        % {
            "sets": f"{chosen.choice.sets:,}",
            "size": chosen.size,
            "members": chosen.listed(best.members),
            "mean": f"{best.subset.mean:.3f}",
            "largest": f"{best.subset.largest:.3f}",
            "between": chosen.listed(best.subset.between),
        }
    ]
    if best.effective:
        worth = _("Its %(size)s votes are worth %(effective)s independent votes.")
        lines.append(worth % {"size": chosen.size, "effective": f"{best.effective:.1f}"})
    # The most independent set need not be the most accurate, and a reader who sees only one would think so.
    own, sets = best.majority.value, (*chosen.choice.by_mean, *chosen.choice.by_largest)
    other = max(sets, key=lambda one: one.majority.value or 0.0)
    # A difference below the noise of the figure is not worth a sentence.
    if own is None or other.majority.value is None or other.majority.value - own < WORTH_SAYING:
        return lines
    said = _(
        "Of the sets shown, the majority of %(listed)s is most accurate: balanced "
        "accuracy %(value)s, against %(majority_value)s for the recommended set."
    )
    values = {"value": f"{other.majority.value:.3f}", "majority_value": f"{own:.3f}"}
    return [*lines, said % {"listed": chosen.listed(other.members), **values}]
