"""The app of long background work: leases, fencing tokens, progress, cancelling. It imports no other app."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "jobs"
    default_auto_field = "django.db.models.BigAutoField"
