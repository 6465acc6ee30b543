"""retrieve_1m: a BM25 run over 1,000,000 passages, from an empty index to stored rankings.

The passages are generated, with 30 to 90 words by Zipf's law; queries have 3 to 9 words of a passage. Each step runs in
a separate process, to measure its peak memory: a run that builds its index (`make`), a second run with the index in VAR
(`again`), and the library bm25s alone on the same words (`theirs`), whose results must be the same.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.memory import peak_megabytes

DOCUMENTS = int(os.environ.get("QUORUM_BENCH_DOCUMENTS", "1000000"))
QUERIES = 1_000
COMPARED = 200
DEPTH = 100
WORDS = 400_000
NAME = "bench-passages"
CORES = 2


def measure() -> list[dict[str, Any]]:
    """Return seconds, memory and queries per second, and the number of queries with equal results."""
    from corpus.importing.service import ImportFiles, import_collection

    with tempfile.TemporaryDirectory() as folder:
        started_at = time.perf_counter()
        corpus, queries = generate(Path(folder))
        generated_at = time.perf_counter()
        import_collection(NAME, ImportFiles(corpus=corpus, queries=queries))
        imported_at = time.perf_counter()
    first, again, theirs = step("make"), step("again"), step("theirs")
    shape = f"{DOCUMENTS:,} passages, {QUERIES:,} queries, depth {DEPTH}"
    times = {
        "generated_s": round(generated_at - started_at, 1),
        "imported_s": round(imported_at - generated_at, 1),
    }
    peaks = {"peak_mb": first["peak_mb"], "peak_mb_index_there": again["peak_mb"]}
    return [
        {
            "name": "retrieve_1m",
            "case": f"{shape}: index and run",
            "value": first["seconds"],
            "unit": "s",
            "aim": "printed",
        }
        | {"index_s": first["index_s"], **peaks, **times},
        {"name": "retrieve_1m", "case": "queries/s, index there", "value": again["queries_per_s"], "unit": "queries/s"}
        | {"aim": "printed", "ms_a_query": again["ms_a_query"], "loaded_s": again["index_s"]},
        {
            "name": "retrieve_1m",
            "case": "bm25s by itself: index",
            "value": theirs["index_s"],
            "unit": "s",
            "aim": "beside",
        }
        | {"peak_mb": theirs["peak_mb"], "queries_per_s": theirs["queries_per_s"]},
        {"name": "retrieve_1m", "case": f"queries of {COMPARED} with bm25s' documents and scores", "unit": ""}
        | {"value": theirs["equal"], "aim": str(COMPARED)},
    ]


def generate(folder: Path) -> tuple[Path, Path]:
    """Write corpus.jsonl and queries.jsonl, which are always the same."""
    corpus, queries = folder / "corpus.jsonl", folder / "queries.jsonl"
    random = np.random.default_rng(1)
    queried = set(random.choice(DOCUMENTS, QUERIES, replace=False).tolist())
    with corpus.open("w") as texts, queries.open("w") as needs:
        for number, text in enumerate(passages()):
            texts.write(f'{{"_id": "d{number}", "text": "{text}"}}\n')
            if number in queried:
                words = random.permutation(text.split())[: random.integers(3, 10)]
                needs.write(f'{{"_id": "q{number}", "text": "{" ".join(words)}"}}\n')
    return corpus, queries


def passages() -> Iterator[str]:
    """Yield passages by Zipf's law over a vocabulary of 400,000 words."""
    random = np.random.default_rng(0)
    shares = np.cumsum(1 / np.arange(1, WORDS + 1))
    names = [f"w{number:x}" for number in range(WORDS)]
    for begin in range(0, DOCUMENTS, 10_000):
        lengths = random.integers(30, 91, min(10_000, DOCUMENTS - begin))
        drawn = np.searchsorted(shares, random.random(int(lengths.sum())) * shares[-1]).tolist()
        position = 0
        for length in lengths.tolist():
            yield " ".join([names[word] for word in drawn[position : position + length]])
            position += length


def step(role: str) -> dict[str, Any]:
    """Run a step in a separate process, and return its figures."""
    args = [sys.executable, "-m", "tools.bench.retrieve_1m", role]
    process = subprocess.run(args, capture_output=True, text=True, check=False)
    if process.returncode:
        raise RuntimeError(f"{role}: {process.stderr.strip().splitlines()[-1]}")
    figures: dict[str, Any] = json.loads(process.stdout)
    return figures


def make(name: str) -> dict[str, Any]:
    """Make a run as a worker does."""
    from benchmark.models import Run
    from benchmark.runs import builders
    from benchmark.runs.costs import run_cost
    from corpus.models import Collection
    from jobs import leases

    collection = Collection.objects.get(name=NAME)
    started = builders.RUNS.start_or_join(collection, {"kind": "bm25", "name": name, "depth": DEPTH})
    held = leases.claim(Run, pk=started.pk)
    assert held is not None
    begin, searching = time.perf_counter(), 0.0

    class Watched(leases.Lease):
        def progress(self, done: int, total: int, phase: str = "") -> None:
            nonlocal searching
            if phase == "searching" and not searching:
                searching = time.perf_counter()
            super().progress(done, total, phase)

    leases.Lease = Watched  # type: ignore[misc]
    builders.RUNS.perform(held, lambda: False)
    end = time.perf_counter()
    started.refresh_from_db()
    assert started.state == "ready", started.error
    per_query = run_cost(started)["seconds_per_query"]
    return {
        "seconds": round(end - begin, 1),
        "index_s": round(searching - begin, 1),
        "queries_per_s": round(QUERIES / (end - searching), 1),
        "ms_a_query": round(per_query * 1000, 1),
    }


def theirs() -> dict[str, Any]:
    """Measure bm25s alone, and count the queries with the same scores, and the same documents above the last score."""
    import bm25s
    from bm25s.tokenization import Tokenized

    from benchmark.models import Run
    from benchmark.runs import rankings
    from corpus.search.bm25 import iterate_documents
    from corpus.search.text import tokenize_text

    run = Run.objects.select_related("collection").get(name="again")
    vocabulary: dict[str, int] = {}
    keys, ids = [], []
    for key, text in iterate_documents(run.collection_id):
        keys.append(key)
        ids.append([vocabulary.setdefault(word, len(vocabulary)) for word in tokenize_text(text)])
    begin = time.perf_counter()
    scorer = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
    scorer.index(Tokenized(ids=ids, vocab=vocabulary), create_empty_token=False, show_progress=False)
    indexed = time.perf_counter()
    stored, equal, seconds = rankings.scores_of(run), 0, 0.0
    for query in rankings.current_queries(run.collection)[:COMPARED]:
        tokens = [[vocabulary[word] for word in tokenize_text(query.text)]]
        since = time.perf_counter()
        rows, scores = scorer.retrieve(tokens, k=DEPTH, show_progress=False)
        seconds += time.perf_counter() - since
        documents, ours = stored[query.pk]
        above = {keys[row] for row, score in zip(rows[0], scores[0], strict=True) if score > scores[0][-1]}
        best = set(documents[ours > scores[0][-1]].tolist())
        equal += int(np.array_equal(ours, scores[0][: len(ours)].astype(np.float64)) and above == best)
    figures = {"index_s": round(indexed - begin, 1), "equal": equal, "queries_per_s": round(COMPARED / seconds, 1)}
    return figures


if __name__ == "__main__":
    import django

    django.setup()
    figures = theirs() if sys.argv[1] == "theirs" else make(sys.argv[1])
    print(json.dumps(figures | {"peak_mb": peak_megabytes()}))
