"""Calls that are about no pair: what a run asked of models. Kept as attempts are, but apart."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from corpus.models import append_only
from judges.models import Attempt, Campaign, JudgeVersion, PromptVersion


class RetrievalCall(models.Model):
    """One call for a run, whatever came of it. Append-only. Its ids come from the same sequence as an attempt's."""

    # The vectors of role `embed` are not here: they lie in VAR by the hash of their text (judges.vectors).

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="retrieval_calls", db_index=False)
    query = models.BigIntegerField(null=True, help_text="Primary key; null: vectors of documents.")
    judge = models.ForeignKey(JudgeVersion, models.PROTECT)
    prompt = models.ForeignKey(PromptVersion, models.PROTECT)
    role = models.CharField(max_length=10, choices=Attempt.Role)
    sample = models.PositiveIntegerField(default=0, help_text="Which of several texts, or parts of a ranking, from 0.")
    number = models.PositiveSmallIntegerField(default=1, help_text="1 for the first try.")
    outcome = models.CharField(max_length=12, choices=Attempt.Outcome)
    cached = models.BooleanField(default=False, help_text="Taken over from an earlier, equal call: nothing was sent.")
    text = models.TextField(blank=True, help_text="The answer: what to search for, or a JSON list of scores.")
    error = models.TextField(blank=True)
    status = models.PositiveSmallIntegerField(null=True, help_text="HTTP status, where there was one.")
    finish_reason = models.CharField(max_length=50, blank=True)
    tokens_in = models.PositiveIntegerField(default=0)
    tokens_cached = models.PositiveIntegerField(default=0)
    tokens_out = models.PositiveIntegerField(default=0)
    tokens_reasoning = models.PositiveIntegerField(default=0)
    tokens_written = models.PositiveIntegerField(default=0, db_default=0)
    cost = models.FloatField(null=True, help_text="USD; null: unknown, for want of a price or of the tokens used.")
    assumed = models.FloatField(
        default=0.0, db_default=0.0, help_text="USD that stand for an unknown cost: the most that it can be."
    )
    milliseconds = models.PositiveIntegerField(default=0)
    cache_key = models.CharField(max_length=64)
    messages = models.BinaryField(help_text="zlib of the messages as sent, JSON; empty for role embed.")
    raw = models.BinaryField(help_text="zlib of the raw response body, as it came; empty for role embed.")
    started_at = models.DateTimeField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [
            models.Index(fields=["campaign", "query"], name="retrieval_call_query"),
            models.Index(
                fields=["cache_key"], name="retrieval_call_cache", condition=Q(outcome="labelled") & ~Q(role="embed")
            ),
        ]
        triggers = append_only.TRIGGERS

    def __str__(self) -> str:
        return f"{self.campaign_id}/{self.query} {self.role} {self.sample}"
