from importlib import import_module

from django.apps import AppConfig


class JudgesConfig(AppConfig):
    name = "judges"
    default_auto_field = "django.db.models.BigAutoField"

    def import_models(self) -> None:
        """Batches, canaries, money, prices, probes and retrieval have files of their own: the engine needs none."""
        super().import_models()
        for name in ("batches", "canaries", "costs", "prices", "probes", "retrieval"):
            import_module(f"judges.models.{name}")
