"""The bundled collection: passages of the Python language reference, questions and gold labels of our own.

The questions (queries.jsonl, 48 with answer sets) and the gold labels (gold.jsonl, by careful reading: relevant only
when the passage holds everything that one of the answers says) are ours; the passages are cut from the Python that
runs. Gold is keyed by the passage's content hash: where another Python words a passage differently, it is dropped.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from corpus.bundled.passages import cut_passages
from corpus.rubric import SUFFICIENCY

HERE = Path(__file__).parent
NAME = "python-reference"
TITLE = "Python language reference"
RUBRIC = SUFFICIENCY.name
BM25 = 8  # Candidates for each question.


@dataclass(frozen=True, slots=True)
class Built:
    """The files of the collection, and what is in them."""

    corpus: Path
    queries: Path
    pairs: Path
    documents: int
    questions: int
    gold: int
    gold_dropped: int  # Gold labels of passages that this Python words differently.


def build(folder: Path, topics: dict[str, str] | None = None) -> Built:
    """Write corpus.jsonl, queries.jsonl and pairs.jsonl (gold) to `folder`. Same Python, same bytes."""
    if topics is None:
        from pydoc_data import topics as reference

        topics = reference.topics
    cut = cut_passages(topics)
    gold = [json.loads(line) for line in (HERE / "gold.jsonl").read_text().splitlines()]
    by_hash = {passage.sha256: passage.id for passage in cut}
    pairs = [
        {"query_id": row["query_id"], "doc_id": by_hash[row["sha256"]], "gold": row["gold"]}
        for row in gold
        if row["sha256"] in by_hash
    ]
    questions = [json.loads(line) for line in (HERE / "queries.jsonl").read_text().splitlines()]
    documents = [{"_id": passage.id, "title": passage.title, "text": passage.text} for passage in cut]
    folder.mkdir(parents=True, exist_ok=True)
    return Built(
        corpus=_write_jsonl(folder / "corpus.jsonl", documents),
        queries=_write_jsonl(folder / "queries.jsonl", questions),
        pairs=_write_jsonl(folder / "pairs.jsonl", pairs),
        documents=len(cut),
        questions=len(questions),
        gold=len(pairs),
        gold_dropped=len(gold) - len(pairs),
    )


def _write_jsonl(path: Path, rows: Iterable[Mapping[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return path
