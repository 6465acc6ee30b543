"""A collection's caps: what its campaigns spent together, what is left, and what to do when a cap is reached."""

from dataclasses import dataclass
from datetime import date

from django.db import connection

from corpus.models import Collection
from judges.models import Campaign
from judges.money import money

ACCOUNT = """
SELECT k.budget, k.daily_budget, COALESCE(a.spent, 0), COALESCE(a.reserved, 0),
       CASE WHEN a.day = today.day THEN a.day_spent ELSE 0 END, today.day
FROM corpus_collection k LEFT JOIN judges_account a ON a.collection_id = k.id,
     (SELECT (now() AT TIME ZONE 'UTC')::date AS day) today
WHERE k.id = %s
"""


@dataclass(frozen=True, slots=True)
class Caps:
    """USD. `budget` and `daily_budget` None: no cap. `spent` and `today` are of all campaigns, known prices only."""

    budget: float | None
    daily_budget: float | None
    spent: float
    reserved: float
    """The most that calls which are out may still cost."""
    today: float
    day: date
    """Today, UTC."""

    @property
    def left(self) -> float | None:
        """Of the budget; None without one."""
        return None if self.budget is None else max(0.0, self.budget - self.spent)

    @property
    def left_today(self) -> float | None:
        """Of today's budget; None without one."""
        return None if self.daily_budget is None else max(0.0, self.daily_budget - self.today)

    @property
    def room(self) -> float | None:
        """What a start may spend today at most; None where nothing bounds it."""
        return min((left for left in (self.left, self.left_today) if left is not None), default=None)

    def is_short_for(self, usd: float) -> bool:
        """Whether a start that is expected to cost so much will be stopped by a cap."""
        return self.room is not None and usd > self.room

    def line(self) -> str:
        """What is left, for people; "" without a cap."""
        told = []
        if self.left is not None:
            told.append(f"{money(self.left)} of the collection's budget of {money(self.budget)}")
        if self.left_today is not None:
            told.append(f"{money(self.left_today)} of {money(self.daily_budget)} for today (UTC)")
        return f"left: {' and '.join(told)}" if told else ""


def caps_of(collection: Collection) -> Caps:
    """The collection's caps and account now. One statement."""
    with connection.cursor() as cursor:
        cursor.execute(ACCOUNT, [collection.pk])
        return Caps(*cursor.fetchone())


def stopped_words(collection: Collection, cap: str) -> tuple[str, str]:
    """Which cap stopped a campaign, and what lets it go on, as the command says it."""
    found = caps_of(collection)
    again = "then the same command goes on"
    if cap == Campaign.Cap.COLLECTION:
        spent = f"the collection's budget of {money(found.budget)} ({money(found.spent)} spent)"
        return spent, f"raise `budget` with configure_collection, {again}"
    if cap == Campaign.Cap.DAY:
        spent = (
            f"the collection's budget of {money(found.daily_budget)} a day ({money(found.today)} spent on {found.day})"
        )
        return spent, f"raise `daily_budget` with configure_collection or wait until midnight UTC, {again}"
    if cap == Campaign.Cap.PRICE:
        return (
            "the collection's budget, because a judge has no known price",
            f"set input_price and output_price in the judges file or take the budget away, {again}",
        )
    return "the budget", "the same command with a larger --budget or --max-calls goes on"
