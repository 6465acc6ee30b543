"""Growth of the pool as systems are added: growth rate and marginal contribution (DREAM appendix H). Pure.

`documents` is (systems, queries, k). Systems are added in seeded random orders; C_m is the pool of
the first m. Qrels annotated with a pool have the later version's grades for its pairs and the
earlier version's for all others.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmark.measures import arrays as measures
from benchmark.measures.graded_runs import NONE, SPAN, Floats, Ints, Version, encode_pairs

ORDERS = 10  # Random orders, as in the paper.
BAND = (0.1, 0.9)  # Quantiles over the orders.
MARGINAL = ("hit", "ndcg", "recall")


def random_orders(systems: int, seed: int, count: int = ORDERS) -> Ints:
    """Return seeded random orders of the systems, (count, systems)."""
    random = np.random.default_rng(seed)
    return np.array([random.permutation(systems) for _ in range(count)], dtype=np.int64).reshape(count, systems)


@dataclass(frozen=True)
class ChangedLabels:
    """Pairs whose gain changes between versions, and which systems returned them."""

    codes: Ints
    before: Ints  # Grades; 0 for pairs that are not judged.
    after: Ints
    is_hole: NDArray[np.bool_]  # Relevant in the later version, and not judged in the earlier one.
    returned: NDArray[np.bool_]  # (systems, pairs).
    ranks: Ints  # (systems, pairs), from 0; NONE: not returned.

    @property
    def queries(self) -> Ints:
        """Return the position of each pair's query."""
        return self.codes // SPAN


def changed_labels(documents: Ints, before: Version, after: Version, relevant_from: int) -> ChangedLabels:
    """Return the pairs in the pool of all systems whose gain changes."""
    codes = encode_pairs(documents)
    pairs = np.unique(codes[codes != NONE])
    old_grades, new_grades = before.look_up(pairs), after.look_up(pairs)
    # Only these can change a measure: the later version has a grade, and its gain differs from the earlier one.
    is_changed = (new_grades != NONE) & (new_grades != np.maximum(old_grades, 0))
    pairs, old_grades, new_grades = pairs[is_changed], old_grades[is_changed], new_grades[is_changed]
    ranks = np.full((len(documents), len(pairs)), NONE, dtype=np.int64)
    for system, system_codes in enumerate(codes):
        flat = system_codes.ravel()
        # The position of each returned pair among the changed ones; other pairs are dropped.
        positions = np.searchsorted(pairs, flat)
        is_among_pairs = positions < len(pairs)
        is_among_pairs[is_among_pairs] = pairs[positions[is_among_pairs]] == flat[is_among_pairs]
        # The rank is the position modulo k, because the array is flat over (queries, k).
        ranks[system, positions[is_among_pairs]] = np.nonzero(is_among_pairs)[0] % documents.shape[2]
    # ADR 0035: a pair that was judged not relevant is not a hole.
    holes = (old_grades == NONE) & (new_grades >= relevant_from)
    whole = np.maximum(old_grades, 0).astype(np.int64), np.maximum(new_grades, 0).astype(np.int64)
    return ChangedLabels(pairs, *whole, holes, ranks != NONE, ranks)


def holes_in_unjudged_queries(changes: ChangedLabels, before: Version) -> int:
    """Count the holes of queries that the earlier version does not judge, where every relevant pair is a hole."""
    is_judged_query = np.isin(changes.queries, before.pair_queries)
    return int((changes.is_hole & ~is_judged_query).sum())


def pool_sizes(changes: ChangedLabels, orders: Ints) -> Ints:
    """Return |H(C_m)|, the distinct holes of the first m = 1, 2, ... systems of each order, (orders, systems)."""
    returned = changes.returned[:, changes.is_hole]
    systems = len(returned)
    sizes = np.zeros(orders.shape, dtype=np.int64)
    for index, order in enumerate(orders):
        # The first system of the order that returned a hole brings it into the pool (argmax of booleans).
        first = np.argmax(returned[order], axis=0)
        sizes[index] = np.cumsum(np.bincount(first, minlength=systems))
    return sizes


def growth_rates(sizes: Ints) -> Floats:
    """Return GR(m) = (|H(C_m)| - |H(C_m-1)|) / |H(C_m-1)|; nan for m = 1 and for |H(C_m-1)| = 0."""
    earlier = sizes[:, :-1].astype(np.float64)
    grown = np.diff(sizes, axis=1)
    rates = np.divide(grown, earlier, out=np.full(earlier.shape, np.nan), where=earlier > 0)
    return np.concatenate([np.full((len(sizes), 1), np.nan), rates], axis=1)


def last_growth_rates(changes: ChangedLabels) -> Floats:
    """Return each system's growth rate as the last to join, (systems,), which does not depend on the order.

    nan where the others find no holes.
    """
    returned = changes.returned[:, changes.is_hole]
    unique_counts = (returned & (returned.sum(axis=0) == 1)).sum(axis=1)
    # Holes that the other systems find without this one.
    other_counts = returned.any(axis=0).sum() - unique_counts
    rates: Floats = np.divide(unique_counts, other_counts, out=np.full(len(returned), np.nan), where=other_counts > 0)
    return rates


def marginal_contributions(
    documents: Ints,
    before: Version,
    after: Version,
    changes: ChangedLabels,
    orders: Ints,
    relevant_from: int,
    weights: Floats | None = None,
) -> dict[str, Floats]:
    """Return by measure (orders, systems - 1) the mean over r of |Perf(r) on S_m with r - Perf(r) on S_m|.

    For m = 1, 2, ... S_m are the first m of the other systems in the order; Perf is Hit@k, nDCG@k
    (linear) or Recall@k, the mean over the queries, weighted by `weights` (on average 1) if there are any.
    """
    systems, queries, k = documents.shape
    levels = sorted({*before.levels, *after.levels})
    # What the earlier version knows is the same for all systems.
    counts_before = list(map(before.at_least, levels))
    relevant_before = before.at_least(relevant_from)
    grades_before = before.look_up(encode_pairs(documents))
    discounts = measures.dcg_discounts(k)

    def rises(grade: int) -> Ints:
        """Return 1 for pairs that rise to the grade, -1 for those that fall below it, and 0 for others."""
        return (changes.after >= grade).astype(np.int64) - (changes.before >= grade).astype(np.int64)

    def add_annotated(weights: NDArray[np.generic], queries_of: Ints, when: Ints) -> Floats:
        """Return (queries, m) sums of the weights of pairs that are annotated by then."""
        # Pairs that are never annotated (step >= systems) and those without weight are left out.
        is_counted = (when < systems) & (weights != 0)
        bins = queries_of[is_counted] * systems + when[is_counted]
        added = np.bincount(bins, weights=weights[is_counted].astype(np.float64), minlength=queries * systems)
        # Cumulated over m, because a pair stays annotated.
        sums: Floats = np.cumsum(added.reshape(queries, systems), axis=1, dtype=np.float64)
        return sums[:, 1:]

    def mean(by_query: Floats | NDArray[np.bool_]) -> Floats:
        """Return the means of (queries, m)."""
        weighted = by_query if weights is None else by_query * weights[:, None]
        return np.asarray(weighted.mean(axis=0), dtype=np.float64)

    def performance(system: int, steps: Ints) -> dict[str, Floats]:
        """Return Perf for m = 1 .. systems - 1, with pair p annotated from steps[p] systems on."""
        is_own, grades = changes.returned[system], grades_before[system]
        ranks, own_queries = changes.ranks[system, is_own], changes.queries[is_own]
        # Each sum is its value before any annotation, plus what each annotated pair adds.
        becomes_relevant = rises(relevant_from)
        returned_relevant = (grades >= relevant_from).sum(axis=1)[:, None]
        returned_relevant = returned_relevant + add_annotated(becomes_relevant[is_own], own_queries, steps[is_own])
        all_relevant = relevant_before[:, None] + add_annotated(becomes_relevant, changes.queries, steps)
        gain_changes = (changes.after - changes.before)[is_own] * discounts[ranks]
        dcg = (np.maximum(grades, 0) @ discounts)[:, None] + add_annotated(gain_changes, own_queries, steps[is_own])
        counts = []
        for grade, base in zip(levels, counts_before, strict=True):
            added = add_annotated(rises(grade), changes.queries, steps)
            counts.append((base[:, None] + added).round().astype(np.int64))
        ideal = measures.ideal_dcg(levels, counts, k, measures.linear_gain) if counts else np.zeros_like(dcg)
        return {
            # A count computed with floats: above 0.5 means at least 1.
            "hit": mean(returned_relevant > 0.5),
            "ndcg": mean(measures.divide_or_zero(dcg, ideal)),
            "recall": mean(measures.divide_or_zero(returned_relevant, all_relevant)),
        }

    sums = {name: np.zeros((len(orders), max(0, systems - 1))) for name in MARGINAL}
    for index, order in enumerate(orders):
        for system in range(systems):
            # Annotation follows the pool: a pair gets its label when the first of the other systems
            # that returned it joins, at `steps`; one more than there are others means never.
            others = order[order != system]
            steps = np.ones(changes.returned.shape[1], dtype=np.int64)
            if len(others):
                is_returned = changes.returned[others]
                # argmax is 0 also where no system returned the pair, hence the `where`.
                first = np.argmax(is_returned, axis=0) + 1
                steps = np.where(is_returned.any(axis=0), first, len(others) + 1)
            without = performance(system, steps)
            # With the system in the pool all that it returned is annotated from the beginning.
            with_it = performance(system, np.where(changes.returned[system], 0, steps))
            # The absolute value, because the figure shows how much depends on the system's own pairs.
            for name in MARGINAL:
                sums[name][index] += np.abs(with_it[name] - without[name])
    return {name: total / systems for name, total in sums.items()}


def mean_bands(values: Floats) -> list[tuple[float | None, float | None, float | None]]:
    """Return mean, low and high over the orders for each m; None where no order has a value."""
    bands: list[tuple[float | None, float | None, float | None]] = []
    for column in values.T:
        numbers = column[~np.isnan(column)]
        if len(numbers):
            low, high = np.quantile(numbers, BAND)
            bands.append((float(numbers.mean()), float(low), float(high)))
        else:
            bands.append((None, None, None))
    return bands
