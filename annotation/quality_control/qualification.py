"""The qualification test: practice with feedback, then a test with a pass mark; below it no items (SPEC S7).

Its items stand, as checks do: everybody who has to pass is lent each of them once, and what they say there measures.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from django.db import connection, transaction
from django.db.models import F, Max, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.audit_log.recording import record
from annotation.models import Assignment, Membership, Role, User
from annotation.models.quality_control import GoldPair
from annotation.quality_control.gold_labels import grades
from corpus.errors import BadInput
from corpus.models import Collection, Item, Pair
from judges.campaigns.selectors import debate_of

PRACTICE = 5
"""Examples with feedback before the test (DREAM A.2)."""
OVERLAP = 32_000
FIRST = -1.0
"""Priority of practice: before the test, whose items have 0."""


@dataclass(frozen=True, slots=True)
class QualificationResult:
    """How far somebody is in a test: pairs answered, of how many, and how many of them right."""

    answered: int
    right: int
    total: int
    practised: int

    @property
    def score(self) -> float | None:
        """Percent right of the whole test."""
        return 100 * self.right / self.total if self.total else None


def tests(collection: Collection) -> list[int]:
    """Numbers of the tests that stand, oldest first."""
    found = Item.objects.filter(
        collection=collection, reason=Item.Reason.QUALIFICATION, state=Item.State.STANDING
    ).values_list("seq", flat=True)
    return sorted(set(found))


def _free(collection: Collection, gold: Mapping[int, int]) -> QuerySet[Pair]:
    """Gold pairs that are no checks."""
    checks = Item.objects.filter(collection=collection, reason=Item.Reason.CHECK, state=Item.State.STANDING)
    pairs = Pair.objects.filter(pk__in=gold, query__is_current=True, document__is_current=True)
    return pairs.exclude(pk__in=checks.values("pair"))


def has_room(collection: Collection) -> bool:
    """There is gold enough for a test of one pair."""
    return _free(collection, grades(collection))[: PRACTICE + 1].count() > PRACTICE


@transaction.atomic
def make(*, collection: Collection, size: int, seed: int, by: User | None) -> int:
    """A new test of `size` pairs after PRACTICE examples, half of them relevant where gold allows; its number.

    Pairs that were in an earlier test are taken only when gold is too small. Raises BadInput when it is smaller still.
    """
    Collection.objects.select_for_update(no_key=True).get(pk=collection.pk)
    gold = grades(collection)
    used = set(
        Item.objects.filter(collection=collection, reason=Item.Reason.QUALIFICATION).values_list("pair_id", flat=True)
    )
    known = sorted(_free(collection, gold).values_list("pk", flat=True))
    if len(known) < PRACTICE + size:
        raise BadInput(
            _("a test of %(size)s pairs needs %(practice)s gold pairs that are no checks; there are %(known)s")
            % {"size": size, "practice": PRACTICE + size, "known": len(known)}
        )
    chance = Random(seed)
    fresh = [pair for pair in known if pair not in used]
    chosen = _half(fresh if len(fresh) >= PRACTICE + size else known, gold, collection, PRACTICE + size, chance)
    last = Item.objects.filter(collection=collection, reason=Item.Reason.QUALIFICATION).aggregate(n=Max("seq"))["n"]
    number = 0 if last is None else last + 1
    Item.objects.bulk_create(
        Item(
            collection=collection,
            pair_id=pair,
            reason=Item.Reason.QUALIFICATION,
            seq=number,
            state=Item.State.STANDING,
            arm=Item.Arm.SHOWN,
            turns=_turns(pair),
            priority=FIRST if place < PRACTICE else 0.0,
            place=place,
            overlap=OVERLAP,
        )
        for place, pair in enumerate(chosen)
    )
    Collection.objects.filter(pk=collection.pk).update(qualification=True)
    record(by, "qualification.made", collection, test=number, size=size, seed=seed)
    if number:
        newcomers = Membership.objects.filter(collection=collection, qualified_at=None, failed_at=None)
        started = Assignment.objects.filter(item__reason=Item.Reason.QUALIFICATION, membership__collection=collection)
        newcomers.exclude(pk__in=started.values("membership")).update(trial=number)
    return number


def _half(known: list[int], gold: dict[int, int], collection: Collection, size: int, chance: Random) -> list[int]:
    """As many relevant as not, as far as there are, in random order."""
    chance.shuffle(known)
    yes = [pair for pair in known if gold[pair] >= collection.relevant_from]
    no = [pair for pair in known if gold[pair] < collection.relevant_from]
    some = min(len(yes), max(size // 2, size - len(no)))
    chosen = yes[:some] + no[: size - some]
    chance.shuffle(chosen)
    return chosen


def _turns(pair: int) -> list[dict[str, object]] | None:
    """The generated reasons of a gold pair; None where judges debated about it, or where there is nothing."""
    if debate_of(Pair.objects.get(pk=pair)):
        return None
    made = GoldPair.objects.filter(pair=pair).exclude(turns=[]).order_by("-pk").values_list("turns", flat=True).first()
    return made or None


RESULT = """
SELECT count(j.id) FILTER (WHERE i.priority = 0) AS answered,
       count(*) FILTER (WHERE i.priority = 0 AND (j.grade >= c.relevant_from) = (g.grade >= c.relevant_from)) AS right,
       count(*) FILTER (WHERE i.priority = 0) AS total,
       count(j.id) FILTER (WHERE i.priority < 0) AS practised
FROM corpus_item i JOIN corpus_collection c ON c.id = i.collection_id
LEFT JOIN annotation_assignment a ON a.item_id = i.id AND a.membership_id = %(membership)s AND a.state = 'done'
LEFT JOIN corpus_judgment j ON j.id = a.judgment_id
LEFT JOIN LATERAL (
    SELECT r.grade FROM current_judgment r JOIN corpus_assessor s ON s.id = r.assessor_id AND s.kind = 'reference'
    WHERE r.pair_id = i.pair_id AND r.aspect_id IS NULL
    ORDER BY s.name <> 'experts', r.id DESC LIMIT 1) g ON true
WHERE i.collection_id = %(collection)s AND i.reason = 'qualification' AND i.seq = %(trial)s AND i.state = 'standing'
"""


def result(membership: Membership) -> QualificationResult:
    """Of the test that this member takes, or took last."""
    values = {"membership": membership.pk, "collection": membership.collection_id, "trial": membership.trial}
    with connection.cursor() as cursor:
        cursor.execute(RESULT, values)
        return QualificationResult(*cursor.fetchone())


def decide(membership: int) -> bool | None:
    """After the last pair: passed or not; None where there is no test. A skip counts as wrong."""
    row = Membership.objects.select_related("collection").get(pk=membership)
    found = result(row)
    if not found.total:
        return None
    passed = 100 * found.right >= row.collection.pass_mark * found.total
    row.qualified_at, row.failed_at = (timezone.now(), None) if passed else (None, timezone.now())
    row.save(update_fields=["qualified_at", "failed_at"])
    return passed


@transaction.atomic
def again(*, membership: Membership, by: User | None) -> None:
    """Somebody who failed may take the next test. Raises BadInput when there is none that they have not taken."""
    later = [number for number in tests(membership.collection) if number > membership.trial]
    if not later:
        raise BadInput(_("there is no other test: make one, so that nobody is asked what they know already"))
    Membership.objects.filter(pk=membership.pk).update(trial=later[0], failed_at=None, qualified_at=None)
    record(by, "qualification.again", membership.collection, concerns=membership.user, test=later[0])


@transaction.atomic
def let_pass(*, membership: Membership, by: User | None) -> None:
    """Somebody works without the test."""
    Membership.objects.filter(pk=membership.pk).update(qualified_at=timezone.now(), failed_at=None)
    record(by, "qualification.passed", membership.collection, concerns=membership.user)


@dataclass(frozen=True, slots=True)
class Feedback:
    """After an example: what one said, what experts say, and their reasons."""

    given: int
    expected: int
    right: bool
    query: str
    document: str
    comments: tuple[str, ...]


def feedback(membership: Membership) -> Feedback | None:
    """On the example that was answered last, where nothing came after it."""
    last = (
        Assignment.objects.filter(membership=membership, state=Assignment.State.DONE, judgment__grade__isnull=False)
        .select_related("item__pair__query", "item__pair__document", "judgment")
        .order_by(F("ended_at").desc())
        .first()
    )
    if (
        last is None
        or last.judgment is None
        or last.item.reason != Item.Reason.QUALIFICATION
        or last.item.priority >= 0
    ):
        return None
    expected = grades(membership.collection, [last.item.pair_id]).get(last.item.pair_id)
    given = last.judgment.grade
    if expected is None or given is None:
        return None
    mark = membership.collection.relevant_from
    comments = GoldPair.objects.filter(pair=last.item.pair_id, answers__comment__gt="").values_list(
        "answers__comment", flat=True
    )
    pair = last.item.pair
    right = (given >= mark) == (expected >= mark)
    return Feedback(given, expected, right, pair.query.text, pair.document.text, tuple(comments[:3]))


def standing_of(collection: Collection) -> list[Membership]:
    """Annotators, and where they stand: those who failed first."""
    return list(
        Membership.objects.filter(collection=collection, role=Role.ANNOTATOR, is_active=True)
        .select_related("user", "collection")
        .order_by(F("failed_at").asc(nulls_last=True), F("qualified_at").asc(nulls_first=True), "user__username")
    )
