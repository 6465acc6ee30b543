"""Groups of a relevant document and several others of the same query (pure; Prism appendix B)."""

import random
from collections.abc import Sequence

from corpus.errors import BadInput
from training.recipes.data import Example

# Indices of rows of a training set: the positive, then its negatives.
Group = tuple[int, ...]


def group_candidates(rows: Sequence[Example], negatives: int, seed: int) -> tuple[list[Group], str]:
    """Group each relevant row with this many other rows of its query, drawn at random by seed and document.

    A query with fewer others is left out, since documents of other queries have no teacher score for it. The second
    value is a line about the queries used and left out. Raises BadInput if no query has enough documents.
    """
    by_query: dict[str, tuple[list[int], list[int]]] = {}
    for index, row in enumerate(rows):
        if row.label is not None:
            by_query.setdefault(row.query_id, ([], []))[0 if row.label else 1].append(index)
    groups: list[Group] = []
    left_out = 0
    for positives, others in by_query.values():
        if not positives or len(others) < negatives:
            left_out += 1
            continue
        for positive in positives:
            generator = random.Random(f"{seed}\0{rows[positive].query_id}\0{rows[positive].doc_id}")
            groups.append((positive, *sorted(generator.sample(others, negatives))))
    if not groups:
        raise BadInput(
            f"No query of the set has a relevant document and {negatives} others: export with more documents of each "
            "query, or lower negatives"
        )
    summary = (
        f"{len(groups):,} groups of {len(by_query) - left_out:,} queries; {left_out:,} of {len(by_query):,} queries "
        "left out"
    )
    return groups, summary
