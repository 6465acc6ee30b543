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
    synthetic_dev: bool = False,
) -> dict[str, list[SetQuery]]:
    """The queries of each side, in the order in which they came.

    Queries stand in the order of sha256(seed, query id); the first `share` of them are trained on. Near-duplicate
    queries (`groups`: query -> group) go where the first of them goes. A document of dev, or one that nearly equals
    it (`documents`: document -> group), is taken out of train: dev stays whole, so that its rankings do.
    Synthetic queries are trained on, unless `synthetic_dev` lets them be measured on, too: then as any other, on the
    side of their seed. Such a query whose seed, or a near-duplicate, is in dev is left out.
    """
    if share >= 1:
        return {TRAIN: queries}
    groups = _join_seeds(queries, groups)
    divided = queries if synthetic_dev else [query for query in queries if not query.synthetic]
    train = _choose_train_queries(divided, share, seed, groups)
    dev = [query for query in divided if query.key not in train]
    measured, train_queries = {_group_of(query, groups) for query in dev}, []
    for query in queries:
        if query.key in train or (query.synthetic and not synthetic_dev and _group_of(query, groups) not in measured):
            train_queries.append(query)
        elif query.synthetic and not synthetic_dev:
            left[gettext_noop("synthetic, and its seed or a near-duplicate is in dev")] += len(query.rows)
    sides = {TRAIN: train_queries, DEV: dev}
    if documents:
        sides[TRAIN] = _drop_dev_documents(sides[TRAIN], sides[DEV], documents, left)
    return sides


def _group_of(query: SetQuery, groups: Mapping[int, int]) -> int:
    return groups.get(query.key, -query.key)


def _join_seeds(queries: list[SetQuery], groups: Mapping[int, int]) -> dict[int, int]:
    """The groups of all queries, with every synthetic query, and what is like it, in the group of its seed."""
    known = {query.key: _group_of(query, groups) for query in queries}
    by_id = {query.id: query.key for query in queries}
    for query in queries:
        if query.seed in by_id:
            old, new = known[query.key], known[by_id[query.seed]]
            known = {key: new if group == old else group for key, group in known.items()} if old != new else known
    return known


def _choose_train_queries(queries: list[SetQuery], share: float, seed: int, groups: Mapping[int, int]) -> set[int]:
    """Keys of the queries that are trained on: whole groups, at least one on each side where there are two."""
    gathered: dict[int, list[SetQuery]] = {}
    for query in sorted(queries, key=lambda query: order_key(seed, query.id)):
        gathered.setdefault(_group_of(query, groups), []).append(query)
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
