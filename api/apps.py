from django.apps import AppConfig


class ApiConfig(AppConfig):
    name = "api"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connect the receiver of lost rights."""
        from api import withdrawing  # noqa: F401
