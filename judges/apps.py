from importlib import import_module

from django.apps import AppConfig


class JudgesConfig(AppConfig):
    name = "judges"
    default_auto_field = "django.db.models.BigAutoField"

    def import_models(self) -> None:
        """Canaries, batches, money, prices, probes and retrieval have files of their own: the engine needs none."""
        super().import_models()
        import_module("judges.models.canaries")
        import_module("judges.models.batches")
        import_module("judges.models.costs")
        import_module("judges.models.prices")
        import_module("judges.models.probes")
        import_module("judges.models.retrieval")
