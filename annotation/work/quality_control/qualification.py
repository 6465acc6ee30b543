"""The qualification test: practice with feedback, and then gold pairs that every annotator judges, with a pass mark.

Gold pairs are here the pairs of the collection with a reference grade. A GoldSetPair is another thing: a pair of a
gold set, with a written argument for its relevance and one against it.

Each test has a number; the column `seq` of its items contains it, and the column `trial` of a membership contains the
number of the member's current or last test.
"""

from collections.abc import Container, Mapping
from random import Random

from django.db import transaction
from django.db.models import F, Max, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.access.audit_log.recording import record
from annotation.models import Assignment, Membership, Role, User
from annotation.models.quality_control import GoldPair as GoldSetPair
from annotation.work.quality_control.onboarding import PRACTICE_COUNT
from corpus.errors import BadInput
from corpus.holding import hold
from corpus.labels import reference_grades
from corpus.models import Collection, Item, Pair
from judges.campaigns.selectors import debates_of

# The number of people who may judge an item. All annotators take the same test, and no collection has so many.
TEST_OVERLAP = 32_000
# Items with a lower priority come first, so that practice comes before the test.
PRACTICE_PRIORITY = -1.0
TEST_PRIORITY = 0.0


def list_tests(collection: Collection) -> list[int]:
    """Return the numbers of the active tests, oldest first."""
    active_items = Item.objects.filter(
        collection=collection, reason=Item.Reason.QUALIFICATION, state=Item.State.STANDING
    )
    return sorted(set(active_items.values_list("seq", flat=True)))


def list_annotators_by_result(collection: Collection) -> list[Membership]:
    """Return the active annotators: those who failed, then those who have yet to pass, then those who passed."""
    return list(
        Membership.objects.filter(collection=collection, role=Role.ANNOTATOR, is_active=True)
        .select_related("user", "collection")
        .order_by(F("failed_at").asc(nulls_last=True), F("qualified_at").asc(nulls_first=True), "user__username")
    )


def free_gold_pairs(collection: Collection, grades: Mapping[int, int]) -> QuerySet[Pair]:
    """Return the gold pairs that are not attention checks, and whose query and document are current.

    `grades` contains the reference grade of each gold pair, by the primary key of the pair.
    """
    checks = Item.objects.filter(collection=collection, reason=Item.Reason.CHECK, state=Item.State.STANDING)
    current_pairs = Pair.objects.filter(pk__in=grades, query__is_current=True, document__is_current=True)
    return current_pairs.exclude(pk__in=checks.values("pair"))


@transaction.atomic
def make_test(*, collection: Collection, size: int, seed: int, by: User | None) -> int:
    """Make a test, and return its number.

    1. Draw the pairs: PRACTICE_COUNT examples and `size` pairs of the test.
    2. Create an item for each pair.
    3. From now on, require the annotators of the collection to pass a test before they get other pairs.
    4. Give the new test to members who have neither begun, passed nor failed one.

    Raises BadInput if there are too few gold pairs.
    """
    # Locked, because two tests that are made at the same moment would otherwise get the same number.
    hold(Collection.objects, collection.pk, no_key=True)
    earlier_items = Item.objects.filter(collection=collection, reason=Item.Reason.QUALIFICATION)
    last_number = earlier_items.aggregate(last=Max("seq"))["last"]
    number = 0 if last_number is None else last_number + 1

    # 1. Pairs.
    pairs_of_earlier_tests = set(earlier_items.values_list("pair_id", flat=True))
    drawn_pairs = _draw_pairs(collection, pairs_of_earlier_tests, size, seed)

    # 2. Items. A pair is displayed with its debate (the arm "shown"), or if judges have not debated it, with arguments
    # that were written for it. The newest arguments of a pair come last, and replace older ones.
    written_arguments = GoldSetPair.objects.filter(pair__in=drawn_pairs).exclude(turns=[])
    arguments_without_debate = written_arguments.exclude(pair__in=debates_of(drawn_pairs)).order_by("pk")
    arguments = dict(arguments_without_debate.values_list("pair", "turns"))
    Item.objects.bulk_create(
        Item(
            collection=collection,
            pair_id=pair,
            reason=Item.Reason.QUALIFICATION,
            seq=number,
            state=Item.State.STANDING,
            arm=Item.Arm.SHOWN,
            turns=arguments.get(pair),
            priority=PRACTICE_PRIORITY if position < PRACTICE_COUNT else TEST_PRIORITY,
            place=position,
            overlap=TEST_OVERLAP,
        )
        for position, pair in enumerate(drawn_pairs)
    )

    # 3. The requirement.
    Collection.objects.filter(pk=collection.pk).update(qualification=True)
    record(by, "qualification.made", collection, test=number, size=size, seed=seed)

    # 4. Members. The number of the first test is the default of every membership.
    if number:
        untested = Membership.objects.filter(collection=collection, qualified_at=None, failed_at=None)
        begun = Assignment.objects.filter(item__reason=Item.Reason.QUALIFICATION, membership__collection=collection)
        untested.exclude(pk__in=begun.values("membership")).update(trial=number)
    return number


def _draw_pairs(collection: Collection, pairs_of_earlier_tests: Container[int], size: int, seed: int) -> list[int]:
    """Draw the pairs of practice and of a test, if possible half of them relevant, in the order of judging.

    Raises BadInput if there are too few gold pairs.
    """
    total = PRACTICE_COUNT + size
    grades = reference_grades(collection)
    free_pairs = sorted(free_gold_pairs(collection, grades).values_list("pk", flat=True))
    if len(free_pairs) < total:
        message = _(
            "A test of %(size)s pairs needs %(needed)s gold pairs that are not used as checks; there are %(free)s"
        )
        raise BadInput(message % {"size": size, "needed": total, "free": len(free_pairs)})
    # Members who retake the test know the pairs of earlier tests, so these are used only if there are too few others.
    new_pairs = [pair for pair in free_pairs if pair not in pairs_of_earlier_tests]
    candidates = new_pairs if len(new_pairs) >= total else free_pairs
    random = Random(seed)
    random.shuffle(candidates)
    relevant = [pair for pair in candidates if grades[pair] >= collection.relevant_from]
    not_relevant = [pair for pair in candidates if grades[pair] < collection.relevant_from]
    # If there are too few pairs of one class, pairs of the other class take their places.
    relevant_count = max(total // 2, total - len(not_relevant))
    drawn_pairs = (relevant[:relevant_count] + not_relevant)[:total]
    random.shuffle(drawn_pairs)
    return drawn_pairs


@transaction.atomic
def allow_retake(*, membership: Membership, by: User | None) -> None:
    """Let a member who failed take the next test, which is made where gold allows one with other pairs.

    Raises BadInput if there is no later test, and too little gold that no test has used.
    """
    collection, last_number = membership.collection, membership.trial
    later_numbers = [number for number in list_tests(collection) if number > last_number]
    if later_numbers:
        next_number = later_numbers[0]
    else:
        # A test of the same size, of gold that no test has used.
        tests = Item.objects.filter(collection=collection, reason=Item.Reason.QUALIFICATION)
        size = tests.filter(seq=last_number, priority=TEST_PRIORITY).count()
        unused = free_gold_pairs(collection, reference_grades(collection)).exclude(pk__in=tests.values("pair"))
        if not size or unused.count() < PRACTICE_COUNT + size:
            raise BadInput(_("There is no other test. Create one, so that the same pairs are not used again"))
        next_number = make_test(collection=collection, size=size, seed=collection.seed + last_number + 1, by=by)
    Membership.objects.filter(pk=membership.pk).update(
        trial=next_number, failed_at=None, qualified_at=None, retake_asked_at=None
    )
    record(by, "qualification.again", collection, concerns=membership.user, test=next_number)


@transaction.atomic
def waive_test(*, membership: Membership, by: User | None) -> None:
    """Let a member judge pairs without having passed a test."""
    Membership.objects.filter(pk=membership.pk).update(
        qualified_at=timezone.now(), failed_at=None, retake_asked_at=None
    )
    record(by, "qualification.passed", membership.collection, concerns=membership.user)
