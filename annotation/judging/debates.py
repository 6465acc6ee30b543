"""A debate as pages show it: its turns, and what both sides quote of the document. Pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from corpus.document_limit import Window, cut_windows
from corpus.search.text import detect_language, text_direction
from judges.domain.stance_flips import Stance, flips

LANGUAGE_FROM = 400  # Characters that show a text's language well enough.
SIDES = ("for", "against")  # As they stand beside each other on a page.


@dataclass(frozen=True, slots=True)
class DebateText:
    """A text with the language and direction that its element is marked up with."""

    text: str
    lang: str = "en"
    dir: str = "ltr"


# Texts repeat on pages and between requests, and detecting a language is slower.
@lru_cache(maxsize=4096)
def text_of(text: str) -> DebateText:
    """Return a text with its language and direction, detected once in a process."""
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
    """A side's turn in a round of a debate. `judge` is named to admins only."""

    side: str
    verdict: int | None = None  # 1: relevant, 0: not relevant, None: no readable answer.
    reason: DebateText | None = None
    judge: str = ""
    changed_sides: bool = False  # Without a new quote.
    # Sentences that it quotes: text, label (its place in the document; "": it is not there), and
    # is_first (the label in the document links back to this one).
    quotes: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class HighlightedRound:
    """A round of a debate for display: both turns of one couple of agents (with four agents there are two couples)."""

    number: int
    couple: int
    turns: tuple[DebateTurn, ...]  # For, then against.


@dataclass(frozen=True, slots=True)
class Debate:
    """All rounds, and what both sides quote of the document."""

    rounds: tuple[HighlightedRound, ...]
    spans: tuple[Span, ...] = field(repr=False)
    window: Window | None = None  # The part of a long document that it is about; None: the document.


# {side, round, verdict, reason, quotes: [{text, start, end}]}; optionally couple (from 0), judge and window (from 1).
Turn = Mapping[str, Any]

Places = dict[tuple[str, int, int], Span]


def debate_of(turns: Sequence[Turn], length: int = 0) -> Debate:
    """Build the debate of turns as they were said, for before against; `length`: characters of the document."""
    # `seen` travels through all turns: a place's first quotation is linked from the document.
    spans, seen, changed = _quoted_spans(turns), set[str](), _find_stance_flips(turns)
    said: dict[tuple[int, int, str], DebateTurn] = {}
    for turn in turns:
        place = turn["round"], turn.get("couple", 0), turn["side"]
        quotes = []
        for quote in turn["quotes"]:
            span = spans.get((turn["side"], quote.get("start"), quote.get("end")))
            label = span.label if span else ""
            quotes.append({"text": quote["text"], "label": label, "is_first": label not in seen})
            seen.add(label)
        said[place] = DebateTurn(
            side=turn["side"],
            verdict=turn["verdict"],
            reason=text_of(turn["reason"]),
            judge=turn.get("judge", ""),
            changed_sides=place in changed,
            quotes=tuple(quotes),
        )
    rounds = []
    for number, couple in sorted({place[:2] for place in said}):
        # A silent side is shown as such, but three agents make no second couple.
        silent = {} if couple else {side: DebateTurn(side) for side in SIDES}
        both = (said.get((number, couple, side)) or silent.get(side) for side in SIDES)
        rounds.append(HighlightedRound(number, couple, tuple(turn for turn in both if turn is not None)))
    number = next((turn.get("window", 0) for turn in turns), 0)
    windows = cut_windows(length) if number else []
    return Debate(
        tuple(rounds), tuple(spans.values()), windows[number - 1] if number <= len(windows) and number else None
    )


def _find_stance_flips(turns: Sequence[Turn]) -> set[tuple[int, int, str]]:
    """Rounds, couples and sides whose turn changed sides without new evidence."""
    said = defaultdict[tuple[int, str], list[Stance]](list)
    for turn in turns:
        if turn["verdict"] is not None:
            quotes = [(quote.get("start"), quote.get("end")) for quote in turn["quotes"]]
            found = tuple((start, end) for start, end in quotes if start is not None and end is not None)
            said[turn.get("couple", 0), turn["side"]].append((turn["round"], turn["verdict"], found))
    # The side's own stance first: `flips` tells when an agent leaves it without a new quotation.
    agents = said.items()
    return {(number, couple, side) for (couple, side), own in agents for number in flips(int(side == "for"), own)}


def _quoted_spans(turns: Sequence[Turn]) -> Places:
    """Label each side's quoted places in the order in which they were first quoted: F1, F2 ... and A1, A2 ..."""
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
