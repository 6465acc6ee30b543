"""Attention checks: gold pairs that are displayed like ordinary items (DREAM F.2).

A check is an item in the state `standing` that every annotator is assigned once. It resembles an
ordinary item, its twin: the same reason, the same arm, a debate of the same shape. Where judges have
not debated the pair in this way, arguments for and against are written for it (below), so that easy
gold pairs of both labels can be checks.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from random import Random
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from annotation.access.audit_log.recording import record
from annotation.models import User
from annotation.work.quality_control.matching import (
    BLIND,
    DebateForm,
    MatchedCheck,
    PairFeatures,
    Turn,
    Writer,
    draw_pool,
    match_checks,
    shape_of,
    stance_of,
)
from annotation.work.queue.assignment import read_rows
from corpus.collections.task_order import MEASURING
from corpus.errors import BadInput
from corpus.holding import hold
from corpus.models import Collection, Item, Pair
from judges.campaigns.selectors import debates_of
from judges.domain import debate
from judges.offline import debate as offline_debate
from judges.offline.judges import UniformLexicon
from judges.records import DebateAgent, Inputs
from judges.records import Turn as JudgeTurn
from store.sql import read_sql

# Forms of a check: with arguments about its own pair; or DREAM's, a relevant pair with arguments about another pair.
OWN, DREAM = "own", "dream"
OVERLAP = 32_000  # Everybody may be assigned a check: no collection has so many people.
POOL = 1_000  # Gold pairs of each label from which checks are made, or more if more checks are requested.
# After every ordinary item, should a check ever be assigned as one.
LAST = 1e12

_ORDINARY = read_sql(__file__, "read_ordinary_items")
_GOLD = read_sql(__file__, "read_gold_pairs")


def read_features(collection: Collection) -> tuple[list[PairFeatures], list[PairFeatures]]:
    """Return the features of ordinary items, and of gold pairs for checks. Two statements."""
    ordinary = read_rows(_ORDINARY, collection=collection.pk, others=["evidence", *MEASURING])
    gold = read_rows(_GOLD, collection=collection.pk)
    return [_pair_features(row, collection) for row in ordinary], [_pair_features(row, collection) for row in gold]


def count_pool(
    collection: Collection, ordinary: Sequence[PairFeatures], gold: Sequence[PairFeatures]
) -> dict[str, int]:
    """Count the active checks, and the pairs from which checks could be made, as returned by `read_features`."""
    checks = Item.objects.filter(collection=collection, reason=Item.Reason.CHECK, state=Item.State.STANDING)
    answers = list(checks.values_list("done", flat=True))
    return {
        "standing": len(answers),
        "answered": sum(answers),  # Judgments on them.
        "gold": len(gold),  # Gold pairs that are neither checks nor open items.
        # Gold pairs that judges have debated; arguments are written for the others.
        "debated": sum(bool(features.shape) for features in gold),
        "relevant": sum(features.relevant for features in gold),
        "ordinary": len(ordinary),  # Ordinary items that checks can resemble.
    }


@transaction.atomic
def make_checks(*, collection: Collection, count: int, seed: int, by: User | None, form: str = OWN) -> int:
    """Make up to `count` checks and return their number. Raises BadInput where pairs for them are missing."""
    # One call at a time: two would use the same gold pairs.
    hold(Collection.objects, collection.pk, no_key=True)
    ordinary, gold = read_features(collection)
    if not ordinary:
        raise BadInput(
            _("No pair is waiting for people yet, so checks have no pairs to resemble. Start a campaign first")
        )
    if not gold:
        raise BadInput(_("No gold pairs left for checks. Import reference grades, or let experts create gold"))
    if form == DREAM:
        checks = _dream_checks(ordinary, gold, count=count, seed=seed)
    else:
        # A pool, because the texts of all its pairs are loaded at once.
        pool = draw_pool(gold, max(POOL, count), seed)
        checks = match_checks(ordinary, pool, count=count, seed=seed, write=_argument_writer(pool))
    if not checks:
        reason = _(
            "No gold pair can resemble the pairs that people read: their debates do not end with for and against"
        )
        if form == DREAM:
            reason = _(
                "No gold pair can resemble the pairs that people read: the DREAM form needs relevant gold and a debate"
            )
        raise BadInput(reason)
    pairs = [check.pair for check in checks]
    earlier = Counter(Item.objects.filter(pair__in=pairs, reason=Item.Reason.CHECK).values_list("pair_id", flat=True))
    Item.objects.bulk_create(
        Item(
            collection=collection,
            pair_id=check.pair,
            reason=Item.Reason.CHECK,
            # The page shows the reason and the arm of the twin, so that nobody recognizes a check.
            shown_as=check.reason,
            arm="hidden" if check.reason == Item.Reason.AUDIT else "",
            turns=check.turns,
            state=Item.State.STANDING,
            priority=LAST,
            place=number,
            overlap=OVERLAP,
            # The unique constraint needs another number for a pair that was a check before.
            seq=earlier[check.pair],
        )
        for number, check in enumerate(checks)
    )
    Collection.objects.filter(pk=collection.pk).update(has_checks=True)
    record(by, "checks.made", collection, n=len(checks), seed=seed, form=form)
    return len(checks)


# Arguments for and against in which each agent keeps its stance: in a debate about an easy pair the
# agents would agree, and the check would be conspicuous. Configured models write the arguments
# (annotation.work.quality_control.gold_reasons), else the offline agents.


def list_agents(form: DebateForm) -> tuple[DebateAgent, ...]:
    """Return the agents of a debate of this form."""
    return debate.debate_agents(2 * form.couples)


def arguments_of_models(pair: Pair, form: DebateForm) -> list[dict[str, Any]] | None:
    """Return the turns of the models' arguments about a pair in this form; None where there are none."""
    for arguments in pair.gold_arguments.all():
        if arguments.couples == form.couples and arguments.rounds >= form.rounds:
            return [turn for turn in arguments.turns if turn["round"] <= form.rounds]
    return None


def offline_turns(pair: Pair, form: DebateForm) -> list[dict[str, Any]]:
    """Return the turns of the offline agents about a pair whose query and document are loaded."""
    inputs = Inputs(
        query=pair.query.text,
        answers=tuple(pair.query.answers),
        title=pair.document.title,
        document=pair.document.text,
    )
    turns: list[dict[str, Any]] = []
    debate_round: dict[DebateAgent, JudgeTurn] | None = None
    for number in range(1, form.rounds + 1):
        # All agents answer the previous round, `debate_round` on the right, and not each other.
        debate_round = {
            agent: offline_debate.argue_turn(agent, inputs, UniformLexicon(), debate_round, gives_in=False)
            for agent in list_agents(form)
        }
        turns += stored_turns(debate_round, number)
    return turns


def stored_turns(debate_round: dict[DebateAgent, JudgeTurn], number: int) -> list[dict[str, Any]]:
    """Return the turns of a round in the form in which items store them."""
    return [
        {
            "side": agent.side.value,
            "round": number,
            "couple": agent.couple,
            "verdict": turn.verdict,
            "reason": turn.reason,
            "quotes": [asdict(quote) for quote in turn.quotes],
        }
        for agent, turn in debate_round.items()
    ]


def _argument_writer(gold: Sequence[PairFeatures]) -> Writer:
    """Return a function that returns arguments with which one of these gold pairs resembles a twin.

    It returns None where the agents of the twin's debate did not keep their stances. The arguments
    are by models only if the twin's debate is: among debates of the offline agents they would be
    conspicuous.
    """
    pairs = Pair.objects.select_related("query", "document").prefetch_related("gold_arguments")
    pair_by_id = pairs.in_bulk([features.pair for features in gold])

    def write(pair: int, twin: PairFeatures) -> list[Turn] | None:
        if not twin.shape:
            return []
        form = stance_of(twin.shape)
        if form is None:
            return None
        # The offline agents argue where no model has argued about the pair yet.
        turns = arguments_of_models(pair_by_id[pair], form) if twin.by_models else None
        return turns or offline_turns(pair_by_id[pair], form)

    return write


def _dream_checks(
    ordinary: Sequence[PairFeatures], gold: Sequence[PairFeatures], *, count: int, seed: int
) -> list[MatchedCheck]:
    """Make checks of DREAM's form (F.2): relevant pairs, each with the debate of an ordinary item."""
    chance = Random(seed)
    relevant = [features for features in gold if features.relevant]
    chance.shuffle(relevant)
    debated = [features for features in ordinary if features.shape and features.reason not in BLIND]
    couples = []
    for features in relevant[:count]:
        twins = [twin for twin in debated if twin.query != features.query]
        if twins:
            couples.append((features, chance.choice(twins)))
    debates = debates_of({twin.pair for _features, twin in couples})
    checks = []
    for features, twin in couples:
        turns = [
            {
                "side": attempt.role,
                "round": attempt.round,
                "couple": attempt.agent_pair,
                "verdict": attempt.verdict,
                "reason": attempt.reason,
                # The quotations are from another document, so they have no position in this one.
                "quotes": [{"text": quote["text"], "start": None, "end": None} for quote in attempt.quotes],
            }
            for attempt in debates.get(twin.pair, [])
            if attempt.verdict is not None
        ]
        checks.append(MatchedCheck(features.pair, twin.reason, turns))
    return checks


@transaction.atomic
def withdraw_checks(*, collection: Collection, by: User | None) -> int:
    """Withdraw all active checks and return their number; the answers to them stay."""
    checks = Item.objects.filter(collection=collection, reason=Item.Reason.CHECK, state=Item.State.STANDING)
    count = checks.update(state=Item.State.WITHDRAWN)
    Collection.objects.filter(pk=collection.pk).update(has_checks=False)
    record(by, "checks.withdrawn", collection, n=count)
    return count


def _pair_features(row: dict[str, Any], collection: Collection) -> PairFeatures:
    turns = row["turns"] or []
    return PairFeatures(
        pair=row["pair"],
        shape=shape_of(turns),
        reason=row.get("reason", ""),
        arm=row.get("arm", ""),
        query=row["query"],
        relevant=row.get("grade", collection.relevant_from) >= collection.relevant_from,
        by_models=bool(turns) and not any(turn["offline"] for turn in turns),
        argued={int(couples): rounds for couples, rounds in (row.get("argued") or {}).items()},
    )
