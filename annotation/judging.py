"""What the judging page shows: one statement for a pair with its debate, as frozen records."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from django.db import connection
from django.utils.safestring import SafeString, mark_safe

from annotation.marks import Span, marked
from annotation.models import Membership
from annotation.queue import rows
from corpus.models import Collection
from corpus.text import direction, language

QUEUE_SHOWN = 100
"""The queue is counted up to here: "100+" says enough and costs nothing."""

SAID_FOR_SECONDS = 8
WAITING_FOR_SECONDS = 5.0
LANGUAGE_FROM = 400
"""Characters that show a text's language well enough."""

WHY = {
    "disagreement": "The two sides did not agree{rounds}.",
    "conflict": "The panel's majority contradicts what the two sides agreed on.",
    "split": "The panel is split: too few of its judges gave the same answer.",
    "unparsed": "A judge's answer could not be read.",
    "refused": "A judge declined to answer.",
    "error": "A judge could not be reached.",
    "audit": "Drawn at random, to check the automatic labels.",
}


@dataclass(frozen=True, slots=True)
class Text:
    """A text with the language and direction that its element is marked up with."""

    text: str
    lang: str
    dir: str


@dataclass(frozen=True, slots=True)
class Quoted:
    """A quote under a turn. `label` is empty when the sentence is not in the document."""

    text: str
    label: str
    first: bool
    """This turn is the first that quotes it: the document's label links back here."""


@dataclass(frozen=True, slots=True)
class Said:
    """One side's turn as the page shows it, in words."""

    side: str
    title: str
    says: str = "gave no readable answer"
    reason: str = ""
    quotes: tuple[Quoted, ...] = ()


SILENT_FOR = Said("for", "For")
SILENT_AGAINST = Said("against", "Against")


@dataclass(frozen=True, slots=True)
class DebateRound:
    """Both turns of a round."""

    number: int
    turns: tuple[Said, Said]
    """For, then against."""


@dataclass(frozen=True, slots=True)
class Grade:
    """A button: the grade, its words, and the key that presses it ("" beyond 9)."""

    value: int
    words: str
    key: str
    relevant: bool


@dataclass(frozen=True)
class Work:
    """A pair on somebody's desk. `seconds` are left of the lease (negative: it ran out)."""

    item: int
    token: str
    seconds: int
    why: str
    query: Text
    answers: tuple[Text, ...]
    need: str
    title: Text
    document: Text
    source: str
    rounds: tuple[DebateRound, ...]
    spans: tuple[Span, ...] = field(repr=False)
    comment: str = ""
    grade: int | None = None

    @cached_property
    def marked(self) -> SafeString:
        """The document's text as HTML with its quoted sentences marked."""
        return mark_safe(marked(self.document.text, self.spans))  # marked() escapes every character


@dataclass(frozen=True, slots=True)
class Desktop:
    """What stands around the pair: how many today, how many wait, and what could be undone."""

    today: int
    waiting: int
    last_item: int | None
    last_what: str | None
    """saved, flagged or skipped."""
    last_seconds: int | None

    @property
    def just_now(self) -> bool:
        """The last decision is so fresh that the page says so."""
        return self.last_seconds is not None and self.last_seconds < SAID_FOR_SECONDS

    @property
    def waiting_words(self) -> str:
        """The length of the queue, as far as it was counted."""
        return f"{QUEUE_SHOWN}+" if self.waiting > QUEUE_SHOWN else str(self.waiting)


_DEBATE = """
(SELECT json_agg(json_build_object('side', t.role, 'round', t.round, 'verdict', t.verdict, 'reason', t.reason,
                                   'quotes', t.quotes) ORDER BY t.round, t.role DESC)
 FROM judges_attempt t
 WHERE t.pair_id = i.pair_id AND t.counts AND t.role IN ('for', 'against') AND t.campaign_id = (
    SELECT max(c.campaign_id) FROM judges_attempt c
    WHERE c.pair_id = i.pair_id AND c.counts AND c.role IN ('for', 'against')))
"""

_PAIR = f"""
i.id AS item, i.reason, q.text AS query, q.answers, q.instruction, d.title, d.text AS document,
d.external_id AS source, {_DEBATE} AS debate
"""

_FROM = """
JOIN corpus_pair p ON p.id = i.pair_id
JOIN corpus_query q ON q.id = p.query_id
JOIN corpus_document d ON d.id = p.document_id
"""

_AROUND = """
(SELECT count(*) FROM annotation_assignment t
 WHERE t.membership_id = m.id AND t.ended_at >= date_trunc('day', now()) AND t.state = 'done') AS today,
l.item_id AS last_item, l.what AS last_what, l.seconds AS last_seconds
"""
_LAST = """
LEFT JOIN LATERAL (
    SELECT t.item_id,
           CASE WHEN t.state = 'skipped' THEN 'skipped' WHEN t.flagged THEN 'flagged' ELSE 'saved' END AS what,
           extract(epoch FROM clock_timestamp() - t.ended_at)::int AS seconds
    FROM annotation_assignment t
    WHERE t.membership_id = m.id AND t.state IN ('done', 'skipped') AND t.ended_at > now() - interval '24 hours'
    ORDER BY t.ended_at DESC LIMIT 1) l ON true
"""
_OPEN = f"""
SELECT {_AROUND}, {_PAIR}, a.token, extract(epoch FROM a.lease_until - now())::int AS seconds, before.comment
FROM annotation_membership m {_LAST}
JOIN annotation_assignment a ON a.membership_id = m.id AND a.state = 'open'
JOIN corpus_item i ON i.id = a.item_id {_FROM}
LEFT JOIN corpus_judgment j ON j.id = a.judgment_id
LEFT JOIN corpus_judgment before ON before.id = j.supersedes_id
WHERE m.id = %(membership)s
"""
_RESTING = f"SELECT {_AROUND} FROM annotation_membership m {_LAST} WHERE m.id = %(membership)s"
_WAITING = f"""
SELECT count(*) AS waiting FROM (
    SELECT FROM corpus_item WHERE collection_id = %(collection)s AND state = 'open' AND taken < overlap
    ORDER BY priority, place LIMIT {QUEUE_SHOWN + 1}) counted
"""
_WAITING_FOR = f"""
SELECT count(*) AS waiting FROM (
    SELECT FROM corpus_item i
    WHERE i.collection_id = %(collection)s AND i.state = 'open' AND i.taken < i.overlap
      AND NOT EXISTS (SELECT FROM annotation_assignment a WHERE a.item_id = i.id
                      AND a.membership_id = %(membership)s AND a.state <> 'returned')
    ORDER BY i.priority, i.place LIMIT {QUEUE_SHOWN + 1}) counted
"""
_MINE = f"""
SELECT {_PAIR}, a.token, 0 AS seconds, j.grade
FROM annotation_assignment a JOIN corpus_item i ON i.id = a.item_id {_FROM}
LEFT JOIN corpus_judgment j ON j.id = a.judgment_id
WHERE a.membership_id = %(membership)s AND a.item_id = %(item)s
"""
_ITEM = f"SELECT {_PAIR}, '' AS token, 0 AS seconds FROM corpus_item i {_FROM} WHERE i.id = %(item)s"


def desk(membership: Membership) -> tuple[Work | None, Desktop]:
    """The pair that this member holds, if any, and what stands around it; reading never claims."""
    found = _rows(_OPEN, membership=membership.pk)
    if found:
        waiting = _waiting(membership.collection_id)
        return _work(found[0], membership.collection), _desktop(found[0], waiting)
    (waits,) = _rows(_WAITING_FOR, membership=membership.pk, collection=membership.collection_id)
    return None, _desktop(_rows(_RESTING, membership=membership.pk)[0], waits["waiting"])


def _desktop(row: dict[str, Any], waiting: int) -> Desktop:
    return Desktop(row["today"], waiting, row["last_item"], row["last_what"], row["last_seconds"])


_counted: dict[int, tuple[float, int]] = {}


def _waiting(collection: int) -> int:
    """The length of the queue beside an open pair: counted once in five seconds for each process."""
    until, waiting = _counted.get(collection, (0.0, 0))
    if time.monotonic() > until:
        waiting = _rows(_WAITING, collection=collection)[0]["waiting"]
        _counted[collection] = (time.monotonic() + WAITING_FOR_SECONDS, waiting)
    return waiting


def own_work(membership: Membership, item: int) -> Work | None:
    """A pair that this member was lent, with their grade where they gave one."""
    found = _rows(_MINE, membership=membership.pk, item=item)
    return _work(found[0], membership.collection) if found else None


def conflict_work(collection: Collection, item: int) -> Work:
    """A pair for an adjudicator."""
    return _work(_rows(_ITEM, item=item)[0], collection)


def grades(collection: Collection) -> list[Grade]:
    """The buttons of a collection's scale."""
    return scale(collection.grades, collection.relevant_from)


def scale(highest: int, relevant_from: int) -> list[Grade]:
    """The buttons of a scale. Binary scales show relevant first, as the keys 1 and 0 do."""
    found = [
        Grade(value, _words(value, highest), str(value) if value < 10 else "", value >= relevant_from)
        for value in range(highest + 1)
    ]
    return found[::-1] if highest == 1 else found


def _words(value: int, highest: int) -> str:
    if highest == 1:
        return ("Not relevant", "Relevant")[value]
    if highest == 3:
        return ("Not relevant", "Slightly relevant", "Relevant", "Fully relevant")[value]
    return {0: "Not relevant", highest: "Fully relevant"}.get(value, "")


def _rows(statement: str, **values: Any) -> list[dict[str, Any]]:
    connection.ensure_connection()
    return rows(connection.connection, statement, **values)


def _work(row: dict[str, Any], collection: Collection) -> Work:
    turns = row["debate"] or []
    spans = _spans(turns)
    shown = _rounds(turns, spans)
    return Work(
        item=row["item"],
        token=row["token"],
        seconds=row["seconds"],
        why=_why(row["reason"], len(shown)),
        query=_text(row["query"]),
        answers=tuple(_text(answer) for answer in row["answers"]),
        need=row["instruction"] or collection.instruction,
        title=_text(row["title"]),
        document=_text(row["document"]),
        source=row["source"],
        rounds=shown,
        spans=tuple(spans.values()),
        comment=row.get("comment") or "",
        grade=row.get("grade"),
    )


def _why(reason: str, rounds: int) -> str:
    words = {0: "", 1: " in one round"}.get(rounds, f" in {rounds} rounds")
    return WHY[reason].format(rounds=words)


@lru_cache(maxsize=4096)
def _text(text: str) -> Text:
    return Text(text, language(text[:LANGUAGE_FROM]), direction(text))


def _spans(turns: Iterable[dict[str, Any]]) -> dict[tuple[str, int, int], Span]:
    """Each side's quoted places in the order in which they were first quoted: F1, F2 ... and A1, A2 ..."""
    found: dict[tuple[str, int, int], Span] = {}
    count = {"for": 0, "against": 0}
    for turn in turns:
        side = turn["side"]
        for quote in turn["quotes"]:
            start, end = quote.get("start"), quote.get("end")
            if start is None or end is None or (side, start, end) in found:
                continue
            count[side] += 1
            found[side, start, end] = Span(start, end, side, f"{side[0].upper()}{count[side]}")
    return found


def _rounds(turns: list[dict[str, Any]], spans: dict[tuple[str, int, int], Span]) -> tuple[DebateRound, ...]:
    seen: set[str] = set()
    said = {(turn["round"], turn["side"]): _said(turn, spans, seen) for turn in turns}
    numbers = sorted({number for number, _ in said})
    return tuple(
        DebateRound(n, (said.get((n, "for"), SILENT_FOR), said.get((n, "against"), SILENT_AGAINST))) for n in numbers
    )


def _said(turn: dict[str, Any], spans: dict[tuple[str, int, int], Span], seen: set[str]) -> Said:
    quotes = []
    for quote in turn["quotes"]:
        span = spans.get((turn["side"], quote.get("start"), quote.get("end")))
        label = span.label if span else ""
        quotes.append(Quoted(quote["text"], label, first=label not in seen))
        seen.add(label)
    says = {1: "says relevant", 0: "says not relevant"}.get(turn["verdict"], "gave no readable answer")
    return Said(turn["side"], turn["side"].capitalize(), says, turn["reason"], tuple(quotes))
