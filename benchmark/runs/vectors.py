"""Vectors in VAR by the hash of their text: each is paid for once, for all runs and collections.

Each model has a folder with `hashes` (16 bytes each) and `vectors` (float32), both append-only,
vectors first. An incomplete entry that a killed process left is removed by the next writer. Several
processes may append, one at a time under a lock.
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
Positions = npt.NDArray[np.int64]
WIDTH = 16
BLOCK = 8192  # Documents whose products with all queries of a batch are in memory at once.
NearestDocuments = tuple[Positions, Vectors]  # Positions and scores of one query's documents, best first.


def vectors_folder() -> Path:
    """Return the folder with the vectors of all models."""
    return Path(settings.VAR) / "vectors"


def text_digest(text: str) -> bytes:
    """Return the digest by which a text's vector is stored."""
    return sha256(text.encode("utf-8", "replace")).digest()[:WIDTH]


class TextStore(ABC):
    """A model's vectors by the digest of their text, in files that several processes share."""

    def __init__(self, root: Path, judge: Judge) -> None:
        # What determines a vector; the judge's name does not.
        identity = json.dumps([judge.provider, judge.base_url, judge.model])
        self.folder = root / sha256(identity.encode()).hexdigest()[:20]
        self.folder.mkdir(parents=True, exist_ok=True)
        description_path = self.folder / "model.json"
        if not description_path.exists():
            description_path.write_text(identity)
        self.hashes, self.vectors = self.folder / "hashes", self.folder / "vectors"
        self.positions: dict[bytes, int] = {}
        self.size = 0
        self.read_new()

    def __len__(self) -> int:
        return len(self.positions)

    def read_new(self) -> None:
        """Read the hashes that other processes have appended."""
        if not self.hashes.exists():
            return
        with self.hashes.open("rb") as file:
            # Only the new ones: positions are kept in memory.
            file.seek(len(self.positions) * WIDTH)
            data = file.read()
        # A killed process may have left half a hash at the end, which is ignored.
        for start in range(0, len(data) - WIDTH + 1, WIDTH):
            self.positions[data[start : start + WIDTH]] = len(self.positions)
        if self.positions and not self.size:
            self.size = int(json.loads((self.folder / "size.json").read_text()))

    def find(self, digests: Iterable[bytes]) -> Positions:
        """Return the position of each digest's vector; -1 if there is none."""
        return np.fromiter((self.positions.get(digest, -1) for digest in digests), dtype=np.int64)

    @abstractmethod
    def pack(self, begin: int, end: int) -> dict[str, Any]:
        """Return the vectors of a range of positions as arrays for other machines."""

    @abstractmethod
    def unpack(self, digests: Sequence[bytes], packed: Mapping[str, Any]) -> None:
        """Add what `pack` returned on another machine."""

    @contextmanager
    def adding(self, digests: Sequence[bytes], size: int) -> Iterator[dict[bytes, int]]:
        """Yield the digests that are not stored yet, with their positions in `digests`, under the file's lock.

        The block appends their vectors, in that order: a kill in between leaves vectors without a
        hash, which the next writer removes. Raises BadInput where the model returned another `size`
        before.
        """
        with (self.folder / "lock").open("w") as lock:
            # One writer at a time, so that vectors and hashes are in the same order.
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.read_new()
            if not self.size:
                (self.folder / "size.json").write_text(json.dumps(size))
                self.size = size
            if size != self.size:
                raise BadInput(
                    f"The model returns vectors of {size} numbers and returned {self.size} before: another model has "
                    f"its name. Give the judge another model name, or remove {self.folder}."
                )
            new_positions = {digest: index for index, digest in enumerate(digests) if digest not in self.positions}
            yield new_positions
            # Hashes last: a vector without a hash is removed by the next writer, a hash without a
            # vector would be wrong.
            append_at(self.hashes, len(self.positions) * WIDTH, b"".join(new_positions))
            for digest in new_positions:
                self.positions[digest] = len(self.positions)


class Store(TextStore):
    """All vectors of one model."""

    def rows(self, positions: Positions) -> Vectors:
        """Return the vectors at these positions, (n, size)."""
        if not len(positions):
            return np.zeros((0, self.size), dtype=np.float32)
        vectors = np.memmap(self.vectors, dtype="<f4", mode="r", shape=(len(self.positions), self.size))
        # A collection's documents are mostly consecutive, as they were embedded: then they are read without a copy.
        if positions[-1] - positions[0] == len(positions) - 1 and bool((np.diff(positions) == 1).all()):
            return np.asarray(vectors[positions[0] : positions[-1] + 1])
        return np.asarray(vectors[positions])

    def add(self, digests: Sequence[bytes], rows: Vectors) -> None:
        """Append the vectors that are not stored yet, scaled to length 1.

        Raises BadInput where the model had another size.
        """
        # At length 1 a product is a cosine; a vector of zeros stays one.
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        self._append(digests, np.asarray(rows / np.where(lengths == 0, 1, lengths), dtype=np.float32))

    def _append(self, digests: Sequence[bytes], rows: Vectors) -> None:
        with self.adding(digests, int(rows.shape[1])) as new_positions:
            data = rows[list(new_positions.values())].astype("<f4").tobytes()
            append_at(self.vectors, len(self.positions) * self.size * 4, data)

    def pack(self, begin: int, end: int) -> dict[str, Any]:
        return {"rows": self.rows(np.arange(begin, end))}

    def unpack(self, digests: Sequence[bytes], packed: Mapping[str, Any]) -> None:
        self._append(digests, packed["rows"])  # Already of length 1: scaling again would change the last digit.


def append_at(path: Path, offset: int, data: bytes) -> None:
    """Write at byte `offset`, the end of the file except for an incomplete entry of a killed process."""
    path.touch(0o600)
    with path.open("r+b") as file:
        # Remove what a killed writer left after the last complete entry.
        file.truncate(offset)
        file.seek(offset)
        file.write(data)


def nearest_vectors(
    queries: Vectors, documents: int, rows: Callable[[int, int], Any], depths: Sequence[int], block: int = BLOCK
) -> list[NearestDocuments]:
    """Return for each query (q, size) the positions and scores of the documents with the largest products, best first.

    `rows(begin, end)` returns documents' vectors, dense or as a sparse array of scipy. Of equal
    scores the earlier position comes first, also at the cut.
    """
    best: list[NearestDocuments] = [(np.zeros(0, np.int64), np.zeros(0, np.float32)) for _ in depths]
    for begin in range(0, documents, block):
        end = min(begin + block, documents)
        scores = queries @ rows(begin, end).T
        # The best so far and this block are merged, so that only one block of scores is in memory.
        for query, depth in enumerate(depths):
            positions, best_scores = best[query]
            block_scores = scores[query]
            # Once there are enough, only scores above the worst of the best can enter.
            candidates = np.arange(len(block_scores))
            if len(best_scores) >= depth:
                candidates = np.flatnonzero(block_scores > best_scores[-1])
            if len(candidates) > depth:
                # A partition instead of a sort: of thousands in a block at most `depth` can stay.
                threshold = np.partition(block_scores[candidates], -depth)[-depth]
                candidates = candidates[block_scores[candidates] >= threshold]
            # A stable sort keeps the order of ties, because all positions of the block are later.
            joined = np.concatenate([best_scores, block_scores[candidates]])
            order = np.argsort(-joined, kind="stable")[:depth]
            best[query] = (np.concatenate([positions, candidates + begin])[order], joined[order])
    return best
