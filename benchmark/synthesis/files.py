"""The folder of a synthesis: bundles to train on (format rtriever), what was dropped, a card, the manifest last."""

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


def check_new_folder(folder: Path) -> None:
    """Raises BadInput unless a folder can be made there, or an empty one stands there."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{folder} is not empty: name a new folder")


def write_folder(synthesis: Synthesis, folder: Path) -> dict[str, Any]:
    """Write the files of a synthesis; return the manifest. The folder appears when it is whole.

    Raises BadInput where it cannot be written; the same bundles make the same bytes.
    """
    part = folder.with_name(f".{folder.name}.part")
    try:
        rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        manifest = _write_files(synthesis, part)
        part.rename(folder)
    except OSError as error:
        rmtree(part, ignore_errors=True)
        raise BadInput(f"{folder} cannot be written: {error.strerror}") from None
    return manifest


def _write_files(synthesis: Synthesis, folder: Path) -> dict[str, Any]:
    options = synthesis.options
    sides = split_bundles(read_bundles(synthesis), options["dev"], options["seed"])
    dropped = dropped_rows(synthesis)
    written = {f"{side}.jsonl": rows for side, rows in sides.items()} | {"dropped.jsonl": dropped}
    files = [_write_lines(folder / name, rows) for name, rows in written.items()]
    manifest = _build_manifest(synthesis, sides, dropped) | {"files": files}
    told = {"bundles": f"{manifest['counts']['queries']:,}", "seeds": f"{manifest['counts']['seeds']:,}"}
    told |= {"dropped": f"{manifest['counts']['dropped_bundles']:,}", "collection": manifest["collection"]}
    (folder / "README.md").write_text(CARD.format(**told, judge=options["judge"], writer=options["writer"]))
    text = json.dumps(manifest, ensure_ascii=False, indent=2, sort_keys=True)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")
    return manifest


def read_bundles(synthesis: Synthesis) -> list[Bundle]:
    """The bundles, in the order of their seeds."""
    rows = synthesis.bundles.filter(bundle__isnull=False).order_by("place")
    return [one.bundle for one in rows.only("bundle") if one.bundle is not None]


def dropped_rows(synthesis: Synthesis) -> list[dict[str, Any]]:
    """Return what was left out, and why: bundles, and negatives nearly equal to a positive."""
    left = synthesis.bundles.exclude(step="") | synthesis.bundles.filter(near_duplicates__gt=0)
    rows = []
    for one in left.order_by("place"):
        what = {"what": "bundle", "step": one.step, "reason": one.reason, "problem": one.problem}
        if not one.step:
            what = {"what": "negative", "step": "compose", "reason": NEAR_DUPLICATE}
            what |= {"problem": f"{one.near_duplicates} of the negatives nearly equal a positive"}
        rows.append({"seed": {"query_id": one.seed_id, "query": one.seed_text}, **what, "synthetic": True})
    return rows


def lines_of(rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows as JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n" for row in rows)


def _write_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    data = lines_of(rows).encode()
    path.write_bytes(data)
    return {"name": path.name, "rows": len(rows), "bytes": len(data), "sha256": sha256(data).hexdigest()}


def _build_manifest(
    synthesis: Synthesis, sides: Mapping[str, Sequence[Bundle]], dropped: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the manifest: contents and provenance, no time: equal for equal bundles."""
    bundles = [one for rows in sides.values() for one in rows]
    reasons = Counter(f"{one['step']}: {one['reason']}" for one in dropped if one["what"] == "bundle")
    negatives = sum(synthesis.bundles.values_list("near_duplicates", flat=True))
    # What was spent on it is no part of the data, and personas are a thousand lines at most.
    apart = ("budget", "max_calls", "personas")
    return {
        "collection": synthesis.collection.name,
        "format": FORMAT,
        "synthetic": True,
        "options": {key: value for key, value in synthesis.options.items() if key not in apart},
        "counts": {
            "rows": len(bundles),
            "queries": len(bundles),
            "synthetic_queries": len(bundles),
            "seeds": synthesis.total,
            "types": dict(sorted(Counter(one["type"] for one in bundles).items())),
            "splits": {side: {"rows": len(rows), "queries": len(rows)} for side, rows in sides.items()},
            "dropped_bundles": reasons.total(),
            "dropped": dict(sorted(reasons.items())),
            "dropped_negatives": negatives,
        },
        "models": bundles[0]["models"] if bundles else {},
        # A synthesis asks with one version of each.
        "prompts": dict(sorted({name: sha for one in bundles for name, sha in one["prompts"].items()}.items())),
        "versions": {"manifest": 1, "format": 1},
    }
