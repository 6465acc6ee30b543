"""Rankings: runs, measures, comparisons."""

from django.apps import AppConfig


class BenchmarkConfig(AppConfig):
    """The benchmark app."""

    name = "benchmark"
