"""Search endpoints: addresses of search engines that answer queries."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from benchmark.models.runs import RUN_NAME


class SearchEndpoint(models.Model):
    """A search engine's address, and how its hits are read; of the site, as models are.

    Keys are not stored: `settings` has the names of environment variables.
    """

    collection: ClassVar[None] = None  # Entries of the audit log about it are the site's.

    name = models.CharField(max_length=100, validators=[RUN_NAME])
    kind = models.CharField(max_length=20, help_text="A kind of search engine (benchmark.search_endpoints.kinds).")
    settings = models.JSONField(default=dict, help_text="The options of the endpoint without name and kind.")
    made_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    changed_at = models.DateTimeField(db_default=Now())
    is_deleted = models.BooleanField(default=False, help_text="Left out of every list; its runs stay.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["name"], condition=Q(is_deleted=False), name="search_endpoint_name")
        ]

    def __str__(self) -> str:
        return self.name
