from importlib import import_module

from django.apps import AppConfig


class JudgesConfig(AppConfig):
    name = "judges"
    default_auto_field = "django.db.models.BigAutoField"

    def import_models(self) -> None:
        """Canaries, batches, money, prices, probes and retrieval have files of their own: the engine needs none."""
        super().import_models()
        import_module("judges.canary_models")
        import_module("judges.batching.models")
        import_module("judges.money_models")
        import_module("judges.price_models")
        import_module("judges.probe_models")
        import_module("judges.retrieval_models")
