"""Bundles: a query, positives and negatives, and an epoch's choice (RTriever 5.2)."""

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
        """Return a passage's identities: with one in common, two are the same document."""
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
        """Return the places of the positive and the negative that an epoch takes; seed, epoch and query decide."""
        # By hash and not by a generator's state: a resumed training, or another number of processes, draws the same.
        digest = sha256(f"{seed}\0{epoch}\0{self.query_id}".encode()).digest()
        first, second = int.from_bytes(digest[:16]), int.from_bytes(digest[16:])
        return first % len(self.positives), second % len(self.negatives)


def read_rtriever_set(folder: Path) -> TrainingSet:
    """Read an export of format rtriever: bundles to train on, pairs of the dev split to measure. Raises BadInput."""
    found = read_set(folder, "rtriever", _read_bundles, "labels")
    bundles: list[Any] = found.dev
    pairs = [
        Example(bundle.query, one.text, bundle.instruction, label, query_id=bundle.query_id, doc_id=one.doc_id)
        for bundle in bundles
        for label, passages in ((1, bundle.positives), (0, bundle.negatives))
        for one in passages
    ]
    return replace(found, dev=pairs)


def _read_bundles(path: Path) -> Iterator[Bundle]:
    seen: dict[str, int] = {}

    def parse(row: Mapping[str, Any], number: int) -> Bundle:
        bundle = _parse_bundle(row, number)
        if (before := seen.setdefault(bundle.query_id, number)) != number:
            raise ValueError(f"query {bundle.query_id} stands in line {before} already")
        return bundle

    yield from read_rows(path, parse, "rtriever")


def _parse_bundle(row: Mapping[str, Any], number: int) -> Bundle:
    query_id = str(row.get("query_id") or f"line-{number}")
    # Passages that a model wrote have no id of their own.
    positives, negatives = (
        tuple(
            Passage(str(one.get("doc_id") or f"{query_id}:{side}:{at}"), str(one["text"]))
            for at, one in enumerate(row[side])
        )
        for side in ("positives", "negatives")
    )
    for name, passages in (("positive", positives), ("negative", negatives)):
        if not passages:
            raise ValueError(f"query {query_id} has no {name}")
    known = {name for one in positives for name in one.names}
    if both := next((one for one in negatives if known.intersection(one.names)), None):
        raise ValueError(f"query {query_id}: {both.doc_id} is a positive and a negative")
    query = str(row["query"])
    return Bundle(
        query_id, query, positives, negatives, str(row.get("instruction") or ""), bool(row.get("synthetic", False))
    )
