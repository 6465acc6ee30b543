"""A part of the relevant qrels is hidden, and people who know it fill the holes: what is in the pool comes back.

The systems are our own runs, the people answer through the queue that lends items to annotators.
"""

import numpy as np
import pytest
from django.core.management import call_command

from benchmark.hole_filling import stages
from benchmark.measures.rankings import evaluate_run
from benchmark.models import Run
from benchmark.qrels import reading
from benchmark.qrels.versions import original_version
from benchmark.runs import rankings
from benchmark.runs.files import read_qrels
from config.env import ROOT
from corpus.models import Collection, Document, Item, Query
from corpus.search import bm25
from tests.benchmark_scene import judge_all, start_filling
from tests.factories import make_member
from tests.rankings import make_run, start_run, work_on

CRANFIELD = ROOT.parent / "shared" / "data" / "cranfield"
SHARE = 0.3
OFFICIAL = {"corpus": CRANFIELD / "cran.all.1400.xml", "queries": CRANFIELD / "cran.qry.xml"}
Grades = dict[str, dict[str, int]]


def hide(full: Grades, share: float, seed: int) -> tuple[Grades, Grades]:
    """(what stays, what is hidden): a share of all relevant pairs, drawn with the seed."""
    pairs = sorted(relevant(full))
    drawn = np.random.default_rng(seed).permutation(len(pairs))[: round(share * len(pairs))]
    hidden = {pairs[at] for at in drawn}
    kept, gone = (
        {query: {d: n for d, n in found.items() if ((query, d) in hidden) == is_gone} for query, found in full.items()}
        for is_gone in (False, True)
    )
    return kept, gone


def relevant(grades: Grades) -> set[tuple[str, str]]:
    return {(query, document) for query, found in grades.items() for document, grade in found.items() if grade > 0}


def made(collection: Collection) -> list[Run]:
    """BM25 as a worker makes it; with the words of each query's best document; with every second word alone."""
    run, index = work_on(start_run(collection, depth=10)), bm25.index_for(collection)
    texts = dict(Document.objects.filter(collection=collection).values_list("external_id", "text"))
    ids = dict(Document.objects.filter(collection=collection).values_list("pk", "external_id"))
    best = {query: next(iter(found)) for query, found in rankings.as_run(run).items()}
    queries = dict(Query.objects.filter(collection=collection).values_list("external_id", "text"))
    asked = {
        "feedback": {name: f"{text} {texts[best[name]]}" for name, text in queries.items() if name in best},
        "half": {name: " ".join(text.split()[::2]) for name, text in queries.items()},
    }
    variants = []
    for name, words in asked.items():
        ranked = {query: [ids[key] for key, _score in index.search(text, 10)] for query, text in words.items()}
        variants.append(make_run(collection, name, {query: found for query, found in ranked.items() if found}))
    return [run, *variants]


def simulate(collection: Collection, full: Grades, hidden: Grades) -> None:
    """Fill from the pool of our systems, by two people. The collection's reference grades lack what is hidden."""
    runs, before = made(collection), original_version(collection)
    begun = start_filling(collection=collection, runs=runs, depth=10, qrels=before.number, policy="people")
    assert set(Item.objects.values_list("reason", flat=True)) == {"hole"}
    alice, bob = (make_member(collection, name) for name in ("alice", "bob"))
    for member, most in ((alice, 10), (bob, 100_000), (alice, 100_000)):
        judge_all(member, hidden, most)
    done = stages.advance_filling(begun)
    assert done.after is not None and done.funnel["is_done"]
    ranked = [rankings.as_run(run) for run in runs]
    pool = {(query, document) for run in ranked for query, found in run.items() for document in found}
    versions = {"full": full, "before": reading.load_named(before), "after": reading.load_named(done.after)}
    over = {name: {query: grades.get(query, {}) or {"": 0} for query in full} for name, grades in versions.items()}
    hits = {name: [evaluate_run(one, run, "Success@10").means for run in ranked] for name, one in over.items()}
    back, wanted = relevant(versions["after"]), relevant(hidden)
    assert 0 < len(wanted - pool) < len(wanted), "some in the pool and some outside, else nothing is tried"
    assert wanted & pool <= back, "hidden pairs of the pool that the filled qrels lack"
    assert back <= relevant(full), "relevant ones that the full qrels do not know"
    assert hits["after"] == hits["full"] != hits["before"]


@pytest.mark.weekly
@pytest.mark.django_db
@pytest.mark.skipif(not CRANFIELD.is_dir(), reason="1 test not run: Cranfield is not on this machine")
def test_what_is_hidden_of_cranfield_comes_back(tmp_path):
    full = read_qrels(CRANFIELD / "cranqrel.trec.txt")
    kept, hidden = hide(full, SHARE, seed=6)
    assert len(relevant(hidden)) == round(SHARE * len(relevant(full))) == 484
    rows = ((query, document, n) for query, found in kept.items() for document, n in found.items())
    (tmp_path / "kept.txt").write_text("".join(f"{query} 0 {document} {n}\n" for query, document, n in rows))
    files = {**OFFICIAL, "qrels": tmp_path / "kept.txt"}
    options = [part for name, path in files.items() for part in (f"--{name}", str(path))]
    call_command("import_collection", "cranfield", *options, "--query-ids", "position", "--empty", "keep")
    Collection.objects.update(min_judgment_ms=0)  # programs judge here
    simulate(Collection.objects.get(name="cranfield"), full, hidden)
