"""`python -m training.trainer FOLDER`: work on the job in a folder, without Django and a database (docs/adr/0012).

SIGTERM saves a checkpoint and ends the process; when it is started again, it resumes from the newest checkpoint. Exit
codes: 0 finished, 1 failed, 2 refused, 3 cancelled.
"""

import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from corpus.errors import BadInput
from jobs.processes import watch_parent
from training.recipes.job_folder import CANCELLED, FAILED, FINISHED, REFUSED, JobFolder, TrainingCancelled

QUIET = {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "TOKENIZERS_PARALLELISM": "false", "TRANSFORMERS_VERBOSITY": "error"}


def watch_sigterm() -> Callable[[], bool]:
    """Return a function that returns whether SIGTERM was received."""
    received: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: received.append(number))
    return lambda: bool(received)


def main(path: Path) -> int:
    """Work on the job in a folder, and return the exit code."""
    # Set before transformers is imported, which reads them only then.
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    watch_parent()
    stop = watch_sigterm()
    folder = JobFolder(path)
    # If several processes share a training (trainers/processes.py), the first one writes the state.
    is_first = os.environ.get("RANK", "0") == "0"
    try:
        if is_first:
            folder.update_state(state="running", phase="starting", error="")
        result = run_job(folder, stop)
    except BadInput as error:
        return _report_end(folder, is_first, "refused", REFUSED, " ".join(str(error).split()))
    except TrainingCancelled:
        return _report_end(folder, is_first, "cancelled", CANCELLED, "")
    except BaseException as error:
        traceback.print_exc()
        return _report_end(folder, is_first, "failed", FAILED, " ".join(f"Unexpected error: {error}".split())[:1000])
    if is_first:
        folder.update_state(state="finished", phase="finished", error="", result=result)
    return FINISHED


def _report_end(folder: JobFolder, is_first: bool, state: str, code: int, error: str) -> int:
    if error:
        print(error, file=sys.stderr)  # noqa: T201
    if is_first:
        folder.update_state(state=state, phase=state, error=error)
    return code


def run_job(folder: JobFolder, stop: Callable[[], bool]) -> dict[str, Any]:
    """Do a job by its kind, and return the result for its row."""
    kind = folder.job.get("kind", "train")
    if kind == "train":
        from training.trainers.training import train_model

        return train_model(folder, stop)
    if kind == "generate":
        from training.trainers.outputs_job import write_outputs

        return write_outputs(folder, stop)
    from training.trainers.scoring_job import score_pairs

    return score_pairs(folder, stop)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
