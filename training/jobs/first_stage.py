"""The first stage, the ranking that a trained model would reorder: its documents, scores and qrels (pure)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from benchmark.measures import rankings as measures
from training.recipes.data import Example
from training.recipes.job_folder import JobFolder, read_lines

# One line for each query: {query_id, query, instruction, documents: [{doc_id, text, score}]}.
PAIRS = "pairs.jsonl"
QRELS = "qrels.json"
BM25 = "BM25"
DEPTH = 20  # The documents of each query on which a training compares base and model.
QUERIES = 100  # The most queries: both models and the published one score DEPTH documents of each.
MEASURES = ("nDCG@10", "RR@10")  # Not recall, which does not change when the same documents are reordered.


@dataclass(frozen=True)
class FirstStage:
    """The first documents of a run, or of BM25, for queries that were not trained on. `name` is the run's."""

    name: str
    lines: Sequence[Mapping[str, Any]]
    qrels: measures.Qrels

    @property
    def rows(self) -> list[Example]:
        """All pairs, as rows that a model scores."""
        return [
            Example(
                line["query"],
                document["text"],
                line["instruction"],
                query_id=line["query_id"],
                doc_id=document["doc_id"],
            )
            for line in self.lines
            for document in line["documents"]
        ]

    def compare(self, base: Sequence[float], tuned: Sequence[float], *, random_head: bool = False) -> dict[str, Any]:
        """Compare the first stage with both models' rankings of its documents, given their scores of `rows`."""
        first = {
            line["query_id"]: {document["doc_id"]: document["score"] for document in line["documents"]}
            for line in self.lines
        }
        rankings = {self.name: first, "base": self._rank(base), "tuned": self._rank(tuned)}
        compared = compare_rankings(self.qrels, rankings, MEASURES)
        return {"first_stage": self.name, "depth": DEPTH, "random_head": random_head, **compared}

    def _rank(self, scores: Sequence[float]) -> dict[str, dict[str, float]]:
        """Return a model's scores, which are in the order of `rows`, by query and document."""
        remaining = iter(scores)
        ranking = {}
        for line in self.lines:
            ids = [document["doc_id"] for document in line["documents"]]
            ranking[line["query_id"]] = dict(zip(ids, islice(remaining, len(ids)), strict=True))
        return ranking


def read_first_stage(folder: JobFolder) -> FirstStage | None:
    """Return the first stage in a job's folder; None if the training set's collection is not on this site."""
    if not (folder.path / PAIRS).exists():
        return None
    qrels = json.loads((folder.path / QRELS).read_text())
    return FirstStage(folder.job.get("first_stage") or BM25, read_lines(folder.path / PAIRS), qrels)


def compare_rankings(
    qrels: measures.Qrels, rankings: Mapping[str, measures.Run], measure_names: Sequence[str]
) -> dict[str, Any]:
    """Measure three rankings (a first stage, `base` and `tuned`), and compare each two of them by query."""
    results = {name: measures.evaluate_run(qrels, run, measure_names) for name, run in rankings.items()}
    first, base, tuned = results
    compared = [
        {
            "one": after,
            "other": before,
            **asdict(measures.compare_runs(name, results[after].per_query[name], results[before].per_query[name])),
        }
        for after, before in ((base, first), (tuned, first), (tuned, base))
        for name in measure_names
    ]
    return {
        "queries": len(qrels),
        "measures": {name: result.means for name, result in results.items()},
        "per_query": {name: result.per_query for name, result in results.items()},
        "compared": compared,
    }
