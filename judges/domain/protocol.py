"""Variants of the papers' protocols: a campaign's options beside policy, rounds and members, in one record. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from judges.domain import debate
from judges.records import DebateAgent

FILTERS = 3  # Judges of a filter; a pair is dropped only when all of them say no.


@dataclass(frozen=True, slots=True)
class Protocol:
    """A campaign's options beside policy, rounds and members. Judges are ids of their versions."""

    stance_order: str = "relevant-first"  # Agent A's opening stance (DREAM B.1).
    temperature: float | None = None  # Overrides that of the debate's agents (DREAM B.4.3).
    # Play every round even after an agreement, to study it (DREAM B.3); the first agreement still gives the label.
    play_on: bool = False
    # An agreement by an agent that changed sides without new evidence counts as disagreement.
    guard: bool = False
    adjudicator: int | None = None  # Resolves disagreements in place of people (DREAM 3.2.2).
    # Three judges of different families: if all say no, the pair is labelled so and nothing else is asked.
    filter: tuple[int, ...] = ()

    # Debate pairs that are escalated without a debate, so that people always see one.
    debate_for_people: bool = True
    batch: bool = False  # Through the providers' batch endpoints, at half the price (judges.batch).

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> "Protocol":
        """Read the options from a campaign's row; missing options have their defaults."""
        field_names = {field.name for field in fields(cls)}
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in stored.items()
        }
        return cls(**{key: value for key, value in values.items() if key in field_names})

    @property
    def stored(self) -> dict[str, Any]:
        """The options as a campaign's row stores them: only those that differ from the defaults."""
        defaults = asdict(Protocol())
        changes = {key: value for key, value in asdict(self).items() if value != defaults[key]}
        return {key: list(value) if isinstance(value, tuple) else value for key, value in changes.items()}

    @property
    def judges(self) -> tuple[int, ...]:
        """Ids of all judges that the options name."""
        return (*self.filter, *((self.adjudicator,) if self.adjudicator else ()))

    def debate_agents(self, agents: int) -> tuple[DebateAgent, ...]:
        """Return so many agents of a debate, with their opening stances."""
        return debate.debate_agents(agents, self.stance_order)


def model_family(name: str, model: str) -> str:
    """Return the family of a model: `name`, if the judges file gives it, else the first word of the model's name."""
    # gpt-5-mini: gpt; models/gemini-3: gemini; Qwen/Qwen3-8B: qwen; llama3.3-70b: llama.
    if name:
        return name.lower()
    match = re.match(r"[^\W\d_]+", model.rpartition("/")[2])
    return match[0].lower() if match else model.lower()


def same_family(members: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
    """Find two members that share a family; None if none do. `members`: (name, family)."""
    for position, (name, family) in enumerate(members):
        for other_name, other_family in members[:position]:
            if family == other_family:
                return other_name, name
    return None
