from importlib import import_module

from django.apps import AppConfig


class AnnotationConfig(AppConfig):
    name = "annotation"
    default_auto_field = "django.db.models.BigAutoField"

    def import_models(self) -> None:
        """Import also the models that are not in `models/__init__.py`."""
        super().import_models()
        for tables in ("aspects", "imports", "pair_table", "quality_control", "self_checks", "snapshots", "web_search"):
            import_module(f"annotation.models.{tables}")

    def ready(self) -> None:
        """Connect receivers of signals about accounts, and give allauth a lock that waits."""
        from annotation.people.accounts import auth_events, rate_limits  # noqa: F401
