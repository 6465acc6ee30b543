"""Filling the holes of the qrels: the pool of some runs, judged by a policy and by people, as a new version."""

from benchmark.filling.funnel import Funnel, Round, progress
from benchmark.filling.planning import DEEPEST, PEOPLE, Preview, configuration, estimate, preview
from benchmark.filling.sending import send
from benchmark.filling.standing import advance, ask_to_finish, cancel, finish, finish_waiting, look, unfinished
from benchmark.filling.starting import prepare, start
from benchmark.filling.working import advance_due

__all__ = [
    "DEEPEST",
    "PEOPLE",
    "Funnel",
    "Preview",
    "Round",
    "advance",
    "advance_due",
    "ask_to_finish",
    "cancel",
    "configuration",
    "estimate",
    "finish",
    "finish_waiting",
    "look",
    "prepare",
    "preview",
    "progress",
    "send",
    "start",
    "unfinished",
]
