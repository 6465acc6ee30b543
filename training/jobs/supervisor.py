"""Supervision of a job from the queue to its end: files from the database, a subprocess, its progress, its outcome."""

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
from training.jobs.folder import CANCELLED, FINISHED, REFUSED, JobFolder
from training.models import Job
from training.recipes.table import recipe_options

LOOK_S = 0.5
# Of a cancelled job, to save a checkpoint; then it is killed, and an older checkpoint stands.
PATIENCE_S = 9.0

logger = logging.getLogger(__name__)


def supervise_job(job: Job, shutting_down: Callable[[], bool]) -> None:
    """Work on a claimed job until it is over, or requeued because this worker shuts down."""
    folder = JobFolder(Path(job.folder))
    with leases.Lease(job, shutting_down) as lease:
        try:
            shared_folder.fetch_needed(job, folder)
            # A file of the job or an earlier one that this machine does not have.
            paths = [folder.path / "job.json", *shared_folder.named_paths(job.options)]
            if missing := next((path for path in paths if not path.exists()), None):
                why = _(
                    "this trainer (%(host)s) cannot see %(file)s: set QUORUM_STORE and keep such files below "
                    "QUORUM_VAR (docs/operators.md)"
                )
                leases.finish(job, Job.State.FAILED, error=why % {"host": socket.gethostname(), "file": missing})
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
    """Return what _run_subprocess does, with the job's own GPUs; wait for those in use."""
    count = count_gpus(job)
    if count > len(gpus.visible_gpus()):
        raise BadInput(
            _("The job asks for %(count)s GPUs and this worker has %(there)s: start it with fewer processes.")
            % {"count": count, "there": len(gpus.visible_gpus())}
        )
    while True:
        with gpus.claim_gpus(count) as found:
            if len(found) == count:
                return _run_subprocess(lease, folder, shutting_down, found)
        time.sleep(LOOK_S)
        # Renewed while it waits, or another worker would take the job for lost.
        if not lease.renew(phase=_("waiting for free GPUs")):
            return None
        if Job.objects.filter(pk=job.pk, cancel_asked=True).exists():
            return CANCELLED
        if shutting_down():
            leases.give_back(job, phase=_("waiting to resume"))
            return None


def count_gpus(job: Job) -> int:
    """Return how many GPUs a job works on: none on the CPU, one for each process of a training."""
    if job.device != "cuda":
        return 0
    if job.kind != Job.Kind.TRAIN:
        return 1
    return recipe_options(job.options["recipe"], job.options.get("options") or {}).processes


def _run_subprocess(
    lease: leases.Lease, folder: JobFolder, shutting_down: Callable[[], bool], devices: Sequence[str]
) -> int | None:
    """Return the subprocess's exit code; None when another worker holds the job."""
    job = lease.job
    # Unbuffered, so that the page shows the log as it grows. A job for the CPU sees no GPU, and takes nobody's memory.
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "CUDA_VISIBLE_DEVICES": ",".join(devices)}
    command = [sys.executable, "-m", "training.trainer", str(folder.path)]
    with folder.log.open("a") as log:
        child = spawn_child(command, environment, cwd=settings.BASE_DIR, stdout=log, stderr=log)
    asked = 0.0
    # What it saved last is published before the job can be another's.
    with shared_folder.FolderPublisher(lease, folder):
        while (code := child.poll()) is None:
            time.sleep(LOOK_S)
            stopping = shutting_down()
            if not lease.renew(**_read_progress(folder)):
                # Somebody else holds the job: this child ends at once, since two processes must not write one folder.
                stop_children([child], patience=0)
                return None
            if not asked and (stopping or Job.objects.filter(pk=job.pk, cancel_asked=True).exists()):
                # Asked once: SIGTERM has it save a checkpoint, and it needs its time for that.
                child.terminate()
                asked = time.monotonic()
            if asked and time.monotonic() - asked > PATIENCE_S:
                child.kill()
    # A worker that ends gives its job back, unless a person cancelled it at the same time: read again for that.
    job.refresh_from_db(fields=["cancel_asked"])
    if shutting_down() and not job.cancel_asked and code != FINISHED:
        leases.give_back(job, phase=_("waiting to resume"))
        return None
    return code


def _read_progress(folder: JobFolder) -> dict[str, Any]:
    """Return what the subprocess said last, for the job's row."""
    state = folder.state
    named = {"phase": ("phase", 200), "words": ("words", 50)}
    texts = {column: str(state[key])[:most] for column, (key, most) in named.items() if state.get(key)}
    counts = {"done": "steps", "total": "total"}
    return {**texts, **{column: int(state[name]) for column, name in counts.items() if name in state}}


def _record_end(job: Job, folder: JobFolder, code: int) -> None:
    """Store how the subprocess ended, and what came of it."""
    state, news = folder.state, _read_progress(folder)
    error = str(state.get("error") or "")
    if code == FINISHED:
        # Stored before the job is finished, so that a finished job always has its outcome.
        job.result, job.words = dict(state.get("result") or {}), news.get("words", job.words)
        try:
            # The model first: whoever finds its row finds its files.
            if job.kind == Job.Kind.TRAIN:
                publish(Path(job.options["out"]))
            result = outcomes.store_outcome(job, folder)
            shared_folder.publish_results(folder)
        except (QuorumError, StoreUnavailable) as problem:
            leases.finish(job, Job.State.FAILED, error=" ".join(str(problem).split()), **news)
            return
        leases.finish(job, Job.State.FINISHED, result=result, error="", **news)
    elif code == CANCELLED or job.cancel_asked:
        leases.finish(job, Job.State.CANCELLED, **{**news, "phase": "cancelled"})
    elif code == REFUSED:
        leases.finish(job, Job.State.REFUSED, error=error, **news)
    # A negative code is the signal that killed the process.
    elif code < 0 and job.attempts < leases.MOST_ATTEMPTS:
        # Killed from outside (the kernel, short of memory, or a person): the next claim goes on from the checkpoint.
        logger.warning("%s was killed by signal %s and goes on from its checkpoint", job, -code)
        leases.give_back(job, attempts=job.attempts, **news)
    else:
        leases.finish(job, Job.State.FAILED, error=error or folder.last_log_line(), **news)
