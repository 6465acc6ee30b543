"""Keys that admins stored in the browser, encrypted with a secret of the environment (judges.stored_keys)."""

from django.db import models
from django.db.models.functions import Now

from corpus.models import Collection


class StoredKey(models.Model):
    """The encrypted key of a model, or of a collection's hub, for one address. A new one replaces the row's content."""

    name = models.CharField(
        max_length=200, unique=True, help_text="As judges name it in place of a variable, or of a collection's hub."
    )
    address = models.CharField(max_length=600, help_text="Where it may be sent.")
    ciphertext = models.TextField(help_text="Of the key with its name and its address.")
    ending = models.CharField(max_length=4, blank=True, help_text="The last characters; empty of a short key.")
    collection = models.ForeignKey(Collection, models.CASCADE, null=True, related_name="+")
    stored_at = models.DateTimeField(db_default=Now())
    made_by = models.CharField(max_length=150, blank=True)

    def __str__(self) -> str:
        return self.name
