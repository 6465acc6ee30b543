"""Batches at providers, and calls that wait for one. They are temporary: answers become attempts."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from judges.models import Campaign


class Batch(models.Model):
    """A batch of calls at a provider."""

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="batches", db_index=False)
    name = models.CharField(max_length=40, unique=True, help_text="Ours, by which it is found again after a kill.")
    judge = models.JSONField(help_text="A judge of its account and model.")
    model = models.CharField(max_length=200)
    provider_id = models.CharField(max_length=200, blank=True, help_text="Empty until the provider has it.")
    sent_at = models.DateTimeField(
        null=True, help_text="When it left. With no provider_id and a problem nobody knows whether it was created."
    )
    likely = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Its provider shows no names: provider_id fits by calls and time, and is certain when it has ended.",
    )
    calls = models.PositiveIntegerField()
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)
    problem = models.TextField(blank=True, help_text="Why it ended without answers, or why it cannot be sent now.")

    class Meta:
        indexes = [models.Index(fields=["campaign"], name="batch_open", condition=Q(ended_at=None))]

    def __str__(self) -> str:
        return f"{self.campaign_id} {self.name}: {self.calls}"

    @property
    def is_unconfirmed(self) -> bool:
        """True if the batch was sent without a clear answer: it is unknown whether the provider began it."""
        return self.sent_at is not None and not self.provider_id and bool(self.problem) and self.ended_at is None


class BatchCall(models.Model):
    """A call that waits for a batch, or for its answer."""

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="batch_calls")
    batch = models.ForeignKey(Batch, models.CASCADE, null=True, related_name="waiting")
    group = models.CharField(max_length=64, help_text="Calls of one group go into one batch: account and model.")
    size = models.PositiveIntegerField(default=0, db_default=0, help_text="Bytes of the call in a batch, at most.")
    sent = models.BinaryField(help_text="zlib of the call as it leaves and its schema, JSON.")

    def __str__(self) -> str:
        return f"{self.campaign_id} {self.group[:8]}"
