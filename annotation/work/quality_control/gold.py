"""Gold: a sample that experts grade, with a reason for and one against beside each pair (DREAM A.2).

One random pair of the pool for each query, queries drawn in proportion to their strata; five pairs
for practice; a random share is looked at by a senior. What experts say is a reference grade: it
measures and never settles.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from django.db import transaction
from django.db.models import Count, F, Max, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation.access.audit_log.recording import record
from annotation.agreement.proportions import share_statistic
from annotation.models import Membership, User
from annotation.models.quality_control import GoldAnswer, GoldPair, GoldSet
from annotation.work.quality_control import attention_checks, gold_reasons
from annotation.work.quality_control.matching import Form
from annotation.work.queue.assignment import check_time
from corpus.errors import BadInput, StateConflict
from corpus.holding import hold
from corpus.labels import EXPERTS
from corpus.models import Assessor, Collection, Judgment, Pair
from judges.campaigns.selectors import debates_of
from judges.models import Attempt
from store.sql import fetch_rows, read_sql

PRACTICE = 5
SPREAD = 7919  # A prime: each expert begins elsewhere, so two of them rarely meet on one pair.
Who = GoldAnswer.Who
# By the number of answers (2: and more), and whether the query is longer than the middle one.
STRATA = (
    (gettext_noop("no answer, short query"), gettext_noop("no answer, long query")),
    (gettext_noop("one answer, short query"), gettext_noop("one answer, long query")),
    (gettext_noop("several answers, short query"), gettext_noop("several answers, long query")),
)

POOL = read_sql(__file__, "draw_gold_pool")


def sample_pairs(by_stratum: Mapping[str, Sequence[int]], size: int, seed: int) -> list[tuple[int, str]]:
    """Draw `size` pairs with their strata, in random order, each stratum by its share. Pure."""
    total = sum(map(len, by_stratum.values()))
    size = min(size, total)
    names = sorted(by_stratum)
    exact_shares = {name: size * len(by_stratum[name]) / total for name in names} if total else {}
    take = {name: int(share) for name, share in exact_shares.items()}
    # The largest remainders are rounded up first (Hamilton's method), so the shares add up to
    # `size`. The most missing first; names decide ties, so that a seed draws the same sample
    # everywhere.
    rest = sorted(names, key=lambda name: (take[name] - exact_shares[name], name))
    for name in rest[: size - sum(take.values())]:
        take[name] += 1
    chance = Random(seed)
    found = [(pair, name) for name in names for pair in chance.sample(sorted(by_stratum[name]), take[name])]
    chance.shuffle(found)
    return found


@transaction.atomic
def draw(*, collection: Collection, size: int, seed: int, spot: float, by: User | None) -> GoldSet:
    """Draw a gold set of `size` pairs and PRACTICE more. BadInput when none are left."""
    # One draw at a time: two would take the same queries, which are free until a set has them.
    hold(Collection.objects, collection.pk, no_key=True)
    rows = fetch_rows(POOL, collection=collection.pk, seed=seed)
    if len(rows) <= PRACTICE:
        refusal = _(
            "%(rows)s queries have a pair and are not in a gold set yet; practice alone needs"
            " %(practice)s. Import more queries"
        )
        raise BadInput(refusal % {"rows": len(rows), "practice": PRACTICE})
    # By the number of answers, and whether the query is longer than the upper median: with equal lengths none is.
    middle = sorted(row[3] for row in rows)[len(rows) // 2]
    strata = defaultdict(list)
    for _query, pair, answers, words in rows:
        strata[STRATA[min(answers or 0, 2)][words > middle]].append(pair)
    drawn = sample_pairs(strata, size + PRACTICE, seed)
    made = GoldSet.objects.create(collection=collection, seed=seed, spot=spot, made_by=by)
    # A seed of its own: another share of spots must not change the drawn pairs.
    chance = Random(f"{seed}:spot")
    spots = set(chance.sample(range(PRACTICE, len(drawn)), round(spot * (len(drawn) - PRACTICE))))
    pairs = Pair.objects.select_related("query", "document").in_bulk([pair for pair, _stratum in drawn])
    debates = debates_of(pairs)
    GoldPair.objects.bulk_create(
        GoldPair(
            gold_set=made,
            pair_id=pair,
            place=place,
            practice=place < PRACTICE,
            spot=place in spots,
            stratum=stratum,
            **_find_reasons(pairs[pair], debates.get(pair, [])),
        )
        for place, (pair, stratum) in enumerate(drawn)
    )
    gold_reasons.write_later(collection, gold_set=made, by=by)
    record(by, "gold.made", collection, n=len(drawn), seed=seed, gold=made.number)
    return made


@transaction.atomic
def end(*, gold_set: GoldSet, by: User | None) -> None:
    """End a gold set: no more pairs of it are handed out; what was said stays."""
    GoldSet.objects.filter(pk=gold_set.pk, ended_at=None).update(ended_at=timezone.now())
    record(by, "gold.ended", gold_set.collection, gold=gold_set.number)


def _find_reasons(pair: Pair, debate: Sequence[Attempt]) -> dict[str, Any]:
    """Return a turn for and one against: of the pair's debate where each side spoke for itself, else offline."""
    found: dict[str, Attempt] = {}
    for said in debate:
        if said.verdict == (said.role == "for"):
            found.setdefault(said.role, said)
    if len(found) < 2:
        return {"turns": attention_checks.offline_turns(pair, Form(1)), "written_by": gold_reasons.OFFLINE}
    place = {"round": 1, "couple": 0}
    turns = [
        {"side": side, **place, "verdict": int(said.verdict or 0), "reason": said.reason, "quotes": said.quotes}
        for side, said in sorted(found.items(), reverse=True)  # For before against.
    ]
    return {"turns": turns, "written_by": ", ".join(sorted({said.judge.name for said in found.values()}))}


# --- who gets what ---------------------------------------------------------------------------------------------------
def _gold_pairs(membership: Membership) -> QuerySet[GoldPair]:
    found = GoldPair.objects.filter(gold_set__collection=membership.collection_id)
    return found.select_related("pair__query", "pair__document", "gold_set").order_by("gold_set", "place")


def next_for_expert(membership: Membership) -> GoldPair | None:
    """Return practice that this expert has not done, then a pair that no expert has graded."""
    open_pairs = _gold_pairs(membership).filter(gold_set__ended_at=None)
    first = open_pairs.filter(practice=True).exclude(answers__membership=membership).first()
    if first is not None:
        return first
    turn = (F("place") * SPREAD + membership.pk * 31) % 10_007
    left = open_pairs.filter(practice=False).exclude(answers__who=Who.EXPERT).annotate(turn=turn)
    return left.order_by("gold_set", "turn", "place").first()


def next_for_senior(membership: Membership) -> GoldPair | None:
    """Return a pair of the random share that another person graded and no senior has looked at."""
    graded = _gold_pairs(membership).filter(spot=True, answers__who=Who.EXPERT).exclude(answers__who=Who.SENIOR)
    return graded.exclude(answers__membership=membership).first()


@transaction.atomic
def record_answer(
    *,
    membership: Membership,
    gold_pair: int,
    who: str,
    grade: int,
    comment: str = "",
    milliseconds: int | None = None,
    shown_ms: int | None = None,
) -> GoldAnswer:
    """Keep what an expert or senior says; beyond practice it is the reference grade.

    Raises StateConflict for a pair that is gone or not this person's to grade, BadInput for a grade sent too soon.
    """
    row = (
        GoldPair.objects.select_for_update(of=("self",))
        .select_related("gold_set", "pair")
        .filter(pk=gold_pair, gold_set__collection=membership.collection_id)
        .first()
    )
    if row is None:
        raise StateConflict(_("Gold pair not found"))
    known = list(GoldAnswer.objects.filter(gold_pair=row).order_by("pk"))
    own = [one for one in known if one.membership_id == membership.pk and one.who == who]
    # The same answer sent twice is one answer.
    if own and (own[-1].grade, own[-1].comment) == (grade, comment):
        return own[-1]
    check_time(membership.collection.min_judgment_ms, shown_ms, milliseconds)
    if who == Who.SENIOR and any(one.membership_id == membership.pk and one.who == Who.EXPERT for one in known):
        raise StateConflict(_("You graded this pair. Another reviewer must check it"))
    others = [one for one in known if one.who == who and one.membership_id != membership.pk]
    if others and not row.practice:
        # Practice is graded by everybody; other pairs by one expert.
        raise StateConflict(_("Another person graded this pair while you were reading it. Here is the next one"))
    reference = None
    if not row.practice:
        kind = Assessor.Kind.REFERENCE
        experts = Assessor.objects.get_or_create(collection=row.gold_set.collection, kind=kind, name=EXPERTS)[0]
        # The newest row is superseded, so that one reference grade holds.
        head = Judgment.objects.heads().filter(assessor=experts, pair=row.pair_id, item=None).first()
        reference = Judgment.objects.create(
            pair_id=row.pair_id, assessor=experts, step=Judgment.Step.IMPORT, grade=grade, supersedes=head
        )
    return GoldAnswer.objects.create(
        gold_pair=row,
        membership=membership,
        who=who,
        grade=grade,
        comment=comment,
        milliseconds=milliseconds,
        judgment=reference,
    )


# --- how far it is ---------------------------------------------------------------------------------------------------
def list_progress(collection: Collection) -> list[dict[str, Any]]:
    """Count each gold set's answers by experts and seniors, and how often seniors said the same. Newest first."""
    plain = Q(pairs__practice=False)
    sets = GoldSet.objects.filter(collection=collection).annotate(
        n=Count("pairs", filter=plain), spots=Count("pairs", filter=plain & Q(pairs__spot=True))
    )
    said: dict[int, dict[tuple[int, str], int]] = defaultdict(dict)
    rows = GoldAnswer.objects.filter(gold_pair__gold_set__collection=collection, gold_pair__practice=False)
    for key, pair, who, grade in rows.order_by("pk").values_list("gold_pair__gold_set", "gold_pair", "who", "grade"):
        said[key][pair, who] = grade
    progress, mark = [], collection.relevant_from
    for gold_set in sets.order_by("-pk"):
        grades = said[gold_set.pk]
        experts = {pair: grade for (pair, who), grade in grades.items() if who == Who.EXPERT}
        seniors = {pair: grade for (pair, who), grade in grades.items() if who == Who.SENIOR}
        same = [(experts[pair] >= mark) == (grade >= mark) for pair, grade in seniors.items() if pair in experts]
        row = {
            "gold_set": gold_set,
            "pairs": gold_set.n,
            "graded": len(experts),
            # A senior's grade goes before the expert's.
            "relevant": sum(grade >= mark for grade in (experts | seniors).values()),
            "spots": gold_set.spots,
            "looked": len(seniors),
            "done": (len(experts), len(seniors)) == (gold_set.n, gold_set.spots),
            # Share of the seniors' looks that found what the expert had said; exact 95% interval.
            "same": share_statistic(same, _("no pair has been reviewed yet")),
        }
        progress.append(row)
    return progress


def others_on_practice(membership: Membership) -> tuple[GoldPair, list[GoldAnswer]] | None:
    """Return what others said about the practice pair that this expert did last: so they come to one reading."""
    last = (
        GoldAnswer.objects.filter(membership=membership, gold_pair__practice=True)
        .select_related("gold_pair__pair__query")
        .order_by("-pk")
        .first()
    )
    # Only directly after the practice pair: what others said later belongs to no page.
    newest = GoldAnswer.objects.filter(membership=membership).aggregate(pk=Max("pk"))["pk"]
    if last is None or last.pk != newest:
        return None
    others = GoldAnswer.objects.filter(gold_pair=last.gold_pair).exclude(membership=membership).order_by("pk")
    return last.gold_pair, list(others)
