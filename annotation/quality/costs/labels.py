"""Cost per correct label. Pure.

A label is correct by gold or by a label audit. The share of correct labels has a 95% interval, and so has
the cost. Without gold and audits it is not measured. A cost that is known only in part is a lower bound,
so its interval has no upper end.
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
    """USD per correct label. `who`: whose labels and work; `truth`: gold or audits; `population`: in words."""

    who: str
    truth: str
    labels: int
    paid: Paid
    accuracy: Statistic  # Share of correct labels.
    cost: Statistic  # USD per correct label; `n`: number of labels that were compared.
    population: str

    @property
    def correct(self) -> float | None:
        """Estimated number of correct labels; None where the accuracy is not measured."""
        return None if self.accuracy.value is None else self.accuracy.value * self.labels


def per_label(who: str, reference: str, labels: int, paid: Paid, accuracy: Statistic, population: str) -> PerLabel:
    """Return the cost of a correct label, of `labels` labels that cost `paid` in all."""
    cost = Statistic(None, None, None, accuracy.n, None)
    if accuracy.value is None:
        cost = replace(cost, reason=accuracy.reason)
    elif paid.usd is None:
        cost = replace(cost, reason=_("cost: %(text)s") % {"text": paid.text})
    elif not accuracy.value:
        cost = replace(cost, reason=_("no compared label is correct"))
    else:
        usd = paid.usd / labels
        # The bounds swap: the more labels are correct, the cheaper is a correct one.
        low = None if accuracy.high is None else usd / accuracy.high
        high = usd / accuracy.low if accuracy.low and not paid.at_least else None
        cost = Statistic(usd / accuracy.value, low, high, accuracy.n, None)
    return PerLabel(who, reference, labels, paid, accuracy, cost, population)


def against_gold(strata: Sequence[Stratum]) -> Statistic:
    """Return the share of correct labels over strata of labels, each with some gold."""
    strata = [stratum for stratum in strata if stratum.size > 0]
    if not strata:
        return Statistic(None, None, None, 0, _("not measured: no labels"))
    n = int(sum(stratum.n for stratum in strata))
    if any(stratum.n <= 0 for stratum in strata):
        reason = (
            _("not measured: no reference grades") if not n else _("not measured: some parts have no reference grade")
        )
        return Statistic(None, None, None, n, reason)
    share = stratified_share(strata)
    assert share is not None
    value, bounds = share
    return Statistic(value, bounds.low, bounds.high, n, None)


def with_people(audited: Statistic, labelled: int, resolved: int) -> Statistic:
    """Return the accuracy of judges' and people's labels together. People's are correct, as the audits' reference.

    `audited`: accuracy of the judges' labels; `labelled`, `resolved`: number of labels by judges and by people.
    """
    labels = labelled + resolved
    if not labels:
        return Statistic(None, None, None, 0, _("not measured: no labels"))
    if not labelled:
        return Statistic(None, None, None, 0, _("not measured: audits use people's labels as the reference"))
    if audited.value is None or audited.low is None or audited.high is None:
        return audited
    value, low, high = ((share * labelled + resolved) / labels for share in (audited.value, audited.low, audited.high))
    return Statistic(value, low, high, audited.n, audited.reason)
