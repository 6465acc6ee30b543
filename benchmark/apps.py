"""Rankings: runs, measures, comparisons."""

from typing import Any

from django.apps import AppConfig


def _keep_runs(collection: Any, sources: Any, files: Any) -> tuple[int, list[str]]:
    from benchmark.runs.importing import keep_runs  # loads numpy, which most commands need not wait for

    return keep_runs(collection, sources, files)


class BenchmarkConfig(AppConfig):
    """The benchmark app."""

    name = "benchmark"

    def ready(self) -> None:
        """Keep the runs of imports."""
        from corpus.importing import service

        service.RUN_KEEPERS.append(_keep_runs)
