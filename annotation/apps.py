from importlib import import_module
from typing import Any

from django.apps import AppConfig


def _store_sources(collection: Any, counts: Any) -> None:
    from annotation.data.imports.candidate_sources import store_sources

    store_sources(collection, counts)


class AnnotationConfig(AppConfig):
    name = "annotation"
    default_auto_field = "django.db.models.BigAutoField"

    def import_models(self) -> None:
        """Import also the models that are not in `models/__init__.py`."""
        super().import_models()
        rooms = "aspects comparisons hub imports inbox judged_comparisons pair_table quality_control self_checks"
        for tables in (*rooms.split(), "sharing", "snapshots", "threads", "web_search"):
            import_module(f"annotation.models.{tables}")

    def ready(self) -> None:
        """Connect receivers of signals about accounts, give allauth a lock that waits, keep what imports count."""
        from annotation.home.sharing import services  # noqa: F401
        from annotation.people.accounts import auth_events, rate_limits  # noqa: F401
        from corpus.importing import service

        service.SOURCE_KEEPERS.append(_store_sources)
