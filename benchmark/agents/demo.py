"""The demo's agents, without a key: an offline agent over bundled aspects, by both protocols."""

from pathlib import Path

from benchmark.agents.grading import GRADINGS
from benchmark.agents.protocol import ADAPTIVE, FIXED
from benchmark.agents.references import REFERENCES
from benchmark.agents.searching import SEARCHES
from benchmark.models import AgentJob
from corpus.aspects.exchange import import_aspects
from corpus.models import Collection
from corpus.models.aspects import Aspect
from judges.panels.offline_panel import OFFLINE_REWRITER


def start_searches(collection: Collection, aspects: Path) -> list[AgentJob]:
    """Import the aspects once, and start reference answers and both searches. Raises BadInput."""
    # Aspects that were edited since are kept.
    if not Aspect.objects.filter(query__collection=collection).exists():
        import_aspects(collection, aspects)
    demo_jobs = [REFERENCES.start_or_join(collection, {"judge": OFFLINE_REWRITER})]
    for protocol in (FIXED, ADAPTIVE):
        options = {"retrievers": ["bm25"], "agents": [OFFLINE_REWRITER], "protocol": protocol}
        demo_jobs.append(SEARCHES.start_or_join(collection, options))
    return demo_jobs


def are_over(demo_jobs: list[AgentJob]) -> bool:
    """Return whether all jobs have ended, successfully or not."""
    rows = AgentJob.objects.filter(pk__in=[job.pk for job in demo_jobs])
    return not rows.filter(state__in=[AgentJob.WAITING, AgentJob.RUNNING]).exists()


def start_gradings(collection: Collection) -> None:
    """Grade both searches, in the background. Raises BadInput."""
    for protocol in (FIXED, ADAPTIVE):
        GRADINGS.start_or_join(collection, {"protocol": protocol, "judge": OFFLINE_REWRITER})
