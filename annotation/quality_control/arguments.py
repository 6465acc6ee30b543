"""Arguments for and against a gold pair, each agent keeping its stance: so that easy pairs can be checks too.

A debate about an easy pair agrees, so it never looks like one that people are asked about. Configured models write such
arguments (annotation.quality_control.gold_reasons); else the offline pair does.
"""

from dataclasses import asdict
from typing import Any

from annotation.quality_control.matching import Form
from corpus.models import Pair
from judges.domain import debate
from judges.offline import debate as offline_debate
from judges.offline.judges import UniformLexicon
from judges.records import DebateAgent, Inputs, Turn


def list_agents(form: Form) -> tuple[DebateAgent, ...]:
    """Return the agents of a debate of this form."""
    return debate.debate_agents(2 * form.couples)


def of_models(pair: Pair, form: Form) -> list[dict[str, Any]] | None:
    """Return what models argued about a pair, of more rounds the first ones; None where they did not."""
    for kept in pair.gold_arguments.all():
        if kept.couples == form.couples and kept.rounds >= form.rounds:
            return [turn for turn in kept.turns if turn["round"] <= form.rounds]
    return None


def offline_turns(pair: Pair, form: Form) -> list[dict[str, Any]]:
    """Return what the offline agents say about a pair whose query and document are loaded."""
    inputs = Inputs(
        query=pair.query.text,
        answers=tuple(pair.query.answers),
        title=pair.document.title,
        document=pair.document.text,
    )
    turns: list[dict[str, Any]] = []
    before: dict[DebateAgent, Turn] | None = None
    for number in range(1, form.rounds + 1):
        # `before` on the right is the round before: both sides answer that one, and not each other.
        before = {
            seat: offline_debate.argue_turn(seat, inputs, UniformLexicon(), before, gives_in=False)
            for seat in list_agents(form)
        }
        turns += stored_turns(before, number)
    return turns


def stored_turns(spoken: dict[DebateAgent, Turn], number: int) -> list[dict[str, Any]]:
    """Return the turns of a round as items keep them."""
    return [
        {
            "side": seat.side.value,
            "round": number,
            "couple": seat.couple,
            "verdict": said.verdict,
            "reason": said.reason,
            "quotes": [asdict(quote) for quote in said.quotes],
        }
        for seat, said in spoken.items()
    ]
