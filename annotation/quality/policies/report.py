"""All policies side by side over stored answers: for the command and the page."""

from dataclasses import asdict
from typing import Any

from django.db.models import Case, QuerySet, When
from django.utils.translation import gettext as _

from annotation.quality.policies import reading
from annotation.quality.policies.crossing import SimulatedPeople, cross_tabulate
from annotation.quality.policies.lara_replay import replay_lara
from annotation.quality.policies.replay import Reference, Replayed, replay_policy
from annotation.quality.policies.rules import HUMAN, LARA, PolicyPanel, Rule, every_rule
from annotation.work.queue.judging_time import median_seconds
from corpus.errors import BadInput, BadOption
from corpus.models import Collection
from corpus.numbered import find_numbered
from judges.campaigns.selectors import campaigns_that_count
from judges.models import Campaign, Work


def evaluate_policies(
    collection: Collection,
    campaign: Campaign | None = None,
    *,
    reference: Reference | None = None,
    guard: bool = False,
    seconds: float | None = None,
    most: int | None = None,
) -> dict[str, Any]:
    """Replay every policy on a campaign's stored answers, and return the comparison as JSON takes it.

    `reference`: by default gold where there is any, else people. `seconds`: of a judgment. `most`:
    votes with log-probabilities up to which LARA is replayed too; None: any number. Raises BadInput
    where the collection has no campaign that judges, or nothing of the asked reference.
    """
    campaign = campaign or answered_campaigns(collection).first()
    if campaign is None:
        raise BadInput(_("%(collection)s has no campaign yet: start one first") % {"collection": collection.name})
    panel, found = reading.panel_of(campaign), reading.read_answers(campaign)
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
    return {
        "collection": collection.name,
        "campaign": campaign.number,
        "policy": campaign.policy,
        "pairs": found.pairs,
        # Pairs that failed, were dropped by the filter, or have not ended, so that the population is told whole.
        "outside": Work.objects.filter(campaign=campaign).count() - found.pairs,
        "reference": against,
        "measured": known.get(against, 0),
        "population": _describe_population(campaign, found.pairs, against, known.get(against, 0)),
        "people": asdict(people),
        "policies": [
            policy_document(one, people) | {"current": _is_current(one.rule, campaign, panel)} for one in rows
        ],
        "debate_by_ensemble": [
            asdict(cell) | {"key": cell.key, "error": asdict(cell.error)}
            for cell in cross_tabulate(panel, found, against)
        ],
    }


def _describe_population(campaign: Campaign, pairs: int, reference: Reference, measured: int) -> str:
    """Return the words for the pairs that the figures are of."""
    of = _("%(pairs)s pairs of campaign %(campaign)s (%(policy)s)") % {
        "pairs": f"{pairs:,}",
        "campaign": campaign.number,
        "policy": _(campaign.policy),
    }
    if reference == "none":
        return _("%(of)s, none of them measured") % {"of": of}
    known = _("have a reference grade") if reference == "gold" else _("were judged by people")
    return _("%(of)s, %(measured)s of them %(known)s") % {"of": of, "measured": f"{measured:,}", "known": known}


def named_campaign(collection: Collection, number: int | None) -> Campaign | None:
    """Return the judging campaign of this number, None without one. Raises BadOption."""
    campaign = None if number is None else find_numbered(Campaign.judging, collection, number)
    if campaign is None and number is not None:
        raise BadOption("campaign", f"{collection.name} has no such campaign that judges: {number}.")
    return campaign


def answered_campaigns(collection: Collection) -> QuerySet[Campaign]:
    """Campaigns with answers of their own, newest first, after all others those that were cancelled.

    `human` asks no judge, `lara` goes on from others' votes.
    """
    known = campaigns_that_count(collection).filter(kind=Campaign.Kind.JUDGING).exclude(policy__in=[HUMAN, LARA])
    return known.order_by(Case(When(state=Campaign.State.CANCELLED, then=1), default=0), "-pk")


def _is_current(rule: Rule, campaign: Campaign, panel: PolicyPanel) -> bool:
    """Say whether the campaign itself goes by the rule; 0 stands for a rule without that number."""
    same = rule.rounds in (0, panel.rounds) and rule.majority in (0, panel.majority) and not rule.place
    return rule.policy == campaign.policy and same


def policy_document(one: Replayed, people: SimulatedPeople) -> dict[str, Any]:
    """Return one policy as JSON; its name and the reason alone if not available."""
    rule = one.rule
    named: dict[str, Any] = {"name": rule.name, "policy": rule.policy}
    named |= {name: getattr(rule, name) or None for name in ("rounds", "majority", "share")}
    named |= {"available": not one.reason, "reason": one.reason or None}
    if one.reason:
        return named
    machine, judged = one.spent.cost, people.cost(one.judgments)
    # A total with an unknown part would look like a bargain.
    total = None if machine is None or judged is None else machine + judged
    counted = ("pairs", "labelled", "escalated", "failed", "escalation", "collapsed")
    return named | {
        **{name: getattr(one, name) for name in counted},
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
