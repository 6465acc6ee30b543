"""Split into train, dev and test by query, without near-duplicates on two sides. Pure."""

from collections.abc import Collection, Mapping

from annotation.exports.query_splits.parts import DEV, SPLITS, TEST, TRAIN
from annotation.exports.sets.choosing import LeftOutCounts
from annotation.exports.sets.rows import SetQuery, SetRow, keep_rows, order_key
from charts.translation import gettext_noop

# Reasons for leaving a pair out of train.
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
    left_out: LeftOutCounts,
    synthetic_dev: bool = False,
    named: Mapping[str, Collection[int]] | None = None,
) -> Sides:
    """Divide the queries, and return those of each side in their order.

    In the order of sha256(seed, query id) the first `share` of the queries are train. Near-duplicate
    queries (`groups`: query -> group) are on the side of the first of them. Documents of dev or test and
    their near-duplicates (`documents`: document -> group) are removed from train, so that dev and test
    remain complete rankings. Synthetic queries are train; with `synthetic_dev` they may be dev too, on
    the side of their seed. A synthetic query is left out if its seed or a near-duplicate is in dev.

    `named`: keys of queries with a fixed side, by side. The others are divided by the share if neither
    train nor dev is named, and train if only dev is; near-duplicates of a fixed query of dev or test are
    left out.
    """
    if named:
        sides = _split_around(
            queries,
            share,
            seed,
            named,
            groups=_join_seeds(queries, groups),
            left_out=left_out,
            synthetic_dev=synthetic_dev,
        )
    elif share >= 1:
        return {TRAIN: queries}
    else:
        sides = _split_by_share(queries, share, seed, _join_seeds(queries, groups), left_out, synthetic_dev)
    if documents:
        for side, reason in ((TEST, IN_TEST), (DEV, IN_DEV)):
            sides[TRAIN] = _drop_documents(sides[TRAIN], sides.get(side, []), documents, left_out, reason)
    return sides


def _split_around(
    queries: list[SetQuery],
    share: float,
    seed: int,
    named: Mapping[str, Collection[int]],
    *,
    groups: Mapping[int, int],
    left_out: LeftOutCounts,
    synthetic_dev: bool,
) -> Sides:
    """Split with some sides fixed: a fixed dev or test remains complete, near-duplicates of it are left out."""
    side_of = {key: side for side in SPLITS for key in named.get(side, ())}
    fixed = {side: [query for query in queries if side_of.get(query.key) == side] for side in SPLITS if side in named}
    measured = {_group_of(query, groups) for side in (DEV, TEST) for query in fixed.get(side, [])}
    alike = gettext_noop("its query is, or nearly equals, one of a named split")

    def drop_near_duplicates(candidates: list[SetQuery]) -> list[SetQuery]:
        distinct = [query for query in candidates if _group_of(query, groups) not in measured]
        left_out[alike] += _count_rows(candidates) - _count_rows(distinct)
        return distinct

    rest = [query for query in queries if query.key not in side_of]
    if TRAIN in fixed:
        left_out[gettext_noop("its query is in none of the named splits")] += _count_rows(rest)
        fixed[TRAIN] = drop_near_duplicates(fixed[TRAIN])
    elif DEV in fixed or share >= 1:
        fixed[TRAIN] = drop_near_duplicates(rest)
    else:
        fixed |= _split_by_share(drop_near_duplicates(rest), share, seed, groups, left_out, synthetic_dev)
    return {side: fixed[side] for side in SPLITS if side in fixed}


def _split_by_share(
    queries: list[SetQuery],
    share: float,
    seed: int,
    groups: Mapping[int, int],
    left_out: LeftOutCounts,
    synthetic_dev: bool,
) -> Sides:
    """Split queries into train and dev by the share."""
    candidates = queries if synthetic_dev else [query for query in queries if not query.synthetic]
    members: dict[int, list[SetQuery]] = {}
    for query in sorted(candidates, key=lambda query: order_key(seed, query.id)):
        members.setdefault(_group_of(query, groups), []).append(query)
    # Train gets whole groups, and each side at least one group if there are two.
    target = round(share * len(candidates))
    if len(members) > 1:
        target = min(max(target, 1), len(candidates) - 1)
    train: set[int] = set()
    remaining = list(members.values())
    while remaining and len(train) < target and (len(remaining) > 1 or len(members) == 1):
        train.update(query.key for query in remaining.pop(0))
    dev = [query for query in candidates if query.key not in train]
    measured, train_queries = {_group_of(query, groups) for query in dev}, []
    for query in queries:
        if query.key in train or (query.synthetic and not synthetic_dev and _group_of(query, groups) not in measured):
            train_queries.append(query)
        elif query.synthetic and not synthetic_dev:
            left_out[gettext_noop("synthetic, and its seed or a near-duplicate is in dev")] += len(query.rows)
    return {TRAIN: train_queries, DEV: dev}


def _count_rows(queries: list[SetQuery]) -> int:
    return sum(len(query.rows) for query in queries)


def _group_of(query: SetQuery, groups: Mapping[int, int]) -> int:
    return groups.get(query.key, -query.key)


def _join_seeds(queries: list[SetQuery], groups: Mapping[int, int]) -> dict[int, int]:
    """Return the groups of all queries, with every synthetic query and its near-duplicates in its seed's group."""
    group_of = {query.key: _group_of(query, groups) for query in queries}
    by_id = {query.id: query.key for query in queries}
    for query in queries:
        if query.seed in by_id:
            old_group, new_group = group_of[query.key], group_of[by_id[query.seed]]
            if old_group != new_group:
                group_of = {key: new_group if group == old_group else group for key, group in group_of.items()}
    return group_of


def _drop_documents(
    train: list[SetQuery], measured: list[SetQuery], documents: Mapping[int, int], left_out: LeftOutCounts, reason: str
) -> list[SetQuery]:
    """Return the queries of train without documents that are in a group of a measured document."""
    measured_groups = {documents[row.document] for query in measured for row in query.rows}

    def choose(query: SetQuery) -> list[SetRow]:
        rows = [row for row in query.rows if documents[row.document] not in measured_groups]
        left_out[reason] += len(query.rows) - len(rows)
        return rows

    return keep_rows(train, choose)
