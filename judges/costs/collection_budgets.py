"""A collection's budgets: what its campaigns spent together, what is left, and what to do when a limit is reached."""

from dataclasses import dataclass
from datetime import date

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from corpus.models import Collection
from judges.costs.accounting import format_cost
from judges.models import Campaign
from store.sql import fetch_row

ACCOUNT = """
SELECT k.budget, k.daily_budget, a.spent, a.held, a.today, (now() AT TIME ZONE 'UTC')::date
FROM corpus_collection k, LATERAL collection_spending(k.id) a WHERE k.id = %(collection)s
"""

LEFT = {
    "left": gettext_noop("%(left)s of the collection's budget of %(budget)s"),
    "left_today": gettext_noop("%(left_today)s of %(daily_budget)s for today (UTC)"),
}
# By limit: what stopped a campaign, and how it can continue.
STOPS = {
    Campaign.Cap.COLLECTION.value: (
        gettext_noop("the collection's budget of %(budget)s (%(spent)s spent)"),
        gettext_noop("raise the budget in the collection's settings, %(again)s"),
    ),
    Campaign.Cap.DAY.value: (
        gettext_noop("the collection's budget of %(daily_budget)s a day (%(today)s spent on %(day)s)"),
        gettext_noop("raise the daily budget in the collection's settings or wait until midnight UTC, %(again)s"),
    ),
    Campaign.Cap.PRICE.value: (
        gettext_noop("the collection's budget, because a judge has no known price"),
        gettext_noop("enter its price in the judges file or on the page Prices, or take the budget away, %(again)s"),
    ),
}
OTHER_STOP = (
    gettext_noop("the budget"),
    gettext_noop("start the same again with a larger budget or call limit to continue"),
)


@dataclass(frozen=True, slots=True)
class CollectionBudget:
    """A collection's budgets, in USD (None: no limit), and the known costs of all its campaigns."""

    budget: float | None
    daily_budget: float | None
    spent: float
    reserved: float  # The most that calls in flight may still cost.
    today: float  # Spent today.
    day: date  # Today, UTC.

    @property
    def left(self) -> float | None:
        """Remainder of the budget in USD; None without one."""
        return None if self.budget is None else max(0.0, self.budget - self.spent)

    @property
    def left_today(self) -> float | None:
        """Remainder of today's budget in USD; None without one."""
        return None if self.daily_budget is None else max(0.0, self.daily_budget - self.today)

    @property
    def room(self) -> float | None:
        """The most that a start may spend today, in USD; None without a limit."""
        return min((left for left in (self.left, self.left_today) if left is not None), default=None)

    @property
    def amounts(self) -> dict[str, object]:
        """Amounts of the budgets and of the spending, formatted for messages."""
        names = ("budget", "daily_budget", "spent", "today", "left", "left_today")
        return {name: format_cost(getattr(self, name)) for name in names} | {"day": self.day}

    def is_short_for(self, usd: float) -> bool:
        """Return whether a campaign with an expected cost of `usd` would reach a limit."""
        return self.room is not None and usd > self.room

    def line(self) -> str:
        """Describe what is left of the budgets; "" without a limit."""
        remainders = [_(words) % self.amounts for key, words in LEFT.items() if getattr(self, key) is not None]
        return f"remaining: {' and '.join(remainders)}" if remainders else ""


def collection_budget(collection: Collection) -> CollectionBudget:
    """Read the collection's budgets and its spending. One statement."""
    return CollectionBudget(*fetch_row(ACCOUNT, collection=collection.pk))


def describe_budget_stop(collection: Collection, limit: str) -> tuple[str, str]:
    """Describe the limit (Campaign.Cap) that stopped a campaign, and how the campaign can continue."""
    amounts = collection_budget(collection).amounts | {"again": _("then start the same again")}
    cause, remedy = STOPS.get(limit, OTHER_STOP)
    return _(cause) % amounts, _(remedy) % amounts
