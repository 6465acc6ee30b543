"""Background tasks of the instance: pushes to a hub, and backups."""

from annotation.models.hub import HubPush
from config.backups import services as backups
from config.hub import services as hub
from corpus.errors import QuorumError
from jobs.tasks import JobKind, register_background, register_job_kind

push_to_hub = register_job_kind(JobKind(hub.TASK, HubPush, hub.perform_push))
back_up = register_background(backups.TASK, backups.perform_backup, expected=QuorumError)
