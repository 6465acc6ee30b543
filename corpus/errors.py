"""Errors that a person can act on, which the actions' library knows too."""

from actions.errors import BadInput, BadOption, Deleted, Incomplete, OptionWouldHelp, QuorumError, StateConflict

__all__ = ["BadInput", "BadOption", "Deleted", "Incomplete", "OptionWouldHelp", "QuorumError", "StateConflict"]
