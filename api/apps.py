from django.apps import AppConfig


class ApiConfig(AppConfig):
    name = "api"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Listen to who loses a right."""
        from api import withdrawing  # noqa: F401
