from importlib import import_module

from django.apps import AppConfig


class JudgesConfig(AppConfig):
    name = "judges"
    default_auto_field = "django.db.models.BigAutoField"

    def import_models(self) -> None:
        """Tables of canaries have a file of their own: no campaign knows them."""
        super().import_models()
        import_module("judges.canary_models")
