"""The Celery application: carries wake-ups only; PostgreSQL holds the truth of what is to be done."""

import os
import sys
import warnings
from typing import Any

from celery import Celery
from celery.signals import celeryd_init, worker_process_init

from corpus.processes import watch_parent

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
if "worker" in sys.argv:
    warnings.filterwarnings("ignore", "You're running the worker with superuser")
    os.environ["QUORUM_DB_POOL"] = "2"  # MECHANICS M6: what each child of a worker may open

app = Celery("quorum")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


def prepare_worker(**_: Any) -> None:
    """A worker is a user of the instance's services like any command, and ends with whoever spawned it."""
    from config.services import ensure
    from config.services.migrations import apply_or_refuse

    ensure()
    apply_or_refuse()
    watch_parent()


def prepare_child(**_: Any) -> None:
    """Prefork children watch by themselves: the kernel tells them nothing of their grandparent's end."""
    watch_parent()


celeryd_init.connect(prepare_worker)
worker_process_init.connect(prepare_child)
