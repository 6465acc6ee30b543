"""The WSGI entry point that gunicorn loads."""

import os

from django.core.wsgi import get_wsgi_application

from config.services import ensure

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

ensure()
application = get_wsgi_application()
