"""Which documents of a query are compared with each other. Pure."""

from collections.abc import Sequence
from hashlib import sha256


def count_couples(documents: int, opponents: int) -> int:
    """Return how many comparisons `draw_couples` draws for so many documents."""
    if documents < 2:
        return 0
    opponents = min(opponents, documents - 1)
    return documents - 1 if opponents == 1 else -(-documents * opponents // 2)


def draw_couples(documents: Sequence[int], opponents: int, seed: int) -> list[tuple[int, int]]:
    """Draw comparisons that connect all documents, each with at least `opponents` others as far as there are so many.

    The documents are put into a seeded random circle and compared with their nearest neighbours on it; of an odd
    number of opponents, the last one stands across. With one opponent it is a chain, the smallest connected graph,
    whose ends have one opponent and whose other documents have two. Which document is the first of a couple is random.
    """
    count, opponents = len(documents), min(opponents, len(documents) - 1)
    if count < 2:
        return []
    circle = sorted(documents, key=lambda document: _digest(seed, document))
    steps = [(position, step) for step in range(1, opponents // 2 + 1) for position in range(count)]
    if opponents % 2:
        across = [(position, count // 2) for position in range(-(-count // 2))]
        steps = [(position, 1) for position in range(count - 1)] if opponents == 1 else steps + across
    couples = [(circle[position], circle[(position + step) % count]) for position, step in steps]
    return [(b, a) if _digest(seed, *sorted((a, b)))[0] % 2 else (a, b) for a, b in couples]


def _digest(seed: int, *names: int) -> bytes:
    return sha256(":".join(map(str, (seed, *names))).encode()).digest()
