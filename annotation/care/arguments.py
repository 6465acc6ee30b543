"""Arguments for and against a gold pair, written once: so that easy pairs of both labels can be checks too.

A debate about an easy pair agrees, so it never looks like one that people are asked about. Here each side keeps its
stance through all rounds. What a gold set brought with it (annotation.care.gold) serves where it has the form that is
needed; else the offline pair writes.
"""

from dataclasses import asdict
from typing import Any

from annotation.care.models import GoldPair
from corpus.models import Pair
from judges import offline_debate
from judges.debate import AGAINST, FOR
from judges.offline import Alone
from judges.quotes import locate
from judges.records import Inputs, Seat, Side, Turn

SEATS = {Side.FOR: FOR, Side.AGAINST: AGAINST}


def written(pair: Pair, rounds: int, couples: int = 1) -> list[dict[str, Any]]:
    """One turn for and one against of each couple in each round. The pair's query and document are loaded."""
    kept = GoldPair.objects.filter(pair=pair).exclude(turns=[]).order_by("-pk").values_list("turns", flat=True).first()
    if kept and couples == 1 and max(turn["round"] for turn in kept) == rounds:
        return list(kept)
    inputs = Inputs(
        query=pair.query.text,
        answers=tuple(pair.query.answers),
        title=pair.document.title,
        document=pair.document.text,
    )
    turns: list[dict[str, Any]] = []
    before: dict[Any, Turn] | None = None
    for number in range(1, rounds + 1):
        spoken: dict[Any, Turn] = {}
        for side, seat in SEATS.items():
            said = offline_debate.stand(side, inputs, Alone(), before)
            spoken[seat] = Turn(
                said.verdict, said.reason, tuple(locate(quote, inputs.document) for quote in said.quotes)
            )
        before = spoken
        turns += [_turn(seat, number, spoken[seat], couple) for couple in range(couples) for seat in SEATS.values()]
    return turns


def _turn(seat: Seat, number: int, said: Turn, couple: int) -> dict[str, Any]:
    return {
        "side": seat.side.value,
        "round": number,
        "couple": couple,
        "verdict": said.verdict,
        "reason": said.reason,
        "quotes": [asdict(quote) for quote in said.quotes],
    }


def elsewhere(turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Turns of another pair's debate, for a pair that they are not about: no quotation is in its document."""
    return [
        {**turn, "quotes": [{"text": quote["text"], "start": None, "end": None} for quote in turn["quotes"]]}
        for turn in turns
    ]


def length(turns: list[dict[str, Any]]) -> int:
    """Characters of reasons and quotations, as annotation.care.checks counts those of a stored debate, roughly."""
    return sum(len(turn["reason"]) + sum(len(quote["text"]) + 40 for quote in turn["quotes"]) for turn in turns)
