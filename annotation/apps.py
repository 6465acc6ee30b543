from importlib import import_module

from django.apps import AppConfig


class AnnotationConfig(AppConfig):
    name = "annotation"
    default_auto_field = "django.db.models.BigAutoField"

    def import_models(self) -> None:
        """Tables of parts that nothing else here needs have files of their own."""
        super().import_models()
        for tables in ("aspects", "imports", "pair_table", "quality_control", "self_checks", "snapshots", "web_search"):
            import_module(f"annotation.models.{tables}")

    def ready(self) -> None:
        """Listen to what Django and allauth do with accounts; give allauth a lock that waits."""
        from annotation.people.accounts import auth_events, rate_limits  # noqa: F401
