"""The ranking that a trained model would reorder, as a job's folder has it: documents, scores and qrels (pure)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from benchmark.measures import rankings as measures
from training.jobs.folder import JobFolder, read_lines
from training.recipes.data import Example

# One line for each query: {query_id, query, instruction, documents: [{doc_id, text, score}]}.
PAIRS = "pairs.jsonl"
QRELS = "qrels.json"
BM25 = "BM25"
DEPTH = 20  # Documents of each query that a training compares base and model on.
QUERIES = 100  # At most: both models and the published one score DEPTH documents of each.
MEASURES = ("nDCG@10", "RR@10")  # Without recall: an order of the same documents does not change it.


@dataclass(frozen=True)
class FirstStage:
    """The first documents of a run, or of BM25, for queries that had no part in the training. `name`: of the run."""

    name: str
    lines: Sequence[Mapping[str, Any]]
    qrels: measures.Qrels

    @property
    def rows(self) -> list[Example]:
        """All pairs as rows that a model scores."""
        return [
            Example(line["query"], one["text"], line["instruction"], query_id=line["query_id"], doc_id=one["doc_id"])
            for line in self.lines
            for one in line["documents"]
        ]

    def compare(self, base: Sequence[float], tuned: Sequence[float], *, random_head: bool = False) -> dict[str, Any]:
        """Compare the first stage with both models' orders of its documents; scores are in the order of `rows`."""
        own = {line["query_id"]: {one["doc_id"]: one["score"] for one in line["documents"]} for line in self.lines}
        found = {"base": self._order(base), "tuned": self._order(tuned)}
        compared = compare_rankings(self.qrels, {self.name: own, **found}, MEASURES)
        return {"first_stage": self.name, "depth": DEPTH, "random_head": random_head, **compared}

    def _order(self, scores: Sequence[float]) -> dict[str, dict[str, float]]:
        left = iter(scores)
        return {
            line["query_id"]: dict(
                zip((one["doc_id"] for one in line["documents"]), islice(left, len(line["documents"])), strict=True)
            )
            for line in self.lines
        }


def read_first_stage(folder: JobFolder) -> FirstStage | None:
    """Return what the job's folder has to compare with; None where the set's queries are of no collection here."""
    if not (folder.path / PAIRS).exists():
        return None
    qrels = json.loads((folder.path / QRELS).read_text())
    return FirstStage(folder.job.get("first_stage") or BM25, read_lines(folder.path / PAIRS), qrels)


def compare_rankings(
    qrels: measures.Qrels, rankings: Mapping[str, measures.Run], wanted: Sequence[str]
) -> dict[str, Any]:
    """Measure a first stage, `base` and `tuned`, and compare each pair by query."""
    found = {name: measures.evaluate_run(qrels, run, wanted) for name, run in rankings.items()}
    first, base, tuned = found
    compared = [
        {
            "one": one,
            "other": other,
            **asdict(measures.compare_runs(name, found[one].per_query[name], found[other].per_query[name])),
        }
        for one, other in ((base, first), (tuned, first), (tuned, base))
        for name in wanted
    ]
    return {
        "queries": len(qrels),
        "measures": {name: result.means for name, result in found.items()},
        "per_query": {name: result.per_query for name, result in found.items()},
        "compared": compared,
    }
