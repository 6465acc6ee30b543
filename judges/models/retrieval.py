"""Model calls that are about no pair: of runs, and of conversations about queries; in a table beside the attempts."""

from django.db import models
from django.db.models import Q

from corpus.models import append_only
from judges.models import Campaign, JudgeCall, JudgeVersion, PromptVersion


class RetrievalCall(JudgeCall):
    """A call about no pair, with any outcome. Append-only. Ids come from the same sequence as those of attempts.

    The vectors of role `embed` are files in VAR, named by their text's hash (benchmark.runs.vectors).
    """

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="retrieval_calls", db_index=False)
    query = models.BigIntegerField(null=True, help_text="Primary key; null: vectors of documents.")
    topic = models.CharField(
        max_length=300, blank=True, db_default="", help_text="What it is about beside the query: a system, an agent."
    )
    judge = models.ForeignKey(JudgeVersion, models.PROTECT)
    prompt = models.ForeignKey(PromptVersion, models.PROTECT)
    sample = models.PositiveIntegerField(default=0, help_text="Which of several texts, or parts of a ranking, from 0.")
    number = models.PositiveSmallIntegerField(default=1, help_text="1 for the first try.")
    text = models.TextField(blank=True, help_text="The answer: what to search for, or JSON.")
    tokens_written = models.PositiveIntegerField(default=0, db_default=0)
    messages = models.BinaryField(help_text="zlib of the messages as sent, JSON; empty for role embed.")
    raw = models.BinaryField(help_text="zlib of the raw response body, as it came; empty for role embed.")

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
