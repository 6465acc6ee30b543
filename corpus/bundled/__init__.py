"""The bundled collection: passages of the Python language reference with our own questions and gold labels.

The questions (queries.jsonl, 48 with answer sets) and the gold labels (gold.jsonl, from careful
reading: a passage is relevant only if it contains everything that one of the answers says) are our
own; the passages are cut from the reference of the running Python. Gold labels are keyed by the
passage's content hash and dropped where another Python words a passage differently.
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
# Candidates for each question: the first of BM25 and of static embeddings; where these are missing, of BM25 alone.
DEPTH, BM25_ALONE = 5, 8


def pool_depths() -> dict[str, int]:
    """Return the number of candidates for each question by search, as options of an import."""
    # Imported here: the trainer reads the bundled texts without Django.
    from corpus.search import static_embeddings

    if static_embeddings.is_available():
        return {"bm25": DEPTH, "static": DEPTH}
    return {"bm25": BM25_ALONE}


def build(folder: Path, topics: dict[str, str] | None = None) -> dict[str, int]:
    """Write the .jsonl files to `folder`; return the numbers of their rows, and of `dropped` gold labels."""
    if topics is None:
        from pydoc_data import topics as reference

        topics = reference.topics
    passages = cut_passages(topics)
    gold = [json.loads(line) for line in (HERE / "gold.jsonl").read_text().splitlines()]
    by_hash = {passage.sha256: passage.id for passage in passages}
    pairs = [
        {"query_id": row["query_id"], "doc_id": by_hash[row["sha256"]], "gold": row["gold"]}
        for row in gold
        if row["sha256"] in by_hash
    ]
    questions = [json.loads(line) for line in (HERE / "queries.jsonl").read_text().splitlines()]
    documents = [{"_id": passage.id, "title": passage.title, "text": passage.text} for passage in passages]
    # A few questions have aspects, whose passages are given by content hash, too.
    aspects = []
    for line in (HERE / "aspects.jsonl").read_text().splitlines():
        row = json.loads(line)
        hashes = row.pop("passages")
        aspects.append({**row, "doc_ids": [by_hash[digest] for digest in hashes if digest in by_hash]})
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, list[Any]] = {"corpus": documents, "queries": questions, "pairs": pairs, "aspects": aspects}
    for name, rows in files.items():
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        (folder / f"{name}.jsonl").write_text("".join(lines))
    return {name: len(rows) for name, rows in files.items()} | {"dropped": len(gold) - len(pairs)}
