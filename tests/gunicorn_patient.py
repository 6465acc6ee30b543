"""gunicorn's settings, with no request ever so long that the next one begins for that alone."""

from config import web_worker
from config.gunicorn import *  # noqa: F403

web_worker.LONG_S = 86_400.0
