"""Vectors in VAR by the hash of their text: paid for once, whichever run or collection asks.

One folder a model: `hashes` (16 bytes each) and `vectors` (float32), both only ever appended to,
vectors first. What a kill left half is cut away by the next writer. Several processes may append:
one at a time, under a lock.
"""

import fcntl
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from django.conf import settings

from corpus.errors import BadInput
from judges.records import Judge

Vectors = npt.NDArray[np.float32]
Places = npt.NDArray[np.int64]
WIDTH = 16
BLOCK = 8192  # Documents whose products with all queries of a batch are held at a time.
Found = tuple[Places, Vectors]  # Places and scores of one query's documents, best first.


def vectors_folder() -> Path:
    """Return the folder with the vectors of all models."""
    return Path(settings.VAR) / "vectors"


def text_digest(text: str) -> bytes:
    """The digest by which a text's vector is found."""
    return sha256(text.encode("utf-8", "replace")).digest()[:WIDTH]


class TextStore(ABC):
    """A model's results by the digest of their text, in files that several processes share."""

    def __init__(self, root: Path, judge: Judge) -> None:
        # What decides a vector: not the name that somebody gave the judge.
        named = json.dumps([judge.provider, judge.base_url, judge.model])
        self.folder = root / sha256(named.encode()).hexdigest()[:20]
        self.folder.mkdir(parents=True, exist_ok=True)
        about = self.folder / "model.json"
        if not about.exists():
            about.write_text(named)
        self.hashes, self.vectors = self.folder / "hashes", self.folder / "vectors"
        self.places: dict[bytes, int] = {}
        self.size = 0
        self.look()

    def __len__(self) -> int:
        return len(self.places)

    def look(self) -> None:
        """Read what other processes have appended."""
        if not self.hashes.exists():
            return
        with self.hashes.open("rb") as file:
            # Only what came since: places are kept in memory.
            file.seek(len(self.places) * WIDTH)
            found = file.read()
        # A killed process may leave half a hash at the end, which is no place yet.
        for at in range(0, len(found) - WIDTH + 1, WIDTH):
            self.places[found[at : at + WIDTH]] = len(self.places)
        if self.places and not self.size:
            self.size = int(json.loads((self.folder / "size.json").read_text()))

    def find(self, digests: Iterable[bytes]) -> Places:
        """The place of each digest's vector; -1: there is none."""
        return np.fromiter((self.places.get(one, -1) for one in digests), dtype=np.int64)

    @abstractmethod
    def pack(self, begin: int, end: int) -> dict[str, Any]:
        """Return what is stored from one place to another as arrays for other machines."""

    @abstractmethod
    def unpack(self, digests: Sequence[bytes], packed: Mapping[str, Any]) -> None:
        """Add what `pack` returned on another machine."""

    @contextmanager
    def adding(self, digests: Sequence[bytes], size: int) -> Iterator[dict[bytes, int]]:
        """Yield the digests that are not stored yet, with their positions in `digests`, under the file's lock.

        The block appends what belongs to them, in that order: a kill in between leaves some without
        a hash, which the next writer cuts away. Raises BadInput where the model gave another `size`
        before.
        """
        with (self.folder / "lock").open("w") as lock:
            # One writer at a time: vectors and hashes have to land in the same order.
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.look()
            if not self.size:
                (self.folder / "size.json").write_text(json.dumps(size))
                self.size = size
            if size != self.size:
                raise BadInput(
                    f"The model gives vectors of {size} numbers and gave {self.size} before: it was exchanged "
                    f"under its name. Give the judge another model name, or remove {self.folder}"
                )
            fresh = {one: at for at, one in enumerate(digests) if one not in self.places}
            yield fresh
            # Hashes last: a vector without a hash is cut away by the next writer, a hash without a
            # vector would be wrong.
            append_at(self.hashes, len(self.places) * WIDTH, b"".join(fresh))
            for one in fresh:
                self.places[one] = len(self.places)


class Store(TextStore):
    """All vectors of one model."""

    def rows(self, places: Places) -> Vectors:
        """Return the vectors at these places, (n, size)."""
        if not len(places):
            return np.zeros((0, self.size), dtype=np.float32)
        everything = np.memmap(self.vectors, dtype="<f4", mode="r", shape=(len(self.places), self.size))
        # A collection's own documents mostly lie side by side, as they were embedded: then nothing is copied.
        if places[-1] - places[0] == len(places) - 1 and bool((np.diff(places) == 1).all()):
            return np.asarray(everything[places[0] : places[-1] + 1])  # side by side: read from the file, not copied
        return np.asarray(everything[places])

    def add(self, digests: Sequence[bytes], rows: Vectors) -> None:
        """Append the vectors that are not stored yet, scaled to length 1.

        Raises BadInput where the model had another size.
        """
        self._append(digests, unit_vectors(rows))

    def _append(self, digests: Sequence[bytes], rows: Vectors) -> None:
        with self.adding(digests, int(rows.shape[1])) as fresh:
            added = rows[list(fresh.values())].astype("<f4").tobytes()
            append_at(self.vectors, len(self.places) * self.size * 4, added)

    def pack(self, begin: int, end: int) -> dict[str, Any]:
        return {"rows": self.rows(np.arange(begin, end))}

    def unpack(self, digests: Sequence[bytes], packed: Mapping[str, Any]) -> None:
        self._append(digests, packed["rows"])  # of length 1 already: once more would change their last digit


def append_at(path: Path, at: int, data: bytes) -> None:
    """Write from byte `at` on, which is the end but for what a killed process left half."""
    path.touch(0o600)
    with path.open("r+b") as file:
        # What a killed writer left behind the last whole entry goes first.
        file.truncate(at)
        file.seek(at)
        file.write(data)


def unit_vectors(rows: Vectors) -> Vectors:
    """Scale vectors to length 1, so that a product is a cosine; a vector of zeros stays one."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths == 0, 1, lengths), dtype=np.float32)


def nearest_vectors(
    queries: Vectors, documents: int, rows: Callable[[int, int], Any], depths: Sequence[int], block: int = BLOCK
) -> list[Found]:
    """Return for each query (q, size) the positions and scores of the documents with the largest products, best first.

    `rows(begin, end)` gives documents' vectors, dense or as a sparse array of scipy. Of equal
    scores the earlier place goes first, at the cut too.
    """
    best: list[Found] = [(np.zeros(0, np.int64), np.zeros(0, np.float32)) for _ in depths]
    for begin in range(0, documents, block):
        end = min(begin + block, documents)
        scores = queries @ rows(begin, end).T
        # Each query's best so far and this block, so that memory holds one block of scores.
        for place, depth in enumerate(depths):
            best[place] = _merge_best(best[place], scores[place], begin, depth)
    return best


def _merge_best(best: Found, scores: Vectors, begin: int, depth: int) -> Found:
    """Best so far and a block together. Places of a block come after all earlier ones, so a stable sort is enough."""
    places, kept = best
    # Only what beats the worst kept one can enter, once there are enough.
    fresh = np.arange(len(scores)) if len(kept) < depth else np.flatnonzero(scores > kept[-1])
    if len(fresh) > depth:
        # A partition instead of a sort: of a block of thousands only `depth` can stay.
        bound = np.partition(scores[fresh], -depth)[-depth]
        fresh = fresh[scores[fresh] >= bound]
    together = np.concatenate([kept, scores[fresh]])
    order = np.argsort(-together, kind="stable")[:depth]
    return np.concatenate([places, fresh + begin])[order], together[order]
