"""What judges are asked: versioned prompt files, rendered with the untrusted text fenced as data (DREAM 3.1, A.1)."""

from judges.prompts.answering import fitted
from judges.prompts.render import (
    DOCUMENT_LIMIT,
    GRADED_SCHEMAS,
    TEXT_LIMIT,
    TURN_SCHEMA,
    VOTE_SCHEMA,
    adjudicate_prompt,
    ballot,
    decision_prompt,
    fence,
    inputs_block,
    levels,
    relevant_grade,
    repair_prompt,
    repeated,
    turn_prompt,
    versions,
    vote_prompt,
)

__all__ = [
    "DOCUMENT_LIMIT",
    "GRADED_SCHEMAS",
    "TEXT_LIMIT",
    "TURN_SCHEMA",
    "VOTE_SCHEMA",
    "adjudicate_prompt",
    "ballot",
    "decision_prompt",
    "fence",
    "fitted",
    "inputs_block",
    "levels",
    "relevant_grade",
    "repair_prompt",
    "repeated",
    "turn_prompt",
    "versions",
    "vote_prompt",
]
