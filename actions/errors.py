"""Errors that a person can act on. Their message is one line: what is wrong, where, and what to do."""

from collections.abc import Iterable


class QuorumError(Exception):
    """Base of the errors that commands and pages show instead of a traceback."""

    exit_code = 1


class BadInput(QuorumError):
    """Wrong input, which changed nothing: exit code 2, or a 4xx response."""

    exit_code = 2


class BadOption(BadInput):
    """Wrong options of an action: the name of each with a sentence, which each door shows in its way.

    A page shows the sentence at the field, the API in `errors`, a command with the name of its argument.
    """

    def __init__(self, option: str, sentence: object, *, others: Iterable[tuple[str, str]] = ()) -> None:
        self.problems = [(option, str(sentence)), *others]
        sentences = dict.fromkeys(sentence for _option, sentence in self.problems)
        # Like other BadInput without the last full stop, which is added where it is shown.
        super().__init__(" ".join(sentences).removesuffix("."))


class StateConflict(QuorumError):
    """A valid request that conflicts with the present state of its object: exit code 2, or a 409."""

    exit_code = 2


class OptionWouldHelp(BadOption):
    """Wrong input that an option would allow; a command names the option at the end."""


class Deleted(QuorumError):
    """An object that somebody has just deleted: exit code 2, or a 404 (corpus.holding)."""

    exit_code = 2


class Incomplete(QuorumError):
    """Work that is incomplete (failed pairs, budget): exit code 3; a command with JSON output prints `document`."""

    exit_code = 3

    def __init__(self, message: str, document: object = None) -> None:
        super().__init__(message)
        self.document = document
