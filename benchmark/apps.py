"""Rankings: runs, measures, comparisons."""

from django.apps import AppConfig


class BenchmarkConfig(AppConfig):
    """The app's name."""

    name = "benchmark"
