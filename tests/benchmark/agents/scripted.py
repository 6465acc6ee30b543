"""Scripted agents: what a model of the local server says by the round that its message shows."""

import json

from benchmark.agents.jobs import AGENTS
from benchmark.agents.sampling import ensure_sample
from benchmark.agents.searching import SEARCHES
from benchmark.models import AgentJob
from corpus.models import Document, Label, Pair, Query
from corpus.models.aspects import Aspect
from jobs import leases
from tests.factories import make_collection, make_document, make_query

ANSWERING = "the final answer from these documents"


def says(text, **values):
    return {"text": text if isinstance(text, str) else json.dumps(text), **values}


def search(text):
    return {"search": text, "answer": None, "confidence": None}


def answer(text, confidence=70):
    return {"search": None, "answer": text, "confidence": confidence}


def agent(*turns, answers=None):
    """A script: the turn by how many rounds there were, the last one for all further; `answers`: when it must."""
    rounds = [says(turn, contains=f'"round": {at},') for at, turn in reversed(list(enumerate(turns)))][:-1]
    return [says(answers or answer("Wings lift [d1]."), contains=ANSWERING), *rounds, says(turns[0])]


def wings(queries=1, name="wings"):
    """Six documents about each of alpha, beta and gamma: a search brings five."""
    collection = make_collection(name)
    for topic in ("alpha", "beta", "gamma"):
        for number in range(1, 7):
            make_document(
                collection, f"{topic} wing number {number}" + " lift" * number, external_id=f"{topic}-{number}"
            )
    for number in range(queries):
        make_query(collection, f"how does a wing lift {number}", external_id=f"q{number}", answers=["It lifts."])
    return collection


def start_search(collection, **options):
    """Begin the job of these agents over the collection's sample, or go on with it."""
    return SEARCHES.start_or_join(collection, {"sample": ensure_sample(collection), **options})


def finish(job):
    """Work on a job in this process, as a worker would, and read it again."""
    claimed = leases.claim(AgentJob, pk=job.pk)
    if claimed is not None:
        AGENTS.perform(claimed)
    job.refresh_from_db()
    return job


def with_aspects(collection, weights=(3, 1)):
    """Each query has the aspects a1 (alpha-1, alpha-2) and a2 (beta-1)."""
    supports = {"a1": ("alpha-1", "alpha-2"), "a2": ("beta-1",)}
    for query in Query.objects.filter(collection=collection):
        for place, importance in enumerate(weights, 1):
            name = f"a{place}"
            values = {"text": f"part {place} of lift", "importance": importance, "place": place}
            aspect = Aspect.objects.create(query=query, external_id=name, **values)
            for document in Document.objects.filter(collection=collection, external_id__in=supports[name]):
                pair, _made = Pair.objects.get_or_create(collection=collection, query=query, document=document)
                Label.objects.create(pair=pair, aspect=aspect, grade=1, origin="people")
    return collection
