"""The Celery application. Its messages only wake up workers; the work itself is stored in PostgreSQL."""

import contextlib
import os
import sys
import threading
import time
import warnings
from typing import Any

from celery import Celery
from celery.signals import celeryd_init, setup_logging, worker_process_init
from django_structlog.celery.steps import DjangoStructLogInitStep

from jobs.processes import watch_parent

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
if "worker" in sys.argv:
    warnings.filterwarnings("ignore", "You're running the worker with superuser")
    os.environ["QUORUM_DB_POOL"] = "2"  # Connections of each child of a worker.
    os.environ.setdefault("CELERY_SKIP_CHECKS", "1")  # Django's checks import every page; `make check` runs them.

KEEPER_S = 2.0  # Seconds between checks of the keeper.

app = Celery("quorum")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.steps["worker"].add(DjangoStructLogInitStep)


def prepare_worker(**_: Any) -> None:
    """Start the services for a worker, as for any command, and make it end with its parent."""
    from config import env
    from config.startup import apply_or_refuse, refuse_unusable_settings
    from embedded import ensure_services
    from embedded.startup import check_server

    refuse_unusable_settings()
    ensure_services(env.var())
    check_server(env.var())
    apply_or_refuse()
    watch_parent()
    threading.Thread(target=watch_keeper, name="watch-keeper", daemon=True).start()


def watch_keeper() -> None:
    """Start the keeper again if it was killed: without a `serve` process, that has ended both services."""
    from config import env
    from embedded import are_embedded, start_keeper

    while are_embedded():
        time.sleep(KEEPER_S)
        with contextlib.suppress(OSError, SystemExit):  # VAR was removed, or the next attempt may succeed.
            start_keeper(env.var())


def prepare_child(**_: Any) -> None:
    """Watch the grandparent from a prefork child, because the kernel does not signal its end."""
    from config.operating import tracing

    watch_parent()
    tracing.start()


def configure_logs(**_: Any) -> None:
    """Configure logging by the settings, since Celery would set its own levels and format."""
    from django.conf import settings
    from django.utils.log import configure_logging

    configure_logging(settings.LOGGING_CONFIG, settings.LOGGING)


setup_logging.connect(configure_logs)
celeryd_init.connect(prepare_worker)
worker_process_init.connect(prepare_child)
