"""Configured models argue for and against gold pairs: beside what experts grade, and in attention checks.

A worker asks them once a sample is drawn or somebody asks for it (docs/operators.md). Until then,
and where a model leaves its side, the offline pair's words stand. The calls are recorded and
limited like all of the collection's.
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
from annotation.work.quality_control.matching import Form, PairFeatures, stance_of
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
from judges.inline.runner import ask_inline
from judges.models import Campaign, JudgeVersion
from judges.prompts import render
from judges.records import DebateAgent, Side, Turn

WRITE = "annotation.write_gold_reasons"
OFFLINE = "offline"
AT_ONCE = 200  # Pairs that are asked about before what came of it is stored.
NO_DEBATE = (Campaign.Policy.EVIDENCE, Campaign.Policy.RETRIEVAL)

Rounds = list[dict[DebateAgent, Turn]]  # What was said about a pair, round by round.


# --- who writes, what is left to write, and what that costs -----------------------------------------------------------
def find_writers(collection: Collection) -> Configuration | None:
    """The debaters of the newest campaign that had some, else the default panel's; None where they are no models."""
    campaigns = Campaign.objects.filter(collection=collection).exclude(debaters=[]).exclude(policy__in=NO_DEBATE)
    campaigns = campaigns.exclude(state=Campaign.State.CANCELLED)
    newest = campaigns.order_by("-pk").first()
    names = dict(JudgeVersion.objects.filter(pk__in=newest.debaters).values_list("pk", "name")) if newest else {}
    debaters = [names[one] for one in newest.debaters] if newest else []
    return (_model_debaters(debaters) if debaters else None) or _model_debaters([])


def _model_debaters(debaters: Sequence[str]) -> Configuration | None:
    """These debaters, or the default panel's; None where one is gone or is no model."""
    try:
        found = configurations.build_configuration(policy=Campaign.Policy.DEBATE.value, debaters=debaters)
    except BadInput:
        return None
    return None if any(judge.provider == OFFLINE for judge in found.debaters) else found


def form_for(ordinary: Sequence[PairFeatures], wanted: Configuration) -> Form:
    """The form of debate that models play about gold: what people read here, else what a campaign plays by default."""
    forms = Counter(form for look in ordinary if (form := stance_of(look.shape)))
    if not forms:
        return Form(wanted.rounds, len(wanted.debaters) // 2)
    # The longest debate of the usual number of agents: shorter ones can be cut from it.
    couples = forms.most_common(1)[0][0].couples
    return Form(max(form.rounds for form in forms if form.couples == couples), couples)


@dataclass(frozen=True, slots=True)
class Left:
    """Gold pairs for checks, by whose arguments they have, and the cost of writing the rest."""

    by_models: int  # Models argued, or debated, about them in the form that people read.
    offline: int  # Only the offline pair speaks.
    writers: str = ""  # Names of the models; "" where none is configured.
    # Of writing the rest; None where nothing is left or nobody writes.
    estimate: Estimate | None = None
    # All debates that people read are the offline pair's, so no check would show a model's words.
    beside_offline: bool = False


def forecast_arguments(collection: Collection, ordinary: Sequence[PairFeatures], gold: Sequence[PairFeatures]) -> Left:
    """Forecast the arguments about gold pairs and their cost, before anything is asked."""
    wanted = find_writers(collection)
    if wanted is None:
        return Left(0, len(gold))
    form = form_for(ordinary, wanted)
    lacking = sum(not look.speaks(form) for look in gold)
    beside_offline = any(look.shape for look in ordinary) and not any(look.by_models for look in ordinary)
    return Left(len(gold) - lacking, lacking, *_forecast(collection, wanted, form, lacking), beside_offline)


def of_sample(collection: Collection, pairs: int) -> Left:
    """Forecast the arguments about so many pairs that are still to be drawn."""
    wanted = find_writers(collection)
    if wanted is None:
        return Left(0, pairs)
    form = form_for(attention_checks.read_features(collection)[0], wanted)
    return Left(0, pairs, *_forecast(collection, wanted, form, pairs))


def _forecast(collection: Collection, writers: Configuration, form: Form, pairs: int) -> tuple[str, Estimate | None]:
    """Return the writers' names and the cost of their arguments about so many pairs."""
    names = ", ".join(dict.fromkeys(judge.name for judge in writers.debaters))
    if not pairs:
        return names, None
    played = replace(_assign_debaters(writers, form), protocol=replace(writers.protocol, play_on=True))
    return names, forecasts.estimate_pairs(played, pairs, forecasts.sample_inputs(collection))


def _assign_debaters(wanted: Configuration, form: Form) -> Configuration:
    """Assign debaters to places: where four speak and there are two models, each holds both stances (DREAM B.4.1)."""
    agents, own = 2 * form.couples, wanted.debaters
    debaters = tuple(own[place * len(own) // agents] for place in range(agents))
    return replace(wanted, debaters=debaters, rounds=form.rounds)


# --- asking for it ----------------------------------------------------------------------------------------------------
@transaction.atomic
def write_later(collection: Collection, *, gold_set: GoldSet | None = None, by: User | None) -> bool:
    """Ask a worker for arguments; False without a model, or when they are asked for already."""
    # One request at a time: two presses at once would pay for the same arguments twice.
    hold(Collection.objects, collection.pk, no_key=True)
    waiting = ArgumentsRequest.objects.filter(collection=collection, gold_set=gold_set, ended_at=None)
    unfinished = background.unfinished(WRITE).values("subject")
    if find_writers(collection) is None or waiting.filter(pk__in=unfinished).exists():
        return False
    request = ArgumentsRequest.objects.create(collection=collection, gold_set=gold_set, asked_by=by)
    record(by, "arguments.asked", collection, request=request.pk)
    background.enqueue(WRITE, request.pk)
    return True


def is_pending(request: ArgumentsRequest | None) -> bool:
    """Return whether a worker has still to finish the request."""
    return request is not None and request.ended_at is None and background.is_unfinished(WRITE, request.pk)


# --- doing it ---------------------------------------------------------------------------------------------------------
def process_request(request: ArgumentsRequest, lease: Lease) -> None:
    """Write the arguments that are asked for, of pairs about which no model has argued."""
    if (writers := find_writers(request.collection)) is not None:
        _write_arguments(request, lease, writers)
    ArgumentsRequest.objects.filter(pk=request.pk).update(ended_at=Now())


def _write_arguments(request: ArgumentsRequest, lease: Lease, wanted: Configuration) -> None:
    ordinary, gold = attention_checks.read_features(request.collection)
    form = form_for(ordinary, wanted)
    pairs = [look.pair for look in gold if not look.speaks(form)]
    if request.gold_set is not None:
        known = GoldArguments.objects.filter(couples=form.couples, rounds__gte=form.rounds).values("pair")
        drawn = GoldPair.objects.filter(gold_set=request.gold_set).exclude(pair__in=known)
        pairs = list(drawn.order_by("place").values_list("pair", flat=True))
    # It labels nothing, so it has the policy that does not.
    asked = replace(_assign_debaters(wanted, form), policy=Campaign.Policy.EVIDENCE.value)
    for begin in range(0, len(pairs), AT_ONCE):
        some = pairs[begin : begin + AT_ONCE]
        found = ask_inline(request.collection, asked, "gold reasons", some, partial(ask_rounds, form))
        written = sum(_keep_arguments(pair, rounds, form, asked) for pair, rounds in found.answers.items())
        sums = {"written": F("written") + written, "lost": F("lost") + len(some) - written}
        ArgumentsRequest.objects.filter(pk=request.pk).update(**sums)
        lease.progress(begin + len(some), len(pairs))
        if lease.is_revoked():
            raise LeaseLost


async def ask_rounds(form: Form, caller: Caller, claimed: Claimed) -> Rounds:
    """Ask for every round about one pair, until an agent leaves its side or says nothing usable; BudgetExhausted."""
    seats = attention_checks.list_agents(form)
    rounds: Rounds = []
    for number in range(1, form.rounds + 1):
        said: dict[DebateAgent, Turn] = {}
        for place, (seat, judge) in enumerate(zip(seats, caller.plan.debaters, strict=True)):
            before = rounds[-1] if rounds else None
            prompt = render.turn_prompt(claimed.inputs, seat, number, before, seats, gives_in=False)
            # The role is not that of a debate's turn, so no page takes it for one.
            question = JudgeQuestion(("check", number, place), judge, prompt, render.TURN_SCHEMA)
            turn = await caller.ask(claimed, question)
            if isinstance(turn, Turn) and turn.verdict == int(seat.side is Side.FOR):
                said[seat] = turn
        rounds.append(said)
        if len(said) < len(seats):
            break
    return rounds


def _keep_arguments(pair: int, rounds: Rounds, form: Form, wanted: Configuration) -> bool:
    """Store whole arguments, and each side's first beside what experts have to grade. Whether they are whole."""
    seats = attention_checks.list_agents(form)
    by = {seat: judge.name for seat, judge in zip(seats, wanted.debaters, strict=True)}
    # Each side's first words stand in the place of the offline pair's, where nobody has graded the pair yet.
    first = {turn["side"]: turn for turn in attention_checks.stored_turns(rounds[0], 1) if not turn["couple"]}
    names = dict.fromkeys(by[seat] if seat in rounds[0] else OFFLINE for seat in attention_checks.list_agents(Form(1)))
    rows = GoldPair.objects.filter(pair=pair, written_by=OFFLINE, answers=None)
    for row in rows if first else ():
        turns = [first.get(old["side"], old) for old in row.turns]
        rows.filter(pk=row.pk).update(turns=turns, written_by=", ".join(names)[:200])
    if len(rounds) < form.rounds or len(rounds[-1]) < len(seats):
        return False
    turns = [turn for number, said in enumerate(rounds, 1) for turn in attention_checks.stored_turns(said, number)]
    values = {"rounds": form.rounds, "turns": turns, "written_by": ", ".join(dict.fromkeys(by.values()))[:200]}
    GoldArguments.objects.update_or_create(pair_id=pair, couples=form.couples, defaults=values)
    return True
