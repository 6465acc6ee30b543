"""Sharing of vectors by machines: each publishes in parts what it paid for or computed, and takes over the others'.

A part is a file `parts/NODE-BEGIN-END.npz` in the folder of a model, with the digests of some texts
and what the model made of them. It is written once and never changed. Without QUORUM_STORE nothing
happens here (docs/adr/0032).
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

TOGETHER = 16_384  # Texts of one part: 67 MB of vectors with 1024 numbers.

logger = logging.getLogger(__name__)


def share_vectors(vectors: TextStore) -> None:
    """Publish what machines may lack, take over what they published. StoreUnavailable."""
    if not is_shared():
        return
    path = vectors.folder / "shared.json"
    with (vectors.folder / "share.lock").open("w") as lock:
        # One process of this machine at a time publishes or takes over.
        fcntl.flock(lock, fcntl.LOCK_EX)
        vectors.look()
        # How many of the local vectors are in the store, and which parts of others are here.
        state = dict(json.loads(path.read_text())) if path.exists() else {"published": 0, "parts": []}
        _publish_new(vectors, state)
        _import_parts(vectors, state)


def publish_vectors(vectors: TextStore) -> None:
    """Publish what was added; where the store is away the next search of this model does."""
    with suppress(StoreUnavailable):
        share_vectors(vectors)
        return
    logger.warning("the store is away: vectors of %s are published later", vectors.folder.name)


def _write_state(folder: Path, state: dict[str, Any]) -> None:
    part = folder / f".shared.{uuid4().hex}.json"
    part.write_text(json.dumps(state))
    part.replace(folder / "shared.json")


def _publish_new(vectors: TextStore, state: dict[str, Any]) -> None:
    total = len(vectors.places)
    for begin in range(state["published"], total, TOGETHER):
        end = min(begin + TOGETHER, total)
        path = vectors.folder / "parts" / f"{node_id()}-{begin}-{end}.npz"
        path.parent.mkdir(exist_ok=True)
        digests = np.frombuffer(b"".join(islice(vectors.places, begin, end)), dtype=np.uint8)
        try:
            with path.open("wb") as file:
                np.savez(file, digests=digests, **vectors.pack(begin, end))
            publish(path)
        finally:
            path.unlink(missing_ok=True)  # what is in it lies beside it
        # After each part, so that a kill repeats one part at most.
        _write_state(vectors.folder, state | {"published": end})
        state["published"] = end


def _import_parts(vectors: TextStore, state: dict[str, Any]) -> None:
    known = set(state["parts"])
    for row in stored_files(vectors.folder / "parts").exclude(node=node_id()):
        name = row.name.rpartition("/")[2]
        if name in known:
            continue
        path = fetch(vectors.folder / "parts" / name)
        with np.load(path, allow_pickle=False) as found:
            packed = {key: found[key] for key in found.files}
        # Its arrays go into the machine's own files, which every search reads.
        path.unlink(missing_ok=True)
        joined = packed.pop("digests").tobytes()
        digests = [joined[at : at + WIDTH] for at in range(0, len(joined), WIDTH)]
        before, lacking = len(vectors.places), sum(one not in vectors.places for one in digests)
        vectors.unpack(digests, packed)
        # What came from the store need not go there. Another process may have added something of
        # its own meanwhile, which stands before these texts: then all of it is published, for what
        # is left out would be paid twice.
        if state["published"] == before and len(vectors.places) == before + lacking:
            state["published"] = len(vectors.places)
        state["parts"].append(name)
        _write_state(vectors.folder, state)
