"""Bundles: a query with its positives and negatives, and which of them an epoch takes (pure; RTriever 5.2, FORMATS)."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from corpus.errors import BadInput
from training.recipes.data import Example, TrainingSet, read_manifest


@dataclass(frozen=True, slots=True)
class Passage:
    """A document of a bundle."""

    doc_id: str
    text: str

    @property
    def names(self) -> tuple[str, str]:
        """What it is known by: two passages with one of these in common are the same document."""
        return f"id {self.doc_id}", f"text {sha256(self.text.encode()).hexdigest()}"


@dataclass(frozen=True, slots=True)
class Bundle:
    """A query with its relevant passages and others, at least one of each."""

    query_id: str
    query: str
    positives: tuple[Passage, ...]
    negatives: tuple[Passage, ...]
    instruction: str = ""
    synthetic: bool = False

    def draw(self, seed: int, epoch: int) -> tuple[int, int]:
        """Return the places of the positive and the negative that an epoch takes; seed, epoch and query decide."""
        digest = sha256(f"{seed}\0{epoch}\0{self.query_id}".encode()).digest()
        first, second = int.from_bytes(digest[:16]), int.from_bytes(digest[16:])
        return first % len(self.positives), second % len(self.negatives)


def read_rtriever_set(folder: Path) -> TrainingSet:
    """Read and check an export of format rtriever: bundles to train on, pairs of the dev split to measure.

    Raises BadInput with file and line.
    """
    manifest, digest = read_manifest(folder, "rtriever")
    train = list(_read_bundles(folder / "train.jsonl"))
    dev = list(_read_bundles(folder / "dev.jsonl")) if (folder / "dev.jsonl").exists() else []
    if not train:
        raise BadInput(f"{folder / 'train.jsonl'} holds no row: nothing can be learned from it")
    pairs = [pair for bundle in dev for pair in _pairs_of(bundle)]
    return TrainingSet(train, pairs, "labels", str(manifest.get("collection", "")), digest, manifest)


def _pairs_of(bundle: Bundle) -> Iterator[Example]:
    for label, passages in ((1, bundle.positives), (0, bundle.negatives)):
        for one in passages:
            yield Example(
                bundle.query, one.text, bundle.instruction, label, query_id=bundle.query_id, doc_id=one.doc_id
            )


def _read_bundles(path: Path) -> Iterator[Bundle]:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from None
    seen: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            bundle = _parse_bundle(json.loads(line), number)
            if bundle.query_id in seen:
                raise ValueError(f"query {bundle.query_id} stands in line {seen[bundle.query_id]} already")
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            what = f"no field {error}" if isinstance(error, KeyError) else str(error)
            raise BadInput(f"{path}, line {number}: {what}: not a row of an rtriever set") from None
        seen[bundle.query_id] = number
        yield bundle


def _parse_bundle(row: Mapping[str, Any], number: int) -> Bundle:
    query_id = str(row.get("query_id") or f"line-{number}")
    sides = [_parse_passages(row[side], f"{query_id}:{side}") for side in ("positives", "negatives")]
    positives, negatives = sides
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


def _parse_passages(given: Sequence[Mapping[str, Any]], prefix: str) -> tuple[Passage, ...]:
    """Return the passages; those that a model wrote have no id of their own."""
    return tuple(Passage(str(one.get("doc_id") or f"{prefix}:{at}"), str(one["text"])) for at, one in enumerate(given))
