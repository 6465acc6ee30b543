from importlib import import_module

from django.apps import AppConfig


class JudgesConfig(AppConfig):
    name = "judges"
    default_auto_field = "django.db.models.BigAutoField"

    def import_models(self) -> None:
        """Import the models that have separate files because the engine does not need them."""
        super().import_models()
        for name in ("batches", "canaries", "costs", "keys", "prices", "probes", "retrieval"):
            import_module(f"judges.models.{name}")
