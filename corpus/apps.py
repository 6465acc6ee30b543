from importlib import import_module

from django.apps import AppConfig


class CorpusConfig(AppConfig):
    name = "corpus"
    default_auto_field = "django.db.models.BigAutoField"

    def import_models(self) -> None:
        super().import_models()
        import_module("corpus.models.aspects")
        import_module("corpus.models.search")
