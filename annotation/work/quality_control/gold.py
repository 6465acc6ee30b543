"""Gold: a sample of pairs that experts grade, each with a reason for and a reason against (DREAM A.2).

The sample has one random pair for each of its queries, which are drawn in proportion to their
strata, and five pairs for practice. A random share is reviewed by a senior, who is an adjudicator or
admin. The experts' grades are reference grades: they measure people and judges and resolve nothing.
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
from annotation.work.quality_control.matching import DebateForm
from annotation.work.queue.assignment import check_time
from corpus.errors import BadInput, StateConflict
from corpus.holding import hold
from corpus.labels import EXPERTS
from corpus.models import Assessor, Collection, Judgment, Pair
from judges.campaigns.selectors import debates_of
from judges.models import Attempt
from store.sql import fetch_rows, read_sql

PRACTICE_COUNT = 5
Who = GoldAnswer.Who  # Expert or senior.
# Each expert gets the pairs in an order of their own, so that two of them rarely get the same pair: places are
# multiplied by one prime, and shifted for each membership, modulo another.
FACTOR, SHIFT, MODULUS = 7919, 31, 10_007
# By the number of answers (2: two or more), and whether the query is longer than the median.
STRATA = (
    (gettext_noop("no answer, short query"), gettext_noop("no answer, long query")),
    (gettext_noop("one answer, short query"), gettext_noop("one answer, long query")),
    (gettext_noop("several answers, short query"), gettext_noop("several answers, long query")),
)

POOL = read_sql(__file__, "draw_gold_pool")


def sample_pairs(by_stratum: Mapping[str, Sequence[int]], size: int, seed: int) -> list[tuple[int, str]]:
    """Draw `size` pairs with their strata in random order, in proportion to the strata's sizes. Pure."""
    total = sum(map(len, by_stratum.values()))
    size = min(size, total)
    names = sorted(by_stratum)
    exact_shares = {name: size * len(by_stratum[name]) / total for name in names} if total else {}
    sizes = {name: int(share) for name, share in exact_shares.items()}
    # Hamilton's method: the largest remainders are rounded up, so that the sizes add up to `size`. Names
    # decide ties, so that a seed draws the same sample everywhere.
    by_remainder = sorted(names, key=lambda name: (sizes[name] - exact_shares[name], name))
    for name in by_remainder[: size - sum(sizes.values())]:
        sizes[name] += 1
    random = Random(seed)
    sample = [(pair, name) for name in names for pair in random.sample(sorted(by_stratum[name]), sizes[name])]
    random.shuffle(sample)
    return sample


@transaction.atomic
def draw(*, collection: Collection, size: int, seed: int, spot: float, by: User | None) -> GoldSet:
    """Draw a gold set of `size` pairs and PRACTICE_COUNT more; a senior reviews the share `spot` of the `size` pairs.

    Raises BadInput where too few queries are left.
    """
    # One draw at a time: two would use the same queries.
    hold(Collection.objects, collection.pk, no_key=True)
    rows = fetch_rows(POOL, collection=collection.pk, seed=seed)
    if len(rows) <= PRACTICE_COUNT:
        refusal = _(
            "%(rows)s queries have a pair and are not in a gold set yet; practice alone needs"
            " %(practice)s. Import more queries"
        )
        raise BadInput(refusal % {"rows": len(rows), "practice": PRACTICE_COUNT})
    # The upper median, so that no query counts as long where all have the same length.
    median_words = sorted(words for _query, _pair, _answers, words in rows)[len(rows) // 2]
    strata = defaultdict(list)
    for _query, pair, answers, words in rows:
        strata[STRATA[min(answers or 0, 2)][words > median_words]].append(pair)
    drawn = sample_pairs(strata, size + PRACTICE_COUNT, seed)
    gold_set = GoldSet.objects.create(collection=collection, seed=seed, spot=spot, made_by=by)
    # Its own random sequence, so that another share for review does not change the drawn pairs.
    review_random, places = Random(f"{seed}:spot"), range(PRACTICE_COUNT, len(drawn))
    reviewed_places = set(review_random.sample(places, round(spot * len(places))))
    pairs = Pair.objects.select_related("query", "document").in_bulk([pair for pair, _stratum in drawn])
    debates = debates_of(pairs)
    GoldPair.objects.bulk_create(
        GoldPair(
            gold_set=gold_set,
            pair_id=pair,
            place=place,
            practice=place < PRACTICE_COUNT,
            spot=place in reviewed_places,
            stratum=stratum,
            **_find_reasons(pairs[pair], debates.get(pair, [])),
        )
        for place, (pair, stratum) in enumerate(drawn)
    )
    gold_reasons.write_later(collection, gold_set=gold_set, by=by)
    record(by, "gold.made", collection, n=len(drawn), seed=seed, gold=gold_set.number)
    return gold_set


@transaction.atomic
def end(*, gold_set: GoldSet, by: User | None) -> None:
    """End a gold set: no more pairs of it are assigned; the answers stay."""
    GoldSet.objects.filter(pk=gold_set.pk, ended_at=None).update(ended_at=timezone.now())
    record(by, "gold.ended", gold_set.collection, gold=gold_set.number)


def _find_reasons(pair: Pair, debate: Sequence[Attempt]) -> dict[str, Any]:
    """Return the columns of a gold pair with a reason for and one against.

    They are from the pair's debate if each side kept its stance, else made offline.
    """
    turn_by_side: dict[str, Attempt] = {}
    for turn in debate:
        if turn.verdict == (turn.role == "for"):
            turn_by_side.setdefault(turn.role, turn)
    if len(turn_by_side) < 2:
        return {"turns": attention_checks.offline_turns(pair, DebateForm(1)), "written_by": gold_reasons.OFFLINE}
    turns = [
        {
            "side": side,
            "round": 1,
            "couple": 0,
            "verdict": int(turn.verdict or 0),
            "reason": turn.reason,
            "quotes": turn.quotes,
        }
        for side, turn in sorted(turn_by_side.items(), reverse=True)  # "for" before "against"
    ]
    return {"turns": turns, "written_by": ", ".join(sorted({turn.judge.name for turn in turn_by_side.values()}))}


# Assigning pairs to experts and seniors


def _gold_pairs(membership: Membership) -> QuerySet[GoldPair]:
    gold_pairs = GoldPair.objects.filter(gold_set__collection=membership.collection_id)
    return gold_pairs.select_related("pair__query", "pair__document", "gold_set").order_by("gold_set", "place")


def next_for_expert(membership: Membership) -> GoldPair | None:
    """Return a practice pair that this expert has not graded, else a pair that no expert has graded, else None."""
    open_pairs = _gold_pairs(membership).filter(gold_set__ended_at=None)
    practice = open_pairs.filter(practice=True).exclude(answers__membership=membership).first()
    if practice is not None:
        return practice
    own_order = (F("place") * FACTOR + membership.pk * SHIFT) % MODULUS
    ungraded = open_pairs.filter(practice=False).exclude(answers__who=Who.EXPERT).annotate(own_order=own_order)
    return ungraded.order_by("gold_set", "own_order", "place").first()


def next_for_senior(membership: Membership) -> GoldPair | None:
    """Return a pair of the random share that another person graded and no senior has reviewed; None at the end."""
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
    """Store an expert's or senior's grade, which is the pair's reference grade except in practice.

    Raises StateConflict for a pair that does not exist any more or that this person may not grade, BadInput for
    a grade that came too soon.
    """
    row = (
        GoldPair.objects.select_for_update(of=("self",))
        .select_related("gold_set", "pair")
        .filter(pk=gold_pair, gold_set__collection=membership.collection_id)
        .first()
    )
    if row is None:
        raise StateConflict(_("Gold pair not found"))
    answers = list(GoldAnswer.objects.filter(gold_pair=row).order_by("pk"))
    own = [answer for answer in answers if answer.membership_id == membership.pk and answer.who == who]
    # The same answer sent twice is one answer.
    if own and (own[-1].grade, own[-1].comment) == (grade, comment):
        return own[-1]
    check_time(membership.collection.min_judgment_ms, shown_ms, milliseconds)
    graders = {answer.membership_id for answer in answers if answer.who == Who.EXPERT}
    if who == Who.SENIOR and membership.pk in graders:
        raise StateConflict(_("You graded this pair. Another reviewer must check it"))
    is_done = any(answer.who == who and answer.membership_id != membership.pk for answer in answers)
    # Only practice pairs are graded by several experts.
    if is_done and not row.practice:
        raise StateConflict(_("Another person graded this pair while you were reading it. Here is the next one"))
    reference = None
    if not row.practice:
        kind = Assessor.Kind.REFERENCE
        experts = Assessor.objects.get_or_create(collection=row.gold_set.collection, kind=kind, name=EXPERTS)[0]
        # The new row supersedes the current one, so that a pair has one reference grade.
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


# Progress


def list_progress(collection: Collection) -> list[dict[str, Any]]:
    """Return the progress of each gold set, newest first: graded and reviewed pairs, and how often reviews agreed."""
    no_practice = Q(pairs__practice=False)
    sets = GoldSet.objects.filter(collection=collection).annotate(
        n=Count("pairs", filter=no_practice), spots=Count("pairs", filter=no_practice & Q(pairs__spot=True))
    )
    grades_by_set: dict[int, dict[tuple[int, str], int]] = defaultdict(dict)
    rows = GoldAnswer.objects.filter(gold_pair__gold_set__collection=collection, gold_pair__practice=False)
    for key, pair, who, grade in rows.order_by("pk").values_list("gold_pair__gold_set", "gold_pair", "who", "grade"):
        grades_by_set[key][pair, who] = grade
    progress, relevant_from = [], collection.relevant_from
    for gold_set in sets.order_by("-pk"):
        grades = grades_by_set[gold_set.pk]
        experts = {pair: grade for (pair, who), grade in grades.items() if who == Who.EXPERT}
        seniors = {pair: grade for (pair, who), grade in grades.items() if who == Who.SENIOR}
        # Whether each review has the expert's label.
        agreements = [
            (experts[pair] >= relevant_from) == (grade >= relevant_from)
            for pair, grade in seniors.items()
            if pair in experts
        ]
        row = {
            "gold_set": gold_set,
            "pairs": gold_set.n,
            "graded": len(experts),
            # A senior's grade takes precedence over the expert's.
            "relevant": sum(grade >= relevant_from for grade in (experts | seniors).values()),
            "spots": gold_set.spots,
            "reviewed": len(seniors),
            "done": (len(experts), len(seniors)) == (gold_set.n, gold_set.spots),
            # Their share, with its exact 95% interval.
            "same": share_statistic(agreements, _("no pair has been reviewed yet")),
        }
        progress.append(row)
    return progress


def others_on_practice(membership: Membership) -> tuple[GoldPair, list[GoldAnswer]] | None:
    """Return the expert's last practice pair with the other experts' answers; None after any other pair."""
    last = (
        GoldAnswer.objects.filter(membership=membership, gold_pair__practice=True)
        .select_related("gold_pair__pair__query")
        .order_by("-pk")
        .first()
    )
    # Shown only directly after the practice pair.
    newest = GoldAnswer.objects.filter(membership=membership).aggregate(pk=Max("pk"))["pk"]
    if last is None or last.pk != newest:
        return None
    others = GoldAnswer.objects.filter(gold_pair=last.gold_pair).exclude(membership=membership).order_by("pk")
    return last.gold_pair, list(others)
