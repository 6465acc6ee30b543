"""Attention checks: gold pairs in the dress of ordinary items (DREAM F.2, SPEC S7).

A check is one standing item that everybody is lent once. It is the twin of an ordinary item: the same words of why it
came, the same arm, a two-sided debate of the same shape and length that judges held about this very pair. What cannot
be dressed so is no check: the page says how many gold pairs wait for a debate.
"""

from dataclasses import dataclass

from django.db import connection, transaction
from django.utils.translation import gettext as _

from annotation.auditing import record
from annotation.care.matching import Look, dress, shape_of
from annotation.care.truth import REFERENCE
from annotation.models import User
from annotation.queue import rows
from corpus.errors import BadInput
from corpus.items import MEASURING
from corpus.models import Collection, Item

OVERLAP = 32_000
"""Everybody may have it: no collection has so many people."""
ORDINARY_READ = 2_000
"""Newest ordinary items that are looked at."""
LAST = 1e12

_TURNS = """
(SELECT json_agg(json_build_object('side', t.role, 'round', t.round, 'couple', t.sample, 'verdict', t.verdict)
                 ORDER BY t.round, t.sample, t.role DESC)
 FROM judges_attempt t WHERE t.pair_id = p.id AND t.counts AND t.role IN ('for', 'against') AND t.campaign_id = (
    SELECT max(c.campaign_id) FROM judges_attempt c
    WHERE c.pair_id = p.id AND c.counts AND c.role IN ('for', 'against'))) AS turns,
(SELECT sum(length(t.reason) + length(t.quotes::text)) FROM judges_attempt t
 WHERE t.pair_id = p.id AND t.counts AND t.role IN ('for', 'against') AND t.campaign_id = (
    SELECT max(c.campaign_id) FROM judges_attempt c
    WHERE c.pair_id = p.id AND c.counts AND c.role IN ('for', 'against'))) AS debate
"""
_ORDINARY = f"""
SELECT p.id AS pair, length(d.text) AS document, i.reason, i.arm, {_TURNS}
FROM (SELECT * FROM corpus_item WHERE collection_id = %(collection)s AND state <> 'withdrawn'
        AND reason <> ALL (%(others)s) ORDER BY id DESC LIMIT {ORDINARY_READ}) i
JOIN corpus_pair p ON p.id = i.pair_id JOIN corpus_document d ON d.id = p.document_id
"""
_GOLD = f"""
SELECT p.id AS pair, length(d.text) AS document, g.grade, {_TURNS}
FROM ({REFERENCE}) g JOIN corpus_pair p ON p.id = g.pair_id
JOIN corpus_query q ON q.id = p.query_id AND q.is_current
JOIN corpus_document d ON d.id = p.document_id AND d.is_current
WHERE NOT EXISTS (SELECT FROM corpus_item i WHERE i.pair_id = p.id AND i.reason IN ('check', 'qualification')
                  AND i.state = 'standing')
  AND (SELECT count(*) FROM corpus_item i WHERE i.pair_id = p.id AND i.state = 'open') = 0
"""
"""Gold pairs that may become checks: none that somebody still waits for as an ordinary item."""


@dataclass(frozen=True, slots=True)
class Pool:
    """What checks there are, and what there could be."""

    standing: int
    answered: int
    """Judgments on them."""
    gold: int
    """Gold pairs that are no check yet and that nobody waits for."""
    debated: int
    """Of them, those with a stored debate."""
    ordinary: int
    """Ordinary items that show what a check must look like."""


def pool(collection: Collection) -> Pool:
    """Counts for the page; three statements."""
    checks = Item.objects.filter(collection=collection, reason=Item.Reason.CHECK, state=Item.State.STANDING)
    counted = list(checks.values_list("done", flat=True))
    gold = _read(_GOLD, collection)
    ordinary = _ordinary(collection)
    return Pool(len(counted), sum(counted), len(gold), sum(bool(row["turns"]) for row in gold), len(ordinary))


@transaction.atomic
def make(*, collection: Collection, count: int, seed: int, by: User | None) -> int:
    """Make up to `count` checks; how many there are now more. Raises BadInput that says what is missing."""
    Collection.objects.select_for_update(no_key=True).get(pk=collection.pk)
    ordinary = [_look(row) for row in _ordinary(collection)]
    if not ordinary:
        raise BadInput(
            _("no pair waits for people yet, so nothing shows what a check must look like: start a campaign")
        )
    gold = [_look(row) for row in _read(_GOLD, collection)]
    if not gold:
        raise BadInput(_("no gold pair is left for checks: import reference grades, or let experts make gold"))
    made = dress(ordinary, gold, count=count, seed=seed)
    if not made:
        raise BadInput(
            _(_("no gold pair has a debate like those that people read: let judges debate the gold pairs first"))
        )
    Item.objects.bulk_create(
        Item(
            collection=collection,
            pair_id=one.pair,
            reason=Item.Reason.CHECK,
            shown_as=one.reason,
            arm="hidden" if one.reason == Item.Reason.AUDIT else "",
            state=Item.State.STANDING,
            priority=LAST,
            place=place,
            overlap=OVERLAP,
            seq=_seq(one.pair),
        )
        for place, one in enumerate(made)
    )
    Collection.objects.filter(pk=collection.pk).update(has_checks=True)
    record(by, "checks.made", collection, n=len(made), seed=seed)
    return len(made)


@transaction.atomic
def withdraw(*, collection: Collection, by: User | None) -> int:
    """Nobody is lent a check any more; what was answered stays. How many there were."""
    checks = Item.objects.filter(collection=collection, reason=Item.Reason.CHECK, state=Item.State.STANDING)
    count = checks.update(state=Item.State.WITHDRAWN)
    Collection.objects.filter(pk=collection.pk).update(has_checks=False)
    record(by, "checks.withdrawn", collection, n=count)
    return count


def _seq(pair: int) -> int:
    return Item.objects.filter(pair=pair, reason=Item.Reason.CHECK).count()


def _ordinary(collection: Collection) -> list[dict[str, object]]:
    return _read(_ORDINARY, collection, others=["evidence", *MEASURING])


def _read(statement: str, collection: Collection, **values: object) -> list[dict[str, object]]:
    connection.ensure_connection()
    return rows(connection.connection, statement, collection=collection.pk, **values)


def _look(row: dict[str, object]) -> Look:
    turns = row["turns"] or []
    assert isinstance(turns, list)
    return Look(
        pair=int(str(row["pair"])),
        shape=shape_of(turns),
        debate=int(str(row["debate"] or 0)),
        document=int(str(row["document"])),
        reason=str(row.get("reason", "")),
        arm=str(row.get("arm", "")),
    )
