"""A debate as pages show it: its turns, and the quotations of both sides. Pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from corpus.document_limit import Window, cut_windows
from corpus.search.text import detect_language, text_direction
from judges.domain.stance_flips import Stance, flips

LANGUAGE_FROM = 400  # A text's language is detected from so many characters.
SIDES = ("for", "against")  # In their order on a page.


@dataclass(frozen=True, slots=True)
class DebateText:
    """A text with the language and direction that its element is marked up with."""

    text: str
    lang: str = "en"
    dir: str = "ltr"


# Cached, because texts repeat on pages and between requests, and detecting a language is slow.
@lru_cache(maxsize=4096)
def text_of(text: str) -> DebateText:
    """Return a text with its language and direction."""
    return DebateText(text, detect_language(text[:LANGUAGE_FROM]), text_direction(text))


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` to `end` of the document, quoted by `side` ("for" or "against") under `label` (F1, A2)."""

    start: int
    end: int
    side: str
    label: str


@dataclass(frozen=True, slots=True)
class DebateTurn:
    """A side's turn in a round of a debate. Only pages of admins name its `judge`."""

    side: str
    verdict: int | None = None  # 1: relevant, 0: not relevant, None: no readable answer.
    reason: DebateText | None = None
    judge: str = ""
    changed_sides: bool = False  # The agent left its side without a new quotation.
    # Quoted sentences: text, label (of its span in the document; "": it is not in the document) and
    # is_first (the label in the document links to this quotation).
    quotes: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class HighlightedRound:
    """A round of a debate: both turns of one couple of agents (four agents are two couples)."""

    number: int
    couple: int
    turns: tuple[DebateTurn, ...]  # For, then against.


@dataclass(frozen=True, slots=True)
class Debate:
    """All rounds of a debate, and the spans of the document that it quotes."""

    rounds: tuple[HighlightedRound, ...]
    spans: tuple[Span, ...] = field(repr=False)
    window: Window | None = None  # The part of a long document that the debate is about; None: the whole.


# {side, round, verdict, reason, quotes: [{text, start, end}]}; optionally couple (from 0), judge and window (from 1).
Turn = Mapping[str, Any]


def debate_of(turns: Sequence[Turn], length: int = 0) -> Debate:
    """Build a debate from its turns, with "for" before "against"; `length`: characters of the document.

    1. Label each side's quoted spans in the order of their first quotation: F1, F2 ... and A1, A2 ...
    2. Find the turns in which an agent changed sides without a new quotation.
    3. Link the quotations of each turn to the spans, and put the turns into rounds.
    """
    spans: dict[tuple[str, int, int], Span] = {}
    counts = dict.fromkeys(SIDES, 0)
    stances = defaultdict[tuple[int, str], list[Stance]](list)
    for turn in turns:
        side = turn["side"]
        positions = [(quote.get("start"), quote.get("end")) for quote in turn["quotes"]]
        quoted = tuple((start, end) for start, end in positions if start is not None and end is not None)
        for start, end in quoted:
            if (side, start, end) not in spans:
                counts[side] += 1
                spans[side, start, end] = Span(start, end, side, f"{side[0].upper()}{counts[side]}")
        if turn["verdict"] is not None:
            stances[turn.get("couple", 0), side].append((turn["round"], turn["verdict"], quoted))
    changed = {
        (number, couple, side)
        for (couple, side), own_stances in stances.items()
        for number in flips(int(side == "for"), own_stances)
    }
    # Labels of the turns so far: the document links to a span's first quotation.
    seen = set[str]()
    turn_by_position: dict[tuple[int, int, str], DebateTurn] = {}
    for turn in turns:
        position = turn["round"], turn.get("couple", 0), turn["side"]
        quotes = []
        for quote in turn["quotes"]:
            span = spans.get((turn["side"], quote.get("start"), quote.get("end")))
            label = span.label if span else ""
            quotes.append({"text": quote["text"], "label": label, "is_first": label not in seen})
            seen.add(label)
        turn_by_position[position] = DebateTurn(
            side=turn["side"],
            verdict=turn["verdict"],
            reason=text_of(turn["reason"]),
            judge=turn.get("judge", ""),
            changed_sides=position in changed,
            quotes=tuple(quotes),
        )
    rounds = []
    for number, couple in sorted({position[:2] for position in turn_by_position}):
        # A side without a turn is shown as silent, except in a second couple, which three agents do not have.
        silent = {} if couple else {side: DebateTurn(side) for side in SIDES}
        sides = (turn_by_position.get((number, couple, side)) or silent.get(side) for side in SIDES)
        rounds.append(HighlightedRound(number, couple, tuple(turn for turn in sides if turn is not None)))
    number = next((turn.get("window", 0) for turn in turns), 0)
    windows = cut_windows(length) if number else []
    window = windows[number - 1] if 0 < number <= len(windows) else None
    return Debate(tuple(rounds), tuple(spans.values()), window)
