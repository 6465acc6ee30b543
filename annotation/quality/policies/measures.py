"""Class-wise recall and balanced accuracy, of counted or of weighted pairs (DREAM 3.2). Pure."""

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
    """Recall of relevant and of not relevant pairs, and their mean. `n`: pairs each rests on."""

    relevant: Statistic
    not_relevant: Statistic
    balanced: Statistic

    @classmethod
    def missing(cls, reason: str) -> "Classwise":
        """Return all three without a value."""
        none = Statistic(None, None, None, 0, reason)
        return cls(none, none, none)

    def document(self) -> dict[str, Any]:
        """Return all three as JSON takes them."""
        names = ("recall_relevant", "recall_not_relevant", "balanced_accuracy")
        return dict(zip(names, map(asdict, (self.relevant, self.not_relevant, self.balanced)), strict=True))


class Confusion:
    """Counts of labels by the true class. Only pairs with a label and a known truth are added."""

    def __init__(self) -> None:
        # By true class, 0 and 1: the pairs, and the sums of their weights, of their squares, and of those labelled so.
        self.pairs = [0, 0]
        self.weight, self.squares, self.right = [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]

    def add(self, truth: int, label: int, *, weight: float = 1.0, pairs: int = 1) -> None:
        """Add so many pairs of that truth and label, each with a weight above 0."""
        self.pairs[truth] += pairs
        self.weight[truth] += weight * pairs
        self.squares[truth] += weight * weight * pairs
        self.right[truth] += weight * pairs * (truth == label)

    def measured(self) -> Classwise:
        """Measure recalls and balanced accuracy, with 95% intervals (the mean joins exact ones)."""
        relevant, other = self._recall(1), self._recall(0)
        n, reason = relevant.n + other.n, relevant.reason or other.reason
        if relevant.value is None or other.value is None:
            return Classwise(relevant, other, Statistic(None, None, None, n, reason))
        found = stratified_share([self._stratum(1), self._stratum(0)])
        low, high = found[1] if found else (None, None)
        return Classwise(relevant, other, Statistic((relevant.value + other.value) / 2, low, high, n, None))

    def _recall(self, truth: int) -> Statistic:
        if not self.pairs[truth]:
            return Statistic(None, None, None, 0, NONE_LABELLED[truth])
        _, size, right = self._stratum(truth)
        low, high = clopper_pearson(right, size)
        return Statistic(self.right[truth] / self.weight[truth], low, high, self.pairs[truth], None)

    def _stratum(self, truth: int) -> Stratum:
        # As many equal pairs as carry the same information (Kish 1965): with equal weights, the pairs themselves.
        size = self.weight[truth] ** 2 / self.squares[truth]
        return Stratum(1, size, size * self.right[truth] / self.weight[truth])
