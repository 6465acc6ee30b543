"""`training NAME cancel|resume`: cancel or resume a collection's job on the GPU queue."""

from typing import Any

from django.core.management.base import CommandParser

from corpus.commands import QuorumCommand, collection_named
from corpus.errors import BadInput
from corpus.numbered import find_numbered
from training.jobs import lifecycle
from training.jobs.services import control_job
from training.models import Job

State = Job.State
ACTIONS = {"cancel": "cancel", "resume": "go-on"}
POSSIBLE = {"cancel": (State.QUEUED, State.RUNNING), "resume": (State.CANCELLED, State.FAILED)}
# The name for jobs without a collection, started by a command for a set from another site; also that of their folder.
SHARED = lifecycle.SHARED


class Command(QuorumCommand):
    help = "Cancel a training that waits or runs, or resume one that was cancelled or failed from its last checkpoint."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help=f"name of the collection; {SHARED}: jobs that belong to none")
        parser.add_argument("action", choices=list(ACTIONS), help="what to do")
        parser.add_argument("--job", type=int, help="number of the job (default: the newest that this is possible for)")

    def run(self, **options: Any) -> object:
        """Cancel or resume the job, and return its new state."""
        name, action, number = options["name"], options["action"], options["job"]
        collection = None if name == SHARED else collection_named(name)
        if number is not None:
            job = find_numbered(Job.objects, collection, number)
        else:
            jobs = Job.objects.filter(collection=collection, state__in=POSSIBLE[action])
            job = jobs.order_by("-pk").first()
        if job is None:
            raise BadInput(f"{name} has no job {number}" if number is not None else f"{name} has no job to {action}")
        if job.state not in POSSIBLE[action]:
            raise BadInput(f"Job {job.number} is {job.get_state_display()}: there is nothing to {action}")
        control_job(self.actor, job, ACTIONS[action])
        if job.state == State.RUNNING:
            self.say(f"job {job.number} saves a checkpoint and ends within ten seconds")
        else:
            self.say(f"job {job.number} is {job.get_state_display()}")
        return {"job": job.number, "kind": job.kind, "state": job.state, "cancel_asked": job.cancel_asked}
