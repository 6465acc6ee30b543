"""Errors that a person can act on; they are defined in `actions`, which does not import apps."""

from actions.errors import BadInput, BadOption, Deleted, Incomplete, OptionWouldHelp, QuorumError, StateConflict

__all__ = ["BadInput", "BadOption", "Deleted", "Incomplete", "OptionWouldHelp", "QuorumError", "StateConflict"]
