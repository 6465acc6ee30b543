"""The WSGI application that granian loads in each of its processes (docs/adr/0074)."""

import gc
import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from config import env
from config.bodies import whole_bodies
from config.operating import tracing
from config.sub_path import below
from embedded import ensure_services
from jobs.processes import end_with_server

# Templates of the pages that people open first; the templates that they extend and include are loaded with them.
FIRST_TEMPLATES = (
    "base.html",
    "account/login.html",
    "dashboard/site_home.html",
    "dashboard/home.html",
    "judging/page.html",
)


def warm_up() -> None:
    """Load what the first page needs, before granian listens, so that nobody waits for it."""
    from django.db import Error, connection
    from django.template.loader import get_template
    from django.urls import reverse
    from django.utils import translation

    reverse("home")  # All addresses, and with them every view.
    for name in FIRST_TEMPLATES:
        get_template(name)
    for language, _ in settings.LANGUAGES:
        with translation.override(language):
            translation.gettext("Home")
    try:
        connection.ensure_connection()
    except Error:  # Pages report it as long as the database is away.
        pass
    finally:
        connection.close()


os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# Objects that are loaded here live as long as the process, so the garbage collector ignores them.
gc.disable()
end_with_server()
ensure_services(env.var())
tracing.start()
application = below(settings.SUB_PATH, whole_bodies(get_wsgi_application()))
warm_up()
gc.freeze()
gc.enable()
