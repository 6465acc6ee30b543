"""What is judged: collections, queries, documents, pairs, and the judgments, labels and items of pairs."""

import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

NAME = RegexValidator(r"\A[a-z0-9][a-z0-9_-]{0,62}\Z", "Use lower-case letters, digits, - and _ (at most 63).")


def shown_only() -> dict[str, int]:
    """The weights of the arms of a new collection: everybody reads the debate."""
    return {"shown": 1, "hidden": 0, "reveal": 0}


class Collection(models.Model):
    """Queries, documents and pairs that are judged by one definition of relevance (SPEC S1)."""

    class Order(models.TextChoices):
        UNCERTAIN = "uncertain", _("Most uncertain first")
        QUERY = "query", _("Query by query")
        RANDOM = "random", _("Random (seeded)")

    name = models.CharField(max_length=63, unique=True, validators=[NAME])
    title = models.CharField(max_length=200, blank=True)
    instruction = models.TextField(blank=True, help_text="What makes a document relevant here. Part of every prompt.")
    grades = models.PositiveSmallIntegerField(default=3, help_text="The highest grade; 0 is the lowest.")
    relevant_from = models.PositiveSmallIntegerField(default=1, help_text="Grades from here on are relevant.")
    overlap = models.PositiveSmallIntegerField(default=1, help_text="Annotators for each item.")
    order = models.CharField(max_length=10, choices=Order, default=Order.UNCERTAIN)
    lease_minutes = models.PositiveSmallIntegerField(default=30)
    seed = models.IntegerField(default=0)
    arms = models.JSONField(default=shown_only, help_text="Weights of the arms in which items are lent.")
    checks = models.FloatField(
        default=0.1, db_default=0.1, help_text="Share of attention checks in each annotator's work; 0: none."
    )
    has_checks = models.BooleanField(
        default=False, db_default=False, help_text="There are attention checks to be lent: else nobody looks for one."
    )
    repeats = models.FloatField(
        default=0.0, db_default=0.0, help_text="Share of pairs that an annotator is asked once more; 0: none."
    )
    batch = models.PositiveSmallIntegerField(
        default=20, db_default=20, help_text="Pairs of an annotator that are accepted or returned together."
    )
    qualification = models.BooleanField(
        default=False, db_default=False, help_text="Annotators pass a test before they get items."
    )
    pass_mark = models.PositiveSmallIntegerField(
        default=90, db_default=90, help_text="Percent of the qualification test that must be right."
    )
    consent_version = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Of the text that annotators agree to before they begin; 0: none."
    )
    guideline_version = models.PositiveIntegerField(default=0, db_default=0, help_text="The newest guidelines.")
    audit = models.FloatField(
        default=0.02, db_default=0.02, help_text="Share of automatic labels that people check; 0: none."
    )
    hourly_rate = models.FloatField(null=True, blank=True, help_text="USD for an hour of an annotator; null: unknown.")
    budget = models.FloatField(
        null=True, blank=True, help_text="USD that judges may cost in all campaigns together; null: no cap."
    )
    daily_budget = models.FloatField(
        null=True, blank=True, help_text="USD that judges may cost in one UTC day; null: no cap."
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(name="collection_audit", condition=Q(audit__gte=0, audit__lte=1)),
            models.CheckConstraint(
                name="collection_checks",
                condition=Q(checks__gte=0, checks__lte=0.5, repeats__gte=0, repeats__lte=0.5),
            ),
            models.CheckConstraint(name="collection_batch", condition=Q(batch__gte=5, batch__lte=1000)),
            models.CheckConstraint(name="collection_pass_mark", condition=Q(pass_mark__lte=100)),
            models.CheckConstraint(
                name="collection_hourly_rate", condition=Q(hourly_rate=None) | Q(hourly_rate__gte=0)
            ),
            models.CheckConstraint(name="collection_budget", condition=Q(budget=None) | Q(budget__gte=0)),
            models.CheckConstraint(
                name="collection_daily_budget", condition=Q(daily_budget=None) | Q(daily_budget__gte=0)
            ),
            models.CheckConstraint(name="collection_grades", condition=Q(grades__gte=1, grades__lte=100)),
            models.CheckConstraint(
                name="collection_relevant_from", condition=Q(relevant_from__gte=1, relevant_from__lte=F("grades"))
            ),
            models.CheckConstraint(name="collection_overlap", condition=Q(overlap__gte=1, overlap__lte=25)),
            models.CheckConstraint(name="collection_lease", condition=Q(lease_minutes__gte=1)),
        ]

    def __str__(self) -> str:
        return self.name


class Versioned(models.Model):
    """A text with an id of its collection; a change makes a new row and the old one keeps its evidence.

    Rows enter by the importers' set-based SQL and leave with their collection, so foreign keys that the database
    would check row by row are not declared here and on Pair (docs/adr/0007).
    """

    collection = models.ForeignKey(Collection, models.CASCADE, db_constraint=False, db_index=False)
    external_id = models.CharField(max_length=255)
    version = models.PositiveIntegerField(default=1)
    is_current = models.BooleanField(default=True)
    text = models.TextField(blank=True)
    metadata = models.JSONField(default=dict)
    content_hash = models.CharField(max_length=64, help_text="sha256 of everything a reader sees, in hex.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        abstract = True
        constraints = [
            models.UniqueConstraint(
                fields=["collection", "external_id"], condition=Q(is_current=True), name="%(class)s_current"
            ),
            models.UniqueConstraint(
                fields=["collection", "external_id", "content_hash"],
                condition=Q(is_current=False),
                name="%(class)s_content",
            ),
        ]

    def __str__(self) -> str:
        return self.external_id


class Document(Versioned):
    """A chunk of text that may answer a query."""

    title = models.TextField(blank=True)

    class Meta(Versioned.Meta):
        pass


class Query(Versioned):
    """A need for information, with zero or more answers that a relevant document supports."""

    answers = ArrayField(models.TextField(), default=list)
    instruction = models.TextField(blank=True, help_text="A definition of relevance for this query alone.")

    class Meta(Versioned.Meta):
        verbose_name_plural = "queries"


class Aspect(models.Model):
    """A weighted sub-need of a query (BRIGHT-Pro 3.2).

    What stands here is derived from the query's newest AspectRevision; a row stays when its aspect is taken out of the
    set, because judgments hang on it (docs/adr/0029).
    """

    query = models.ForeignKey(Query, models.CASCADE, related_name="aspects")
    external_id = models.CharField(max_length=255)
    text = models.TextField()
    rationale = models.TextField(blank=True)
    importance = models.PositiveSmallIntegerField(default=3)
    place = models.PositiveSmallIntegerField(default=0, db_default=0, help_text="Order within the query.")
    is_current = models.BooleanField(default=True, db_default=True, help_text="In the query's set as it stands now.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["query", "external_id"], name="aspect_id"),
            models.CheckConstraint(name="aspect_importance", condition=Q(importance__gte=1, importance__lte=5)),
        ]

    def __str__(self) -> str:
        return self.external_id


class Pair(models.Model):
    """One query with one document. It has no state: work, items and labels have theirs."""

    collection = models.ForeignKey(Collection, models.CASCADE, db_constraint=False)
    query = models.ForeignKey(Query, models.CASCADE, db_constraint=False, db_index=False)
    document = models.ForeignKey(Document, models.CASCADE, db_constraint=False, db_index=False)
    is_candidate = models.BooleanField(
        default=True, db_default=True, help_text="To be judged; false: only an imported grade names it."
    )
    teacher_score = models.FloatField(null=True)
    uncertainty = models.FloatField(default=0.0, help_text="Larger is asked first when the queue orders by it.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["query", "document"], name="pair_once")]

    def __str__(self) -> str:
        return f"{self.query_id} x {self.document_id}"


class Assessor(models.Model):
    """Whoever gives grades: a person, a judge's version, a policy, an import, or the reference."""

    class Kind(models.TextChoices):
        PERSON = "person", _("person")
        JUDGE = "judge", _("judge")
        POLICY = "policy", _("policy")
        HUMAN_IMPORT = "human-import", _("imported people")
        JUDGE_IMPORT = "judge-import", _("imported judge")
        REFERENCE = "reference", _("reference")

    collection = models.ForeignKey(Collection, models.CASCADE)
    kind = models.CharField(max_length=12, choices=Kind)
    name = models.CharField(max_length=150)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["collection", "kind", "name"], name="assessor_name")]

    def __str__(self) -> str:
        return self.name


class AspectRevision(models.Model):
    """One act on the aspects of a query: the whole set after it, and the judgments that it gave. Append-only.

    The newest revision holds. Undo appends a revision that takes another one back.
    """

    class Act(models.TextChoices):
        ADD = "add", _("added")
        CLARIFY = "clarify", _("clarified")
        WEIGH = "weigh", _("weighed")
        SPLIT = "split", _("split")
        MERGE = "merge", _("merged")
        REMOVE = "remove", _("removed")
        KEEP = "keep", _("kept a document")
        DISCARD = "discard", _("discarded a document")
        REOPEN = "reopen", _("put a document back to review")
        PASSAGE = "passage", _("added passages")
        JOIN = "join", _("joined passages")
        CUT = "cut", _("cut a passage")
        IMPORT = "import", _("imported")
        UNDO = "undo", _("took back")

    query = models.ForeignKey(Query, models.CASCADE, related_name="aspect_revisions", db_index=False)
    number = models.PositiveIntegerField(help_text="From 1 for each query.")
    act = models.CharField(max_length=8, choices=Act)
    note = models.TextField(blank=True, help_text="What it was done to, or why.")
    aspects = models.JSONField(help_text="The set after the act, in order: id, text, rationale, importance.")
    judgments = ArrayField(models.BigIntegerField(), default=list, help_text="Ids of the judgments that the act gave.")
    undoes = models.OneToOneField("self", models.CASCADE, null=True, related_name="undone_by")
    author = models.ForeignKey(Assessor, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["query", "number"], name="aspect_revision_number")]
        triggers = [pgtrigger.Protect(name="append_only", operation=pgtrigger.Update | pgtrigger.Delete)]

    def __str__(self) -> str:
        return f"{self.query_id} revision {self.number}: {self.act}"


class Item(models.Model):
    """A pair waiting for people, with one reason. Written by judges, annotation and benchmark."""

    class Reason(models.TextChoices):
        DISAGREEMENT = "disagreement", _("the two sides did not agree")
        CONFLICT = "conflict", _("the panel's majority contradicts the debate")
        SPLIT = "split", _("too few equal votes")
        UNPARSED = "unparsed", _("an answer could not be read")
        REFUSED = "refused", _("a judge refused to answer")
        ERROR = "error", _("a judge could not be reached")
        STOPPED = "stopped", _("labels that came about like this one were wrong too often")
        POLICY = "policy", _("people judge every pair")
        UNCERTAIN = "uncertain", _("the judge is least sure of it")
        HOLE = "hole", _("a system returned it, and the qrels do not know it")
        AUDIT = "audit", _("drawn to check the automatic labels")
        EVIDENCE = "evidence", _("contribution and evidence to be edited")
        STUDY = "study", _("part of a paired study")
        CHECK = "check", _("an attention check")
        REPEAT = "repeat", _("asked once more")
        QUALIFICATION = "qualification", _("part of the qualification test")

    class Arm(models.TextChoices):
        SHOWN = "shown", _("the debate is shown")
        HIDDEN = "hidden", _("the debate is hidden")
        REVEAL = "reveal", _("a first vote, then the debate, then the final vote")

    class State(models.TextChoices):
        OPEN = "open", _("open")
        CONFLICT = "conflict", _("waits for an adjudicator")
        SETTLED = "settled", _("settled")
        WITHDRAWN = "withdrawn", _("withdrawn")
        STANDING = "standing", _("lent to everyone once")
        """Checks and the qualification test: no queue holds them, and no judgment settles them."""

    # No index of their own where another begins with the same column: every lease writes to all that there are.
    collection = models.ForeignKey(Collection, models.CASCADE, db_index=False)
    pair = models.ForeignKey(Pair, models.CASCADE, related_name="items", db_index=False)
    campaign = models.BigIntegerField(null=True, help_text="The campaign that escalated it: judges_campaign's id.")
    reason = models.CharField(max_length=13, choices=Reason)
    seq = models.PositiveSmallIntegerField(default=0)
    arm = models.CharField(
        max_length=6,
        choices=Arm,
        blank=True,
        default="",
        db_default="",
        help_text="What of the debate is shown; drawn when the item is first lent, unless its maker chose it.",
    )
    shown_as = models.CharField(
        max_length=13,
        choices=Reason,
        blank=True,
        default="",
        db_default="",
        help_text="The reason whose words an annotator reads; empty: its own.",
    )
    turns = models.JSONField(null=True, help_text="The debate that is shown with it; null: the pair's newest.")
    reserved = models.BooleanField(
        default=False, db_default=False, help_text="Lent only to those whom annotation_reservedfor names."
    )
    state = models.CharField(max_length=9, choices=State, default=State.OPEN)
    priority = models.FloatField(default=0.0, help_text="Smaller is lent first.")
    place = models.BigIntegerField(
        help_text="Order among equals, from the sequence corpus_item_place; new when returned."
    )
    overlap = models.PositiveSmallIntegerField(default=1, help_text="People who shall judge it.")
    taken = models.PositiveSmallIntegerField(default=0, help_text="Open leases and judgments on it.")
    done = models.PositiveSmallIntegerField(default=0, help_text="Judgments on it.")
    created_at = models.DateTimeField(db_default=Now())
    settled_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["pair", "reason", "seq"], name="item_once"),
            models.CheckConstraint(name="item_taken", condition=Q(taken__lte=F("overlap"))),
            models.CheckConstraint(name="item_done", condition=Q(done__lte=F("taken"))),
        ]
        indexes = [
            models.Index(
                fields=["collection", "priority", "place"],
                name="item_queue",
                condition=Q(state="open", taken__lt=F("overlap")),
            ),
            models.Index(fields=["collection", "state", "reason"], name="item_state"),
            models.Index(fields=["campaign", "state"], name="item_campaign"),
        ]

    def __str__(self) -> str:
        return f"{self.pair_id} ({self.reason})"


class Judgment(models.Model):
    """One grade by one assessor for one pair. Append-only: a change is a row that supersedes another."""

    class Step(models.TextChoices):
        FIRST = "first", _("first")
        FINAL = "final", _("final")
        ADJUDICATION = "adjudication", _("adjudication")
        IMPORT = "import", _("import")

    pair = models.ForeignKey(Pair, models.CASCADE, related_name="judgments")
    aspect = models.ForeignKey(Aspect, models.CASCADE, null=True)
    assessor = models.ForeignKey(Assessor, models.PROTECT)
    item = models.ForeignKey(Item, models.CASCADE, null=True, related_name="judgments")
    step = models.CharField(max_length=12, choices=Step)
    grade = models.SmallIntegerField(null=True, help_text="Null withdraws the judgment that it supersedes.")
    supersedes = models.OneToOneField("self", models.CASCADE, null=True, related_name="superseded_by")
    arm = models.CharField(max_length=20, blank=True, help_text="What of the debate was shown: shown, hidden, reveal.")
    guideline = models.PositiveIntegerField(default=0, help_text="Version of the guidelines that held.")
    milliseconds = models.PositiveIntegerField(null=True, help_text="Time on the page.")
    idle_milliseconds = models.PositiveIntegerField(
        null=True, help_text="Of it, with the page hidden or untouched for a minute and more."
    )
    spans = models.JSONField(null=True, help_text="[start, end) of the document's characters, marked as evidence.")
    comment = models.TextField(blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["item", "assessor", "step"],
                condition=Q(supersedes=None, item__isnull=False),
                name="judgment_once",
            ),
            models.UniqueConstraint(
                fields=["pair", "aspect", "assessor", "step"],
                condition=Q(supersedes=None, item=None),
                nulls_distinct=False,
                name="judgment_import_once",
            ),
        ]
        triggers = [pgtrigger.Protect(name="append_only", operation=pgtrigger.Update | pgtrigger.Delete)]

    def __str__(self) -> str:
        return f"{self.pair_id}: {self.grade}"


class Label(models.Model):
    """The resolved grade of a pair: a projection, rebuilt from judgments and outcomes at any time."""

    pair = models.ForeignKey(Pair, models.CASCADE, related_name="labels", db_index=False)
    aspect = models.ForeignKey(Aspect, models.CASCADE, null=True)
    grade = models.SmallIntegerField()
    origin = models.CharField(max_length=20, help_text="The policy's name, or people, adjudicator.")
    updated_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["pair", "aspect"], nulls_distinct=False, name="label_once")]

    def __str__(self) -> str:
        return f"{self.pair_id}: {self.grade} ({self.origin})"


class Target(models.Model):
    """Contribution and evidence of a relevant pair, as somebody wrote them (SPEC S6). Append-only.

    A judge's text that fails its measures is kept too, with `good` false: it is what a person edits. Undo appends a
    row that withdraws another. `corpus.targets` says which one holds.
    """

    class Kind(models.TextChoices):
        JUDGE = "judge", _("judge")
        PERSON = "person", _("person")

    pair = models.ForeignKey(Pair, models.CASCADE, related_name="targets", db_index=False)
    version = models.PositiveIntegerField(help_text="From 1 for each pair.")
    kind = models.CharField(max_length=6, choices=Kind)
    writer = models.CharField(max_length=150, help_text="The judge's or the person's name.")
    contribution = models.TextField(blank=True)
    evidence = models.TextField(blank=True)
    measures = models.JSONField(default=dict, help_text="By rule and judged, and the problems that were found.")
    good = models.BooleanField(help_text="It may be learned from.")
    rating = models.PositiveSmallIntegerField(
        null=True, help_text="1 to 5: what its writer thought of the texts that they were shown."
    )
    item = models.ForeignKey(Item, models.CASCADE, null=True, related_name="targets", help_text="On whose desk it was.")
    withdraws = models.OneToOneField("self", models.CASCADE, null=True, related_name="withdrawn_by")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["pair", "version"], name="target_version")]
        triggers = [pgtrigger.Protect(name="append_only", operation=pgtrigger.Update | pgtrigger.Delete)]

    def __str__(self) -> str:
        return f"{self.pair_id} version {self.version}"
