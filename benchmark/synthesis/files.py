"""The folder of a synthesis: bundles to train on (format rtriever), dropped seeds, a card and the manifest."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from typing import Any

from benchmark.models import Synthesis
from benchmark.synthesis.bundles import Bundle, split_bundles
from benchmark.synthesis.conversation import NEAR_DUPLICATE
from corpus.errors import BadInput

FORMAT = "rtriever"
MANIFEST = "manifest.json"
CARD = """# Synthetic training data

Every query and every passage in this folder was written by a model. Nobody judged them. Each row of `train.jsonl` and
`dev.jsonl` says `"synthetic": true`; do not measure a system on them as if people had asked and judged.

- Collection: {collection}
- Bundles: {bundles}, of {seeds} seed queries; dropped: {dropped}
- Steps answered by {judge}; passages written by {writer}
- Prompts: `manifest.json` has the hash of each

`manage.py train rtriever --data FOLDER` trains on it.
"""


def write_folder(synthesis: Synthesis, folder: Path) -> dict[str, Any]:
    """Write the files of a synthesis, the manifest last, and return the manifest.

    The folder appears under its name once it is complete; equal bundles make equal bytes. Raises
    BadInput if it cannot be written.
    """
    options = synthesis.options
    splits = split_bundles(read_bundles(synthesis), options["dev"], options["seed"])
    dropped = dropped_rows(synthesis)
    part = folder.with_name(f".{folder.name}.part")
    try:
        rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        contents = {f"{split}.jsonl": rows for split, rows in splits.items()} | {"dropped.jsonl": dropped}
        files = [_write_lines(part / name, rows) for name, rows in contents.items()]
        manifest = _build_manifest(synthesis, splits, dropped) | {"files": files}
        counts = manifest["counts"]
        card = CARD.format(
            collection=manifest["collection"],
            bundles=f"{counts['queries']:,}",
            seeds=f"{counts['seeds']:,}",
            dropped=f"{counts['dropped_bundles']:,}",
            judge=options["judge"],
            writer=options["writer"],
        )
        (part / "README.md").write_text(card)
        text = json.dumps(manifest, ensure_ascii=False, indent=2, sort_keys=True)
        (part / MANIFEST).write_text(text + "\n", encoding="utf-8")
        part.rename(folder)
    except OSError as error:
        rmtree(part, ignore_errors=True)
        raise BadInput(f"{folder} cannot be written: {error.strerror}") from None
    return manifest


def read_bundles(synthesis: Synthesis) -> list[Bundle]:
    """Return the bundles, in the order of their seeds."""
    rows = synthesis.bundles.filter(bundle__isnull=False).order_by("place")
    return [row.bundle for row in rows.only("bundle") if row.bundle is not None]


def dropped_rows(synthesis: Synthesis) -> list[dict[str, Any]]:
    """Return the dropped bundles and the dropped near-duplicate negatives, with the reasons."""
    seed_rows = synthesis.bundles.exclude(step="") | synthesis.bundles.filter(near_duplicates__gt=0)
    rows = []
    for seed_row in seed_rows.order_by("place"):
        drop = {"what": "bundle", "step": seed_row.step, "reason": seed_row.reason, "problem": seed_row.problem}
        if not seed_row.step:
            drop = {"what": "negative", "step": "compose", "reason": NEAR_DUPLICATE}
            drop |= {"problem": f"{seed_row.near_duplicates} of the negatives nearly equal a positive"}
        rows.append({"seed": {"query_id": seed_row.seed_id, "query": seed_row.seed_text}, **drop, "synthetic": True})
    return rows


def lines_of(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the rows as JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n" for row in rows)


def _write_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    data = lines_of(rows).encode()
    path.write_bytes(data)
    return {"name": path.name, "rows": len(rows), "bytes": len(data), "sha256": sha256(data).hexdigest()}


def _build_manifest(
    synthesis: Synthesis, splits: Mapping[str, Sequence[Bundle]], dropped: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the manifest: contents and provenance, without a time, so that equal bundles have equal manifests."""
    bundles = [bundle for rows in splits.values() for bundle in rows]
    reasons = Counter(
        f"{dropped_row['step']}: {dropped_row['reason']}" for dropped_row in dropped if dropped_row["what"] == "bundle"
    )
    negatives = sum(synthesis.bundles.values_list("near_duplicates", flat=True))
    # Limits do not describe the data, and there may be a thousand personas.
    left_out = ("budget", "max_calls", "personas")
    return {
        "collection": synthesis.collection.name,
        "format": FORMAT,
        "synthetic": True,
        "options": {key: value for key, value in synthesis.options.items() if key not in left_out},
        "counts": {
            "rows": len(bundles),
            "queries": len(bundles),
            "synthetic_queries": len(bundles),
            "seeds": synthesis.total,
            "types": dict(sorted(Counter(bundle["type"] for bundle in bundles).items())),
            "splits": {split: {"rows": len(rows), "queries": len(rows)} for split, rows in splits.items()},
            "dropped_bundles": reasons.total(),
            "dropped": dict(sorted(reasons.items())),
            "dropped_negatives": negatives,
        },
        "models": bundles[0]["models"] if bundles else {},
        # All bundles of a synthesis use one version of each prompt.
        "prompts": dict(sorted({name: sha for bundle in bundles for name, sha in bundle["prompts"].items()}.items())),
        "versions": {"manifest": 1, "format": 1},
    }
