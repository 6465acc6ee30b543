"""Cost per correct label. Pure.

A label is correct against gold, or by what people found in audits; its share comes with a 95%
interval, and so does the cost. Where neither is known it is not measured. A cost of which a part is
unknown is a lower bound without upper end.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.utils.translation import gettext as _

from annotation.agreement.measures import Statistic
from annotation.agreement.proportions import Stratum, stratified_share
from charts.translation import gettext_noop
from judges.costs.accounting import Paid

JUDGES, TOGETHER = "judges", gettext_noop("judges and people")


@dataclass(frozen=True, slots=True)
class PerLabel:
    """USD per correct label. `who`: whose labels and whose work; `truth`: gold or audits; `population`: in words."""

    who: str
    truth: str
    labels: int
    paid: Paid
    accuracy: Statistic  # Share of the labels that is correct.
    cost: Statistic  # USD per correct label; `n` are the labels that were compared.
    population: str

    @property
    def correct(self) -> float | None:
        """Return the estimated number of correct labels; None where accuracy is not measured."""
        return None if self.accuracy.value is None else self.accuracy.value * self.labels


def per_label(who: str, truth: str, labels: int, paid: Paid, accuracy: Statistic, population: str) -> PerLabel:
    """The cost of a correct one of `labels` labels that cost `paid` together."""
    return PerLabel(who, truth, labels, paid, accuracy, _cost_per_correct(labels, paid, accuracy), population)


def _cost_per_correct(labels: int, paid: Paid, accuracy: Statistic) -> Statistic:
    nothing = Statistic(None, None, None, accuracy.n, None)
    if accuracy.value is None:
        return replace(nothing, reason=accuracy.reason)
    if paid.usd is None:
        return replace(nothing, reason=_("cost: %(text)s") % {"text": paid.text})
    if not accuracy.value:
        return replace(nothing, reason=_("no compared label is correct"))
    usd = paid.usd / labels
    # The bounds change places: the more labels are correct, the cheaper is a correct one.
    low = None if accuracy.high is None else usd / accuracy.high
    high = usd / accuracy.low if accuracy.low and not paid.at_least else None
    return Statistic(usd / accuracy.value, low, high, accuracy.n, None)


def against_gold(strata: Sequence[Stratum]) -> Statistic:
    """The share of correct labels over parts of known size, each with some gold."""
    used = [stratum for stratum in strata if stratum.size > 0]
    if not used:
        return Statistic(None, None, None, 0, _("not measured: no labels"))
    n = int(sum(stratum.n for stratum in used))
    if any(stratum.n <= 0 for stratum in used):
        lacking = (
            _("not measured: no reference grades") if not n else _("not measured: some parts have no reference grade")
        )
        return Statistic(None, None, None, n, lacking)
    found = stratified_share(used)
    assert found is not None
    value, bounds = found
    return Statistic(value, bounds.low, bounds.high, n, None)


def with_people(audited: Statistic, labelled: int, settled: int) -> Statistic:
    """Judges' labels as audited, with people's, which are the audits' truth and so correct."""
    whole = labelled + settled
    if not whole:
        return Statistic(None, None, None, 0, _("not measured: no labels"))
    if not labelled:
        return Statistic(None, None, None, 0, _("not measured: audits use people's labels as the reference"))
    if audited.value is None or audited.low is None or audited.high is None:
        return audited
    value, low, high = ((share * labelled + settled) / whole for share in (audited.value, audited.low, audited.high))
    return Statistic(value, low, high, audited.n, audited.reason)
