"""Filling the holes of the qrels: the pool of some runs, judged by a policy and by people, as a new version."""

from benchmark.hole_filling.funnel import Funnel, FunnelRound, progress
from benchmark.hole_filling.planning import DEEPEST, PEOPLE, Preview, configuration, estimate, preview
from benchmark.hole_filling.sending import send
from benchmark.hole_filling.stages import advance, ask_to_finish, cancel, finish, finish_waiting, look, unfinished
from benchmark.hole_filling.starting import prepare, start
from benchmark.hole_filling.tasks import advance_due

__all__ = [
    "DEEPEST",
    "PEOPLE",
    "Funnel",
    "FunnelRound",
    "Preview",
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
