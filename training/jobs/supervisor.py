"""Supervision of a claimed job: its input files, its subprocess, its progress and its outcome."""

import logging
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from corpus.errors import BadInput, QuorumError
from jobs import leases
from jobs.processes import spawn_child, stop_children
from store.files import publish
from store.objects import StoreUnavailable
from training.jobs import gpus, inputs, outcomes, shared_folder
from training.models import Job
from training.recipes.job_folder import CANCELLED, FINISHED, REFUSED, JobFolder
from training.recipes.table import recipe_options

LOOK_S = 0.5
# The time that a cancelled job has to save a checkpoint before it is killed, which leaves it with an older one.
PATIENCE_S = 9.0

logger = logging.getLogger(__name__)


def supervise_job(job: Job, shutting_down: Callable[[], bool]) -> None:
    """Work on a claimed job until it is over, or requeued because this worker shuts down.

    1. Fetch the files that the job needs, and write its inputs from the database.
    2. Run its subprocess on free GPUs, or on the CPU, and store its progress.
    3. Store how it ended, with its outcome, unless the job has been requeued or another worker has it.
    """
    folder = JobFolder(Path(job.folder))
    with leases.Lease(job, shutting_down) as lease:
        try:
            shared_folder.fetch_needed(job, folder)
            # Files that only another machine has.
            paths = [folder.path / "job.json", *shared_folder.named_paths(job.options)]
            if missing := next((path for path in paths if not path.exists()), None):
                message = _(
                    "this trainer (%(host)s) cannot see %(file)s: set QUORUM_STORE and keep such files below "
                    "QUORUM_VAR (docs/operators.md)"
                )
                leases.finish(job, Job.State.FAILED, error=message % {"host": socket.gethostname(), "file": missing})
                return
            inputs.write_inputs(job, folder)
            code = _run_on_device(lease, job, folder, shutting_down)
        except StoreUnavailable as error:
            leases.finish(job, Job.State.FAILED, error=str(error))
            return
        except QuorumError as error:
            leases.finish(job, Job.State.REFUSED, error=" ".join(str(error).split()))
            return
        if code is not None:
            _record_end(job, folder, code)


def _run_on_device(lease: leases.Lease, job: Job, folder: JobFolder, shutting_down: Callable[[], bool]) -> int | None:
    """Wait until the job's GPUs are free, and run its subprocess on them; return its exit code.

    None if the job was requeued or another worker has it. Raises BadInput if the worker has too few GPUs.
    """
    count = count_gpus(job)
    if count > len(gpus.visible_gpus()):
        raise BadInput(
            _("The job asks for %(count)s GPUs and this worker has %(there)s: start it with fewer processes.")
            % {"count": count, "there": len(gpus.visible_gpus())}
        )
    while True:
        with gpus.claim_gpus(count) as devices:
            if len(devices) == count:
                return _run_subprocess(lease, folder, shutting_down, devices)
        time.sleep(LOOK_S)
        # Renewed while the job waits, or another worker would claim it.
        if not lease.renew(phase=_("waiting for free GPUs")):
            return None
        if Job.objects.filter(pk=job.pk, cancel_asked=True).exists():
            return CANCELLED
        if shutting_down():
            leases.give_back(job, phase=_("waiting to resume"))
            return None


def count_gpus(job: Job) -> int:
    """Return the number of GPUs that a job needs: none on the CPU, else one for each process."""
    if job.device != "cuda":
        return 0
    if job.kind != Job.Kind.TRAIN:
        return 1
    return recipe_options(job.options["recipe"], job.options.get("options") or {}).processes


def _run_subprocess(
    lease: leases.Lease, folder: JobFolder, shutting_down: Callable[[], bool], devices: Sequence[str]
) -> int | None:
    """Run the job's subprocess and return its exit code; None if the job was requeued or another worker has it."""
    job = lease.job
    # Unbuffered, so that the page shows the log as it grows. A job on the CPU sees no GPU, so it uses no GPU memory.
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "CUDA_VISIBLE_DEVICES": ",".join(devices)}
    command = [sys.executable, "-m", "training.trainer", str(folder.path)]
    with folder.log.open("a") as log:
        child = spawn_child(command, environment, cwd=settings.BASE_DIR, stdout=log, stderr=log)
    terminated_at = 0.0
    # The publisher publishes the last files before another worker can claim the job.
    with shared_folder.FolderPublisher(lease, folder):
        while (code := child.poll()) is None:
            time.sleep(LOOK_S)
            is_shutting_down = shutting_down()
            if not lease.renew(**_read_progress(folder)):
                # Another worker has the job: the child is killed, since two processes must not write to one folder.
                stop_children([child], patience=0)
                return None
            is_stopped = is_shutting_down or Job.objects.filter(pk=job.pk, cancel_asked=True).exists()
            if not terminated_at and is_stopped:
                # Only once: after SIGTERM the child saves a checkpoint, which takes time.
                child.terminate()
                terminated_at = time.monotonic()
            if terminated_at and time.monotonic() - terminated_at > PATIENCE_S:
                child.kill()
    # A worker that shuts down requeues its job, unless somebody has cancelled it at the same time.
    job.refresh_from_db(fields=["cancel_asked"])
    if shutting_down() and not job.cancel_asked and code != FINISHED:
        leases.give_back(job, phase=_("waiting to resume"))
        return None
    return code


def _read_progress(folder: JobFolder) -> dict[str, Any]:
    """Return the columns of the job's row that show the state of its subprocess."""
    state = folder.state
    texts = {column: str(state[column])[:most] for column, most in (("phase", 200), ("words", 50)) if state.get(column)}
    counts = {"done": "steps", "total": "total"}
    return {**texts, **{column: int(state[key]) for column, key in counts.items() if key in state}}


def _record_end(job: Job, folder: JobFolder, code: int) -> None:
    """Store how the subprocess ended, and the outcome of a finished job."""
    state, progress = folder.state, _read_progress(folder)
    error = str(state.get("error") or "")
    if code == FINISHED:
        # Stored before the job is finished, so that a finished job always has its outcome.
        job.result, job.words = dict(state.get("result") or {}), progress.get("words", job.words)
        try:
            # The model's files are published before its row is created.
            if job.kind == Job.Kind.TRAIN:
                publish(Path(job.options["out"]))
            result = outcomes.store_outcome(job, folder)
            shared_folder.publish_results(folder)
        except (QuorumError, StoreUnavailable) as problem:
            leases.finish(job, Job.State.FAILED, error=" ".join(str(problem).split()), **progress)
            return
        leases.finish(job, Job.State.FINISHED, result=result, error="", **progress)
    elif code == CANCELLED or job.cancel_asked:
        leases.finish(job, Job.State.CANCELLED, **{**progress, "phase": "cancelled"})
    elif code == REFUSED:
        leases.finish(job, Job.State.REFUSED, error=error, **progress)
    # A negative code is the signal that killed the process.
    elif code < 0 and job.attempts < leases.MOST_ATTEMPTS:
        # Killed by the kernel, for lack of memory, or by a person: the next claim resumes from the checkpoint.
        logger.warning("%s was killed by signal %s and will continue from its checkpoint", job, -code)
        leases.give_back(job, attempts=job.attempts, **progress)
    else:
        leases.finish(job, Job.State.FAILED, error=error or folder.last_log_line(), **progress)
