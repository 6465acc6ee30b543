"""Filling the holes of the qrels: the pool of some runs, judged by a policy and by people, as a new version."""

from benchmark.filling.funnel import Funnel, Round, progress
from benchmark.filling.planning import DEEPEST, PEOPLE, Preview, configuration, estimate, preview
from benchmark.filling.sending import send
from benchmark.filling.service import advance, advance_due, cancel, finish, start, unfinished

__all__ = [
    "DEEPEST",
    "PEOPLE",
    "Funnel",
    "Preview",
    "Round",
    "advance",
    "advance_due",
    "cancel",
    "configuration",
    "estimate",
    "finish",
    "preview",
    "progress",
    "send",
    "start",
    "unfinished",
]
