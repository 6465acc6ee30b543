"""Tables of the API: access tokens, answers to requests that may be sent again, webhooks and what is sent to them."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy

from corpus.models import NUMBER, Collection, Numbered


class AccessToken(models.Model):
    """Access token of a program that works as a person; only its SHA-256 is stored."""

    class TokenScope(models.TextChoices):
        READ = "read", gettext_lazy("Read: everything that your role may see")
        JUDGE = "judge", gettext_lazy("Judge: claim pairs and submit judgments under your name")
        MANAGE = "manage", gettext_lazy("Manage: import, start campaigns, export; everything that an admin may do")

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="access_tokens")
    collection = models.ForeignKey(
        Collection, models.CASCADE, null=True, related_name="+", help_text="Null: all collections of the person."
    )
    name = models.CharField(max_length=100)
    # The index of this constraint finds the token of each request.
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
    # 0 only while its request runs: the row and the answer are committed together.
    status = models.PositiveSmallIntegerField(default=0)
    content_type = models.CharField(max_length=100, default="")
    body = models.BinaryField(default=b"")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["token", "key"], name="stored_answer_key")]

    def __str__(self) -> str:
        return f"stored answer {self.pk}"


class Webhook(Numbered):
    """An address told, by a signed request, of events here (docs/developers.md)."""

    class Event(models.TextChoices):
        CAMPAIGN_ENDED = "campaign.ended", gettext_lazy("Campaign ended: finished or cancelled")
        CAMPAIGN_STOPPED = "campaign.stopped", gettext_lazy("Campaign stopped: by its budget, or paused")
        TASK_RESOLVED = "task.resolved", gettext_lazy("Task resolved by people")
        AUDIT_ALARM = "audit.alarm", gettext_lazy("Label audit alarm: a route is wrong too often")
        EXPORT_READY = "export.ready", gettext_lazy("Export ready")
        TRAINING_ENDED = "training.ended", gettext_lazy("Training ended: finished, failed or cancelled")

    class Disabled(models.TextChoices):
        BY_PERSON = "person", gettext_lazy("disabled by an admin")
        FAILING = "failing", gettext_lazy("every delivery failed for days")
        GONE = "gone", gettext_lazy("the receiver answered 410 Gone")

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="webhooks")
    url = models.CharField(max_length=2000)
    description = models.CharField(max_length=200, blank=True)
    events = ArrayField(models.CharField(max_length=20, choices=Event))
    secret = models.TextField(help_text="Encrypted with a key from SECRET_KEY; shown once.")
    former_secret = models.TextField(blank=True, help_text="Encrypted; signs beside the new one for a while.")
    former_secret_until = models.DateTimeField(null=True)
    disabled = models.CharField(
        max_length=7, choices=Disabled, blank=True, db_default="", help_text="Why nothing is sent; empty: it is."
    )
    failing_since = models.DateTimeField(null=True, help_text="The first failure since the last success.")
    alarms_looked_at = models.DateTimeField(
        db_default=Now(), help_text="Until when answers to label audits were looked through."
    )
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        triggers = [NUMBER]
        constraints = [
            models.CheckConstraint(condition=~Q(events=[]), name="webhook_events"),
            models.UniqueConstraint(fields=["collection", "number"], name="webhook_number"),
        ]

    def __str__(self) -> str:
        return f"webhook {self.number}"


class WebhookDelivery(models.Model):
    """An event for one webhook, written by a trigger in the transaction of what it tells of (migration 0002).

    Of a pending one `due_at` says from when on a worker may claim it: now, after a failure later,
    and while it is claimed the end of the lease. Of the events of one subject the earliest pending
    one alone can be claimed.
    """

    class DeliveryState(models.TextChoices):
        PENDING = "pending", gettext_lazy("pending")
        DELIVERED = "delivered", gettext_lazy("delivered")
        FAILED = "failed", gettext_lazy("failed")

    # The event that an admin sends to see whether it arrives.
    TEST = "webhook.test"

    # Without a constraint: a trigger must neither fail nor wait because somebody deletes the
    # webhook at that moment. It needs no index of its own either: three of those below begin with
    # the webhook.
    webhook = models.ForeignKey(Webhook, models.CASCADE, related_name="deliveries", db_constraint=False, db_index=False)
    message_id = models.UUIDField(db_default=RandomUUID(), help_text="The same in every attempt, for the receiver.")
    event = models.CharField(max_length=20)
    subject = models.CharField(max_length=40, help_text="What it is about, as campaign:7: the unit of order.")
    data = models.JSONField(default=dict)
    once = models.CharField(
        max_length=100, blank=True, db_default="", help_text="Of an event that is told once: which one it is."
    )
    state = models.CharField(max_length=9, choices=DeliveryState, db_default=DeliveryState.PENDING)
    attempts = models.PositiveSmallIntegerField(db_default=0, help_text="Failed ones since it was last begun.")
    fencing_token = models.PositiveIntegerField(db_default=0, help_text="Rises with every claim; older holders lose.")
    due_at = models.DateTimeField(db_default=Now())
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "webhook deliveries"
        # The trigger and `alarms.py` may both write an alarm: the second insert does nothing.
        constraints = [models.UniqueConstraint(fields=["webhook", "once"], condition=~Q(once=""), name="delivery_once")]
        indexes = [
            # What a webhook has to send now, and whether an earlier event of the subject is pending
            # (`delivering.CLAIM`).
            models.Index(fields=["webhook", "due_at"], condition=Q(state="pending"), name="delivery_due"),
            models.Index(fields=["webhook", "subject", "id"], condition=Q(state="pending"), name="delivery_order"),
            # The log on the webhook's page, the newest first.
            models.Index(fields=["webhook", "-id"], name="delivery_newest"),
            # What `services.delete_old_deliveries` looks for each hour.
            models.Index(fields=["ended_at"], condition=Q(ended_at__isnull=False), name="delivery_ended"),
        ]

    def __str__(self) -> str:
        return f"{self.event} {self.pk}"

    @property
    def header_id(self) -> str:
        """Value of the header webhook-id."""
        return f"msg_{self.message_id.hex}"


class WebhookAttempt(models.Model):
    """Attempt to deliver an event: one request, and the answer or the problem."""

    class DeliveryProblem(models.TextChoices):
        STATUS = "status", gettext_lazy("the receiver did not answer with a status from 200 to 299")
        REDIRECT = "redirect", gettext_lazy("the receiver redirects, which is not followed")
        TIMEOUT = "timeout", gettext_lazy("no answer within 10 seconds")
        NAME = "name", gettext_lazy("the name of the host could not be found")
        ADDRESS = "address", gettext_lazy("the address is not on the public network")
        CONNECTION = "connection", gettext_lazy("the connection failed")
        SECRET = "secret", gettext_lazy("the secret cannot be decrypted: SECRET_KEY changed; replace the secret")

    delivery = models.ForeignKey(WebhookDelivery, models.CASCADE, related_name="log")
    at = models.DateTimeField(db_default=Now())
    status = models.PositiveSmallIntegerField(null=True, help_text="Of HTTP; null: no answer came.")
    milliseconds = models.PositiveIntegerField()
    problem = models.CharField(max_length=10, choices=DeliveryProblem, blank=True)
    answer = models.TextField(blank=True, help_text="The first 1,000 bytes, or the error of the connection.")

    def __str__(self) -> str:
        return f"attempt {self.pk}"
