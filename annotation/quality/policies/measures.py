"""Class-wise recall and balanced accuracy of counted or weighted pairs (DREAM 3.2). Pure."""

from dataclasses import asdict, dataclass
from typing import Any

from annotation.agreement.measures import Statistic
from annotation.agreement.proportions import Stratum, clopper_pearson, stratified_share
from charts.translation import gettext_noop

NOT_MEASURED = gettext_noop("not measured")
NONE_LABELLED = {
    1: gettext_noop("no labelled pair has a relevant reference grade"),
    0: gettext_noop("no labelled pair has a not relevant reference grade"),
}


@dataclass(frozen=True, slots=True)
class Classwise:
    """Recall of relevant and of not relevant pairs, and their mean (balanced accuracy)."""

    relevant: Statistic
    not_relevant: Statistic
    balanced: Statistic

    @classmethod
    def missing(cls, reason: str) -> "Classwise":
        """Return three statistics without a value."""
        statistic = Statistic(None, None, None, 0, reason)
        return cls(statistic, statistic, statistic)

    def document(self) -> dict[str, Any]:
        """Return the three statistics as JSON."""
        names = ("recall_relevant", "recall_not_relevant", "balanced_accuracy")
        return dict(zip(names, map(asdict, (self.relevant, self.not_relevant, self.balanced)), strict=True))


class Confusion:
    """Counts of labels by the true class. Only pairs with a label and a known true class are added."""

    def __init__(self) -> None:
        # All are lists by true class, 0 and 1.
        self.pairs = [0, 0]
        self.weight = [0.0, 0.0]
        self.squares = [0.0, 0.0]  # Sums of squared weights.
        self.right = [0.0, 0.0]  # Weights of the correctly labelled pairs.

    def add(self, true_class: int, label: int, *, weight: float = 1.0, pairs: int = 1) -> None:
        """Add a number of pairs with this true class and label. `weight`: of each pair, above 0."""
        self.pairs[true_class] += pairs
        self.weight[true_class] += weight * pairs
        self.squares[true_class] += weight * weight * pairs
        self.right[true_class] += weight * pairs * (true_class == label)

    def measured(self) -> Classwise:
        """Measure recalls and balanced accuracy, with 95% intervals (the interval of the mean joins exact ones)."""
        relevant, not_relevant = self._recall(1), self._recall(0)
        n, reason = relevant.n + not_relevant.n, relevant.reason or not_relevant.reason
        if relevant.value is None or not_relevant.value is None:
            return Classwise(relevant, not_relevant, Statistic(None, None, None, n, reason))
        share = stratified_share([self._stratum(1), self._stratum(0)])
        low, high = share[1] if share else (None, None)
        balanced = Statistic((relevant.value + not_relevant.value) / 2, low, high, n, None)
        return Classwise(relevant, not_relevant, balanced)

    def _recall(self, true_class: int) -> Statistic:
        if not self.pairs[true_class]:
            return Statistic(None, None, None, 0, NONE_LABELLED[true_class])
        _, size, right = self._stratum(true_class)
        low, high = clopper_pearson(right, size)
        return Statistic(self.right[true_class] / self.weight[true_class], low, high, self.pairs[true_class], None)

    def _stratum(self, true_class: int) -> Stratum:
        # Effective sample size (Kish 1965): with equal weights, the number of pairs.
        size = self.weight[true_class] ** 2 / self.squares[true_class]
        return Stratum(1, size, size * self.right[true_class] / self.weight[true_class])
