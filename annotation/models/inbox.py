"""How far each admin has read the inbox of a collection, on pages and by mail."""

from django.db import models

from annotation.models import User
from corpus.models import Collection


class InboxReader(models.Model):
    """What a person has seen of a collection's inbox."""

    user = models.ForeignKey(User, models.CASCADE, related_name="inboxes", db_index=False)
    collection = models.ForeignKey(Collection, models.CASCADE, related_name="+")
    seen_at = models.DateTimeField(null=True, help_text="What ended until then is no longer listed.")
    mailed_at = models.DateTimeField(null=True, help_text="When the last mail was sent.")
    mailed = models.JSONField(
        default=list, help_text="Keys of what still stood in the inbox at the last mail: it is not mailed again."
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "collection"], name="inbox_reader_once")]

    def __str__(self) -> str:
        return f"{self.user_id} in {self.collection_id}"
