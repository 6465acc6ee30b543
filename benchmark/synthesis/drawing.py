"""Which documents of a query are scored: positives, given negatives, then ranks of a run (ERank C). Pure."""

from collections.abc import Sequence
from itertools import islice
from random import Random

# Places in the run, from 0: all of the first, a sample of half the rest of each of the others.
HARD, MEDIUM, EASY = slice(0, 10), slice(10, 100), slice(100, 1000)
DOCUMENTS = 20


def draw_documents(
    positives: Sequence[str], negatives: Sequence[str], ranked: Sequence[str], *, seed: str, number: int = DOCUMENTS
) -> dict[str, str]:
    """`number` documents, or all that there are, each with why it was taken: positive, negative, hard, medium or easy.

    Every positive is taken (the paper has one a query); ties and order are those of `ranked`. The same seed draws the
    same documents.
    """
    found = dict.fromkeys(positives, "positive")
    for document in negatives:
        found.setdefault(document, "negative")
    for document in ranked[HARD]:
        found.setdefault(document, "hard")
    taken = dict(islice(found.items(), max(number, len(set(positives)))))
    room = number - len(taken)
    if room <= 0:
        return taken
    random = Random(seed)
    medium = [document for document in ranked[MEDIUM] if document not in found]
    easy = [document for document in ranked[EASY] if document not in found]
    # Where one range of ranks is short the other gives more.
    many = min(len(medium), max((room + 1) // 2, room - len(easy)))
    few = min(len(easy), room - many)
    taken |= dict.fromkeys(random.sample(medium, many), "medium")
    return taken | dict.fromkeys(random.sample(easy, few), "easy")
