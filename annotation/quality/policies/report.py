"""The comparison of all policies on stored answers, for the command and the page."""

from dataclasses import asdict
from typing import Any

from django.db.models import Case, QuerySet, When
from django.utils.translation import gettext as _

from annotation.quality.policies import reading
from annotation.quality.policies.crossing import SimulatedPeople, cross_tabulate
from annotation.quality.policies.lara_replay import replay_lara
from annotation.quality.policies.replay import PolicyReplay, Reference, replay_policy
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
    """Replay every policy on a campaign's stored answers, and return the comparison as JSON.

    `reference`: by default gold where there is any, else people. `seconds`: time of a judgment, by default
    the median. `most`: number of votes with log-probabilities above which LARA is not replayed; None: no
    limit. Raises BadInput for a collection without a judging campaign, and without labels of the reference.
    """
    campaign = campaign or answered_campaigns(collection).first()
    if campaign is None:
        raise BadInput(_("%(collection)s has no campaign yet: start one first") % {"collection": collection.name})
    panel, answers = reading.panel_of(campaign), reading.read_answers(campaign)
    measured_pairs = {name: answers.measured(name) for name in ("gold", "people")}
    if reference in measured_pairs and not measured_pairs[reference]:
        raise BadOption(
            "reference",
            _("No pair of campaign %(campaign)s has this reference: leave it out.") % {"campaign": campaign.number},
        )
    if reference is None:
        reference = "gold" if measured_pairs["gold"] else "people" if measured_pairs["people"] else "none"
    seconds = median_seconds(collection) if seconds is None else seconds
    people = SimulatedPeople(collection.overlap, seconds, collection.hourly_rate)
    rows = [
        replay_policy(rule, panel, answers, reference=reference, overlap=people.overlap)
        for rule in every_rule(panel, guard=guard)
    ]
    rows += replay_lara(panel, answers, reference=reference, overlap=people.overlap, most=most)
    # The sentence about the pairs that the figures are of.
    of = _("%(pairs)s pairs of campaign %(campaign)s (%(policy)s)") % {
        "pairs": f"{answers.pairs:,}",
        "campaign": campaign.number,
        "policy": _(campaign.policy),
    }
    if reference == "none":
        population = _("%(of)s, none of them measured") % {"of": of}
    else:
        words = _("have a reference grade") if reference == "gold" else _("were judged by people")
        values = {"of": of, "measured": f"{measured_pairs.get(reference, 0):,}", "known": words}
        population = _("%(of)s, %(measured)s of them %(known)s") % values
    return {
        "collection": collection.name,
        "campaign": campaign.number,
        "policy": campaign.policy,
        "pairs": answers.pairs,
        # Pairs that failed, were dropped by the filter, or have not ended.
        "outside": Work.objects.filter(campaign=campaign).count() - answers.pairs,
        "reference": reference,
        "measured": measured_pairs.get(reference, 0),
        "population": population,
        "people": asdict(people),
        "policies": [
            policy_document(replay, people) | {"current": _is_current(replay.rule, campaign, panel)} for replay in rows
        ],
        "debate_by_ensemble": [
            asdict(cell) | {"key": cell.key, "error": asdict(cell.error)}
            for cell in cross_tabulate(panel, answers, reference)
        ],
    }


def named_campaign(collection: Collection, number: int | None) -> Campaign | None:
    """Return the judging campaign of this number; None without a number. Raises BadOption."""
    campaign = None if number is None else find_numbered(Campaign.judging, collection, number)
    if campaign is None and number is not None:
        raise BadOption("campaign", f"{collection.name} has no such campaign that judges: {number}.")
    return campaign


def answered_campaigns(collection: Collection) -> QuerySet[Campaign]:
    """Return the campaigns with answers, newest first; cancelled ones come last.

    Campaigns of the policy `human` ask no judge, and those of `lara` use the votes of other campaigns.
    """
    campaigns = campaigns_that_count(collection).filter(kind=Campaign.Kind.JUDGING).exclude(policy__in=[HUMAN, LARA])
    return campaigns.order_by(Case(When(state=Campaign.State.CANCELLED, then=1), default=0), "-pk")


def _is_current(rule: Rule, campaign: Campaign, panel: PolicyPanel) -> bool:
    """Return whether the rule is the campaign's own policy; 0 is the value of a number that a rule does not have."""
    same_numbers = rule.rounds in (0, panel.rounds) and rule.majority in (0, panel.majority) and not rule.position
    return rule.policy == campaign.policy and same_numbers


def policy_document(replay: PolicyReplay, people: SimulatedPeople) -> dict[str, Any]:
    """Return a policy as JSON; without figures if it is not available."""
    rule = replay.rule
    document: dict[str, Any] = {"name": rule.name, "policy": rule.policy}
    document |= {name: getattr(rule, name) or None for name in ("rounds", "majority", "share")}
    document |= {"available": not replay.reason, "reason": replay.reason or None}
    if replay.reason:
        return document
    machine_cost, people_cost = replay.spent.cost, people.cost(replay.judgments)
    # A total without an unknown part would look too cheap.
    total = None if machine_cost is None or people_cost is None else machine_cost + people_cost
    names = ("pairs", "labelled", "escalated", "failed", "escalation", "collapsed")
    return document | {
        **{name: getattr(replay, name) for name in names},
        "own": replay.own.document(),
        "after": {resolver: classwise.document() for resolver, classwise in replay.after.items()},
        "calls": replay.spent.calls,
        "calls_without_price": replay.spent.unpriced,
        "machine": machine_cost,
        "adjudication": None if replay.adjudication is None else replay.adjudication.cost,
        "judgments": replay.judgments,
        "hours": people.hours(replay.judgments),
        "people": people_cost,
        "total": total,
        "latency_ms": replay.latency,
    }
