"""A collection, two runs and scripted models for tests of answers."""

import json

import numpy as np

from benchmark.answers.evaluations import ANSWERS
from benchmark.models import AnswerEvaluation, GeneratedAnswer
from benchmark.qrels import versions
from benchmark.qrels.reading import ReadQrel, fetch_rows
from corpus.models import Assessor, Judgment
from jobs import leases
from tests.benchmark_scene import by_id
from tests.engine_parts import make_judge
from tests.factories import make_collection, make_document, make_pair, make_query
from tests.rankings import make_run

TEXTS = {
    "d1": "A wing in a slipstream changes its lift.",
    "d2": "Lift of a wing grows with the angle.",
    "d3": "Heat flows through a plate.",
    "d4": "The boundary layer of a plate is thin.",
}
QUERIES = {"q1": ("wing lift", ["a secret lift"]), "q2": ("heated plate", ["a secret heat"]), "q3": ("airfoil", [])}
RIGHT = {"contains": "Is this answer", "text": '{"correct": true}'}
WRONG = {"contains": "Is this answer", "text": '{"correct": false}'}
ANSWER = {"contains": "Answer this query", "text": '{"Answer": "It lifts."}'}


def wings_collection(name="wings"):
    """Two queries with answers, one without; d1 is known to be relevant to q1."""
    collection = make_collection(name)
    for key, text in TEXTS.items():
        make_document(collection, text, external_id=key)
    for key, (text, answers) in QUERIES.items():
        make_query(collection, text, external_id=key, answers=answers)
    grade(collection, q1="d1")
    return collection


def grade(collection, **relevant):
    """Reference grades by query; the original version."""
    reference = Assessor.objects.get_or_create(collection=collection, kind="reference", name="qrels")[0]
    queries, documents = by_id(collection)
    for query, document in relevant.items():
        pair = make_pair(collection, queries[query], documents[document])
        Judgment.objects.create(pair=pair, assessor=reference, step="import", grade=1)
    return versions.original_version(collection)


def filled_version(collection, **relevant):
    """A filled version: the original and these, by query."""
    queries, documents = by_id(collection)
    first = versions.latest_version(collection, "original")
    rows = fetch_rows(versions.REFERENCE, {"collection": collection.pk})
    for query, document in relevant.items():
        known = rows.get(queries[query].pk)
        pairs = dict(zip(known.documents.tolist(), known.grades.tolist(), strict=True)) if known else {}
        pairs[documents[document].pk] = 1
        keys = sorted(pairs)
        given = np.array(keys, np.int64), np.array([pairs[key] for key in keys], np.int16)
        rows[queries[query].pk] = ReadQrel(*given, ["people"] * len(keys))
    return versions.store_version(collection, "filled", rows, parent=first)


def two_runs(collection):
    """bm25 finds d1 and d2, dense d3 and d4, each for every query."""
    return [
        make_run(collection, "bm25", {query: ["d1", "d2"] for query in QUERIES}),
        make_run(collection, "dense", {query: ["d3", "d4", "d2"] for query in QUERIES}),
    ]


def models(model_server, *names):
    return [make_judge(model_server, name) for name in names]


def begin(collection, *, systems=("bm25", "dense"), generators=("writer",), judge="grader", k=2, **more):
    options = {"systems": systems, "generators": generators, "judge": judge, "k": k, **more}
    return ANSWERS.start_or_join(collection, options)


def work(evaluation, stopped=lambda: False):
    claimed = leases.claim(AnswerEvaluation, pk=evaluation.pk)
    assert claimed is not None
    ANSWERS.perform(claimed, stopped)
    evaluation.refresh_from_db()
    return evaluation


def answered(collection, **more):
    return work(begin(collection, **more))


def rows(evaluation):
    """{(query, run, generator): row}"""
    found = GeneratedAnswer.objects.filter(evaluation=evaluation).select_related("query", "run")
    return {(one.query.external_id, one.run.name, one.generator): one for one in found}


def fenced(request):
    """What the prompt shows as data."""
    user = request["user"]
    return json.loads(user[user.index("{") : user.rindex("}") + 1])


def prepare(model_server):
    """The collection with both runs, a writer and a grader that finds every answer right."""
    collection = wings_collection()
    two_runs(collection)
    models(model_server, "writer", "grader")
    model_server.script(writer=[ANSWER], grader=[RIGHT])
    return collection
