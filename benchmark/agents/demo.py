"""The agents of the demo, without a key: an offline agent over the bundled aspects, by both protocols."""

from pathlib import Path

from benchmark.agents import grading, jobs, references, sampling, searching
from benchmark.agents.protocol import ADAPTIVE, FIXED
from benchmark.models import AgentJob
from corpus.aspects.exchange import import_aspects
from corpus.models import Collection
from corpus.models.aspects import Aspect
from judges.panels.offline_panel import OFFLINE_REWRITER

NO_LIMITS = {"budget": None, "max_calls": None}


def start_searches(collection: Collection, aspects: Path) -> list[AgentJob]:
    """Import the aspects once, and start reference answers and both searches. Raises BadInput."""
    if not Aspect.objects.filter(query__collection=collection).exists():  # whoever edits them keeps their own
        import_aspects(collection, aspects)
    sample = sampling.ensure_sample(collection)
    started = [references.start_references(collection, OFFLINE_REWRITER, limits=NO_LIMITS)]
    for protocol in (FIXED, ADAPTIVE):
        started.append(
            searching.start_search(
                collection,
                sample,
                retrievers=["bm25"],
                agents=[OFFLINE_REWRITER],
                protocol=protocol,
                limits=NO_LIMITS,
            )
        )
    return started


def are_over(started: list[AgentJob]) -> bool:
    """Return whether all jobs have ended, well or badly."""
    rows = AgentJob.objects.filter(pk__in=[one.pk for one in started])
    return not rows.filter(state__in=[AgentJob.WAITING, AgentJob.RUNNING]).exists()


def start_gradings(collection: Collection) -> None:
    """Grade both searches, in the background. Raises BadInput."""
    for protocol in (FIXED, ADAPTIVE):
        grading.start_grading(jobs.require_search(collection, protocol), OFFLINE_REWRITER, limits=NO_LIMITS)
