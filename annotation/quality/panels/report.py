"""The choice of a panel as sentences, and as the document of the command `panel`."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from annotation.agreement.grade_matrix import KnownAssessor
from annotation.agreement.measures import Statistic
from annotation.quality.panels.choosing import CandidateMeasures, PanelProposals, Proposal, choose_judges
from annotation.quality.panels.material import PanelMaterial, read_material
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

WORTH_SAYING = 0.01  # Least difference of balanced accuracy that is worth a sentence.


@dataclass(frozen=True, slots=True)
class PanelSelection:
    """The candidates for a panel, and the panels that are proposed."""

    collection: str
    material: PanelMaterial
    measures: CandidateMeasures
    panels: PanelProposals
    checks: dict[str, SelfCheckState]  # Self-checks of the configured judges, by name.
    size: int = SIZE  # Number of judges on a proposed panel.

    @property
    def majority(self) -> int:
        """Number of votes that decide on a panel of this size."""
        return usual_majority(self.size)

    def name(self, position: int) -> str:
        """Return the name of the candidate at a position."""
        return self.material.candidates[position].name

    def names(self, positions: Sequence[int]) -> list[str]:
        """Return the names of the candidates at these positions."""
        return [self.name(position) for position in positions]

    def listed(self, positions: Sequence[int]) -> str:
        """Return the names of the candidates at these positions as "a, b and c"."""
        *names, last = self.names(positions)
        return ", ".join(names) + " and " + last

    def usable(self, proposal: Proposal) -> bool:
        """Return whether all members are configured judges, and all different."""
        members = [self.material.candidates[position] for position in proposal.members]
        return all(member.usable for member in members) and len({member.judge for member in members}) == len(members)

    def quality(self, position: int) -> Statistic:
        """Return the statistic that is compared with the floor."""
        candidate_quality = self.measures.qualities[position]
        if self.measures.floor.measure == BALANCED:
            return candidate_quality.balanced_accuracy
        return candidate_quality.majority_kappa

    def error_correlation(self, a: int, b: int) -> float | None:
        """Return the correlation of two candidates' errors on gold; None where one of them makes no errors."""
        value = float(self.measures.error_correlations[a, b])
        # NaN where a candidate makes no errors, which JSON does not have.
        return value if isfinite(value) else None


def choose_panel(
    collection: Collection,
    names: Sequence[str] = (),
    *,
    assessors: Sequence[KnownAssessor] | None = None,
    floor: float | None = None,
    bootstrap: int = 0,
    size: int = SIZE,
) -> PanelSelection:
    """Read votes, imported labels and the reference, and choose a panel. Raises BadInput (as read_material)."""
    if size not in SIZES_TO_CHOOSE:
        raise BadOption("size", _("Choose 3, 5, 7 or 9 judges."))
    material = read_material(collection, names, assessors, size=size)
    costs = [candidate.cost for candidate in material.candidates]
    measures, panels = choose_judges(
        material.votes,
        material.reference,
        vote_costs=costs,
        floor_value=floor,
        resample_count=bootstrap,
        size=size,
        same_model_groups=material.alike,
    )
    checks = newest_self_checks(
        collection, dict.fromkeys(candidate.judge for candidate in material.candidates if candidate.usable)
    )
    return PanelSelection(collection.name, material, measures, panels, checks, size)


def build_json_document(selection: PanelSelection) -> dict[str, Any]:
    """Return the report as JSON; undefined values are null, statistics carry the reason."""
    measures, panels = selection.measures, selection.panels
    return {
        "collection": selection.collection,
        "pairs": measures.pair_count,
        "size": selection.size,
        "gold": {
            "pairs": sum(measures.reference_counts),
            "relevant": measures.reference_counts.relevant,
            "unused": measures.floor.no_gold_reason or None,
        },
        "floor": {
            "measure": measures.floor.measure,
            "value": measures.floor.value,
            "given": measures.floor.is_set_by_admin,
        },
        "candidates": [_candidate_document(selection, position) for position in range(len(measures.qualities))],
        "left_out": [{"name": name, "reason": reason} for name, reason in selection.material.left_out],
        "pairwise": [
            {
                "a": selection.name(pair.a),
                "b": selection.name(pair.b),
                "n": pair.n,
                "kappa": asdict(pair.kappa),
                "percent": asdict(pair.percent),
                "error_correlation": selection.error_correlation(pair.a, pair.b),
            }
            for pair in measures.agreements
        ],
        "copies": [selection.names(group) for group in measures.copy_groups],
        "subsets": panels.panel_count,
        "by_mean": [_proposal_document(selection, proposal) for proposal in panels.by_mean_kappa],
        "by_largest": [_proposal_document(selection, proposal) for proposal in panels.by_largest_kappa],
        "proposed": _proposal_document(selection, panels.proposed) if panels.proposed else None,
        "reason": panels.no_proposal_reason or None,
    }


def _candidate_document(selection: PanelSelection, position: int) -> dict[str, Any]:
    candidate, quality = selection.material.candidates[position], selection.measures.qualities[position]
    check = selection.checks.get(candidate.judge)
    return {
        "name": candidate.name,
        "kind": candidate.assessor.kind,
        "pairs": candidate.pairs,
        "relevant": candidate.relevant,
        "balanced_accuracy": asdict(quality.balanced_accuracy),
        "kappa_majority": asdict(quality.majority_kappa),
        "leave_one_out": asdict(quality.majority_agreement),
        "chance": quality.chance_probability,
        "passes": quality.passes,
        "why_not": quality.failure_reason or None,
        "mean_kappa": selection.measures.mean_kappas[position],
        "cost_per_pair": candidate.cost,
        "usable": candidate.usable,
        "self_check": check.document if check else None,
        "note": candidate.note or None,
    }


def _proposal_document(selection: PanelSelection, proposal: Proposal) -> dict[str, Any]:
    names = selection.names(proposal.members)
    return {
        "judges": names,
        "mean_kappa": proposal.subset.mean_kappa,
        "largest_kappa": proposal.subset.largest_kappa,
        "largest_between": selection.names(proposal.subset.most_similar),
        "error_correlation": proposal.error_correlation,
        "effective_votes": proposal.effective_votes,
        "balanced_accuracy": asdict(proposal.balanced_accuracy),
        "without": dict(zip(names, proposal.accuracies_without_member, strict=True)),
        "cost_per_pair": proposal.cost_per_pair,
        "usable": selection.usable(proposal),
    }


def summarise_choice(selection: PanelSelection) -> list[str]:
    """Return sentences about the basis of the choice, candidates below the floor, copies, and the proposal."""
    measures, panels, floor = selection.measures, selection.panels, selection.measures.floor
    if floor.no_gold_reason:
        words = _("Quality measure: %(name)s (%(why)s). Floor: %(floor_value)s (%(source)s).")
    else:
        words = _("Quality measure: %(name)s on %(sum)s reference grades. Floor: %(floor_value)s (%(source)s).")
    floor_sentence = words % {
        "name": _(MEASURES[floor.measure]),
        "why": floor.no_gold_reason,
        "sum": f"{sum(measures.reference_counts):,}",
        "floor_value": f"{floor.value:.3f}",
        "source": _("as set") if floor.is_set_by_admin else _("derived from all candidates"),
    }
    lines = [
        _("%(qualities)s candidates judged the same %(pairs)s pairs. %(floor)s")
        % {
            "qualities": len(measures.qualities),
            "pairs": f"{measures.pair_count:,}",
            "floor": floor_sentence,
        }
    ]
    below_floor = [
        f"{selection.name(position)}, {quality.failure_reason}"
        for position, quality in enumerate(measures.qualities)
        if not quality.passes
    ]
    if below_floor:
        lines.append(_("Below the floor: %(candidates)s.") % {"candidates": "; ".join(below_floor)})
    lines += [
        _("%(listed)s are copies: they count as one vote, not %(group)s.")
        % {"listed": selection.listed(group), "group": len(group)}
        for group in measures.copy_groups
    ]
    lines += [
        _("%(listed)s are the same model with the same parameters: kappa between them measures consistency only.")
        % {"listed": selection.listed(group)}
        for group in selection.material.alike
    ]
    if panels.proposed is None:
        return [*lines, _("No panel recommended: %(reason)s.") % {"reason": panels.no_proposal_reason}]
    return [*lines, *_describe_proposal(selection, panels.proposed)]


def _describe_proposal(selection: PanelSelection, best: Proposal) -> list[str]:
    """Return sentences about the proposed set, and about a more accurate one: low kappas come from errors too."""
    words = ngettext(
        "The most independent of %(sets)s set of %(size)s judges is %(members)s: mean "
        "kappa %(mean)s, largest %(largest)s between %(between)s.",
        "The most independent of %(sets)s sets of %(size)s judges is %(members)s: mean "
        "kappa %(mean)s, largest %(largest)s between %(between)s.",
        selection.panels.panel_count,
    )
    lines = [
        words
        % {
            "sets": f"{selection.panels.panel_count:,}",
            "size": selection.size,
            "members": selection.listed(best.members),
            "mean": f"{best.subset.mean_kappa:.3f}",
            "largest": f"{best.subset.largest_kappa:.3f}",
            "between": selection.listed(best.subset.most_similar),
        }
    ]
    if best.effective_votes:
        effective = _("Its %(size)s votes are worth %(effective)s independent votes.")
        lines.append(effective % {"size": selection.size, "effective": f"{best.effective_votes:.1f}"})
    # The most independent set need not be the most accurate one.
    own, sets = (
        best.balanced_accuracy.value,
        (*selection.panels.by_mean_kappa, *selection.panels.by_largest_kappa),
    )
    other = max(sets, key=lambda proposal: proposal.balanced_accuracy.value or 0.0)
    if own is None or other.balanced_accuracy.value is None or other.balanced_accuracy.value - own < WORTH_SAYING:
        return lines
    sentence = _(
        "Of the sets shown, the majority of %(listed)s is most accurate: balanced "
        "accuracy %(value)s, against %(majority_value)s for the recommended set."
    )
    values = {"value": f"{other.balanced_accuracy.value:.3f}", "majority_value": f"{own:.3f}"}
    return [*lines, sentence % {"listed": selection.listed(other.members), **values}]
