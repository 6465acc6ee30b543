from django.apps import AppConfig


class ConfigConfig(AppConfig):
    name = "config"

    def ready(self) -> None:
        """Register the platform's checks."""
        from config import checks  # noqa: F401
