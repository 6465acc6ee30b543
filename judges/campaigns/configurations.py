"""Configuration of a campaign: from the names of judges and options to judges' versions, a policy and a protocol."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from corpus.errors import BadInput, BadOption
from judges.campaigns.options import CampaignOptions
from judges.costs.judge_records import records_of
from judges.costs.prices import BATCHED, is_batched, requests_reasoning
from judges.domain import copies
from judges.domain.debate import MOST_AGENTS
from judges.domain.ensemble import SIZES, asked_first, usual_majority
from judges.domain.protocol import Protocol, model_family, same_family
from judges.models import Campaign, JudgeVersion, Panel
from judges.panels.offline_panel import ensure_offline
from judges.records import Judge

Policy = Campaign.Policy
VOTED = (Policy.ENSEMBLE, Policy.DEBATE_ENSEMBLE)  # Policies under which a panel votes.


@dataclass(frozen=True, slots=True)
class Configuration:
    """Judges, policy and options of a campaign. Two starts with equal configurations are the same campaign."""

    panel: str
    policy: str
    voters: tuple[Judge, ...]
    debaters: tuple[Judge, ...] = ()
    rounds: int = 2
    majority: int = 1
    early_stop: bool = False
    protocol: Protocol = field(default_factory=Protocol)
    filters: tuple[Judge, ...] = ()
    adjudicator: Judge | None = None

    @property
    def judges(self) -> tuple[Judge, ...]:
        return (*self.debaters, *self.voters, *self.filters, *((self.adjudicator,) if self.adjudicator else ()))

    @property
    def filter_names(self) -> str:
        return ", ".join(judge.name for judge in self.filters)

    @property
    def debates_for_people(self) -> bool:
        """True if pairs are debated before people judge them, which needs debaters."""
        return self.protocol.debate_for_people and bool(self.debaters or self.policy == Policy.HUMAN)

    @property
    def seats(self) -> list[tuple[str, Judge]]:
        """The voters with the name of each vote; `judge #2` is the second sample of one judge."""
        return list(zip(copies.number_names([judge.name for judge in self.voters]), self.voters, strict=True))

    @property
    def counted(self) -> str:
        """Description of how many votes decide, and which of them are copies of one judge."""
        return describe_panel(self.policy, self.voters, self.majority, early_stop=self.early_stop)

    @property
    def values(self) -> dict[str, object]:
        return {
            "panel": self.panel,
            "policy": self.policy,
            "rounds": self.rounds,
            "debaters": [judge.id for judge in self.debaters],
            "voters": [judge.id for judge in self.voters],
            "majority": self.majority,
            "early_stop": self.early_stop,
            # Stored without the defaults, so that a new option changes no old campaign.
            "protocol": self.protocol.stored,
        }


def build_configuration(**options: Any) -> Configuration:
    """Return the configuration of a campaign with these options. Raises BadInput."""
    return configuration_of(CampaignOptions.read(options))


def configuration_of(options: CampaignOptions) -> Configuration:
    """Return the configuration that the options describe. Raises BadInput.

    1. Choose the policy: by default all that the panel's members can do.
    2. Find debaters and voters, from the options or the panel, in their current versions.
    3. Keep those that the policy needs; check temperature, filter and adjudicator.
    4. Refuse batches if no judge has a batch endpoint.
    """
    panel = find_panel(options.panel)
    names = options.debaters or panel.debate, options.judges or panel.ensemble
    rule = options.policy or usual_policy(*names)
    if options.no_debate_for_people and rule in (Policy.DEBATE, Policy.DEBATE_ENSEMBLE):
        raise BadOption(
            "no_debate_for_people",
            _("Policy %(rule)s debates every pair to label it: leave this out.") % {"rule": rule},
        )
    agents = _choose_debaters(_find_judges(names[0], "debaters"), options.agents)
    panelists = _find_judges(names[1], "judges")
    majority = panel.majority
    # The panel's majority applies to its own number of judges.
    if rule in VOTED and len(panelists) != len(panel.ensemble):
        majority = usual_majority(len(panelists))
    agents, panelists = _select_judges(rule, panel, agents, panelists)
    check_temperature(agents, options.temperature)
    filters = _find_judges(options.filter, "filter")
    # The judges file may name a judge's family, which the model's name does not always show.
    families = [(judge.name, model_family(str(judge.parameters.get("family", "")), judge.model)) for judge in filters]
    if same := same_family(families):
        reason = _(
            "%(same)s and %(same2)s are from one family and share errors: choose others, or set their family in "
            "the judges file."
        )
        raise BadOption("filter", reason % {"same": same[0], "same2": same[1]})
    adjudicator = _find_adjudicator(panel, rule, options.adjudicator)
    judges = [*agents, *panelists, *filters, *([adjudicator] if adjudicator else [])]
    if options.batch and not any(map(is_batched, judges)):
        raise BadOption(
            "batch", _("None of the judges has a batch endpoint (%(join)s have one).") % {"join": ", ".join(BATCHED)}
        )
    return Configuration(
        panel=panel.name,
        policy=rule,
        rounds=options.rounds or 2,
        debaters=tuple(agents),
        voters=tuple(panelists),
        majority=majority,
        early_stop=panel.early_stop,
        protocol=Protocol(
            **options.model_dump(include={"stance_order", "temperature", "play_on", "guard", "batch"}),
            adjudicator=adjudicator.id if adjudicator else None,
            filter=tuple(judge.id for judge in filters),
            debate_for_people=not options.no_debate_for_people,
        ),
        filters=tuple(filters),
        adjudicator=adjudicator,
    )


def check_temperature(agents: Sequence[Judge], temperature: float | None) -> None:
    """Refuse a temperature that a debater would ignore or reject. Raises BadInput."""
    if temperature is None:
        return
    if not agents:
        raise BadOption("temperature", _("Only debaters take a temperature, and this campaign has none."))
    for judge in agents:
        if not takes_temperature(judge):
            raise BadOption(
                "temperature",
                _("%(judge)s takes no temperature (provider %(provider)s): leave it out.")
                % {"judge": judge.name, "provider": judge.provider},
            )


def takes_temperature(judge: Judge) -> bool:
    """Return whether the judge's temperature can be chosen: models that reason accept only their own."""
    own = judge.parameters.get("temperature", "default")
    return "temperature" in judge.preset.names and (own != "default" or not requests_reasoning(judge))


def usual_policy(debaters: Sequence[str], voters: Sequence[str]) -> str:
    """Return the default policy of a panel: all that its members can do."""
    if not voters and debaters:
        return Policy.DEBATE.value
    if debaters or not voters:
        return Policy.DEBATE_ENSEMBLE.value
    return Policy.SINGLE.value if len(voters) == 1 else Policy.ENSEMBLE.value


def describe_panel(policy: str, voters: Sequence[copies.AskedModel], majority: int, *, early_stop: bool) -> str:
    """Describe how many votes decide, how many come first, and which are samples of one model; "" without votes."""
    if policy not in VOTED or not voters:
        return ""
    size = len(voters)
    description = _("one vote decides")
    if size > 1:
        description = _("%(majority)s of %(size)s votes must agree, each counts as one") % {
            "majority": majority,
            "size": size,
        }
    if size > 1 and early_stop and policy == Policy.ENSEMBLE:
        description = _("%(told)s; %(first)s vote first, then one at a time until the result is certain") % {
            "told": description,
            "first": asked_first(size),
        }
    # Readers who see 5 votes should know that three of them are one model's.
    copy_notes = [
        _("%(count)s of them are samples of %(model)s") % {"count": len(places), "model": voters[places[0]].model}
        for places in copies.copy_groups(voters)
    ]
    if not copy_notes:
        return description
    return "; ".join([description, *copy_notes, _("samples of one model share its errors")])


def _select_judges(
    rule: str, panel: Panel, agents: list[Judge], panelists: list[Judge]
) -> tuple[list[Judge], list[Judge]]:
    """Return the debaters and the voters that the policy needs. Raises BadInput if there are too few or too many."""
    if rule in (Policy.DEBATE, Policy.DEBATE_ENSEMBLE) and not agents:
        raise BadOption(
            "debaters",
            _("Policy %(rule)s needs two debaters, and panel %(panel)s has none: name two, or choose another policy.")
            % {"rule": rule, "panel": panel.name},
        )
    if rule == Policy.HUMAN:
        return [], []
    if rule == Policy.DEBATE:
        return agents, []
    if not panelists:
        raise BadOption(
            "judges",
            _("Policy %(rule)s needs judges, and panel %(panel)s has none: name some, or choose another policy.")
            % {"rule": rule, "panel": panel.name},
        )
    if rule == Policy.SINGLE:
        return agents, panelists[:1]
    if len(panelists) % 2 == 0:
        raise BadOption(
            "judges",
            _("An even number of votes (%(count)s) could tie: name one judge more or one fewer.")
            % {"count": len(panelists)},
        )
    if len(panelists) > SIZES[-1]:
        raise BadOption(
            "judges",
            _("A panel has at most %(most)s judges, not %(count)s.") % {"count": len(panelists), "most": SIZES[-1]},
        )
    # A judge that is named several times must be able to answer differently.
    names = [judge.name for judge in panelists]
    for judge in panelists:
        if names.count(judge.name) > 1 and (why := copies.why_alike(judge)):
            raise BadOption(
                "judges",
                _("%(judge)s is named %(times)s times, and all its answers would be identical: %(why)s")
                % {"judge": judge.name, "times": names.count(judge.name), "why": why},
            )
    return agents, panelists


def _choose_debaters(judges: list[Judge], number: int | None) -> list[Judge]:
    """Return the debate's agents, A first. With four agents of two judges, each argues both sides (DREAM B.4.1)."""
    if number == 1 or len(judges) == 1:
        raise BadOption("agents", _("A debate has 2 to 4 agents. For a single judge, choose the policy single."))
    # In this order the two agents of each judge are on opposite sides.
    if number == 4 and len(judges) == 2:
        judges = [judges[0], judges[0], judges[1], judges[1]]
    if number not in (None, len(judges)):
        raise BadOption(
            "agents",
            _("%(number)s agents need as many debaters: there are %(judges)s.")
            % {"number": number, "judges": len(judges)},
        )
    if judges and not 2 <= len(judges) <= MOST_AGENTS:
        raise BadOption(
            "debaters",
            _("A debate has 2 to %(most_agents)s agents, not %(judges)s.")
            % {"most_agents": MOST_AGENTS, "judges": len(judges)},
        )
    for judge in judges:
        if judge.preset.wire == "rerank" or judge.decides:
            raise BadInput(
                _("%(silent)s only votes, it cannot debate: its endpoint gives scores and no text")
                % {"silent": judge.name}
            )
    return judges


def _find_adjudicator(panel: Panel, rule: str, choice: str) -> Judge | None:
    """Return the judge that resolves disagreements in place of people, by its name or "panel" for the panel's own."""
    if not choice:
        return None
    if rule not in (Policy.DEBATE, Policy.DEBATE_ENSEMBLE):
        raise BadOption(
            "adjudicator", _("An adjudicator resolves debates, and policy %(rule)s has none.") % {"rule": rule}
        )
    name = panel.adjudicator if choice == "panel" else choice
    if not name:
        raise BadOption("adjudicator", _("Panel %(panel)s has no adjudicator: name a judge.") % {"panel": panel.name})
    (judge,) = _find_judges([name], "adjudicator")
    return judge


def find_panel(name: str | None) -> Panel:
    ensure_offline()
    panel = Panel.objects.filter(name=name).first() if name else Panel.objects.filter(is_default=True).first()
    if panel is None:
        panel_names = ", ".join(Panel.objects.order_by("name").values_list("name", flat=True))
        raise BadOption(
            "panel",
            _("There is no panel %(name)s: choose one of %(known)s.") % {"name": name or "", "known": panel_names},
        )
    return panel


def _find_judges(names: Sequence[str], role: str) -> list[Judge]:
    by_name = {judge.name: judge for judge in records_of(JudgeVersion.objects.filter(name__in=names, is_current=True))}
    if missing := [name for name in names if name not in by_name]:
        raise BadOption(
            role, _("There is no judge %(missing)s: load it with configure_judges.") % {"missing": missing[0]}
        )
    return [by_name[name] for name in names]
