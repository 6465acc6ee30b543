"""Links with which anybody who has one reads a page of a collection without an account."""

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from annotation.models import User
from corpus.models import Collection


class ShareLink(models.Model):
    """A read-only link to one page of a collection; only the SHA-256 of its token is stored."""

    class SharedPage(models.TextChoices):
        OVERVIEW = "overview", _("Overview")
        LEADERBOARD = "leaderboard", _("Leaderboard")
        REPORT = "report", _("Report")
        GATE = "gate", _("Gate")

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="share_links")
    page = models.CharField(max_length=20, choices=SharedPage)
    report = models.PositiveIntegerField(null=True, help_text="Number of the report; null: the newest one.")
    title = models.CharField(max_length=200, blank=True, help_text="Heading of the page; empty: the page's name.")
    # Each visit looks its link up through the index of this constraint.
    digest = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the token, in hexadecimal digits.")
    made_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    opened = models.PositiveIntegerField(default=0, db_default=0, help_text="How often the page was opened.")
    last_opened_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"share link {self.pk}"
