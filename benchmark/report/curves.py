"""Growth of the pool as systems are added: growth rate and marginal contribution (DREAM appendix H). Pure.

`documents` is (systems, queries, k). Systems are added in seeded random orders; C_m is the pool of
the first m. What is annotated with a pool has the later version's grades for its pairs and the
earlier version's for all others.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmark.report import measures
from benchmark.report.graded_runs import NONE, SPAN, Floats, Ints, Version, encode_pairs

ORDERS = 10  # Random orders, as the paper has it.
BAND = (0.1, 0.9)  # Quantiles over the orders.
MARGINAL = ("hit", "ndcg", "recall")


def random_orders(systems: int, seed: int, wanted: int = ORDERS) -> Ints:
    """Return seeded random orders of the systems, (wanted, systems)."""
    random = np.random.default_rng(seed)
    return np.array([random.permutation(systems) for _ in range(wanted)], dtype=np.int64).reshape(wanted, systems)


@dataclass(frozen=True)
class Changed:
    """Pairs whose gain changes between versions, and which systems returned them."""

    codes: Ints
    before: Ints  # Grades; nobody judged counts 0.
    after: Ints
    is_hole: NDArray[np.bool_]  # Relevant now, and not known before.
    returned: NDArray[np.bool_]  # (systems, pairs).
    ranks: Ints  # (systems, pairs), from 0; NONE: not returned.

    @property
    def queries(self) -> Ints:
        """The query of each pair."""
        return self.codes // SPAN


def changed_labels(documents: Ints, before: Version, after: Version, relevant_from: int) -> Changed:
    """Find the pairs of the pool of all systems whose gain changes."""
    codes = encode_pairs(documents)
    pairs = np.unique(codes[codes != NONE])
    old, new = before.look_up(pairs), after.look_up(pairs)
    # Only these can move a measure: a grade that the later version has, and that gains something else than before.
    kept = (new != NONE) & (new != np.maximum(old, 0))
    pairs, old, new = pairs[kept], old[kept], new[kept]
    ranks = np.full((len(documents), len(pairs)), NONE, dtype=np.int64)
    for system, own in enumerate(codes):
        flat = own.ravel()
        # Where each returned pair stands among the changed ones; those that are not among them are dropped.
        at = np.searchsorted(pairs, flat)
        known = at < len(pairs)
        known[known] = pairs[at[known]] == flat[known]
        # The rank is the position modulo k, since the array is flat over (queries, k).
        ranks[system, at[known]] = np.nonzero(known)[0] % documents.shape[2]
    # ADR 0035: a pair that was judged not relevant is no hole; the qrels knew it.
    holes = (old == NONE) & (new >= relevant_from)
    whole = np.maximum(old, 0).astype(np.int64), np.maximum(new, 0).astype(np.int64)
    return Changed(pairs, *whole, holes, ranks != NONE, ranks)


def holes_in_unjudged_queries(found: Changed, before: Version) -> int:
    """Count the holes of queries of which the earlier version judges nothing: there, every relevant pair is one."""
    is_known = np.isin(found.queries, before.query_places)
    return int((found.is_hole & ~is_known).sum())


def pool_sizes(found: Changed, given: Ints) -> Ints:
    """Return |H(C_m)|, the distinct holes of the first m = 1, 2, ... systems of each order, (orders, systems)."""
    returned = found.returned[:, found.is_hole]
    systems = len(returned)
    sizes = np.zeros(given.shape, dtype=np.int64)
    for place, order in enumerate(given):
        # The first system of the order that returned a hole brings it into the pool (argmax of booleans).
        first = np.argmax(returned[order], axis=0)
        sizes[place] = np.cumsum(np.bincount(first, minlength=systems))
    return sizes


def growth_rates(sizes: Ints) -> Floats:
    """GR(m) = (|H(C_m)| - |H(C_m-1)|) / |H(C_m-1)|; nan for m = 1, or with nothing before."""
    earlier = sizes[:, :-1].astype(np.float64)
    grown = np.diff(sizes, axis=1)
    rates = np.divide(grown, earlier, out=np.full(earlier.shape, np.nan), where=earlier > 0)
    return np.concatenate([np.full((len(sizes), 1), np.nan), rates], axis=1)


def last_growth_rates(found: Changed) -> Floats:
    """Return each system's growth rate as the last to join, (systems,): exact, since no order matters.

    nan where the others find nothing: what the last one adds is no share of it.
    """
    returned = found.returned[:, found.is_hole]
    alone = (returned & (returned.sum(axis=0) == 1)).sum(axis=1)
    # Holes that the other systems find without this one.
    others = returned.any(axis=0).sum() - alone
    rates: Floats = np.divide(alone, others, out=np.full(len(returned), np.nan), where=others > 0)
    return rates


@dataclass(frozen=True)
class Start:
    """The earlier version's counts by query: what holds before filling, for all systems."""

    k: int
    relevant_from: int
    levels: list[int]
    at_least: list[Ints]  # (queries) for each level, of the earlier version.
    relevant: Ints  # (queries): relevant documents of the earlier version.


def marginal_contributions(
    documents: Ints, before: Version, after: Version, found: Changed, given: Ints, relevant_from: int
) -> dict[str, Floats]:
    """Measure to (orders, systems - 1): the mean over r of |Perf(r) on S_m with r - Perf(r) on S_m|, m = 1, 2, ...

    S_m are the first m of the other systems in the order; Perf is Hit@k, nDCG@k (linear) or
    Recall@k, the mean over the queries.
    """
    systems, _, k = documents.shape
    levels = sorted({*before.levels, *after.levels})
    start = Start(k, relevant_from, levels, list(map(before.at_least, levels)), before.at_least(relevant_from))
    graded = before.look_up(encode_pairs(documents))
    sums = {name: np.zeros((len(given), max(0, systems - 1))) for name in MARGINAL}
    for place, order in enumerate(given):
        for system in range(systems):
            # Annotation follows the pool: a pair gets its label when the first system that returned it joins.
            steps = _first_steps(found.returned, order, system)
            without = _performance_curve(start, graded[system], found, system, steps, systems)
            # With the system in the pool all that it returned is annotated from the start on.
            joined = np.where(found.returned[system], 0, steps)
            with_it = _performance_curve(start, graded[system], found, system, joined, systems)
            # The sign is dropped: what counts is how much the figure depends on the system's own pairs.
            for name in MARGINAL:
                sums[name][place] += np.abs(with_it[name] - without[name])
    return {name: total / systems for name, total in sums.items()}


def _first_steps(returned: NDArray[np.bool_], order: Ints, left_out: int) -> Ints:
    """Return after how many systems each pair is in the others' pool; one more: never."""
    others = order[order != left_out]
    if not len(others):
        # argmax gives 0 too where no system returned the pair, hence the `where`.
        return np.ones(returned.shape[1], dtype=np.int64)
    inside = returned[others]
    return np.where(inside.any(axis=0), np.argmax(inside, axis=0) + 1, len(others) + 1)


def _performance_curve(
    start: Start, graded: NDArray[np.int16], found: Changed, system: int, steps: Ints, systems: int
) -> dict[str, Floats]:
    """Means over queries for m = 1 .. systems - 1, pair p annotated from steps[p] systems on."""
    queries, own = len(start.relevant), found.returned[system]
    ranks, place = found.ranks[system, own], found.queries[own]
    discount = measures.dcg_discounts(start.k)

    def over(weights: NDArray[np.generic], places: Ints, when: Ints) -> Floats:
        """(queries, m): weights added up over the pairs that are annotated by then."""
        # Pairs that are never annotated (step >= systems) and those without weight are left out.
        inside = (when < systems) & (weights != 0)
        bins = places[inside] * systems + when[inside]
        added = np.bincount(bins, weights=weights[inside].astype(np.float64), minlength=queries * systems)
        # Summed over m, since a pair stays annotated once it is.
        sums: Floats = np.cumsum(added.reshape(queries, systems), axis=1, dtype=np.float64)
        return sums[:, 1:]

    now = (found.after >= start.relevant_from).astype(np.int64)
    then = (found.before >= start.relevant_from).astype(np.int64)
    # Sums are kept as what holds before anything is annotated, and what each annotated pair adds to it.
    got = (graded >= start.relevant_from).sum(axis=1)[:, None] + over((now - then)[own], place, steps[own])
    known = start.relevant[:, None] + over(now - then, found.queries, steps)
    gained = (found.after - found.before)[own] * discount[ranks]
    dcg = (np.maximum(graded, 0) @ discount)[:, None] + over(gained, place, steps[own])
    counts = []
    for grade, base in zip(start.levels, start.at_least, strict=True):
        # 1 for pairs that rise to the grade, -1 for those that fall below it.
        crossed = (found.after >= grade).astype(np.int64) - (found.before >= grade).astype(np.int64)
        counts.append((base[:, None] + over(crossed, found.queries, steps)).round().astype(np.int64))
    best = measures.ideal_dcg(start.levels, counts, start.k, measures.linear_gain) if counts else np.zeros_like(dcg)
    return {
        # A count that went through floats: above 0.5 is at least 1.
        "hit": (got > 0.5).mean(axis=0),
        "ndcg": measures.divide_or_zero(dcg, best).mean(axis=0),
        "recall": measures.divide_or_zero(got, known).mean(axis=0),
    }


def mean_bands(values: Floats) -> list[tuple[float | None, float | None, float | None]]:
    """Mean, low and high over the orders for each m; None where no order has a value."""
    found: list[tuple[float | None, float | None, float | None]] = []
    for column in values.T:
        known = column[~np.isnan(column)]
        if len(known):
            low, high = np.quantile(known, BAND)
            found.append((float(known.mean()), float(low), float(high)))
        else:
            found.append((None, None, None))
    return found
