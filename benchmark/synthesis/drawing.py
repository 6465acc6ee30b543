"""Which documents of a query are scored: positives, given negatives, then ranks of a run (ERank C). Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

HARD, MEDIUM, EASY = range(0, 10), range(10, 100), range(100, 1000)
"""Places in the run, from 0: all of the first, a sample of half the rest of each of the others."""
DOCUMENTS = 20


@dataclass(frozen=True, slots=True)
class Drawn:
    """A document of a query, and why it was taken: positive, negative, hard, medium or easy."""

    document: str
    kind: str


def draw_documents(
    positives: Sequence[str], negatives: Sequence[str], ranked: Sequence[str], *, seed: str, number: int = DOCUMENTS
) -> list[Drawn]:
    """`number` documents, or all that there are. Where one range of ranks is short the other gives more.

    Every positive is taken (the paper has one a query); ties and order are those of `ranked`. The same seed draws the
    same documents.
    """
    found = {document: "positive" for document in positives}
    for document in negatives:
        found.setdefault(document, "negative")
    for document in _slice_ranks(ranked, HARD):
        found.setdefault(document, "hard")
    taken = [Drawn(document, kind) for document, kind in found.items()][: max(number, len(set(positives)))]
    room = number - len(taken)
    if room <= 0:
        return taken
    random = Random(seed)
    medium = [document for document in _slice_ranks(ranked, MEDIUM) if document not in found]
    easy = [document for document in _slice_ranks(ranked, EASY) if document not in found]
    many = min(len(medium), max((room + 1) // 2, room - len(easy)))
    few = min(len(easy), room - many)
    taken += [Drawn(document, "medium") for document in random.sample(medium, many)]
    return taken + [Drawn(document, "easy") for document in random.sample(easy, few)]


def _slice_ranks(ranked: Sequence[str], places: range) -> Sequence[str]:
    return ranked[places.start : places.stop]
