"""The base of all formats of conversations' answers. Pure."""

from pydantic import BaseModel, ConfigDict


class AnswerFormat(BaseModel):
    """The base of all formats: to the letter, with no other keys.

    A validator may read `info.context`, the step's `expected` (None when a stored answer is read
    back): it raises ValueError with our own words for what is wrong, never with the answer's.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
