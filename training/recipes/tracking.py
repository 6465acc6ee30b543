"""Trackers of experiments, W&B and MLflow: the check that one is installed, and its environment (pure)."""

import os
from importlib.util import find_spec
from pathlib import Path

from charts.translation import gettext_noop as _
from training.recipes.refusals import RefusedTraining


def check_tracker(name: str) -> None:
    """Raise RefusedTraining for a tracker whose package is not installed."""
    if name != "none" and find_spec(name) is None:
        message = _(
            "Tracking %(name)s needs the package %(name)s, which is not installed: run pip install %(name)s where "
            "the trainer runs, or leave tracking at none"
        )
        raise RefusedTraining(message, name=name)


def tracker_environment(folder: Path) -> dict[str, str]:
    """Return default environment variables that make W&B and MLflow write into a job's folder."""
    return {
        "WANDB_DIR": str(folder),
        "WANDB_MODE": "online" if os.environ.get("WANDB_API_KEY") else "offline",
        "WANDB_PROJECT": "quorum",
        "MLFLOW_TRACKING_URI": (folder / "mlruns").resolve().as_uri(),
        "MLFLOW_EXPERIMENT_NAME": "quorum",
        "MLFLOW_ALLOW_FILE_STORE": "true",  # Newer versions require it for writing to a folder.
    }
