"""Hours, pairs, comparisons, pay and quality of each person by month: the page's table and its CSV file."""

from collections.abc import Iterator
from dataclasses import dataclass

from annotation.agreement.measures import Statistic
from annotation.quality.label_quality.records import missing_statistic
from annotation.quality.label_quality.statistics import cached_months
from annotation.work.queue.judging_time import MonthOfWork, months_of_work
from charts.cells import csv_line
from corpus.models import Collection

COLUMNS = (
    *("month", "person", "hours", "pairs", "pairs_without_time", "comparisons", "usd_per_hour", "pay_usd"),
    *("gold_accuracy", "gold_low", "gold_high", "gold_pairs"),
    *("agreement", "agreement_low", "agreement_high", "agreement_pairs"),
)
NOT_MEASURED = missing_statistic("")


@dataclass(frozen=True, slots=True)
class PayRow:
    """A person's month. Shares have exact 95% intervals."""

    work: MonthOfWork
    hourly_rate: float | None  # USD; None: not set.
    gold: Statistic
    agreement: Statistic

    @property
    def pay(self) -> float | None:
        """Return the pay in USD; None without an hourly rate or measured time."""
        return None if self.hourly_rate is None or self.work.hours is None else self.work.hours * self.hourly_rate


def list_pay(collection: Collection) -> list[PayRow]:
    """List the months of all members, newest first, then by name."""
    quality = {(month.membership, month.month): month for month in cached_months(collection)}
    rows = []
    for work in months_of_work(collection):
        month = quality.get((work.membership, work.month))
        gold, agreement = (month.gold, month.majority) if month else (NOT_MEASURED, NOT_MEASURED)
        rows.append(PayRow(work, collection.hourly_rate, gold, agreement))
    return rows


def csv_lines(collection: Collection) -> Iterator[str]:
    """Yield the lines of the CSV file; what is unknown is empty."""
    yield csv_line(COLUMNS)
    for row in list_pay(collection):
        work = row.work
        shares = (
            value
            for share in (row.gold, row.agreement)
            for value in (_decimals(share.value, 4), _decimals(share.low, 4), _decimals(share.high, 4), share.n)
        )
        yield csv_line(
            [
                *(work.month, work.name, _decimals(work.hours, 3), work.judgments, work.untimed, work.comparisons),
                *("" if row.hourly_rate is None else row.hourly_rate, _decimals(row.pay, 2), *shares),
            ]
        )


def _decimals(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
