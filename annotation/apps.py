from importlib import import_module

from django.apps import AppConfig


class AnnotationConfig(AppConfig):
    name = "annotation"
    default_auto_field = "django.db.models.BigAutoField"

    def import_models(self) -> None:
        """Tables of parts that nothing else here needs have files of their own."""
        super().import_models()
        import_module("annotation.models.aspects")
        import_module("annotation.models.imports")
        import_module("annotation.models.pair_table")
        import_module("annotation.models.quality_control")
        import_module("annotation.models.self_checks")
        import_module("annotation.models.snapshots")
        import_module("annotation.models.web_search")

    def ready(self) -> None:
        """Listen to what Django and allauth do with accounts, and give allauth a lock that waits."""
        from annotation.accounts import auth_events, rate_limits  # noqa: F401
