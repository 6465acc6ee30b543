"""A debate as pages show it: turns, and quotes tied to the sentences of the document. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from annotation.judging.highlighting import Span
from corpus.search.text import direction, language
from judges import records
from judges.domain import stance_flips
from judges.domain.verdicts import Gone
from judges.records import Quote, Seat, Side

LANGUAGE_FROM = 400
"""Characters that show a text's language well enough."""


@dataclass(frozen=True, slots=True)
class DebateText:
    """A text with the language and direction that its element is marked up with."""

    text: str
    lang: str = "en"
    dir: str = "ltr"


@lru_cache(maxsize=4096)
def text_of(text: str) -> DebateText:
    """The text with its language and direction, found once for a process."""
    return DebateText(text, language(text[:LANGUAGE_FROM]), direction(text))


@dataclass(frozen=True, slots=True)
class DebateQuote:
    """A sentence that a side quotes. `label` names its place in the document; "": it is not there."""

    text: str
    label: str = ""
    is_first: bool = False
    """The label in the document links back to this one."""


@dataclass(frozen=True, slots=True)
class DebateTurn:
    """One side's turn in a round. `judge` is named to admins only."""

    side: str
    verdict: int | None = None
    """1: relevant, 0: not relevant, None: no readable answer."""
    reason: DebateText | None = None
    judge: str = ""
    changed_sides: bool = False
    """Without a new quote."""
    quotes: tuple[DebateQuote, ...] = ()


@dataclass(frozen=True, slots=True)
class DebateRound:
    """Both turns of a round, by one of its couples of agents (two of them where four debate)."""

    number: int
    couple: int
    turns: tuple[DebateTurn, ...]
    """For, then against."""


@dataclass(frozen=True, slots=True)
class Debate:
    """All rounds, and what both sides quote of the document."""

    rounds: tuple[DebateRound, ...]
    spans: tuple[Span, ...] = field(repr=False)


Turn = Mapping[str, Any]
"""{side, round, verdict, reason, quotes: [{text, start, end}]} and optionally couple (from 0) and judge."""

Places = dict[tuple[str, int, int], Span]


def debate_of(turns: Sequence[Turn]) -> Debate:
    """Turns in the order in which they were said, for before against."""
    spans, seen, changed = _spans(turns), set[str](), _changed(turns)
    said = {place: _said(turn, spans, seen, place in changed) for turn in turns for place in (_place(turn),)}
    places = sorted({(number, couple) for number, couple, _ in said})
    rounds = tuple(DebateRound(*place, _both(said, *place)) for place in places)
    return Debate(rounds, tuple(spans.values()))


def final_round(turns: Sequence[Turn]) -> list[Turn]:
    """What both sides said last; of no turns none."""
    last = max((turn["round"] for turn in turns), default=0)
    return [turn for turn in turns if turn["round"] == last]


def _both(said: Mapping[tuple[int, int, str], DebateTurn], number: int, couple: int) -> tuple[DebateTurn, ...]:
    """For before against. A silent side is shown as such, but three agents make no second couple."""
    turns = (said.get((number, couple, side)) or (None if couple else DebateTurn(side)) for side in ("for", "against"))
    return tuple(turn for turn in turns if turn is not None)


def _place(turn: Turn) -> tuple[int, int, str]:
    return turn["round"], turn.get("couple", 0), turn["side"]


def _changed(turns: Sequence[Turn]) -> set[tuple[int, int, str]]:
    """Rounds, couples and sides whose turn changed sides without new evidence (judges.domain.stance_flips)."""
    spoken: dict[tuple[int, Seat], records.Turn | Gone] = {}
    for turn in turns:
        quotes = tuple(Quote("", quote.get("start"), quote.get("end")) for quote in turn["quotes"])
        verdict = turn["verdict"]
        heard = Gone("unparsed") if verdict is None else records.Turn(verdict, "", quotes)
        spoken[turn["round"], Seat(Side(turn["side"]), turn.get("couple", 0))] = heard
    return {(round, seat.couple, seat.side.value) for round, seat in stance_flips.without_evidence(spoken)}


def _spans(turns: Sequence[Turn]) -> Places:
    """Each side's quoted places in the order in which they were first quoted: F1, F2 ... and A1, A2 ..."""
    found: Places = {}
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


def _said(turn: Turn, spans: Places, seen: set[str], changed: bool) -> DebateTurn:
    side, quotes = turn["side"], []
    for quote in turn["quotes"]:
        span = spans.get((side, quote.get("start"), quote.get("end")))
        label = span.label if span else ""
        quotes.append(DebateQuote(quote["text"], label, is_first=label not in seen))
        seen.add(label)
    return DebateTurn(
        side=side,
        verdict=turn["verdict"],
        reason=text_of(turn["reason"]),
        judge=turn.get("judge", ""),
        changed_sides=changed,
        quotes=tuple(quotes),
    )
