"""Long work in the background: lease, fence, progress, cancel, resume. No app."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "jobs"
    default_auto_field = "django.db.models.BigAutoField"
