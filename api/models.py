"""Tables of the API: access tokens, and the answers to requests that may be sent again."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy

from corpus.models import Collection


class AccessToken(models.Model):
    """What a program shows to work as a person. The token itself is shown once; its SHA-256 is what is kept."""

    class TokenScope(models.TextChoices):
        READ = "read", gettext_lazy("Read: everything that your role may see")
        JUDGE = "judge", gettext_lazy("Judge: claim pairs and submit judgments under your name")
        MANAGE = "manage", gettext_lazy("Manage: import, start campaigns, export; everything that an admin may do")

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="access_tokens")
    collection = models.ForeignKey(
        Collection, models.CASCADE, null=True, related_name="+", help_text="Null: all collections of the person."
    )
    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the token, in hexadecimal digits.")
    scopes = ArrayField(models.CharField(max_length=6, choices=TokenScope))
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True, help_text="To the minute.")

    class Meta:
        constraints = [models.CheckConstraint(condition=~models.Q(scopes=[]), name="access_token_scopes")]

    def __str__(self) -> str:
        return f"access token {self.pk}"


class IdempotentAnswer(models.Model):
    """The answer to a request with an Idempotency-Key: the same request, sent again, gets it and changes nothing."""

    token = models.ForeignKey(AccessToken, models.CASCADE, related_name="answers")
    key = models.CharField(max_length=255)
    request = models.CharField(max_length=64, help_text="SHA-256 of the method, the address and the body.")
    status = models.PositiveSmallIntegerField(default=0)
    content_type = models.CharField(max_length=100, default="")
    body = models.BinaryField(default=b"")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["token", "key"], name="stored_answer_key")]

    def __str__(self) -> str:
        return f"stored answer {self.pk}"
