"""Long work in the background: one lease, fencing token, progress, cancel and resume. It knows no other app."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "jobs"
    default_auto_field = "django.db.models.BigAutoField"
