"""Sharing of vectors between machines: each publishes its own vectors in parts, and imports those of the others.

A part is a file `parts/NODE-BEGIN-END.npz` in the folder of a model, with the digests of some texts
and their vectors. It is written once and never changed. Without QUORUM_STORE nothing is shared
(docs/adr/0032).
"""

import fcntl
import json
import logging
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from benchmark.runs.vectors import WIDTH, TextStore
from store.files import fetch, is_shared, publish, stored_files
from store.nodes import node_id
from store.objects import StoreUnavailable

TOGETHER = 16_384  # Texts in one part: 67 MB for vectors of 1024 numbers.

logger = logging.getLogger(__name__)


def share_vectors(vectors: TextStore) -> None:
    """Publish new vectors, and import those of other machines. Raises StoreUnavailable."""
    if not is_shared():
        return
    path = vectors.folder / "shared.json"
    with (vectors.folder / "share.lock").open("w") as lock:
        # One process of this machine at a time publishes or imports.
        fcntl.flock(lock, fcntl.LOCK_EX)
        vectors.read_new()
        # How many of the local vectors are in the store, and which parts of other machines were imported.
        state = dict(json.loads(path.read_text())) if path.exists() else {"published": 0, "parts": []}
        _publish_new(vectors, state)
        _import_parts(vectors, state)


def publish_vectors(vectors: TextStore) -> None:
    """Publish new vectors; if the store is unavailable, the next search with this model will."""
    with suppress(StoreUnavailable):
        share_vectors(vectors)
        return
    logger.warning("the store is unavailable: vectors of %s will be published later", vectors.folder.name)


def _write_state(folder: Path, state: dict[str, Any]) -> None:
    part = folder / f".shared.{uuid4().hex}.json"
    part.write_text(json.dumps(state))
    part.replace(folder / "shared.json")


def _publish_new(vectors: TextStore, state: dict[str, Any]) -> None:
    total = len(vectors.positions)
    for begin in range(state["published"], total, TOGETHER):
        end = min(begin + TOGETHER, total)
        path = vectors.folder / "parts" / f"{node_id()}-{begin}-{end}.npz"
        path.parent.mkdir(exist_ok=True)
        digests = np.frombuffer(b"".join(islice(vectors.positions, begin, end)), dtype=np.uint8)
        try:
            with path.open("wb") as file:
                np.savez(file, digests=digests, **vectors.pack(begin, end))
            publish(path)
        finally:
            path.unlink(missing_ok=True)  # Its vectors are in the machine's own files.
        # After each part, so that a kill repeats one part at most.
        _write_state(vectors.folder, state | {"published": end})
        state["published"] = end


def _import_parts(vectors: TextStore, state: dict[str, Any]) -> None:
    imported_parts = set(state["parts"])
    for row in stored_files(vectors.folder / "parts").exclude(node=node_id()):
        name = row.name.rpartition("/")[2]
        if name in imported_parts:
            continue
        path = fetch(vectors.folder / "parts" / name)
        with np.load(path, allow_pickle=False) as archive:
            packed = {key: archive[key] for key in archive.files}
        # The arrays are appended to the machine's own files, which every search reads.
        path.unlink(missing_ok=True)
        digest_bytes = packed.pop("digests").tobytes()
        digests = [digest_bytes[start : start + WIDTH] for start in range(0, len(digest_bytes), WIDTH)]
        count_before, missing_count = len(vectors.positions), sum(digest not in vectors.positions for digest in digests)
        vectors.unpack(digests, packed)
        # Imported vectors need not be published. If another process has added vectors before these
        # meanwhile, all are published, because vectors that were left out would be paid for twice.
        if state["published"] == count_before and len(vectors.positions) == count_before + missing_count:
            state["published"] = len(vectors.positions)
        state["parts"].append(name)
        _write_state(vectors.folder, state)
