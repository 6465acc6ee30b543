"""Models of the API: access tokens, stored answers to repeatable requests, webhooks and their deliveries."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy

from corpus.models import NUMBER, Collection, Numbered


class AccessToken(models.Model):
    """An access token with which a program acts as a person; only its SHA-256 is stored."""

    class TokenScope(models.TextChoices):
        READ = "read", gettext_lazy("Read: everything that your role may see")
        JUDGE = "judge", gettext_lazy("Judge: claim pairs and submit judgments under your name")
        MANAGE = "manage", gettext_lazy("Manage: import, start campaigns, export; everything that an admin may do")

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="access_tokens")
    collection = models.ForeignKey(
        Collection, models.CASCADE, null=True, related_name="+", help_text="Null: all collections of the person."
    )
    name = models.CharField(max_length=100)
    # Each request looks its token up through the index of this constraint.
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
    """The stored answer to a request with an Idempotency-Key, which a repetition of the request gets."""

    token = models.ForeignKey(AccessToken, models.CASCADE, related_name="answers")
    key = models.CharField(max_length=255)
    request = models.CharField(max_length=64, help_text="SHA-256 of the method, the address and the body.")
    # 0 only while the request runs: row and answer are committed together.
    status = models.PositiveSmallIntegerField(default=0)
    content_type = models.CharField(max_length=100, default="")
    body = models.BinaryField(default=b"")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["token", "key"], name="stored_answer_key")]

    def __str__(self) -> str:
        return f"stored answer {self.pk}"


class Webhook(Numbered):
    """An address that gets signed requests about events of a collection (docs/developers.md)."""

    class Event(models.TextChoices):
        CAMPAIGN_ENDED = "campaign.ended", gettext_lazy("Campaign ended: finished or cancelled")
        CAMPAIGN_STOPPED = "campaign.stopped", gettext_lazy("Campaign stopped: by its budget, or paused")
        TASK_RESOLVED = "task.resolved", gettext_lazy("Task resolved by people")
        AUDIT_ALARM = "audit.alarm", gettext_lazy("Label audit alarm: a route is wrong too often")
        EXPORT_READY = "export.ready", gettext_lazy("Export ready")
        TRAINING_ENDED = "training.ended", gettext_lazy("Training ended: finished, failed or cancelled")
        GATE_DECIDED = "gate.decided", gettext_lazy("Gate decided: pass, fail or cannot tell")

    class Disabled(models.TextChoices):
        BY_PERSON = "person", gettext_lazy("disabled by an admin")
        FAILING = "failing", gettext_lazy("every delivery failed for days")
        GONE = "gone", gettext_lazy("the receiver answered 410 Gone")

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="webhooks")
    url = models.CharField(max_length=2000)
    description = models.CharField(max_length=200, blank=True)
    events = ArrayField(models.CharField(max_length=20, choices=Event))
    secret = models.TextField(help_text="Encrypted with a key from SECRET_KEY; shown once.")
    former_secret = models.TextField(blank=True, help_text="Encrypted; also signs for a while.")
    former_secret_until = models.DateTimeField(null=True)
    disabled = models.CharField(
        max_length=7, choices=Disabled, blank=True, db_default="", help_text="Why nothing is sent; empty: active."
    )
    failing_since = models.DateTimeField(null=True, help_text="The first failure since the last success.")
    alarms_looked_at = models.DateTimeField(
        db_default=Now(), help_text="Up to when answers to label audits were evaluated."
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
    """An event for one webhook, written by a trigger in the transaction that causes it (migrations 0002 and 0003).

    A pending delivery can be claimed from `due_at` on: at once, later after a failure, and at the end
    of the lease while it is claimed. Of the deliveries of one subject only the earliest pending one can
    be claimed.
    """

    class DeliveryState(models.TextChoices):
        PENDING = "pending", gettext_lazy("pending")
        DELIVERED = "delivered", gettext_lazy("delivered")
        FAILED = "failed", gettext_lazy("failed")

    # The event with which an admin tests a webhook.
    TEST = "webhook.test"

    # Without a constraint, so that the trigger neither fails nor waits while the webhook is deleted;
    # without an index, since three of those below begin with the webhook.
    webhook = models.ForeignKey(Webhook, models.CASCADE, related_name="deliveries", db_constraint=False, db_index=False)
    message_id = models.UUIDField(db_default=RandomUUID(), help_text="The same in every attempt, for the receiver.")
    event = models.CharField(max_length=20)
    subject = models.CharField(
        max_length=40, help_text="What it is about, such as campaign:7; deliveries of a subject are sent in order."
    )
    data = models.JSONField(default=dict)
    once = models.CharField(
        max_length=100, blank=True, db_default="", help_text="Key of an event that is delivered only once."
    )
    state = models.CharField(max_length=9, choices=DeliveryState, db_default=DeliveryState.PENDING)
    attempts = models.PositiveSmallIntegerField(db_default=0, help_text="Failed attempts since it was last queued.")
    fencing_token = models.PositiveIntegerField(db_default=0, help_text="Rises with every claim; older holders lose.")
    due_at = models.DateTimeField(db_default=Now())
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "webhook deliveries"
        # The trigger and `alarms.py` may write the same alarm: the second insert does nothing.
        constraints = [models.UniqueConstraint(fields=["webhook", "once"], condition=~Q(once=""), name="delivery_once")]
        indexes = [
            # For `delivering.CLAIM`: due deliveries of a webhook, and earlier pending ones of a subject.
            models.Index(fields=["webhook", "due_at"], condition=Q(state="pending"), name="delivery_due"),
            models.Index(fields=["webhook", "subject", "id"], condition=Q(state="pending"), name="delivery_order"),
            # For the log on the webhook's page, the newest first.
            models.Index(fields=["webhook", "-id"], name="delivery_newest"),
            # For `services.delete_old_deliveries`, each hour.
            models.Index(fields=["ended_at"], condition=Q(ended_at__isnull=False), name="delivery_ended"),
        ]

    def __str__(self) -> str:
        return f"{self.event} {self.pk}"

    @property
    def header_id(self) -> str:
        """Value of the header webhook-id."""
        return f"msg_{self.message_id.hex}"


class WebhookAttempt(models.Model):
    """An attempt to deliver an event: one request, with its response or problem."""

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
    status = models.PositiveSmallIntegerField(null=True, help_text="HTTP status; null: no response.")
    milliseconds = models.PositiveIntegerField()
    problem = models.CharField(max_length=10, choices=DeliveryProblem, blank=True)
    answer = models.TextField(
        blank=True, help_text="First 1,000 bytes of the response, or the error of the connection."
    )

    def __str__(self) -> str:
        return f"attempt {self.pk}"
