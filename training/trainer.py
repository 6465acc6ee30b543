"""`python -m training.trainer FOLDER`: works on the job of a folder until it is finished, refused, cancelled or failed.

No Django and no database: a job folder in, a model folder out (docs/adr/0012). SIGTERM saves a
checkpoint and ends. Exit codes: 0 finished, 1 our fault, 2 refused, 3 cancelled. Started again, it
goes on from the newest checkpoint.
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
    """Return what says whether SIGTERM came; whoever works asks it between two pieces of work."""
    came: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: came.append(number))
    return lambda: bool(came)


def main(path: Path) -> int:
    """Work on the job of a folder; return the exit code."""
    # Before transformers is imported, which reads them only then.
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    watch_parent()
    stop = watch_sigterm()
    folder = JobFolder(path)
    # Processes may share a training (trainers/processes.py); the first writes the state.
    leads = os.environ.get("RANK", "0") == "0"
    try:
        if leads:
            folder.update_state(state="running", phase="starting", error="")
        found = run_job(folder, stop)
    except BadInput as error:
        return _report_end(folder, leads, "refused", REFUSED, " ".join(str(error).split()))
    except TrainingCancelled:
        return _report_end(folder, leads, "cancelled", CANCELLED, "")
    except BaseException as error:
        traceback.print_exc()
        return _report_end(folder, leads, "failed", FAILED, " ".join(f"Unexpected error: {error}".split())[:1000])
    if leads:
        folder.update_state(state="finished", phase="finished", error="", result=found)
    return FINISHED


def _report_end(folder: JobFolder, leads: bool, state: str, code: int, error: str) -> int:
    if error:
        print(error, file=sys.stderr)  # noqa: T201
    if leads:
        folder.update_state(state=state, phase=state, error=error)
    return code


def run_job(folder: JobFolder, stop: Callable[[], bool]) -> dict[str, Any]:
    """Train and publish, write, or score; the result for the job's row."""
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
