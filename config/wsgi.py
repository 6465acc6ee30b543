"""The WSGI application that granian loads in each of its processes (docs/adr/0074)."""

import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from config import env
from config.bodies import whole_bodies
from config.operating import tracing
from config.sub_path import below
from embedded import ensure_services
from jobs.processes import end_with_server

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

end_with_server()
ensure_services(env.var())
tracing.start()
application = below(settings.SUB_PATH, whole_bodies(get_wsgi_application()))
