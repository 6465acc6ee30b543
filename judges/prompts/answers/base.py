"""The base class of the formats of answers in conversations. Pure."""

from pydantic import BaseModel, ConfigDict


class AnswerFormat(BaseModel):
    """The base of all formats: strict types, and no other keys.

    A validator may read `info.context`, which is the step's `expected`, or None if a stored answer is read. It raises
    ValueError with our own words for the problem, never with the answer's.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
