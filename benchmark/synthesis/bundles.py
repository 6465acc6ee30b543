"""Bundles of a synthetic query: fields, negatives like a positive, splits. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from random import Random
from typing import Any

from corpus.search import near

Bundle = dict[str, Any]
SIMILAR = 0.8  # Jaccard similarity from which two texts are near-duplicates, as in exports.
EXAMPLES = 3  # Personas that are shown.


def draw_personas(personas: Sequence[str], seed: int, seed_id: str) -> list[str]:
    """Draw the example personas that are shown for a seed: always the same ones."""
    return Random(f"{seed}\0{seed_id}").sample(personas, EXAMPLES)


def draw_seeds(ids: Iterable[str], seed: int, limit: int | None) -> list[str]:
    """Draw `limit` ids at random and return them in their first order; all without a limit."""
    known = list(ids)
    first = sorted(known, key=lambda one: sha256(f"{seed}\0{one}".encode()).digest())[:limit]
    chosen = set(first)
    return [one for one in known if one in chosen]


def query_id_of(seed_id: str, query: str) -> str:
    """Return the id of a synthetic query: its seed and its own words make it."""
    digest = sha256(f"{seed_id}\0{query}".encode()).hexdigest()
    return f"synthetic-{digest[:16]}"


def find_near_copies(positives: Sequence[str], negatives: Sequence[str]) -> set[int]:
    """Places of the negatives that nearly equal a positive."""
    found = set()
    for place, text in enumerate(negatives):
        # Each negative by itself: groups join in chains, and a second negative could link this one to a positive.
        groups = near.groups_of(dict(enumerate([text, *positives])), SIMILAR, near.DOCUMENT_WORDS)
        if groups[0] in [groups[key] for key in range(1, len(positives) + 1)]:
            found.add(place)
    return found


def split_bundles(bundles: Sequence[Bundle], dev: float, seed: int) -> dict[str, list[Bundle]]:
    """Train, and the share `dev` of the bundles as dev, in the order in which they came.

    Bundles whose queries or documents are near-duplicates stand on the same side; those of one
    seed, too. Without a share everything is for training: a synthetic query is measured on only
    where somebody asks for it.
    """
    if not dev:
        return {"train": list(bundles)}
    groups = _group_bundles(bundles)
    gathered = defaultdict(list)
    for place in sorted(range(len(bundles)), key=lambda place: _order_key(seed, bundles[place])):
        gathered[groups[place]].append(place)
    wanted, kept = round(dev * len(bundles)), set[int]()
    for places in gathered.values():
        # Whole groups alone, in seeded order: one that does not fit is passed over, and a smaller one may still.
        if len(kept) + len(places) <= wanted:
            kept.update(places)
    return {
        "train": [one for place, one in enumerate(bundles) if place not in kept],
        "dev": [one for place, one in enumerate(bundles) if place in kept],
    }


def _order_key(seed: int, bundle: Mapping[str, Any]) -> bytes:
    return sha256(f"{seed}\0{bundle['query_id']}".encode()).digest()


def texts_of(bundle: Mapping[str, Any]) -> list[str]:
    """The passages of a bundle, positives first."""
    return [one["text"] for side in ("positives", "negatives") for one in bundle[side]]


def _group_bundles(bundles: Sequence[Bundle]) -> list[int]:
    """The group of each bundle: those that share a seed, a near-duplicate query or a near-duplicate document."""
    queries = near.groups_of({place: one["query"] for place, one in enumerate(bundles)}, SIMILAR, near.QUERY_WORDS)
    owners = [place for place, one in enumerate(bundles) for _ in texts_of(one)]
    texts = {key: text for key, text in enumerate(text for one in bundles for text in texts_of(one))}
    documents = near.groups_of(texts, SIMILAR, near.DOCUMENT_WORDS)
    shared = [(place, ("seed", one["seed"]["query_id"])) for place, one in enumerate(bundles)]
    shared += [(place, ("query", group)) for place, group in queries.items()]
    shared += [(owners[key], ("document", group)) for key, group in documents.items()]
    return _join_groups(len(bundles), shared)


def _join_groups(count: int, shared: Iterable[tuple[int, object]]) -> list[int]:
    """Number the groups of those that have something in common, directly or through others."""
    root = list(range(count))

    def find_root(place: int) -> int:
        while root[place] != place:
            place = root[place]
        return place

    first: dict[object, int] = {}
    for place, what in shared:
        root[find_root(place)] = find_root(first.setdefault(what, place))
    return [find_root(place) for place in range(count)]
