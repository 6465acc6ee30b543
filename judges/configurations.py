"""Who judges a campaign, by which policy and with which of the papers' options: names become judges' versions."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from corpus.errors import BadInput
from judges.debate import MOST_AGENTS
from judges.engine.plan import judge_of
from judges.models import Campaign, JudgeVersion, Panel
from judges.panels import ensure_offline
from judges.prices import BATCHED, is_batched
from judges.protocol import FILTERS, Protocol, family, same_family
from judges.records import Judge

Policy = Campaign.Policy
JUDGING = tuple(value for value in Policy.values if value not in (Policy.EVIDENCE, Policy.LARA, Policy.RETRIEVAL))
"""Policies that are started here; judges.evidence and judges.retrieval start those of theirs, lara its own."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """Who judges and by which policy: what makes two starts the same campaign."""

    panel: str
    policy: str
    rounds: int
    debaters: tuple[Judge, ...]
    voters: tuple[Judge, ...]
    majority: int
    early_stop: bool
    protocol: Protocol = field(default_factory=Protocol)
    filters: tuple[Judge, ...] = ()
    adjudicator: Judge | None = None

    @property
    def judges(self) -> tuple[Judge, ...]:
        """Everybody who may be asked."""
        return (*self.debaters, *self.voters, *self.filters, *((self.adjudicator,) if self.adjudicator else ()))

    @property
    def words(self) -> list[tuple[str, str]]:
        """What differs from the usual way to judge, for people: (what, how)."""
        protocol = self.protocol
        told = {
            _("Stances"): _("agent A begins with not relevant") if protocol.stance_order != "relevant-first" else "",
            _("Agents"): _("%(debaters)s, all must agree") % {"debaters": len(self.debaters)}
            if len(self.debaters) > 2
            else "",
            _("Temperature"): ""
            if protocol.temperature is None
            else _("%(temperature)s in the debate") % {"temperature": f"{protocol.temperature:g}"},
            _("Disagreements"): _("settled by %(adjudicator)s") % {"adjudicator": self.adjudicator.name}
            if self.adjudicator
            else "",
            _("Filter"): _("where %(join)s all say no") % {"join": ", ".join(judge.name for judge in self.filters)}
            if self.filters
            else "",
            _("Batches"): _("half the price where a provider has them; takes hours") if protocol.batch else "",
            _("Giving in"): _("without new evidence is no agreement") if protocol.guard else "",
            _("Rounds"): _("all %(rounds)s are played") % {"rounds": self.rounds} if protocol.play_on else "",
        }
        return [(what, how) for what, how in told.items() if how]

    @property
    def values(self) -> dict[str, object]:
        """Fields of the campaign."""
        return {
            "panel": self.panel,
            "policy": self.policy,
            "rounds": self.rounds,
            "debaters": [judge.id for judge in self.debaters],
            "voters": [judge.id for judge in self.voters],
            "majority": self.majority,
            "early_stop": self.early_stop,
            "protocol": self.protocol.stored,
        }


@dataclass(frozen=True, slots=True)
class Options:
    """The papers' options of a campaign, judges by name (judges.protocol says what each means)."""

    stance_order: str = "relevant-first"
    agents: int | None = None
    temperature: float | None = None
    play_on: bool = False
    guard: bool = False
    adjudicator: str = ""
    filter: Sequence[str] = ()
    batch: bool = False


def configuration(
    *,
    panel: str | None = None,
    policy: str | None = None,
    rounds: int | None = None,
    debaters: Sequence[str] = (),
    voters: Sequence[str] = (),
    options: Options = Options(),
) -> Configuration:
    """The panel's members in their present versions, some of them replaced by name. Raises BadInput."""
    chosen = _panel(panel)
    rule = policy or Policy.DEBATE_ENSEMBLE.value
    _check(rule, rounds, options)
    agents = _agents(_members(debaters or chosen.debate, "debaters"), options.agents)
    panelists = _members(voters or chosen.ensemble, "judges")
    agents, panelists = _seated(rule, chosen, agents, panelists)
    filters = filter_judges(options.filter)
    adjudicator = _adjudicator(chosen, rule, options.adjudicator)
    everybody = [*agents, *panelists, *filters, *([adjudicator] if adjudicator else [])]
    if options.batch and not any(map(is_batched, everybody)):
        raise BadInput(
            _("--batch: no judge is of a provider with a batch endpoint (%(join)s)") % {"join": ", ".join(BATCHED)}
        )
    return Configuration(
        panel=chosen.name,
        policy=rule,
        rounds=rounds or 2,
        debaters=tuple(agents),
        voters=tuple(panelists),
        majority=chosen.majority,
        early_stop=chosen.early_stop,
        protocol=_protocol(options, adjudicator, filters),
        filters=tuple(filters),
        adjudicator=adjudicator,
    )


def _check(rule: str, rounds: int | None, options: Options) -> None:
    """Raise BadInput for what no panel can do."""
    if rule == Policy.LARA:
        raise BadInput(_("policy lara goes on from the votes of a judge: judge first, then `lara NAME --judge J`"))
    if rule not in JUDGING:
        raise BadInput(
            _("%(rule)s is no policy: use one of %(join)s") % {"rule": f"{rule!r}", "join": ", ".join(JUDGING)}
        )
    if rounds is not None and not 1 <= rounds <= 5:
        raise BadInput(_("--rounds %(rounds)s: a debate has 1 to 5 rounds") % {"rounds": rounds})
    if options.temperature is not None and not 0 <= options.temperature <= 2:
        raise BadInput(
            _("--temperature %(temperature)s: give a number from 0 to 2") % {"temperature": options.temperature}
        )


def _seated(rule: str, chosen: Panel, agents: list[Judge], panelists: list[Judge]) -> tuple[list[Judge], list[Judge]]:
    """Those of the debaters and of the judges whom the policy asks. Raises BadInput where it has too few."""
    if rule in (Policy.DEBATE, Policy.DEBATE_ENSEMBLE) and not agents:
        raise BadInput(
            _("policy %(rule)s needs two debaters, panel %(chosen)s has none: give --debaters a,b")
            % {"rule": rule, "chosen": f"{chosen.name!r}"}
        )
    if rule == Policy.HUMAN:
        return [], []
    if rule == Policy.DEBATE:
        return agents, []
    if not panelists:
        raise BadInput(
            _("policy %(rule)s needs judges, panel %(chosen)s has none: give --judges a,b,c,d,e")
            % {"rule": rule, "chosen": f"{chosen.name!r}"}
        )
    if rule == Policy.SINGLE:
        return agents, panelists[:1]
    if rule in (Policy.ENSEMBLE, Policy.DEBATE_ENSEMBLE) and chosen.majority > len(panelists):
        raise BadInput(
            _("a majority of %(majority)s needs as many judges, there are %(panelists)s")
            % {"majority": chosen.majority, "panelists": len(panelists)}
        )
    return agents, panelists


def _protocol(options: Options, adjudicator: Judge | None, filters: Sequence[Judge]) -> Protocol:
    return Protocol(
        stance_order=options.stance_order,
        temperature=options.temperature,
        play_on=options.play_on,
        guard=options.guard,
        adjudicator=adjudicator.id if adjudicator else None,
        filter=tuple(judge.id for judge in filters),
        batch=options.batch,
    )


def _agents(judges: list[Judge], number: int | None) -> list[Judge]:
    """The debate's agents, A first. Four of two judges: each holds both stances (DREAM B.4.1)."""
    if number == 1 or len(judges) == 1:
        raise BadInput(_("a debate has 2 to 4 agents; a single judge is `--policy single`"))
    if number == 4 and len(judges) == 2:
        judges = [judges[0], judges[0], judges[1], judges[1]]
    if judges and number not in (None, len(judges)):
        raise BadInput(
            _("--agents %(number)s: there are %(judges)s debaters; name as many with --debaters")
            % {"number": number, "judges": len(judges)}
        )
    if judges and not 2 <= len(judges) <= MOST_AGENTS:
        raise BadInput(
            _("a debate has 2 to %(most_agents)s agents, not %(judges)s")
            % {"most_agents": MOST_AGENTS, "judges": len(judges)}
        )
    if silent := [judge.name for judge in judges if judge.provider == "rerank-endpoint" or judge.decides]:
        raise BadInput(
            _("%(silent)s only votes, it cannot debate: its endpoint gives scores and no text") % {"silent": silent[0]}
        )
    return judges


def filter_judges(names: Sequence[str]) -> list[Judge]:
    """Three judges of different families, or none (SPEC S3). Raises BadInput."""
    if names and len(names) != FILTERS:
        raise BadInput(
            _("--filter: name %(filters)s judges of different families, not %(names)s")
            % {"filters": FILTERS, "names": len(names)}
        )
    found = _members(names, "filter")
    families = [(judge.name, family(str(judge.parameters.get("family", "")), judge.model)) for judge in found]
    if same := same_family(families):
        raise BadInput(
            _(
                "--filter: %(same)s and %(same2)s are of one family, and what they get wrong they get wrong "
                "together; choose others, or set `family` in the judges file"
            )
            % {"same": same[0], "same2": same[1]}
        )
    return found


def _adjudicator(panel: Panel, rule: str, wanted: str) -> Judge | None:
    """Who settles disagreements in place of people: asked for by name, or "panel" for the panel's own."""
    if not wanted:
        return None
    if rule not in (Policy.DEBATE, Policy.DEBATE_ENSEMBLE):
        raise BadInput(_("--adjudicator settles debates, and policy %(rule)s has none") % {"rule": rule})
    name = panel.adjudicator if wanted == "panel" else wanted
    if not name:
        raise BadInput(
            _("panel %(panel)s names no adjudicator: name a judge with --adjudicator") % {"panel": f"{panel.name!r}"}
        )
    (judge,) = _members([name], "adjudicator")
    return judge


def _panel(name: str | None) -> Panel:
    ensure_offline()
    found = Panel.objects.filter(name=name).first() if name else Panel.objects.filter(is_default=True).first()
    if found is None:
        known = ", ".join(Panel.objects.order_by("name").values_list("name", flat=True))
        raise BadInput(
            _("there is no panel %(name)s: known are %(known)s") % {"name": name or _("by default"), "known": known}
        )
    return found


def _members(names: Sequence[str], role: str) -> list[Judge]:
    found = {row.name: judge_of(row) for row in JudgeVersion.objects.filter(name__in=names, is_current=True)}
    if missing := [name for name in names if name not in found]:
        raise BadInput(
            _("%(role)s: there is no judge %(missing)s; load it with configure_judges")
            % {"role": role, "missing": f"{missing[0]!r}"}
        )
    return [found[name] for name in names]
