"""Small training sets on disk, as `export` writes them, and jobs that train on them."""

import json
import random
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from training.recipes.job_folder import JobFolder

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
    chance, cut = random.Random(seed), queries * 4 // 5
    train, dev = (
        [row(number, place, chance) for number in numbers for place in range(documents)]
        for numbers in (range(cut), range(cut, queries))
    )
    train = [{**one, **changes} for one in train]
    return write_export(folder, "prism", train, dev, collection="made", options={"teacher": "votes"})


def write_export(folder: Path, form: str, train: Sequence[Any], dev: Sequence[Any] = (), **manifest: Any) -> Path:
    """An export of a format with these rows."""
    folder.mkdir(parents=True)
    files = []
    for name, rows in (("train", train), ("dev", dev)):
        content = "".join(json.dumps(one) + "\n" for one in rows).encode()
        (folder / f"{name}.jsonl").write_bytes(content)
        files.append({"name": f"{name}.jsonl", "rows": len(rows), "sha256": sha256(content).hexdigest()})
    whole = {"format": form, "collection": "learnable", "files": files} | manifest
    (folder / "manifest.json").write_text(json.dumps(whole))
    return folder


def ask(folder: Path, recipe: str, data: Path, base: str, **options: object) -> JobFolder:
    job = JobFolder(folder / "job")
    values = {"kind": "train", "recipe": recipe, "data": str(data), "base": base, "out": str(folder / "out")}
    job.write_request({**values, "device": "cpu", "options": {"preset": "tiny", **options}})
    return job
