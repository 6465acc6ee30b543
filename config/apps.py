from django.apps import AppConfig
from django.contrib.staticfiles import apps as staticfiles


class ConfigConfig(AppConfig):
    name = "config"

    def ready(self) -> None:
        from config import checks  # noqa: F401 - registers them
        from config.operating import task_context  # noqa: F401 - connects its receivers


class StaticFilesConfig(staticfiles.StaticFilesConfig):
    """Static files without django-ninja's second viewer of the API's document, an unused megabyte."""

    ignore_patterns = [*staticfiles.StaticFilesConfig.ignore_patterns, "redoc.standalone*"]
