"""Spending, counted in each attempt's transaction: the ledger of campaigns, and the totals of collections."""

from django.db import models

from corpus.models import Collection
from judges.models import Attempt, Campaign, JudgeVersion


class Ledger(models.Model):
    """Calls and costs by judge, role, round and outcome, for each UTC day; in shards, as Tally."""

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="ledger", db_index=False)
    shard = models.PositiveSmallIntegerField()
    day = models.DateField(help_text="UTC, when the attempt was stored.")
    judge = models.ForeignKey(JudgeVersion, models.PROTECT, db_index=False)
    role = models.CharField(max_length=10, choices=Attempt.Role)
    round = models.PositiveSmallIntegerField()
    outcome = models.CharField(max_length=12, choices=Attempt.Outcome)
    calls = models.BigIntegerField(default=0, help_text="Sent.")
    calls_cached = models.BigIntegerField(default=0, help_text="Taken over from an earlier, equal call.")
    calls_without_price = models.BigIntegerField(default=0, help_text="Sent, and what they cost is unknown.")
    calls_assumed = models.BigIntegerField(
        default=0, db_default=0, help_text="Of these, calls whose price is known, and not what they used."
    )
    tokens_in = models.BigIntegerField(default=0)
    tokens_cached = models.BigIntegerField(default=0)
    tokens_written = models.BigIntegerField(default=0, db_default=0, help_text="Of tokens_in, to a prompt cache.")
    tokens_out = models.BigIntegerField(default=0)
    tokens_reasoning = models.BigIntegerField(default=0, db_default=0, help_text="Of tokens_out.")
    cost = models.FloatField(default=0.0, help_text="USD, of the calls whose cost is known.")
    cost_assumed = models.FloatField(
        default=0.0, db_default=0.0, help_text="USD that stand for the others: the most that they can have cost."
    )

    class Meta:
        verbose_name_plural = "ledger"
        constraints = [
            models.UniqueConstraint(
                fields=["campaign", "shard", "day", "judge", "role", "round", "outcome"], name="ledger_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.campaign_id} {self.day} {self.role} {self.round} {self.outcome}: {self.cost}"


class CollectionTally(models.Model):
    """Total spending of a collection's campaigns, for its budgets (judges.engine.budget); in shards, as Tally.

    It is counted even without a budget, so that a budget set later includes earlier spending.
    """

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="tallies", db_index=False)
    shard = models.PositiveSmallIntegerField()
    spent = models.FloatField(
        default=0.0, db_default=0.0, help_text="USD, with what is assumed of calls whose cost is unknown."
    )
    day = models.DateField(help_text="The UTC day that `day_spent` belongs to; on another day that is 0.")
    day_spent = models.FloatField(default=0.0, db_default=0.0)

    class Meta:
        verbose_name_plural = "collection tallies"
        constraints = [models.UniqueConstraint(fields=["collection", "shard"], name="collection_tally_once")]

    def __str__(self) -> str:
        return f"shard {self.shard}: {self.spent}"
