"""The qualification test: practice with feedback, then gold pairs that every annotator judges, with a pass mark."""

from collections.abc import Mapping
from random import Random

from django.db import transaction
from django.db.models import F, Max, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.access.audit_log.recording import record
from annotation.models import Assignment, Membership, Role, User
from annotation.models.quality_control import GoldPair
from annotation.work.quality_control.onboarding import PRACTICE
from corpus.errors import BadInput
from corpus.holding import hold
from corpus.labels import reference_grades
from corpus.models import Collection, Item, Pair
from judges.campaigns.selectors import debates_of

# Every annotator takes the same test: no collection has so many people.
OVERLAP = 32_000
FIRST = -1.0  # The priority of practice, which comes before the test with its priority of 0.


def list_tests(collection: Collection) -> list[int]:
    """Return the numbers of the active tests, oldest first."""
    numbers = Item.objects.filter(
        collection=collection, reason=Item.Reason.QUALIFICATION, state=Item.State.STANDING
    ).values_list("seq", flat=True)
    return sorted(set(numbers))


def free_gold_pairs(collection: Collection, gold: Mapping[int, int]) -> QuerySet[Pair]:
    """Return the current gold pairs that are not attention checks."""
    checks = Item.objects.filter(collection=collection, reason=Item.Reason.CHECK, state=Item.State.STANDING)
    pairs = Pair.objects.filter(pk__in=gold, query__is_current=True, document__is_current=True)
    return pairs.exclude(pk__in=checks.values("pair"))


@transaction.atomic
def make_test(*, collection: Collection, size: int, seed: int, by: User | None) -> int:
    """Make a test of `size` pairs and PRACTICE examples, if possible half of them relevant; return its number.

    Pairs of earlier tests are used again only where there are too few other gold pairs. Raises BadInput
    where there are too few gold pairs.
    """
    # Two tests that are made at the same moment would get the same number.
    hold(Collection.objects, collection.pk, no_key=True)
    gold = reference_grades(collection)
    earlier = Item.objects.filter(collection=collection, reason=Item.Reason.QUALIFICATION)
    used = set(earlier.values_list("pair_id", flat=True))
    free_pairs = sorted(free_gold_pairs(collection, gold).values_list("pk", flat=True))
    if len(free_pairs) < PRACTICE + size:
        message = _(
            "A test of %(size)s pairs needs %(practice)s gold pairs that are not used as checks; there are %(known)s"
        )
        raise BadInput(message % {"size": size, "practice": PRACTICE + size, "known": len(free_pairs)})
    chance = Random(seed)
    # Pairs of no earlier test, if there are enough, so that a second test has no pairs that its taker knows.
    unused = [pair for pair in free_pairs if pair not in used]
    drawn = unused if len(unused) >= PRACTICE + size else free_pairs
    chance.shuffle(drawn)
    # As many relevant as not relevant pairs, or more of one label where there are too few of the other.
    mark, total = collection.relevant_from, PRACTICE + size
    relevant = [pair for pair in drawn if gold[pair] >= mark]
    not_relevant = [pair for pair in drawn if gold[pair] < mark]
    test_pairs = (relevant[: max(total // 2, total - len(not_relevant))] + not_relevant)[:total]
    chance.shuffle(test_pairs)
    # Arguments written for gold pairs that judges have not debated; the newest of a pair overwrite older ones.
    argued = GoldPair.objects.filter(pair__in=test_pairs).exclude(pair__in=debates_of(test_pairs)).exclude(turns=[])
    turns = dict(argued.order_by("pk").values_list("pair", "turns"))
    last_number = earlier.aggregate(last=Max("seq"))["last"]
    number = 0 if last_number is None else last_number + 1
    Item.objects.bulk_create(
        Item(
            collection=collection,
            pair_id=pair,
            reason=Item.Reason.QUALIFICATION,
            seq=number,
            state=Item.State.STANDING,
            arm=Item.Arm.SHOWN,
            turns=turns.get(pair),
            priority=FIRST if position < PRACTICE else 0.0,
            place=position,
            overlap=OVERLAP,
        )
        for position, pair in enumerate(test_pairs)
    )
    Collection.objects.filter(pk=collection.pk).update(qualification=True)
    record(by, "qualification.made", collection, test=number, size=size, seed=seed)
    # A member who has begun an earlier test finishes that one.
    if number:
        newcomers = Membership.objects.filter(collection=collection, qualified_at=None, failed_at=None)
        started = Assignment.objects.filter(item__reason=Item.Reason.QUALIFICATION, membership__collection=collection)
        newcomers.exclude(pk__in=started.values("membership")).update(trial=number)
    return number


@transaction.atomic
def allow_retake(*, membership: Membership, by: User | None) -> None:
    """Let a member who failed take the next test. Raises BadInput where there is none."""
    later = [number for number in list_tests(membership.collection) if number > membership.trial]
    if not later:
        raise BadInput(_("There is no other test. Create one, so that the same pairs are not used again"))
    Membership.objects.filter(pk=membership.pk).update(trial=later[0], failed_at=None, qualified_at=None)
    record(by, "qualification.again", membership.collection, concerns=membership.user, test=later[0])


@transaction.atomic
def waive_test(*, membership: Membership, by: User | None) -> None:
    """Let a member work without passing the test."""
    Membership.objects.filter(pk=membership.pk).update(qualified_at=timezone.now(), failed_at=None)
    record(by, "qualification.passed", membership.collection, concerns=membership.user)


def list_annotators(collection: Collection) -> list[Membership]:
    """Return the active annotators: first those who failed, last those who passed."""
    return list(
        Membership.objects.filter(collection=collection, role=Role.ANNOTATOR, is_active=True)
        .select_related("user", "collection")
        .order_by(F("failed_at").asc(nulls_last=True), F("qualified_at").asc(nulls_first=True), "user__username")
    )
