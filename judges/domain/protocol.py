"""Options of a campaign that differ from the default: the papers' ways, in one record. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from judges.domain import debate
from judges.records import DebateAgent

FILTERS = 3  # Judges of a filter; a pair is dropped only when all of them say no.


@dataclass(frozen=True, slots=True)
class Protocol:
    """Options of a campaign but policy, rounds and members. Judges: ids of versions."""

    stance_order: str = "relevant-first"  # Which stance agent A begins with (DREAM B.1).
    temperature: float | None = None  # Of the debate's agents, in place of their own (DREAM B.4.3).
    # Ask every round even after an agreement, to study it (DREAM B.3); the first agreement gives the label still.
    play_on: bool = False
    # An agreement by an agent that changed sides without new evidence counts as disagreement.
    guard: bool = False
    adjudicator: int | None = None  # Settles disagreements in place of people (DREAM 3.2.2).
    # Three judges of different families: where all say no, the pair is labelled so and nothing else is asked.
    filter: tuple[int, ...] = ()

    # What goes to people without a debate gets one, so that nobody meets a pair without it.
    debate_for_people: bool = True
    batch: bool = False  # Through the providers' batch endpoints, at half the price (judges.batch).

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> "Protocol":
        """Read the options from a campaign's row; what is missing has its default."""
        known = {field.name for field in fields(cls)}
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in stored.items()
        }
        return cls(**{key: value for key, value in values.items() if key in known})

    @property
    def stored(self) -> dict[str, Any]:
        """The options as a campaign's row keeps them: only those that differ, so that equal campaigns are equal."""
        default = asdict(Protocol())
        told = {key: value for key, value in asdict(self).items() if value != default[key]}
        return {key: list(value) if isinstance(value, tuple) else value for key, value in told.items()}

    @property
    def judges(self) -> tuple[int, ...]:
        """Ids of all judges that it names."""
        return (*self.filter, *((self.adjudicator,) if self.adjudicator else ()))

    def seats(self, agents: int) -> tuple[DebateAgent, ...]:
        """Return the places of the debate's agents."""
        return debate.debate_agents(agents, self.stance_order)


def model_family(name: str, model: str) -> str:
    """Return the family of models that a model belongs to: as the judges file says, else the first word of its name."""
    # gpt-5-mini: gpt; models/gemini-3: gemini; Qwen/Qwen3-8B: qwen; llama3.3-70b: llama.
    if name:
        return name.lower()
    found = re.match(r"[^\W\d_]+", model.rpartition("/")[2])
    return found[0].lower() if found else model.lower()


def same_family(members: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
    """Find two members that share a family; None if none do. `members`: (name, family)."""
    for place, (name, kind) in enumerate(members):
        for other, taken in members[:place]:
            if kind == taken:
                return other, name
    return None
