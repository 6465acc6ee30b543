"""The qualification test: practice with feedback, then gold pairs that every annotator judges, with a pass mark."""

from collections.abc import Container, Mapping
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

OVERLAP = 32_000  # Judgments per item, more than a collection has annotators, because all of them take the same test.
PRACTICE_PRIORITY = -1.0  # Items with a lower priority come first, so practice comes before the test.
TEST_PRIORITY = 0.0


def list_tests(collection: Collection) -> list[int]:
    """Return the numbers of the active tests, oldest first."""
    numbers = Item.objects.filter(
        collection=collection, reason=Item.Reason.QUALIFICATION, state=Item.State.STANDING
    ).values_list("seq", flat=True)
    return sorted(set(numbers))


def free_gold_pairs(collection: Collection, grades: Mapping[int, int]) -> QuerySet[Pair]:
    """Return the current gold pairs that are not attention checks.

    `grades` contains the reference grade of each gold pair of the collection, by the pair's primary key.
    """
    checks = Item.objects.filter(collection=collection, reason=Item.Reason.CHECK, state=Item.State.STANDING)
    pairs = Pair.objects.filter(pk__in=grades, query__is_current=True, document__is_current=True)
    return pairs.exclude(pk__in=checks.values("pair"))


@transaction.atomic
def make_test(*, collection: Collection, size: int, seed: int, by: User | None) -> int:
    """Make a test of `size` pairs and PRACTICE examples, if possible half of them relevant, and return its number.

    Pairs of earlier tests are used again only if there are too few other gold pairs. Raises BadInput if
    there are too few gold pairs in all.
    """
    # Locked, because two tests made at the same moment would otherwise get the same number.
    hold(Collection.objects, collection.pk, no_key=True)
    earlier_items = Item.objects.filter(collection=collection, reason=Item.Reason.QUALIFICATION)
    last_number = earlier_items.aggregate(last=Max("seq"))["last"]
    number = 0 if last_number is None else last_number + 1
    used_pairs = set(earlier_items.values_list("pair_id", flat=True))
    test_pairs = _draw_test_pairs(collection, used_pairs, size, seed)
    # Pairs that judges have not debated are displayed with arguments written for them. The newest arguments of a pair
    # come last and overwrite older ones.
    arguments = GoldPair.objects.filter(pair__in=test_pairs).exclude(pair__in=debates_of(test_pairs)).exclude(turns=[])
    turns = dict(arguments.order_by("pk").values_list("pair", "turns"))
    Item.objects.bulk_create(
        Item(
            collection=collection,
            pair_id=pair,
            reason=Item.Reason.QUALIFICATION,
            seq=number,
            state=Item.State.STANDING,
            arm=Item.Arm.SHOWN,
            turns=turns.get(pair),
            priority=PRACTICE_PRIORITY if position < PRACTICE else TEST_PRIORITY,
            place=position,
            overlap=OVERLAP,
        )
        for position, pair in enumerate(test_pairs)
    )
    Collection.objects.filter(pk=collection.pk).update(qualification=True)
    record(by, "qualification.made", collection, test=number, size=size, seed=seed)
    # Members who have neither passed nor failed take the new test, but those who have begun an earlier test finish it.
    if number:
        untested = Membership.objects.filter(collection=collection, qualified_at=None, failed_at=None)
        begun = Assignment.objects.filter(item__reason=Item.Reason.QUALIFICATION, membership__collection=collection)
        untested.exclude(pk__in=begun.values("membership")).update(trial=number)
    return number


def _draw_test_pairs(collection: Collection, used_pairs: Container[int], size: int, seed: int) -> list[int]:
    """Draw the pairs of practice and of the test, in the order in which annotators judge them.

    `used_pairs` are the pairs of earlier tests. Raises BadInput if there are too few gold pairs.
    """
    total = PRACTICE + size
    grades = reference_grades(collection)
    free_pairs = sorted(free_gold_pairs(collection, grades).values_list("pk", flat=True))
    if len(free_pairs) < total:
        message = _(
            "A test of %(size)s pairs needs %(practice)s gold pairs that are not used as checks; there are %(known)s"
        )
        raise BadInput(message % {"size": size, "practice": total, "known": len(free_pairs)})
    # Pairs of earlier tests are left out if enough others remain, because members who retake the test know them.
    unused_pairs = [pair for pair in free_pairs if pair not in used_pairs]
    candidates = unused_pairs if len(unused_pairs) >= total else free_pairs
    random = Random(seed)
    random.shuffle(candidates)
    relevant = [pair for pair in candidates if grades[pair] >= collection.relevant_from]
    not_relevant = [pair for pair in candidates if grades[pair] < collection.relevant_from]
    # Half of the pairs are relevant. If there are too few pairs of one label, pairs of the other take their places.
    relevant_count = max(total // 2, total - len(not_relevant))
    test_pairs = (relevant[:relevant_count] + not_relevant)[:total]
    random.shuffle(test_pairs)
    return test_pairs


@transaction.atomic
def allow_retake(*, membership: Membership, by: User | None) -> None:
    """Let a member who failed take the next test. Raises BadInput if there is no test after the member's last one."""
    later_tests = [number for number in list_tests(membership.collection) if number > membership.trial]
    if not later_tests:
        raise BadInput(_("There is no other test. Create one, so that the same pairs are not used again"))
    next_test = later_tests[0]
    Membership.objects.filter(pk=membership.pk).update(trial=next_test, failed_at=None, qualified_at=None)
    record(by, "qualification.again", membership.collection, concerns=membership.user, test=next_test)


@transaction.atomic
def waive_test(*, membership: Membership, by: User | None) -> None:
    """Let a member work without passing the test."""
    Membership.objects.filter(pk=membership.pk).update(qualified_at=timezone.now(), failed_at=None)
    record(by, "qualification.passed", membership.collection, concerns=membership.user)


def list_annotators(collection: Collection) -> list[Membership]:
    """Return the active annotators: those who failed, then those who have yet to pass, then those who passed."""
    return list(
        Membership.objects.filter(collection=collection, role=Role.ANNOTATOR, is_active=True)
        .select_related("user", "collection")
        .order_by(F("failed_at").asc(nulls_last=True), F("qualified_at").asc(nulls_first=True), "user__username")
    )
