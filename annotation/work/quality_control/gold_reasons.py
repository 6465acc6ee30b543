"""Arguments of configured models for and against gold pairs, which experts read and attention checks show.

A worker asks the models when a sample is drawn or an admin requests it (docs/operators.md). Until
then, and where a model leaves its side, the arguments of the offline agents are shown. The calls are
recorded and limited like all calls of the collection.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from annotation.access.audit_log.recording import record
from annotation.models import User
from annotation.models.quality_control import ArgumentsRequest, GoldArguments, GoldPair, GoldSet
from annotation.work.quality_control import attention_checks
from annotation.work.quality_control.explanations import unexplained_practice
from annotation.work.quality_control.matching import DebateForm, PairFeatures, stance_of
from corpus.errors import BadInput
from corpus.holding import hold
from corpus.models import Collection
from jobs import background
from jobs.leases import Lease, LeaseLost
from judges.campaigns import configurations, forecasts
from judges.campaigns.configurations import Configuration
from judges.campaigns.estimates import Estimate
from judges.engine.calls import Caller, JudgeQuestion
from judges.engine.leases import Claimed
from judges.models import Campaign, JudgeVersion
from judges.prompts import render
from judges.records import DebateAgent, Side, Turn
from judges.workers.inline_runner import ask_inline

WRITE = "annotation.write_gold_reasons"
OFFLINE = "offline"
AT_ONCE = 200  # Arguments are stored after every so many pairs.
NO_DEBATE = (Campaign.Policy.EVIDENCE, Campaign.Policy.RETRIEVAL)

Rounds = list[dict[DebateAgent, Turn]]  # The arguments about a pair by round and agent.


# Who writes, which arguments are missing, and what they cost


def find_writers(collection: Collection) -> Configuration | None:
    """Return the debaters of the newest campaign that had any, else the default panel's; None if they are no models."""
    campaigns = Campaign.objects.filter(collection=collection).exclude(debaters=[]).exclude(policy__in=NO_DEBATE)
    campaigns = campaigns.exclude(state=Campaign.State.CANCELLED)
    newest = campaigns.order_by("-pk").first()
    names = dict(JudgeVersion.objects.filter(pk__in=newest.debaters).values_list("pk", "name")) if newest else {}
    debaters = [names[version] for version in newest.debaters] if newest else []
    return (_model_debaters(debaters) if debaters else None) or _model_debaters([])


def _model_debaters(debaters: Sequence[str]) -> Configuration | None:
    """Return these debaters, or the default panel's; None if one is not configured any more or is no model."""
    try:
        configuration = configurations.build_configuration(policy=Campaign.Policy.DEBATE.value, debaters=debaters)
    except BadInput:
        return None
    return None if any(judge.provider == OFFLINE for judge in configuration.debaters) else configuration


def form_for(ordinary: Sequence[PairFeatures], writers: Configuration) -> DebateForm:
    """Return the form of the models' debates about gold: of debates that people read, else a campaign's default."""
    forms = Counter(form for features in ordinary if (form := stance_of(features.shape)))
    if not forms:
        return DebateForm(writers.rounds, len(writers.debaters) // 2)
    # The longest debate with the usual number of agents, because shorter ones can be cut from it.
    couples = forms.most_common(1)[0][0].couples
    return DebateForm(max(form.rounds for form in forms if form.couples == couples), couples)


@dataclass(frozen=True, slots=True)
class ArgumentForecast:
    """How many gold pairs have arguments by models, and the cost of writing the missing ones."""

    by_models: int  # Pairs with arguments or a debate by models in the form that people read.
    offline: int  # Pairs with arguments of the offline agents only.
    writers: str = ""  # Names of the models; "" where none is configured.
    # The cost of the missing arguments; None where none is missing or no model is configured.
    estimate: Estimate | None = None
    # The offline agents wrote all debates that people read, so no check would show a model's arguments.
    beside_offline: bool = False
    practice: int = 0  # Practice pairs without any explanation, which a model's argument would give them.

    @property
    def missing(self) -> int:
        """Return for how many pairs models would write arguments."""
        return self.offline + self.practice


def forecast_arguments(
    collection: Collection, ordinary: Sequence[PairFeatures], gold: Sequence[PairFeatures]
) -> ArgumentForecast:
    """Forecast the missing arguments about gold pairs and their cost."""
    writers = find_writers(collection)
    if writers is None:
        return ArgumentForecast(0, len(gold))
    form = form_for(ordinary, writers)
    missing, practice = sum(not features.speaks(form) for features in gold), len(unexplained_practice(collection))
    beside_offline = any(features.shape for features in ordinary) and not any(
        features.by_models for features in ordinary
    )
    return ArgumentForecast(
        len(gold) - missing,
        missing,
        *_forecast(collection, writers, form, missing + practice),
        beside_offline,
        practice,
    )


def forecast_sample(collection: Collection, pairs: int) -> ArgumentForecast:
    """Forecast the arguments about a sample of so many pairs that is not drawn yet."""
    writers = find_writers(collection)
    if writers is None:
        return ArgumentForecast(0, pairs)
    form = form_for(attention_checks.read_features(collection)[0], writers)
    return ArgumentForecast(0, pairs, *_forecast(collection, writers, form, pairs))


def _forecast(
    collection: Collection, writers: Configuration, form: DebateForm, pairs: int
) -> tuple[str, Estimate | None]:
    """Return the writers' names and the cost of their arguments about so many pairs, None for no pair."""
    names = ", ".join(dict.fromkeys(judge.name for judge in writers.debaters))
    if not pairs:
        return names, None
    played = replace(_assign_debaters(writers, form), protocol=replace(writers.protocol, play_on=True))
    return names, forecasts.estimate_pairs(played, pairs, forecasts.sample_inputs(collection))


def _assign_debaters(writers: Configuration, form: DebateForm) -> Configuration:
    """Assign the writers to the agents: of two models for four agents each argues both stances (DREAM B.4.1)."""
    agents, own = 2 * form.couples, writers.debaters
    debaters = tuple(own[number * len(own) // agents] for number in range(agents))
    return replace(writers, debaters=debaters, rounds=form.rounds)


# Requesting arguments


@transaction.atomic
def write_later(collection: Collection, *, gold_set: GoldSet | None = None, by: User | None) -> bool:
    """Request arguments from a worker; return False without a model, or where a request is waiting already."""
    # Locks the collection, because two requests at the same moment would pay for the same arguments twice.
    hold(Collection.objects, collection.pk, no_key=True)
    pending = ArgumentsRequest.objects.filter(collection=collection, gold_set=gold_set, ended_at=None)
    unfinished = background.unfinished(WRITE).values("subject")
    if find_writers(collection) is None or pending.filter(pk__in=unfinished).exists():
        return False
    request = ArgumentsRequest.objects.create(collection=collection, gold_set=gold_set, asked_by=by)
    record(by, "arguments.asked", collection, request=request.pk)
    background.enqueue(WRITE, request.pk)
    return True


def is_pending(request: ArgumentsRequest | None) -> bool:
    """Return whether a worker still has to finish the request."""
    return request is not None and request.ended_at is None and background.is_unfinished(WRITE, request.pk)


# Writing arguments, in a worker


def process_request(request: ArgumentsRequest, lease: Lease) -> None:
    """Write the requested arguments about pairs that have none by models."""
    writers = find_writers(request.collection)
    if writers is not None:
        ordinary, gold = attention_checks.read_features(request.collection)
        form = form_for(ordinary, writers)
        pairs = [features.pair for features in gold if not features.speaks(form)]
        pairs += unexplained_practice(request.collection)
        if request.gold_set is not None:
            argued = GoldArguments.objects.filter(couples=form.couples, rounds__gte=form.rounds).values("pair")
            drawn = GoldPair.objects.filter(gold_set=request.gold_set).exclude(pair__in=argued)
            pairs = list(drawn.order_by("place").values_list("pair", flat=True))
        # This policy stores no labels.
        configuration = replace(_assign_debaters(writers, form), policy=Campaign.Policy.EVIDENCE.value)
        for begin in range(0, len(pairs), AT_ONCE):
            batch = pairs[begin : begin + AT_ONCE]
            result = ask_inline(request.collection, configuration, "gold reasons", batch, partial(ask_rounds, form))
            stored_count = sum(
                _keep_arguments(pair, rounds, form, configuration) for pair, rounds in result.answers.items()
            )
            sums = {"written": F("written") + stored_count, "lost": F("lost") + len(batch) - stored_count}
            ArgumentsRequest.objects.filter(pk=request.pk).update(**sums)
            lease.progress(begin + len(batch), len(pairs))
            if lease.is_revoked():
                raise LeaseLost
    ArgumentsRequest.objects.filter(pk=request.pk).update(ended_at=Now())


async def ask_rounds(form: DebateForm, caller: Caller, claimed: Claimed) -> Rounds:
    """Ask for the rounds about one pair until an agent leaves its side or gives no usable answer.

    Raises BudgetExhausted.
    """
    agents = attention_checks.list_agents(form)
    rounds: Rounds = []
    for number in range(1, form.rounds + 1):
        turns: dict[DebateAgent, Turn] = {}
        for position, (agent, judge) in enumerate(zip(agents, caller.plan.debaters, strict=True)):
            previous_round = rounds[-1] if rounds else None
            prompt = render.turn_prompt(claimed.inputs, agent, number, previous_round, agents, gives_in=False)
            # The role differs from that of a debate's turn, so pages do not show it as one.
            question = JudgeQuestion(("check", number, position), judge, prompt, render.TURN_SCHEMA)
            turn = await caller.ask(claimed, question)
            if isinstance(turn, Turn) and turn.verdict == int(agent.side is Side.FOR):
                turns[agent] = turn
        rounds.append(turns)
        if len(turns) < len(agents):
            break
    return rounds


def _keep_arguments(pair: int, rounds: Rounds, form: DebateForm, writers: Configuration) -> bool:
    """Store complete arguments, and each side's first turn on ungraded gold pairs; return whether they are complete."""
    agents = attention_checks.list_agents(form)
    writer_names = {agent: judge.name for agent, judge in zip(agents, writers.debaters, strict=True)}
    # The first turns replace those of the offline agents, but only on pairs that nobody has graded yet.
    first_turns = {turn["side"]: turn for turn in attention_checks.stored_turns(rounds[0], 1) if not turn["couple"]}
    names = dict.fromkeys(
        writer_names[agent] if agent in rounds[0] else OFFLINE for agent in attention_checks.list_agents(DebateForm(1))
    )
    rows = GoldPair.objects.filter(pair=pair, written_by=OFFLINE, answers=None)
    for row in rows if first_turns else ():
        turns = [first_turns.get(turn["side"], turn) for turn in row.turns]
        rows.filter(pk=row.pk).update(turns=turns, written_by=", ".join(names)[:200])
    if len(rounds) < form.rounds or len(rounds[-1]) < len(agents):
        return False
    turns = []
    for number, debate_round in enumerate(rounds, 1):
        turns += attention_checks.stored_turns(debate_round, number)
    values = {
        "rounds": form.rounds,
        "turns": turns,
        "written_by": ", ".join(dict.fromkeys(writer_names.values()))[:200],
    }
    GoldArguments.objects.update_or_create(pair_id=pair, couples=form.couples, defaults=values)
    return True
