"""The doors of each action: where a test finds its form, its command and its operation."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmark.hole_filling import services as hole_filling
from training.curves import services as curves
from training.jobs import services as trainings


@dataclass(frozen=True)
class Doors:
    """Doors of an action: its operation, its command, and the sets of options that its pages show."""

    operation: str = ""
    command: str = ""
    forms: tuple[str, ...] = ()  # "module.NAME" of the options of a form that shows not all.
    page: bool = True


DOORS: dict[Callable[..., Any], Doors] = {
    hole_filling.start_filling: Doors(
        operation="POST /collections/{slug:name}/hole-fillings",
        command="holes",
        forms=("benchmark.hole_filling.views.TO_FILL", "benchmark.hole_filling.views.TO_SEND"),
    ),
    trainings.start_training: Doors(operation="POST /collections/{slug:name}/trainings", command="train"),
    curves.start_curve: Doors(command="learning_curve"),
}
