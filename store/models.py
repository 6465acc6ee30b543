"""Models of the store: contents by their hash, and files by their name."""

from django.db import models
from django.db.models.functions import Now


class StoredContent(models.Model):
    """A content that is in the store or being sent there. Without a file it is deleted a day after its last use."""

    sha256 = models.CharField(max_length=64, primary_key=True)
    size = models.PositiveBigIntegerField()
    used_at = models.DateTimeField(db_default=Now(), help_text="When somebody last published a file with it.")

    def __str__(self) -> str:
        return self.sha256


class StoredFile(models.Model):
    """A file that all machines share: its name below VAR and its content in the store."""

    name = models.CharField(max_length=1000, unique=True, help_text="Path below VAR, with slashes.")
    content = models.ForeignKey(StoredContent, models.PROTECT, related_name="files")
    node = models.CharField(max_length=32, help_text="The machine that published it last (store.nodes).")
    changed_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.name
