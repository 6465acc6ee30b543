"""The bundled collection: passages of the Python language reference, questions and gold labels of our own.

The questions (queries.jsonl, 48 with answer sets) and the gold labels (gold.jsonl, by careful
reading: relevant only when the passage holds everything that one of the answers says) are ours; the
passages are cut from the Python that runs. Gold is keyed by the passage's content hash: where
another Python words a passage differently, it is dropped.
"""

import json
from pathlib import Path
from typing import Any

from corpus.bundled.passages import cut_passages
from corpus.rubric import SUFFICIENCY

HERE = Path(__file__).parent
NAME = "python-reference"
TITLE = "Python language reference"
RUBRIC = SUFFICIENCY.name
BM25 = 8  # Candidates for each question.


def build(folder: Path, topics: dict[str, str] | None = None) -> dict[str, int]:
    """Write the .jsonl files to `folder`; return how much each holds, and how many gold labels are `dropped`."""
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
    aspects = _name_passages(by_hash)
    written: dict[str, list[Any]] = {"corpus": documents, "queries": questions, "pairs": pairs, "aspects": aspects}
    for name, rows in written.items():
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        (folder / f"{name}.jsonl").write_text("".join(lines))
    return {name: len(rows) for name, rows in written.items()} | {"dropped": len(gold) - len(pairs)}


def _name_passages(by_hash: dict[str, str]) -> list[dict[str, Any]]:
    """Return the aspects of a few questions with the ids of their passages, as far as this Python words them alike."""
    found = []
    for line in (HERE / "aspects.jsonl").read_text().splitlines():
        row = json.loads(line)
        passages = row.pop("passages")
        found.append({**row, "doc_ids": [by_hash[one] for one in passages if one in by_hash]})
    return found
