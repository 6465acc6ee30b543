"""All policies side by side over one campaign's stored answers: what the command prints and the page shows."""

from dataclasses import asdict, dataclass
from typing import Any

from django.db.models import Case, QuerySet, When
from django.utils.translation import gettext as _

from annotation.policies import reading
from annotation.policies.crossing import CrossingCell, SimulatedPeople, cross_tabulate
from annotation.policies.lara_replay import replay_lara
from annotation.policies.replay import Reference, Replayed, replay_policy
from annotation.policies.rules import HUMAN, LARA, PolicyPanel, Rule, every_rule
from annotation.policies.stored import Gathered
from annotation.queue.judging_time import median_seconds
from corpus.errors import BadInput, BadOption
from corpus.models import Collection
from judges.campaigns.selectors import campaigns_that_count
from judges.models import Campaign, Work


@dataclass(frozen=True, slots=True)
class PolicyReport:
    """Policies over the pairs that one campaign labelled or escalated."""

    collection: str
    campaign: int
    policy: str
    panel: PolicyPanel
    found: Gathered
    reference: Reference
    measured: int  # Pairs whose truth is known, by the reference.
    outside: int  # Pairs that failed, were dropped by the filter, or have not ended.
    people: SimulatedPeople
    policies: tuple[Replayed, ...]
    cells: tuple[CrossingCell, ...]  # Debate against ensemble.

    @property
    def population(self) -> str:
        """The words for the pairs that the figures are of."""
        of = _("%(pairs)s pairs of campaign %(campaign)s (%(policy)s)") % {
            "pairs": f"{self.found.pairs:,}",
            "campaign": self.campaign,
            "policy": _(self.policy),
        }
        known = {"gold": _("have a reference grade"), "people": _("were judged by people"), "none": ""}[self.reference]
        return (
            _("%(of)s, %(measured)s of them %(known)s") % {"of": of, "measured": f"{self.measured:,}", "known": known}
            if known
            else _("%(of)s, none of them measured") % {"of": of}
        )


def evaluate_policies(
    collection: Collection,
    campaign: Campaign | None = None,
    *,
    reference: Reference | None = None,
    guard: bool = False,
    seconds: float | None = None,
    most: int | None = None,
) -> PolicyReport:
    """Replay every policy on a campaign's stored answers.

    `reference`: by default gold where there is any, else people. `seconds`: of a judgment.

    `most`: votes with log-probabilities up to which LARA is replayed too; None: any number.

    Raises BadInput where the collection has no campaign that judges, or nothing of the asked reference.
    """
    campaign = campaign or answered_campaigns(collection).first()
    if campaign is None:
        raise BadInput(_("%(collection)s has no campaign yet: start one first") % {"collection": collection.name})
    panel, found = reading.panel_of(campaign), reading.read_answers(campaign)
    # Gold is fewer pairs and surer; people's labels serve where there is none.
    known = {name: found.measured(name) for name in ("gold", "people")}
    if reference in known and not known[reference]:
        raise BadOption(
            "reference",
            _("No pair of campaign %(campaign)s has this reference: leave it out.") % {"campaign": campaign.number},
        )
    against: Reference = reference or ("gold" if known["gold"] else "people" if known["people"] else "none")
    counted = median_seconds(collection) if seconds is None else seconds
    people = SimulatedPeople(collection.overlap, counted, collection.hourly_rate)
    rows = [
        replay_policy(rule, panel, found, reference=against, overlap=people.overlap)
        for rule in every_rule(panel, guard=guard)
    ]
    rows += replay_lara(panel, found, reference=against, overlap=people.overlap, most=most)
    return PolicyReport(
        collection.name,
        campaign.number,
        campaign.policy,
        panel,
        found,
        against,
        known.get(against, 0),
        # The pairs that no policy can be replayed on, so that the population is told whole.
        Work.objects.filter(campaign=campaign).count() - found.pairs,
        people,
        tuple(rows),
        tuple(cross_tabulate(panel, found, against)),
    )


def answered_campaigns(collection: Collection) -> QuerySet[Campaign]:
    """Campaigns with answers of their own, newest first, after all others those that were cancelled.

    `human` asks no judge, `lara` goes on from others' votes.
    """
    known = campaigns_that_count(collection).filter(kind=Campaign.Kind.JUDGING).exclude(policy__in=[HUMAN, LARA])
    return known.order_by(Case(When(state=Campaign.State.CANCELLED, then=1), default=0), "-pk")


def build_json_document(report: PolicyReport) -> dict[str, Any]:
    """Return the comparison as JSON takes it."""
    return {
        "collection": report.collection,
        "campaign": report.campaign,
        "policy": report.policy,
        "pairs": report.found.pairs,
        "outside": report.outside,
        "reference": report.reference,
        "measured": report.measured,
        "population": report.population,
        "people": asdict(report.people),
        "policies": [
            policy_document(one, report.people) | {"current": _is_current(one.rule, report)} for one in report.policies
        ],
        "debate_by_ensemble": [asdict(cell) | {"key": cell.key, "error": asdict(cell.error)} for cell in report.cells],
    }


def _is_current(rule: Rule, report: PolicyReport) -> bool:
    """Say whether the campaign itself goes by the rule."""
    panel = report.panel
    # 0 stands for a rule without that number: it is no difference.
    same = rule.rounds in (0, panel.rounds) and rule.majority in (0, panel.majority) and not rule.place
    return rule.policy == report.policy and same


def policy_document(one: Replayed, people: SimulatedPeople) -> dict[str, Any]:
    """Return one policy as JSON takes it; nothing but its name and the reason where it is not available."""
    rule = one.rule
    named = {
        "name": rule.name,
        "policy": rule.policy,
        "rounds": rule.rounds or None,
        "majority": rule.majority or None,
        "share": rule.share or None,
        "available": not one.reason,
        "reason": one.reason or None,
    }
    if one.reason:
        return named
    machine, judged = one.spent.cost, people.cost(one.judgments)
    # A total with an unknown part would look like a bargain.
    total = None if machine is None or judged is None else machine + judged
    return named | {
        "pairs": one.pairs,
        "labelled": one.labelled,
        "escalated": one.escalated,
        "failed": one.failed,
        "escalation": one.escalation,
        "collapsed": one.collapsed,
        "own": one.own.document(),
        "after": {settler: found.document() for settler, found in one.after.items()},
        "calls": one.spent.calls,
        "calls_without_price": one.spent.unpriced,
        "machine": machine,
        "adjudication": None if one.adjudication is None else one.adjudication.cost,
        "judgments": one.judgments,
        "hours": people.hours(one.judgments),
        "people": judged,
        "total": total,
        "latency_ms": one.latency,
    }
