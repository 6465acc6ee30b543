"""What people keep of the table of pairs: their own views of it."""

from django.db import models
from django.db.models.functions import Now

from annotation.models import User
from corpus.models import Collection


class SavedView(models.Model):
    """Filters and order of the table of pairs under a name: of one person, in one collection."""

    user = models.ForeignKey(User, models.CASCADE, related_name="saved_views", db_index=False)
    collection = models.ForeignKey(Collection, models.CASCADE, related_name="saved_views", db_index=False)
    name = models.CharField(max_length=60)
    query = models.TextField(blank=True, help_text="The query string of annotation.data.pair_filters.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["collection", "user", "name"], name="saved_view_once")]

    def __str__(self) -> str:
        return self.name
