"""Models of annotation: users, roles, invitations, assignments, guidelines, stored results and the audit log."""

import secrets
from typing import ClassVar

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Cast, Floor, Now, Random
from django.utils.translation import gettext_lazy

from corpus.models import NUMBER, Assessor, Collection, Item, Judgment, Numbered, Pair, append_only
from jobs.models import ResultRow


class InboxMail(models.TextChoices):
    """When a person gets mail about what is new in the inboxes of their collections."""

    NEVER = "", gettext_lazy("never")
    DAILY = "daily", gettext_lazy("once a day")
    ONCE = "once", gettext_lazy("at once")


class User(AbstractUser):
    """A user account. Owners create and delete collections; others see those they belong to."""

    first_name = None  # type: ignore[assignment]  # People are named by their user name only.
    last_name = None  # type: ignore[assignment]
    is_owner = models.BooleanField(default=False)
    language = models.CharField(
        max_length=10, blank=True, default="", db_default="", help_text="Language of the pages; empty: the browser's."
    )
    display = models.JSONField(
        default=dict, db_default={}, help_text="How pages look to this person (annotation.access.languages.LOOKS)."
    )
    inbox_mail = models.CharField(
        max_length=5,
        choices=InboxMail,
        blank=True,
        default="",
        db_default="",
        help_text="When the inboxes of their collections are mailed to them; empty: never.",
    )
    inbox_site = models.CharField(
        max_length=300, blank=True, default="", db_default="", help_text="Address of this site, for links in that mail."
    )

    # `createsuperuser` asks only for a name and a password: an account needs no mail address.
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    def __str__(self) -> str:
        return self.username


class Role(models.IntegerChoices):
    """Roles in a collection. Viewers only read results; each later role includes the permissions of those between."""

    VIEWER = 0, gettext_lazy("viewer")
    ANNOTATOR = 1, gettext_lazy("annotator")
    ADJUDICATOR = 2, gettext_lazy("adjudicator")
    ADMIN = 3, gettext_lazy("admin")


class Membership(models.Model):
    """A person's role in a collection, and the assessor of their judgments."""

    # Accounts are closed or pseudonymised and never deleted, so that judgments keep their author.
    user = models.ForeignKey(User, models.PROTECT, related_name="memberships")
    collection = models.ForeignKey(Collection, models.CASCADE, related_name="memberships")
    role = models.PositiveSmallIntegerField(choices=Role)
    assessor = models.OneToOneField(Assessor, models.CASCADE)
    is_active = models.BooleanField(default=True)
    # A claim continues after the last item that it assigned.
    watermark_priority = models.FloatField(
        null=True, help_text="Nothing before (priority, place) is new to this person."
    )
    watermark_place = models.BigIntegerField(null=True)
    arms_drawn = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Items whose arm was drawn when they were assigned to this person."
    )
    # A counter, because it must be known before the claim whether an attention check comes next.
    lent = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Items that were assigned to this person; what comes next is drawn with it."
    )
    closed_to = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Assigned items in batches that were evaluated."
    )
    returned = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Returned batches whose notice they have not confirmed yet."
    )
    paused_at = models.DateTimeField(null=True, help_text="Gets no items until resumed.")
    pause_note = models.TextField(blank=True, default="", db_default="", help_text="The note that they see.")
    consent = models.PositiveIntegerField(
        default=0, db_default=0, help_text="The version of the consent text that they agreed to."
    )
    guideline_read = models.PositiveIntegerField(
        default=0, db_default=0, help_text="The version of the guidelines that they confirmed reading."
    )
    trial = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="The qualification test that they take: `seq` of its items."
    )
    qualified_at = models.DateTimeField(null=True)
    failed_at = models.DateTimeField(null=True, help_text="When they failed their last test; null: not failed.")
    retake_asked_at = models.DateTimeField(
        null=True, help_text="When they asked to take the test again; null: not asked since they failed."
    )
    is_expert = models.BooleanField(default=False, db_default=False, help_text="May create gold labels.")
    daily_quota = models.PositiveIntegerField(null=True, help_text="The most pairs that they get in a day.")
    total_quota = models.PositiveIntegerField(null=True, help_text="The most pairs that they get in this collection.")
    last_day = models.DateField(null=True, help_text="The last day on which they get new pairs.")
    replies_seen_at = models.DateTimeField(
        db_default=Now(), help_text="Answers to their comments and flags until then are read."
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "collection"], name="membership_once")]

    def __str__(self) -> str:
        return f"{self.user} in {self.collection}"


def new_token() -> str:
    """Return a secret for a link: 43 URL-safe characters."""
    return secrets.token_urlsafe(32)


class Invitation(models.Model):
    """A link with which people sign up or join another collection, up to its limit and until it expires."""

    token = models.CharField(max_length=64, unique=True, default=new_token)
    collection = models.ForeignKey(Collection, models.CASCADE, null=True, related_name="invitations")
    role = models.PositiveSmallIntegerField(choices=Role, null=True)
    note = models.CharField(max_length=200, blank=True)
    invited_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    limit = models.PositiveIntegerField(default=1, db_default=1, help_text="How many people may join with it.")
    uses_left = models.PositiveIntegerField(default=1, db_default=1)
    accepted_by = models.ForeignKey(
        User, models.PROTECT, null=True, related_name="+", help_text="Who joined with a link for one person."
    )
    mailed_at = models.DateTimeField(null=True, help_text="When it was mailed to the address in the note.")
    expires_at = models.DateTimeField()
    revoked = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(uses_left__lte=F("limit")), name="invitation_uses")]

    def __str__(self) -> str:
        return f"invitation {self.pk}"

    @property
    def used(self) -> int:
        """Number of people who joined by the invitation."""
        return self.limit - self.uses_left


# Above all ids of items. Public ids are below 2^53, up to which JavaScript's numbers are exact.
LOWEST_PUBLIC_ID = 1 << 52


class Assignment(models.Model):
    """An item assigned to one annotator: a lease until it is settled, skipped, returned or expired."""

    class State(models.TextChoices):
        OPEN = "open", gettext_lazy("open")
        DONE = "done", gettext_lazy("done")
        SKIPPED = "skipped", gettext_lazy("skipped")
        RETURNED = "returned", gettext_lazy("returned")
        ASIDE = "aside", gettext_lazy("excluded")

    class SkipReason(models.TextChoices):
        UNCLEAR_QUERY = "unclear-query", gettext_lazy("The query is unclear")
        UNREADABLE = "unreadable", gettext_lazy("The text is unreadable or cut off")
        LANGUAGE = "language", gettext_lazy("I cannot read this language")
        KNOWLEDGE = "knowledge", gettext_lazy("I lack the knowledge")
        OTHER = "other", gettext_lazy("Another reason")

    item = models.ForeignKey(Item, models.CASCADE, related_name="assignments", db_index=False)
    membership = models.ForeignKey(Membership, models.CASCADE, related_name="assignments", db_index=False)
    state = models.CharField(max_length=8, choices=State, default=State.OPEN)
    token = models.CharField(max_length=43, default=new_token)
    public_id = models.BigIntegerField(
        db_default=Cast(Floor(Random() * float(LOWEST_PUBLIC_ID)), models.BigIntegerField()) + LOWEST_PUBLIC_ID,
        help_text="Random number of the item on this person's pages (Assignment.item_of).",
    )
    lent_at = models.DateTimeField(db_default=Now())
    served_at = models.DateTimeField(
        db_default=Now(), help_text="When they got the pair in its present form: assigned, revealed or reopened."
    )
    lease_until = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    number = models.PositiveIntegerField(
        null=True, help_text="How many were assigned to this person before; batches are numbered by it."
    )
    skip_reason = models.CharField(max_length=15, choices=SkipReason, blank=True)
    flagged = models.BooleanField(default=False)
    flag_note = models.TextField(blank=True)
    judgment = models.ForeignKey(Judgment, models.SET_NULL, null=True, related_name="+")
    first = models.ForeignKey(
        Judgment,
        models.SET_NULL,
        null=True,
        related_name="+",
        db_index=False,
        help_text="Newest row of the judgment made before the debate was revealed.",
    )
    draft = models.JSONField(null=True, help_text="Input of the page that is not sent yet.")
    place = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="Position in a group of leases on one query, from 1; 0: alone."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["item", "membership"], name="assignment_once"),
            models.UniqueConstraint(fields=["token"], name="assignment_token"),
            models.UniqueConstraint(fields=["membership", "public_id"], name="assignment_public_id"),
            # Of two concurrent claims of one member the second insert fails and is retried (queue.assignment).
            models.UniqueConstraint(
                fields=["membership", "place"], condition=Q(state="open"), name="assignment_one_open"
            ),
        ]
        indexes = [
            models.Index(fields=["lease_until"], name="assignment_expiry", condition=Q(state="open")),
            models.Index(fields=["membership", "-ended_at"], name="assignment_history"),
            models.Index(fields=["membership"], name="assignment_skipped", condition=Q(state="skipped")),
            models.Index(fields=["item"], name="assignment_flagged", condition=Q(flagged=True)),
            models.Index(fields=["membership"], name="assignment_flags_of", condition=Q(flagged=True)),
        ]

    def __str__(self) -> str:
        return f"{self.item_id} to {self.membership_id}"

    @classmethod
    def item_of(cls, membership: Membership, number: int) -> int:
        """Return the id of the item that a number names to this annotator; 0, which is no item, where it names none.

        Items have ids in the order of their creation, so the id of an attention check or a repeat would
        give it away: pages show the public id instead. An item's own id is accepted too, since programs
        know it from exports.
        """
        if number < LOWEST_PUBLIC_ID:
            return number
        assignments = cls.objects.filter(membership=membership, public_id=number)
        return assignments.values_list("item_id", flat=True).first() or 0

    @staticmethod
    def judgments(of: str = "") -> Q:
        """Return the condition of assignments that count as a person's judgments.

        They have a current grade, on a task of any kind: no flags, edited texts, or excluded and withdrawn
        judgments. `of`: the lookup from the queried model to its assignments, such as `assignments__`.
        """
        return Q(**{f"{of}state": Assignment.State.DONE, f"{of}flagged": False, f"{of}judgment__isnull": False})


class ReservedFor(models.Model):
    """A reservation: an item with such rows is assigned only to the people in them."""

    item = models.ForeignKey(Item, models.CASCADE, related_name="reserved_for", db_index=False)
    membership = models.ForeignKey(Membership, models.CASCADE, related_name="reserved_for", db_index=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["item", "membership"], name="reserved_once")]

    def __str__(self) -> str:
        return f"{self.item_id} for {self.membership_id}"


class Study(Numbered):
    """A paired study: the same pairs judged by two groups of people, with and without the debate (DREAM, table 3)."""

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="studies")
    seed = models.IntegerField(default=0)
    overlap = models.PositiveSmallIntegerField(default=3, help_text="People of each group who judge a pair.")
    made_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True, help_text="When its open items were withdrawn.")

    class Meta:
        verbose_name_plural = "studies"
        triggers = [NUMBER]
        constraints = [models.UniqueConstraint(fields=["collection", "number"], name="study_number")]

    def __str__(self) -> str:
        return f"{self.collection} study {self.number}"


class StudyItem(models.Model):
    """An item of a study; its arm and its reservations say which group gets it."""

    study = models.ForeignKey(Study, models.CASCADE, related_name="items")
    item = models.OneToOneField(Item, models.CASCADE, related_name="study_item")

    def __str__(self) -> str:
        return f"{self.study_id}: {self.item_id}"


class Guideline(models.Model):
    """A version of the guidelines for annotators. The newest is current; judgments keep the number of theirs."""

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="guidelines")
    version = models.PositiveIntegerField()
    text = models.TextField()
    is_built_in = models.BooleanField(
        default=False, db_default=False, help_text="The built-in text, which readers see in their language."
    )
    written_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["collection", "version"], name="guideline_version")]

    def __str__(self) -> str:
        return f"{self.collection} guidelines {self.version}"


class InstructionVersion(models.Model):
    """A version of a collection's instruction. Campaigns keep a copy of the one with which they began."""

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="instruction_versions")
    version = models.PositiveIntegerField()
    text = models.TextField(blank=True)
    written_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["collection", "version"], name="instruction_version")]

    def __str__(self) -> str:
        return f"{self.collection} instruction {self.version}"


class StoredResult(ResultRow):
    """A result that takes too long for a request: computed by a worker, shown with its time."""

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="results", db_index=False)
    objects: ClassVar[models.Manager["StoredResult"]] = models.Manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["collection", "kind", "key"], name="stored_result_once")]

    def __str__(self) -> str:
        return f"{self.kind} of {self.collection} at {self.at}"


class TeacherAnswer(models.Model):
    """A call to a rerank API with its answer or error. Append-only, so that no answer is paid for twice."""

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="teacher_answers")
    api = models.CharField(max_length=20, help_text="Wire format: cohere, jina or voyage.")
    url = models.CharField(max_length=500)
    model = models.CharField(max_length=200)
    # Ids instead of a relation: the record of a paid call stays when a pair is deleted.
    pairs = ArrayField(models.BigIntegerField(), help_text="Ids of the pairs, in the order of the documents sent.")
    request_sha256 = models.CharField(max_length=64)
    raw = models.TextField(blank=True, help_text="The raw response body.")
    error = models.TextField(blank=True, help_text="Why scores are missing, in one line.")
    milliseconds = models.PositiveIntegerField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        triggers = append_only.TRIGGERS

    def __str__(self) -> str:
        return f"{self.api} {self.model} {self.pk}"


class TeacherScore(models.Model):
    """A pair's score in one answer. Append-only; `Pair.teacher_score` is the mean of the rerankers' scores."""

    answer = models.ForeignKey(TeacherAnswer, models.CASCADE, related_name="scores", db_index=False)
    pair = models.ForeignKey(Pair, models.CASCADE, related_name="teacher_scores")
    score = models.FloatField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["answer", "pair"], name="teacher_score_once")]
        triggers = append_only.TRIGGERS

    def __str__(self) -> str:
        return f"{self.pair_id}: {self.score}"


class AuditEntry(models.Model):
    """An entry of the audit log: who did what, when, where and to whom (access.audit_log.recording). Append-only.

    People are stored by reference, so that pseudonymising a person also removes their name here. The
    reference to a collection outlives it, because deleting a collection is itself an entry.
    """

    at = models.DateTimeField(db_default=Now())
    person = models.ForeignKey(
        User,
        models.PROTECT,
        null=True,
        related_name="+",
        db_index=False,
        help_text="Who acted; null: a command or a stranger.",
    )
    act = models.CharField(max_length=40, help_text="A key of annotation.access.audit_log.recording.ACTS.")
    collection = models.ForeignKey(
        Collection, models.DO_NOTHING, null=True, related_name="+", db_index=False, db_constraint=False
    )
    collection_name = models.CharField(max_length=200, blank=True)
    concerns = models.ForeignKey(
        User, models.PROTECT, null=True, related_name="+", db_index=False, help_text="Whom the act concerns."
    )
    details = models.JSONField(default=dict)

    class Meta:
        indexes = [
            models.Index(fields=["collection", "-id"], name="audit_of_collection"),
            models.Index(fields=["person", "-id"], name="audit_of_person"),
            models.Index(fields=["concerns", "-id"], name="audit_concerning"),
            models.Index(fields=["act", "-id"], name="audit_of_act"),
        ]
        triggers = append_only.TRIGGERS

    def __str__(self) -> str:
        return f"{self.act} {self.pk}"
