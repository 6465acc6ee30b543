"""Train and dev: by query, and nothing that is nearly the same on both sides (MECHANICS M7). Pure."""

from collections.abc import Mapping

from annotation.exports.sets.choosing import Left
from annotation.exports.sets.rows import SetQuery, SetRow, keep_rows, order_key
from charts.translation import gettext_noop

TRAIN, DEV = "train", "dev"


def split_queries(
    queries: list[SetQuery],
    share: float,
    seed: int,
    *,
    groups: Mapping[int, int],
    documents: Mapping[int, int],
    left: Left,
) -> dict[str, list[SetQuery]]:
    """The queries of each side, in the order in which they came.

    Queries stand in the order of sha256(seed, query id); the first `share` of them are trained on. Near-duplicate
    queries (`groups`: query -> group) go where the first of them goes. A document of dev, or one that nearly equals
    it (`documents`: document -> group), is taken out of train: dev stays whole, so that its rankings do.
    """
    if share >= 1:
        return {TRAIN: queries}
    train = _choose_train_queries(queries, share, seed, groups)
    sides = {TRAIN: [q for q in queries if q.key in train], DEV: [q for q in queries if q.key not in train]}
    if documents:
        sides[TRAIN] = _drop_dev_documents(sides[TRAIN], sides[DEV], documents, left)
    return sides


def _choose_train_queries(queries: list[SetQuery], share: float, seed: int, groups: Mapping[int, int]) -> set[int]:
    """Keys of the queries that are trained on: whole groups, at least one on each side where there are two."""
    gathered: dict[int, list[SetQuery]] = {}
    for query in sorted(queries, key=lambda query: order_key(seed, query.id)):
        gathered.setdefault(groups.get(query.key, -query.key), []).append(query)
    wanted = round(share * len(queries))
    if len(gathered) > 1:
        wanted = min(max(wanted, 1), len(queries) - 1)
    train: set[int] = set()
    waiting = list(gathered.values())
    while waiting and len(train) < wanted and (len(waiting) > 1 or len(gathered) == 1):
        train.update(query.key for query in waiting.pop(0))
    return train


def _drop_dev_documents(
    train: list[SetQuery], dev: list[SetQuery], documents: Mapping[int, int], left: Left
) -> list[SetQuery]:
    taken = {documents[row.document] for query in dev for row in query.rows}

    def choose(query: SetQuery) -> list[SetRow]:
        rows = [row for row in query.rows if documents[row.document] not in taken]
        left[gettext_noop("the document or a near-duplicate is in dev")] += len(query.rows) - len(rows)
        return rows

    return keep_rows(train, choose)
