"""Bundles of synthetic queries: their ids, near-duplicates among their passages, and splits. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from random import Random
from typing import Any

from corpus.search import near

Bundle = dict[str, Any]
SIMILAR = 0.8  # Jaccard similarity from which two texts are near-duplicates, as in exports.
EXAMPLES = 3  # Personas shown as examples.


def draw_personas(personas: Sequence[str], seed: int, seed_id: str) -> list[str]:
    """Draw the personas shown as examples for a seed query, which are always the same."""
    return Random(f"{seed}\0{seed_id}").sample(personas, EXAMPLES)


def draw_seeds(ids: Iterable[str], seed: int, limit: int | None) -> list[str]:
    """Draw `limit` ids at random, or all without a limit; return them in their original order."""
    ordered_ids = list(ids)
    drawn = set(sorted(ordered_ids, key=lambda seed_id: sha256(f"{seed}\0{seed_id}".encode()).digest())[:limit])
    return [seed_id for seed_id in ordered_ids if seed_id in drawn]


def query_id_of(seed_id: str, query: str) -> str:
    """Return the id of a synthetic query, made from its seed and its text."""
    digest = sha256(f"{seed_id}\0{query}".encode()).hexdigest()
    return f"synthetic-{digest[:16]}"


def find_near_copies(positives: Sequence[str], negatives: Sequence[str]) -> set[int]:
    """Return the positions of the negatives that are near-duplicates of a positive."""
    positions = set()
    for position, text in enumerate(negatives):
        # Each negative separately: groups are joined in chains, and another negative could link it to a positive.
        groups = near.groups_of(dict(enumerate([text, *positives])), SIMILAR, near.DOCUMENT_WORDS)
        if groups[0] in [groups[key] for key in range(1, len(positives) + 1)]:
            positions.add(position)
    return positions


def split_bundles(bundles: Sequence[Bundle], dev: float, seed: int) -> dict[str, list[Bundle]]:
    """Split the bundles into train and, by the share `dev`, dev; both in their original order.

    Bundles of the same seed or with near-duplicate queries or documents stay together. By default
    the share is 0 and everything is for training: synthetic queries measure only on request.
    """
    if not dev:
        return {"train": list(bundles)}
    # The group of each bundle; bundles of one seed or with near-duplicate texts share a group.
    queries = near.groups_of(
        {position: bundle["query"] for position, bundle in enumerate(bundles)}, SIMILAR, near.QUERY_WORDS
    )
    owners = [position for position, bundle in enumerate(bundles) for _ in texts_of(bundle)]
    texts = {key: text for key, text in enumerate(text for bundle in bundles for text in texts_of(bundle))}
    documents = near.groups_of(texts, SIMILAR, near.DOCUMENT_WORDS)
    shared = [(position, ("seed", bundle["seed"]["query_id"])) for position, bundle in enumerate(bundles)]
    shared += [(position, ("query", group)) for position, group in queries.items()]
    shared += [(owners[key], ("document", group)) for key, group in documents.items()]
    # Positions that share a value, directly or through others, are one group.
    root = list(range(len(bundles)))

    def find_root(position: int) -> int:
        while root[position] != position:
            position = root[position]
        return position

    first: dict[object, int] = {}
    for position, shared_value in shared:
        root[find_root(position)] = find_root(first.setdefault(shared_value, position))
    groups = [find_root(position) for position in range(len(bundles))]
    gathered = defaultdict(list)
    hashes = [sha256(f"{seed}\0{bundle['query_id']}".encode()).digest() for bundle in bundles]
    for position in sorted(range(len(bundles)), key=hashes.__getitem__):
        gathered[groups[position]].append(position)
    dev_size, dev_positions = round(dev * len(bundles)), set[int]()
    for group in gathered.values():
        # Groups are added as a whole, in seeded order; one that is too large is skipped for a smaller one.
        if len(dev_positions) + len(group) <= dev_size:
            dev_positions.update(group)
    return {
        "train": [bundle for position, bundle in enumerate(bundles) if position not in dev_positions],
        "dev": [bundle for position, bundle in enumerate(bundles) if position in dev_positions],
    }


def texts_of(bundle: Mapping[str, Any]) -> list[str]:
    """Return the passages of a bundle, positives first."""
    return [passage["text"] for side in ("positives", "negatives") for passage in bundle[side]]
