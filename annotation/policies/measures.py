"""Class-wise recall and balanced accuracy, of counted or of weighted pairs (DREAM 3.2). Pure."""

from dataclasses import dataclass, field

from annotation.agreement.measures import Statistic
from annotation.agreement.proportions import Stratum, clopper_pearson, stratified_share
from charts.translation import gettext_noop

NOT_MEASURED = gettext_noop("not measured")
NONE_LABELLED = {
    1: gettext_noop("no pair whose truth is known to be relevant was labelled"),
    0: gettext_noop("no pair whose truth is known to be not relevant was labelled"),
}


@dataclass(frozen=True, slots=True)
class Classwise:
    """Recall of relevant and of not relevant pairs, and their mean. `n` of each: pairs it rests on."""

    relevant: Statistic
    not_relevant: Statistic
    balanced: Statistic

    @classmethod
    def missing(cls, reason: str) -> "Classwise":
        """All three without a value."""
        none = Statistic(None, None, None, 0, reason)
        return cls(none, none, none)


@dataclass(slots=True)
class Recall:
    """Pairs of one true class: how many were labelled so, each with its weight."""

    pairs: int = 0
    weight: float = 0.0
    squares: float = 0.0
    right: float = 0.0

    def add(self, right: bool, weight: float, pairs: int) -> None:
        """`pairs` pairs that have this weight each."""
        self.pairs += pairs
        self.weight += weight * pairs
        self.squares += weight * weight * pairs
        self.right += weight * pairs * right

    @property
    def stratum(self) -> Stratum:
        """As many equal pairs as carry the same information (Kish): with equal weights, the pairs themselves."""
        size = self.weight**2 / self.squares
        return Stratum(1, size, size * self.right / self.weight)

    def statistic(self, reason: str) -> Statistic:
        """The share with its exact interval; `reason` where there is no pair."""
        if not self.pairs:
            return Statistic(None, None, None, 0, reason)
        _, size, right = self.stratum
        low, high = clopper_pearson(right, size)
        return Statistic(self.right / self.weight, low, high, self.pairs, None)


@dataclass(slots=True)
class Confusion:
    """What labels are worth, by the true class. Only pairs with a label and a known truth may be added."""

    classes: dict[int, Recall] = field(default_factory=lambda: {1: Recall(), 0: Recall()})

    def add(self, truth: int, label: int, *, weight: float = 1.0, pairs: int = 1) -> None:
        """`pairs` pairs of that truth and label, each with a weight above 0."""
        self.classes[truth].add(truth == label, weight, pairs)

    def measured(self) -> Classwise:
        """Recalls and balanced accuracy, with 95% intervals (the mean's joins the two exact ones)."""
        relevant, other = (self.classes[truth].statistic(NONE_LABELLED[truth]) for truth in (1, 0))
        return Classwise(relevant, other, self._balanced(relevant, other))

    def _balanced(self, relevant: Statistic, other: Statistic) -> Statistic:
        n = relevant.n + other.n
        lacking = relevant.reason or other.reason
        if relevant.value is None or other.value is None:
            return Statistic(None, None, None, n, lacking)
        found = stratified_share([self.classes[truth].stratum for truth in (1, 0)])
        bounds = found[1] if found else (None, None)
        return Statistic((relevant.value + other.value) / 2, bounds[0], bounds[1], n, None)
