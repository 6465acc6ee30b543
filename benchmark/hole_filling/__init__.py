"""Hole filling: pooled pairs without a judgment are judged by a policy and by people, as new qrels."""

from benchmark.hole_filling.funnel import Funnel, compute_funnel
from benchmark.hole_filling.planning import (
    DEEPEST,
    PEOPLE,
    estimate_cost,
    judging_configuration,
    preview_filling,
)
from benchmark.hole_filling.stages import (
    advance_filling,
    ask_to_finish,
    cancel_filling,
    current_funnel,
    finish_filling,
    finish_requested,
    unfinished_fillings,
)
from benchmark.hole_filling.starting import advance_due, prepare_filling, send_pairs, start_filling

__all__ = [
    "DEEPEST",
    "PEOPLE",
    "Funnel",
    "advance_due",
    "advance_filling",
    "ask_to_finish",
    "cancel_filling",
    "compute_funnel",
    "current_funnel",
    "estimate_cost",
    "finish_filling",
    "finish_requested",
    "judging_configuration",
    "prepare_filling",
    "preview_filling",
    "send_pairs",
    "start_filling",
    "unfinished_fillings",
]
