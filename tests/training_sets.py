"""Small training sets on disk, as `export --format prism` writes them."""

import json
import random
from hashlib import sha256
from pathlib import Path
from typing import Any

TOPICS = ["key", "list", "loop", "string", "class", "object", "file", "error", "value", "name"]


def row(
    query: int, place: int, chance: random.Random, *, score: float | None = None, text: bool = True
) -> dict[str, Any]:
    """A relevant document names the query's word, another does not."""
    relevant = place % 2 == 1
    word, other = TOPICS[query % len(TOPICS)], TOPICS[(query + place + 1) % len(TOPICS)]
    sentence = f"The {word} is used here with care. " if relevant else f"The {other} is another thing. "
    evidence = f"<contribution>It says {word}.</contribution>\n<evidence>{word} is used</evidence>"
    return {
        "query": f"what is a {word} number {query}",
        "document": sentence * chance.randint(1, 4),
        "loss_type": "point-wise;sft" if text or not relevant else "point-wise",
        "revised_score": (0.9 if relevant else 0.1) if score is None else score,
        "annotated_label": "yes" if relevant else "no",
        "contribution_evidence": evidence if relevant and text else "",
        "query_id": f"q{query}",
        "doc_id": f"d{query}-{place}",
        "instruction": "",
    }


def write_set(folder: Path, *, queries: int = 20, documents: int = 6, seed: int = 0, **changes: Any) -> Path:
    """Four fifths of the queries to train on, the rest to measure; `changes` go into every row of `train`."""
    chance = random.Random(seed)
    folder.mkdir(parents=True)
    cut = queries * 4 // 5
    splits = {"train": range(cut), "dev": range(cut, queries)}
    files = []
    for name, numbers in splits.items():
        rows = [row(number, place, chance) for number in numbers for place in range(documents)]
        rows = [{**one, **changes} if name == "train" else one for one in rows]
        content = "".join(json.dumps(one) + "\n" for one in rows).encode()
        (folder / f"{name}.jsonl").write_bytes(content)
        files.append({"name": f"{name}.jsonl", "rows": len(rows), "sha256": sha256(content).hexdigest()})
    manifest = {"format": "prism", "collection": "made", "options": {"teacher": "votes"}, "files": files}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder
