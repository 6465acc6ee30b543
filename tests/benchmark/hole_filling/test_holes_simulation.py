"""A part of the relevant qrels is hidden, and people who know it fill the holes: what is in the pool comes back.

The systems are our own runs, the people answer through the queue that lends items to annotators.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
from django.core.management import call_command

from annotation.judging import submitting
from annotation.models import Assignment, Membership
from annotation.queue import assignment
from annotation.queue.annotators import AnnotatorContext, SubmittedAnswer
from benchmark.hole_filling import stages
from benchmark.measures.rankings import evaluate_run
from benchmark.models import Run
from benchmark.qrels import reading
from benchmark.qrels.versions import original_version
from benchmark.runs import rankings
from benchmark.runs.files import read_qrels
from benchmark.significance.tests import kendall_tau
from config.env import ROOT
from corpus.models import Collection, Document, Query
from corpus.search import bm25
from tests.benchmark_scene import start_filling
from tests.factories import make_collection, make_document, make_member, make_query
from tests.rankings import make_run, start_run, work_on

CRANFIELD = ROOT.parent / "shared" / "data" / "cranfield"
SHARE = 0.3
SYSTEMS = ("bm25", "feedback", "half")
"""BM25; the same with the words of each query's best document added; the same with every second word alone."""
Grades = dict[str, dict[str, int]]


@dataclass(frozen=True)
class Result:
    """What came of a simulation. Measures are those of each system in the order of SYSTEMS."""

    hidden: int
    outside: int
    """Hidden pairs that no system returned in its best ten."""
    pool: int
    asked: int
    hits: dict[str, list[float]]
    ndcg: dict[str, list[float]]
    missed: set[tuple[str, str]]
    """Hidden pairs of the pool that the filled qrels lack."""
    invented: set[tuple[str, str]]
    """Relevant ones that the full qrels do not know."""
    tau: tuple[float | None, float | None]
    """Kendall's, of the nDCG@10 order: full qrels with those before, and with those after."""


def hide(full: Grades, share: float, seed: int) -> tuple[Grades, Grades]:
    """(what stays, what is hidden): a share of all relevant pairs, drawn with the seed."""
    relevant = sorted((query, document) for query, found in full.items() for document, n in found.items() if n > 0)
    drawn = np.random.default_rng(seed).permutation(len(relevant))[: round(share * len(relevant))]
    hidden = {relevant[at] for at in drawn}
    kept = {query: {d: n for d, n in found.items() if (query, d) not in hidden} for query, found in full.items()}
    return kept, {query: {d: n for d, n in full[query].items() if (query, d) in hidden} for query in full}


def relevant(grades: Grades) -> set[tuple[str, str]]:
    return {(query, document) for query, found in grades.items() for document, grade in found.items() if grade > 0}


def write(path: Path, grades: Grades) -> Path:
    lines = [f"{query} 0 {document} {n}\n" for query, found in grades.items() for document, n in found.items()]
    path.write_text("".join(lines))
    return path


def made(collection: Collection) -> list[Run]:
    """The systems' runs: BM25 as a worker makes it, and its variants."""
    run = work_on(start_run(collection, depth=10))
    texts = dict(Document.objects.filter(collection=collection).values_list("external_id", "text"))
    best = {query: next(iter(found)) for query, found in rankings.as_run(run).items()}
    queries = dict(Query.objects.filter(collection=collection).values_list("external_id", "text"))
    feedback = {name: f"{text} {texts[best[name]]}" for name, text in queries.items() if name in best}
    half = {name: " ".join(text.split()[::2]) for name, text in queries.items()}
    variants = [searched(collection, name, asked) for name, asked in (("feedback", feedback), ("half", half))]
    return [run, *variants]


def searched(collection: Collection, name: str, texts: dict[str, str]) -> Run:
    """A run of BM25 for other texts than the queries' own."""
    index = bm25.index_for(collection)
    ids = dict(Document.objects.filter(collection=collection).values_list("pk", "external_id"))
    ranked = {query: [ids[key] for key, _score in index.search(text, 10)] for query, text in texts.items()}
    return make_run(collection, name, {query: found for query, found in ranked.items() if found})


def judge_by(members: Sequence[Membership], hidden: Grades) -> int:
    """The members take turns until the queue is empty, and say what is hidden; how many items."""
    count, idle = 0, 0
    for member in cycle(members):
        member.refresh_from_db()
        lent = assignment.in_transaction(lambda db, member=member: submitting.claim(db, AnnotatorContext.of(member)))
        idle = 0 if lent is not None else idle + 1
        if idle == len(members):
            return count
        while lent is not None:
            lease = Assignment.objects.select_related("item__pair__query", "item__pair__document").get(pk=lent)
            assert lease.item.reason == "hole"
            pair = lease.item.pair
            grade = hidden.get(pair.query.external_id, {}).get(pair.document.external_id, 0)
            answer = SubmittedAnswer(lease.item_id, lease.token, grade)
            lent = assignment.in_transaction(
                lambda db, member=member, answer=answer: submitting.submit(db, AnnotatorContext.of(member), answer)
            )
            count += 1
    return count


def simulate(collection: Collection, full: Grades, hidden: Grades) -> Result:
    """Fill from the pool of our systems, by two people. The collection's reference grades lack what is hidden."""
    runs = made(collection)
    before = original_version(collection)
    begun = start_filling(collection=collection, runs=runs, depth=10, qrels=before.number, policy="people")
    members = [make_member(collection, name) for name in ("alice", "bob")]
    asked = judge_by(members, hidden)
    done = stages.advance_filling(begun)
    assert done.after is not None and done.funnel["is_done"]
    ranked = [rankings.as_run(run) for run in runs]
    pool = {(query, document) for run in ranked for query, found in run.items() for document in found}
    versions = {"full": full, "before": reading.load_named(before), "after": reading.load_named(done.after)}
    over = {name: {query: grades.get(query, {}) or {"": 0} for query in full} for name, grades in versions.items()}
    values = {
        name: [evaluate_run(one, run, "Success@10 nDCG@10").means for run in ranked] for name, one in over.items()
    }
    ndcg = {name: [one["nDCG@10"] for one in found] for name, found in values.items()}
    agreement = (kendall_tau(ndcg["full"], ndcg["before"]), kendall_tau(ndcg["full"], ndcg["after"]))
    back, wanted = relevant(versions["after"]), relevant(hidden)
    print(
        f"\n{collection.name}: {len(wanted):,} hidden, {len(wanted - pool):,} of them outside the pool "
        f"({len(wanted - pool) / len(wanted):.1%}); pool {done.funnel['pool']:,}, {asked:,} asked; nDCG@10 "
        + "; ".join(f"{name} {', '.join(f'{value:.4f}' for value in found)}" for name, found in ndcg.items())
        + f"; Kendall's tau with the full qrels {agreement[0]} before, {agreement[1]} after"
    )
    return Result(
        hidden=len(wanted),
        outside=len(wanted - pool),
        pool=done.funnel["pool"],
        asked=asked,
        hits={name: [one["Success@10"] for one in found] for name, found in values.items()},
        ndcg=ndcg,
        missed=(wanted & pool) - back,
        invented=back - relevant(full),
        tau=agreement,
    )


def holds(result: Result) -> None:
    """What must be true of every such simulation."""
    assert 0 < result.outside < result.hidden, "some in the pool and some outside, else nothing is tried"
    assert not result.missed
    assert not result.invented
    assert result.hits["after"] == result.hits["full"]
    assert result.hits["before"] != result.hits["full"], "hiding was seen in the measure"


WORDS = [f"word{n}" for n in range(30)]


def small_world(seed: int) -> tuple[Collection, Grades]:
    """20 queries of three words and 60 documents of some; two that share a word with a query are relevant to it."""
    random = np.random.default_rng(seed)
    collection = make_collection("small")
    texts = {f"d{n}": random.choice(WORDS, 4 + n % 9).tolist() for n in range(60)}
    for name, words in texts.items():
        make_document(collection, " ".join(words), external_id=name)
    full: Grades = {}
    for n in range(20):
        words = random.choice(WORDS, 3, replace=False).tolist()
        make_query(collection, " ".join(words), external_id=f"q{n}")
        near = [name for name, text in texts.items() if set(text) & set(words)]
        full[f"q{n}"] = {"d0": 0} | {str(name): 1 for name in random.choice(near, 2, replace=False)}
    return collection, full


@pytest.mark.django_db
def test_what_is_hidden_of_a_small_collection_comes_back(tmp_path: Path) -> None:
    collection, full = small_world(seed=3)
    kept, hidden = hide(full, SHARE, seed=4)
    arguments = ["--assessor", "qrels", "--kind", "reference"]
    call_command("import_judgments", "small", *arguments, str(write(tmp_path / "kept.txt", kept)))
    holds(simulate(collection, full, hidden))


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.skipif(not CRANFIELD.is_dir(), reason="1 test not run: Cranfield is not on this machine")
def test_what_is_hidden_of_cranfield_comes_back(tmp_path: Path) -> None:
    full = read_qrels(CRANFIELD / "cranqrel.trec.txt")
    kept, hidden = hide(full, SHARE, seed=6)
    files = {"corpus": CRANFIELD / "cran.all.1400.xml", "queries": CRANFIELD / "cran.qry.xml"}
    options = [part for name, path in files.items() for part in (f"--{name}", str(path))]
    reference = ["--qrels", str(write(tmp_path / "kept.txt", kept))]
    call_command("import_collection", "cranfield", *options, *reference, "--query-ids", "position", "--empty", "keep")
    Collection.objects.update(min_judgment_ms=0)  # programs judge here
    result = simulate(Collection.objects.get(name="cranfield"), full, hidden)
    assert result.hidden == round(SHARE * len(relevant(full))) == 484
    holds(result)


def test_hiding_takes_the_share_and_nothing_that_is_not_relevant() -> None:
    full = {"q": {f"d{n}": n % 2 for n in range(40)}}
    kept, hidden = hide(full, SHARE, seed=1)
    assert len(hidden["q"]) == 6 and set(hidden["q"].values()) == {1}
    assert {**kept["q"], **hidden["q"]} == full["q"] and not _both(kept["q"], hidden["q"])


def _both(one: Iterable[str], other: Iterable[str]) -> set[str]:
    return set(one) & set(other)
