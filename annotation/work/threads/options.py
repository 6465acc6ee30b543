"""Options of an answer to a comment or flag."""

from typing import Self

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from pydantic import model_validator

from actions.errors import BadOption
from actions.options import Options, option
from annotation.models.threads import ThreadMessage


class ReplyOptions(Options):
    """An answer to a comment or flag: a text, what became of it, or both."""

    text: str = option(
        gettext_lazy("Reply"), gettext_lazy("The annotator reads it with your name."), default="", at_most=2000
    )
    outcome: ThreadMessage.Outcome | None = option(
        gettext_lazy("Outcome"), gettext_lazy("What became of the comment or flag."), default=None
    )

    @model_validator(mode="after")
    def say_something(self) -> Self:
        """Refuse an answer without a text and an outcome."""
        if not self.text.strip() and self.outcome is None:
            raise BadOption("text", _("Write a reply or choose an outcome."))
        return self
