"""Train, dev and test: by query, and nothing that is nearly the same on two sides. Pure."""

from collections.abc import Collection, Mapping

from annotation.exports.query_splits.parts import DEV, SPLITS, TEST, TRAIN
from annotation.exports.sets.choosing import Left
from annotation.exports.sets.rows import SetQuery, SetRow, keep_rows, order_key
from charts.translation import gettext_noop

# Why a pair of train gives way to a side that is measured on.
IN_DEV = gettext_noop("the document or a near-duplicate is in dev")
IN_TEST = gettext_noop("the document or a near-duplicate is in test")
Sides = dict[str, list[SetQuery]]


def split_queries(
    queries: list[SetQuery],
    share: float,
    seed: int,
    *,
    groups: Mapping[int, int],
    documents: Mapping[int, int],
    left: Left,
    synthetic_dev: bool = False,
    named: Mapping[str, Collection[int]] | None = None,
) -> Sides:
    """Divide the queries; return those of each side, in the order in which they came.

    Queries stand in the order of sha256(seed, query id); the first `share` of them are trained on.
    Near-duplicate queries (`groups`: query -> group) go where the first of them goes. A document of
    dev or test, or one that nearly equals it (`documents`: document -> group), is taken out of
    train: dev and test stay whole, so that their rankings do. Synthetic queries are trained on,
    unless `synthetic_dev` lets them be measured on, too: then as any other, on the side of their
    seed. Such a query whose seed, or a near-duplicate, is in dev is left out.

    `named`: the keys of queries whose side is fixed, by side. Others are divided by the share where
    neither train nor dev is named, and trained on where only dev is; those that nearly equal a
    fixed query of dev or test are left out.
    """
    if named:
        sides = _split_around(
            queries, share, seed, named, groups=_join_seeds(queries, groups), left=left, synthetic_dev=synthetic_dev
        )
    elif share >= 1:
        return {TRAIN: queries}
    else:
        sides = _split_by_share(queries, share, seed, _join_seeds(queries, groups), left, synthetic_dev)
    if documents:
        for side, reason in ((TEST, IN_TEST), (DEV, IN_DEV)):
            sides[TRAIN] = _drop_documents(sides[TRAIN], sides.get(side, []), documents, left, reason)
    return sides


def _split_around(
    queries: list[SetQuery],
    share: float,
    seed: int,
    named: Mapping[str, Collection[int]],
    *,
    groups: Mapping[int, int],
    left: Left,
    synthetic_dev: bool,
) -> Sides:
    """Split with some sides fixed: a fixed dev or test stays whole, all else gives way to it."""
    place = {key: side for side in SPLITS for key in named.get(side, ())}
    fixed = {side: [query for query in queries if place.get(query.key) == side] for side in SPLITS if side in named}
    measured = {_group_of(query, groups) for side in (DEV, TEST) for query in fixed.get(side, [])}
    alike = gettext_noop("its query is, or nearly equals, one of a named split")

    def keep_apart(some: list[SetQuery]) -> list[SetQuery]:
        kept = [query for query in some if _group_of(query, groups) not in measured]
        left[alike] += _count_rows(some) - _count_rows(kept)
        return kept

    rest = [query for query in queries if query.key not in place]
    if TRAIN in fixed:
        left[gettext_noop("its query is in none of the named splits")] += _count_rows(rest)
        fixed[TRAIN] = keep_apart(fixed[TRAIN])
    elif DEV in fixed or share >= 1:
        fixed[TRAIN] = keep_apart(rest)
    else:
        fixed |= _split_by_share(keep_apart(rest), share, seed, groups, left, synthetic_dev)
    return {side: fixed[side] for side in SPLITS if side in fixed}


def _split_by_share(
    queries: list[SetQuery], share: float, seed: int, groups: Mapping[int, int], left: Left, synthetic_dev: bool
) -> Sides:
    divided = queries if synthetic_dev else [query for query in queries if not query.synthetic]
    train = _choose_train_queries(divided, share, seed, groups)
    dev = [query for query in divided if query.key not in train]
    measured, train_queries = {_group_of(query, groups) for query in dev}, []
    for query in queries:
        if query.key in train or (query.synthetic and not synthetic_dev and _group_of(query, groups) not in measured):
            train_queries.append(query)
        elif query.synthetic and not synthetic_dev:
            left[gettext_noop("synthetic, and its seed or a near-duplicate is in dev")] += len(query.rows)
    return {TRAIN: train_queries, DEV: dev}


def _count_rows(queries: list[SetQuery]) -> int:
    return sum(len(query.rows) for query in queries)


def _group_of(query: SetQuery, groups: Mapping[int, int]) -> int:
    return groups.get(query.key, -query.key)


def _join_seeds(queries: list[SetQuery], groups: Mapping[int, int]) -> dict[int, int]:
    """Return the groups of all queries, with every synthetic query, and what is like it, in its seed's group."""
    known = {query.key: _group_of(query, groups) for query in queries}
    by_id = {query.id: query.key for query in queries}
    for query in queries:
        if query.seed in by_id:
            old, new = known[query.key], known[by_id[query.seed]]
            known = {key: new if group == old else group for key, group in known.items()} if old != new else known
    return known


def _choose_train_queries(queries: list[SetQuery], share: float, seed: int, groups: Mapping[int, int]) -> set[int]:
    """Return keys of training queries: whole groups, at least one on each side of two."""
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


def _drop_documents(
    train: list[SetQuery], measured: list[SetQuery], documents: Mapping[int, int], left: Left, reason: str
) -> list[SetQuery]:
    taken = {documents[row.document] for query in measured for row in query.rows}

    def choose(query: SetQuery) -> list[SetRow]:
        rows = [row for row in query.rows if documents[row.document] not in taken]
        left[reason] += len(query.rows) - len(rows)
        return rows

    return keep_rows(train, choose)
