"""The qualification test: practice with feedback, then standing items that everybody takes, with a pass mark."""

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

# Everybody takes the same test, so its items have room for all.
OVERLAP = 32_000
FIRST = -1.0  # Priority of practice: before the test, whose items have 0.


def list_tests(collection: Collection) -> list[int]:
    """Numbers of the tests that stand, oldest first."""
    found = Item.objects.filter(
        collection=collection, reason=Item.Reason.QUALIFICATION, state=Item.State.STANDING
    ).values_list("seq", flat=True)
    return sorted(set(found))


def free_gold_pairs(collection: Collection, gold: Mapping[int, int]) -> QuerySet[Pair]:
    """Gold pairs that are no checks."""
    checks = Item.objects.filter(collection=collection, reason=Item.Reason.CHECK, state=Item.State.STANDING)
    pairs = Pair.objects.filter(pk__in=gold, query__is_current=True, document__is_current=True)
    return pairs.exclude(pk__in=checks.values("pair"))


@transaction.atomic
def make_test(*, collection: Collection, size: int, seed: int, by: User | None) -> int:
    """Make a test of `size` pairs after PRACTICE examples, half of them relevant where gold allows; its number.

    Pairs that were in an earlier test are taken only when gold is too small. Raises BadInput when it is smaller still.
    """
    # Two tests made at once would get one number.
    hold(Collection.objects, collection.pk, no_key=True)
    gold = reference_grades(collection)
    earlier = Item.objects.filter(collection=collection, reason=Item.Reason.QUALIFICATION)
    used = set(earlier.values_list("pair_id", flat=True))
    known = sorted(free_gold_pairs(collection, gold).values_list("pk", flat=True))
    if len(known) < PRACTICE + size:
        words = _(
            "A test of %(size)s pairs needs %(practice)s gold pairs that are not used as checks; there are %(known)s"
        )
        raise BadInput(words % {"size": size, "practice": PRACTICE + size, "known": len(known)})
    chance = Random(seed)
    # Pairs that no earlier test used, as long as they suffice: whoever takes a second test must not know them.
    fresh = [pair for pair in known if pair not in used]
    drawn = fresh if len(fresh) >= PRACTICE + size else known
    chance.shuffle(drawn)
    # As many relevant as not, as far as there are: more of one kind where the other has too few.
    mark, most = collection.relevant_from, PRACTICE + size
    yes, no = [pair for pair in drawn if gold[pair] >= mark], [pair for pair in drawn if gold[pair] < mark]
    chosen = (yes[: max(most // 2, most - len(no))] + no)[:most]
    chance.shuffle(chosen)
    # The generated reasons of gold pairs; of none about which judges debated. The newest comes last and stays.
    made = GoldPair.objects.filter(pair__in=chosen).exclude(pair__in=debates_of(chosen)).exclude(turns=[])
    turns = dict(made.order_by("pk").values_list("pair", "turns"))
    last = earlier.aggregate(n=Max("seq"))["n"]
    number = 0 if last is None else last + 1
    Item.objects.bulk_create(
        Item(
            collection=collection,
            pair_id=pair,
            reason=Item.Reason.QUALIFICATION,
            seq=number,
            state=Item.State.STANDING,
            arm=Item.Arm.SHOWN,
            turns=turns.get(pair),
            priority=FIRST if place < PRACTICE else 0.0,
            place=place,
            overlap=OVERLAP,
        )
        for place, pair in enumerate(chosen)
    )
    Collection.objects.filter(pk=collection.pk).update(qualification=True)
    record(by, "qualification.made", collection, test=number, size=size, seed=seed)
    # Who has begun an earlier test stays with it.
    if number:
        newcomers = Membership.objects.filter(collection=collection, qualified_at=None, failed_at=None)
        started = Assignment.objects.filter(item__reason=Item.Reason.QUALIFICATION, membership__collection=collection)
        newcomers.exclude(pk__in=started.values("membership")).update(trial=number)
    return number


@transaction.atomic
def allow_retake(*, membership: Membership, by: User | None) -> None:
    """Let a member who failed take the next test. Raises BadInput when all tests are taken."""
    later = [number for number in list_tests(membership.collection) if number > membership.trial]
    if not later:
        raise BadInput(_("There is no other test. Create one, so that the same pairs are not used again"))
    Membership.objects.filter(pk=membership.pk).update(trial=later[0], failed_at=None, qualified_at=None)
    record(by, "qualification.again", membership.collection, concerns=membership.user, test=later[0])


@transaction.atomic
def let_pass(*, membership: Membership, by: User | None) -> None:
    """Let a member work without passing the test."""
    Membership.objects.filter(pk=membership.pk).update(qualified_at=timezone.now(), failed_at=None)
    record(by, "qualification.passed", membership.collection, concerns=membership.user)


def list_annotators(collection: Collection) -> list[Membership]:
    """Annotators, and where they stand: those who failed first."""
    return list(
        Membership.objects.filter(collection=collection, role=Role.ANNOTATOR, is_active=True)
        .select_related("user", "collection")
        .order_by(F("failed_at").asc(nulls_last=True), F("qualified_at").asc(nulls_first=True), "user__username")
    )
