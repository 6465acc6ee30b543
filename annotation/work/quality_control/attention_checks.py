"""Attention checks: gold pairs that look like ordinary items (DREAM F.2).

A check is one standing item that everybody is assigned once. It is the twin of an ordinary item:
the same reason, the same arm, a two-sided debate of the same shape. Where judges held no such
debate about the pair, arguments for and against are written for it once (below), so easy gold of
both labels serves.
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
    Dressed,
    Form,
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
from judges.records import Turn as SaidTurn
from store.sql import read_sql

# Forms of a check: arguments about its own pair; or DREAM's, a relevant pair beside arguments about something else.
OWN, DREAM = "own", "dream"
OVERLAP = 32_000  # Everybody may have it: no collection has so many people.
POOL = 1_000  # Gold pairs of each label that are looked at for checks, if no more are wanted.
# Behind every ordinary item, should a check ever be read as one.
LAST = 1e12

_ORDINARY = read_sql(__file__, "read_ordinary_items")
_GOLD = read_sql(__file__, "read_gold_pairs")


def read_features(collection: Collection) -> tuple[list[PairFeatures], list[PairFeatures]]:
    """Read the features of ordinary items, and of gold pairs for checks. Two statements."""
    ordinary = read_rows(_ORDINARY, collection=collection.pk, others=["evidence", *MEASURING])
    return [_pair_features(row, collection) for row in ordinary], [
        _pair_features(row, collection) for row in read_rows(_GOLD, collection=collection.pk)
    ]


def count_pool(
    collection: Collection, ordinary: Sequence[PairFeatures], gold: Sequence[PairFeatures]
) -> dict[str, int]:
    """Count the checks that stand, and those that could be made of what `read_features` found."""
    checks = Item.objects.filter(collection=collection, reason=Item.Reason.CHECK, state=Item.State.STANDING)
    counted = list(checks.values_list("done", flat=True))
    return {
        "standing": len(counted),
        "answered": sum(counted),  # Judgments on them.
        "gold": len(gold),  # Gold pairs that are no check yet and that nobody waits for.
        # Of the gold, what judges debated about; for the other pairs arguments are written.
        "debated": sum(bool(look.shape) for look in gold),
        "relevant": sum(look.relevant for look in gold),
        "ordinary": len(ordinary),  # Ordinary items that show what a check must look like.
    }


@transaction.atomic
def make_checks(*, collection: Collection, count: int, seed: int, by: User | None, form: str = OWN) -> int:
    """Make up to `count` checks; return their number. BadInput says what is missing."""
    # One maker at a time: two would dress the same gold pairs.
    hold(Collection.objects, collection.pk, no_key=True)
    ordinary, gold = read_features(collection)
    if not ordinary:
        words = _("No pair is waiting for people yet, so checks have no pairs to resemble. Start a campaign first")
        raise BadInput(words)
    if not gold:
        raise BadInput(_("No gold pairs left for checks. Import reference grades, or let experts create gold"))
    if form == DREAM:
        made = _dream_checks(ordinary, gold, count=count, seed=seed)
    else:
        # Their texts are read at once, so not of all gold there is.
        pool = draw_pool(gold, max(POOL, count), seed)
        made = match_checks(ordinary, pool, count=count, seed=seed, write=_argument_writer(pool))
    if not made:
        words = _("No gold pair can resemble the pairs that people read: their debates do not end with for and against")
        if form == DREAM:
            words = _(
                "No gold pair can resemble the pairs that people read: the DREAM form needs relevant gold and a debate"
            )
        raise BadInput(words)
    pairs = [one.pair for one in made]
    earlier = Counter(Item.objects.filter(pair__in=pairs, reason=Item.Reason.CHECK).values_list("pair_id", flat=True))
    Item.objects.bulk_create(
        Item(
            collection=collection,
            pair_id=one.pair,
            reason=Item.Reason.CHECK,
            # Reason and arm of its twin are what the page shows; `check` never leaves the server.
            shown_as=one.reason,
            arm="hidden" if one.reason == Item.Reason.AUDIT else "",
            turns=one.turns,
            state=Item.State.STANDING,
            priority=LAST,
            place=place,
            overlap=OVERLAP,
            # A pair that was a check before gets the next number, which the unique constraint asks for.
            seq=earlier[one.pair],
        )
        for place, one in enumerate(made)
    )
    Collection.objects.filter(pk=collection.pk).update(has_checks=True)
    record(by, "checks.made", collection, n=len(made), seed=seed, form=form)
    return len(made)


# Arguments for and against, each agent keeping its stance: a debate about an easy pair agrees, so
# it would stand out. Configured models write them (annotation.work.quality_control.gold_reasons); else
# the offline pair does.


def list_agents(form: Form) -> tuple[DebateAgent, ...]:
    """Return the agents of a debate of this form."""
    return debate.debate_agents(2 * form.couples)


def of_models(pair: Pair, form: Form) -> list[dict[str, Any]] | None:
    """Return what models argued about a pair, of more rounds the first ones; None if nothing."""
    for kept in pair.gold_arguments.all():
        if kept.couples == form.couples and kept.rounds >= form.rounds:
            return [turn for turn in kept.turns if turn["round"] <= form.rounds]
    return None


def offline_turns(pair: Pair, form: Form) -> list[dict[str, Any]]:
    """Return what the offline agents say about a pair whose query and document are loaded."""
    inputs = Inputs(
        query=pair.query.text,
        answers=tuple(pair.query.answers),
        title=pair.document.title,
        document=pair.document.text,
    )
    turns: list[dict[str, Any]] = []
    before: dict[DebateAgent, SaidTurn] | None = None
    for number in range(1, form.rounds + 1):
        # `before` on the right is the round before: both sides answer that one, and not each other.
        before = {
            seat: offline_debate.argue_turn(seat, inputs, UniformLexicon(), before, gives_in=False)
            for seat in list_agents(form)
        }
        turns += stored_turns(before, number)
    return turns


def stored_turns(spoken: dict[DebateAgent, SaidTurn], number: int) -> list[dict[str, Any]]:
    """Return the turns of a round as items keep them."""
    return [
        {
            "side": seat.side.value,
            "round": number,
            "couple": seat.couple,
            "verdict": said.verdict,
            "reason": said.reason,
            "quotes": [asdict(quote) for quote in said.quotes],
        }
        for seat, said in spoken.items()
    ]


def _argument_writer(gold: Sequence[PairFeatures]) -> Writer:
    """Return what writes arguments that make one of these gold pairs look like a twin.

    It writes None where no agent of the twin's debate kept its stance. Whose words they are is the
    twin's way too: beside debates of the offline pair a model would stand out.
    """
    pairs = Pair.objects.select_related("query", "document").prefetch_related("gold_arguments")
    found = pairs.in_bulk([look.pair for look in gold])

    def write(pair: int, twin: PairFeatures) -> list[Turn] | None:
        if not twin.shape:
            return []
        form = stance_of(twin.shape)
        if form is None:
            return None
        # The offline pair's words stand in where no model has argued about the pair yet.
        said = of_models(found[pair], form) if twin.by_models else None
        return said or offline_turns(found[pair], form)

    return write


def _dream_checks(
    ordinary: Sequence[PairFeatures], gold: Sequence[PairFeatures], *, count: int, seed: int
) -> list[Dressed]:
    """DREAM's form (F.2): relevant pairs, each with an ordinary item's arguments."""
    chance = Random(seed)
    left = [look for look in gold if look.relevant]
    chance.shuffle(left)
    debated = [look for look in ordinary if look.shape and look.reason not in BLIND]
    couples = []
    for look in left[:count]:
        others = [twin for twin in debated if twin.query != look.query]
        if others:
            couples.append((look, chance.choice(others)))
    debates = debates_of({twin.pair for _look, twin in couples})
    found = []
    for look, twin in couples:
        turns = [
            {
                "side": said.role,
                "round": said.round,
                "couple": said.agent_pair,
                "verdict": said.verdict,
                "reason": said.reason,
                # They are about another document: no quotation is found in the one that is shown.
                "quotes": [{"text": quote["text"], "start": None, "end": None} for quote in said.quotes],
            }
            for said in debates.get(twin.pair, [])
            if said.verdict is not None
        ]
        found.append(Dressed(look.pair, twin.reason, turns))
    return found


@transaction.atomic
def withdraw_checks(*, collection: Collection, by: User | None) -> int:
    """Stop assigning checks and return how many there were; what was answered stays."""
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
