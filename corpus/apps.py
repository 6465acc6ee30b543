from importlib import import_module

from django.apps import AppConfig


class CorpusConfig(AppConfig):
    name = "corpus"
    default_auto_field = "django.db.models.BigAutoField"

    def import_models(self) -> None:
        """Aspects have a file of their own: who judges pairs needs none."""
        super().import_models()
        import_module("corpus.models.aspects")
