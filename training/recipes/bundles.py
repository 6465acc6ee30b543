"""Bundles of a query with its positives and negatives, of which each epoch draws one each (RTriever 5.2)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from training.recipes.data import Example, TrainingSet, read_rows, read_set


@dataclass(frozen=True, slots=True)
class Passage:
    """A document of a bundle."""

    doc_id: str
    text: str

    @property
    def names(self) -> tuple[str, str]:
        """Its id and the hash of its text: passages with either in common are the same document."""
        return f"id {self.doc_id}", f"text {sha256(self.text.encode()).hexdigest()}"


@dataclass(frozen=True, slots=True)
class Bundle:
    """A query with its relevant passages and its negatives, at least one of each."""

    query_id: str
    query: str
    positives: tuple[Passage, ...]
    negatives: tuple[Passage, ...]
    instruction: str = ""
    synthetic: bool = False

    def draw(self, seed: int, epoch: int) -> tuple[int, int]:
        """Return the indices of the positive and the negative of an epoch, drawn by seed, epoch and query."""
        # By hash, not by a generator's state, so that resuming or another number of processes does not change them.
        digest = sha256(f"{seed}\0{epoch}\0{self.query_id}".encode()).digest()
        first, second = int.from_bytes(digest[:16]), int.from_bytes(digest[16:])
        return first % len(self.positives), second % len(self.negatives)


def read_rtriever_set(folder: Path) -> TrainingSet:
    """Read an export of format rtriever: training bundles, and the dev split as pairs. Raises BadInput."""
    training_set = read_set(folder, "rtriever", _read_bundles, "labels")
    bundles: list[Any] = training_set.dev
    pairs = [
        Example(bundle.query, passage.text, bundle.instruction, label, query_id=bundle.query_id, doc_id=passage.doc_id)
        for bundle in bundles
        for label, passages in ((1, bundle.positives), (0, bundle.negatives))
        for passage in passages
    ]
    return replace(training_set, dev=pairs)


def _read_bundles(path: Path) -> Iterator[Bundle]:
    first_lines: dict[str, int] = {}

    def parse(row: Mapping[str, Any], number: int) -> Bundle:
        bundle = _parse_bundle(row, number)
        if (first_line := first_lines.setdefault(bundle.query_id, number)) != number:
            raise ValueError(f"query {bundle.query_id} is already in line {first_line}")
        return bundle

    yield from read_rows(path, parse, "rtriever")


def _parse_bundle(row: Mapping[str, Any], number: int) -> Bundle:
    query_id = str(row.get("query_id") or f"line-{number}")
    # Passages written by a model have no id.
    positives, negatives = (
        tuple(
            Passage(str(passage.get("doc_id") or f"{query_id}:{side}:{number}"), str(passage["text"]))
            for number, passage in enumerate(row[side])
        )
        for side in ("positives", "negatives")
    )
    for name, passages in (("positive", positives), ("negative", negatives)):
        if not passages:
            raise ValueError(f"query {query_id} has no {name}")
    positive_names = {name for passage in positives for name in passage.names}
    if shared := next((passage for passage in negatives if positive_names.intersection(passage.names)), None):
        raise ValueError(f"query {query_id}: {shared.doc_id} is a positive and a negative")
    query = str(row["query"])
    return Bundle(
        query_id, query, positives, negatives, str(row.get("instruction") or ""), bool(row.get("synthetic", False))
    )
