"""Configuration of a campaign: names become judges' versions, a policy and the papers' options."""

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
    """Judges, policy and options of a campaign; two starts with an equal configuration are the same campaign."""

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
        """True if people's pairs are debated first: not by a panel without debaters."""
        return self.protocol.debate_for_people and bool(self.debaters or self.policy == Policy.HUMAN)

    @property
    def seats(self) -> list[tuple[str, Judge]]:
        """The voters with the name of each vote; `judge #2` is the second sample of one judge."""
        return list(zip(copies.number_names([judge.name for judge in self.voters]), self.voters, strict=True))

    @property
    def counted(self) -> str:
        """Description for people of how many votes decide, and which of them are copies."""
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
            "protocol": self.protocol.stored,
            # Stored without the defaults, so that a new option does not make old campaigns different from themselves.
        }


def build_configuration(**options: Any) -> Configuration:
    """Return the configuration of a campaign with these options. Raises BadInput."""
    return configuration_of(CampaignOptions.read(options))


def configuration_of(options: CampaignOptions) -> Configuration:
    """The panel's members in their present versions, some replaced by name. Raises BadInput."""
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
    # The panel's majority is of its own number of judges.
    if rule in VOTED and len(panelists) != len(panel.ensemble):
        majority = usual_majority(len(panelists))
    agents, panelists = _select_judges(rule, panel, agents, panelists)
    check_temperature(agents, options.temperature)
    filters = _filter_judges(options.filter)
    adjudicator = _find_adjudicator(panel, rule, options.adjudicator)
    everybody = [*agents, *panelists, *filters, *([adjudicator] if adjudicator else [])]
    # An option that no judge follows would change nothing but the campaign's name.
    if options.batch and not any(map(is_batched, everybody)):
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
    """Refuse a temperature that no debater takes: it would change nothing but the campaign's name. Raises BadInput."""
    if temperature is None:
        return
    if not agents:
        raise BadOption("temperature", _("Only debaters take a temperature, and this campaign has none."))
    if deaf := [judge for judge in agents if not takes_temperature(judge)]:
        raise BadOption(
            "temperature",
            _("%(judge)s takes no temperature (provider %(provider)s): leave it out.")
            % {"judge": deaf[0].name, "provider": deaf[0].provider},
        )


def takes_temperature(judge: Judge) -> bool:
    """Return whether a temperature can be chosen: a thinking model's is its own."""
    own = judge.parameters.get("temperature", "default")
    # Models that reason refuse another temperature than their own.
    return "temperature" in judge.preset.names and (own != "default" or not requests_reasoning(judge))


def usual_policy(debaters: Sequence[str], voters: Sequence[str]) -> str:
    """Return the policy of a panel where none is asked for: all that its members can do."""
    if not voters and debaters:
        return Policy.DEBATE.value
    if debaters or not voters:
        return Policy.DEBATE_ENSEMBLE.value
    return Policy.SINGLE.value if len(voters) == 1 else Policy.ENSEMBLE.value


def describe_panel(policy: str, voters: Sequence[copies.AskedModel], majority: int, *, early_stop: bool) -> str:
    """Describe how many votes decide, how many come first, and how many are samples of one model; "" for none."""
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
    # A reader who sees 5 votes should know that three of them are one model's.
    alike = [
        _("%(count)s of them are samples of %(model)s") % {"count": len(places), "model": voters[places[0]].model}
        for places in copies.copy_groups(voters)
    ]
    return "; ".join([description, *alike, _("samples of one model share its errors")]) if alike else description


def _select_judges(
    rule: str, panel: Panel, agents: list[Judge], panelists: list[Judge]
) -> tuple[list[Judge], list[Judge]]:
    """The debaters and the judges that the policy asks. Raises BadInput where there are too few."""
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
    # A single judge is the first of those named.
    if rule == Policy.SINGLE:
        return agents, panelists[:1]
    # An even number could tie, and a tie would go to people for no reason of the pair's.
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
    # A judge that is named again must be able to say something else.
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
    """The debate's agents, A first. Four of two judges: each holds both stances (DREAM B.4.1)."""
    if number == 1 or len(judges) == 1:
        raise BadOption("agents", _("A debate has 2 to 4 agents. For a single judge, choose the policy single."))
    # One after the other, so that A and B of each judge sit on opposite sides.
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
    # An endpoint of scores has no argument to give.
    if silent := [judge.name for judge in judges if judge.preset.wire == "rerank" or judge.decides]:
        raise BadInput(
            _("%(silent)s only votes, it cannot debate: its endpoint gives scores and no text") % {"silent": silent[0]}
        )
    return judges


def _filter_judges(names: Sequence[str]) -> list[Judge]:
    judges = _find_judges(names, "filter")
    # An entry may name its family itself: names of models do not always tell.
    families = [(judge.name, model_family(str(judge.parameters.get("family", "")), judge.model)) for judge in judges]
    if same := same_family(families):
        raise BadOption(
            "filter",
            _(
                "%(same)s and %(same2)s are from one family and share errors: choose others, or set their family in "
                "the judges file."
            )
            % {"same": same[0], "same2": same[1]},
        )
    return judges


def _find_adjudicator(panel: Panel, rule: str, choice: str) -> Judge | None:
    """Return the judge that settles disagreements in place of people, by name, or "panel" for the panel's own."""
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
