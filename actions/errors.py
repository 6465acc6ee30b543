"""Errors that a person can act on. Their text is one line: what, where, what to do."""

from collections.abc import Iterable


class QuorumError(Exception):
    """Base of the errors that commands and pages show instead of a traceback."""

    exit_code = 1


class BadInput(QuorumError):
    """Wrong input, by which nothing was changed: exit 2, or a 4xx page."""

    exit_code = 2


class BadOption(BadInput):
    """Wrong options of an action: the name of each, and a sentence that knows no door.

    A page shows the sentence under the field, the API in `errors`, a command as `--budget: ...`.
    """

    def __init__(self, option: str, sentence: object, *, others: Iterable[tuple[str, str]] = ()) -> None:
        self.problems = [(option, str(sentence)), *others]
        sentences = dict.fromkeys(sentence for _option, sentence in self.problems)
        super().__init__(" ".join(sentences).removesuffix("."))  # As of all BadInput, the reader's text ends it.


class StateConflict(QuorumError):
    """A sound request that the state of things refuses: somebody or something was first. Exit 2, or a 409."""

    exit_code = 2


class OptionWouldHelp(BadOption):
    """Wrong input that an option would let pass, so that a command names the option last."""


class Deleted(QuorumError):
    """Something that was there a moment ago, and that somebody has deleted: exit 2, or a 404 (corpus.holding)."""

    exit_code = 2


class Incomplete(QuorumError):
    """Work that ended early (failed pairs, budget): exit code 3; --json prints `document`."""

    exit_code = 3

    def __init__(self, message: str, document: object = None) -> None:
        super().__init__(message)
        self.document = document
