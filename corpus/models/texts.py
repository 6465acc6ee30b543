"""Models of collections, and their queries, documents and pairs."""

from django.contrib.postgres.fields import ArrayField
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from corpus.rubric import Rubric

# Names are used in addresses, folders and commands, and must not need quoting.
NAME = RegexValidator(r"\A[a-z0-9][a-z0-9_-]{0,62}\Z", "Use lowercase letters, digits, - and _ (63 at most).")


def shown_only() -> dict[str, int]:
    """Return the weights of the arms of a new collection: everyone reads the debate."""
    return {"shown": 1, "hidden": 0, "reveal": 0}


class Collection(models.Model):
    """Queries, documents and pairs that are judged by one definition of relevance."""

    class Order(models.TextChoices):
        UNCERTAIN = "uncertain", _("Most uncertain first")
        QUERY = "query", _("Query by query")
        RANDOM = "random", _("Random (seeded)")

    class Rubrics(models.TextChoices):
        AUTO = "auto", _("By query: sufficiency if answers are listed, otherwise helpfulness")
        SUFFICIENCY = "sufficiency", _("Sufficiency: the document contains everything an answer needs")
        HELPFULNESS = "helpfulness", _("Helpfulness: the document helps to answer, or supports an aspect of an answer")

    class LongDocuments(models.TextChoices):
        CUT = "cut", _("Judges read the first 24,000 characters")
        PEOPLE = "people", _("People judge them")
        WINDOWS = "windows", _("Judges read them in windows, each apart; one relevant window is enough")
        CONTEXT = "context", _("Judges read them whole, as far as their own context reaches")

    class Formats(models.TextChoices):
        TEXT = "text", _("Plain text")
        MARKDOWN = "markdown", _("Markdown")
        HTML = "html", _("HTML")

    class Rounds(models.TextChoices):
        ALL = "all", _("All rounds")
        FINAL = "final", _("The final round")

    name = models.CharField(max_length=63, unique=True, validators=[NAME])
    title = models.CharField(max_length=200, blank=True)
    rubric = models.CharField(
        max_length=11,
        choices=Rubrics,
        default=Rubrics.AUTO,
        db_default="auto",
        help_text="Which definition of relevance holds (corpus.rubric).",
    )
    instruction = models.TextField(
        blank=True, help_text="A definition of relevance in the collection's own words, in place of the rubric's."
    )
    grades = models.PositiveSmallIntegerField(default=3, help_text="The highest grade; 0 is the lowest.")
    grade_names = ArrayField(
        models.CharField(max_length=250),
        default=list,
        db_default=[],
        blank=True,
        help_text="The grades' names from 0 on, each with a help after a colon; empty: the built-in ones.",
    )
    relevant_from = models.PositiveSmallIntegerField(default=1, help_text="Grades from here on are relevant.")
    overlap = models.PositiveSmallIntegerField(default=1, help_text="Annotators for each item.")
    order = models.CharField(max_length=10, choices=Order, default=Order.UNCERTAIN)
    lease_minutes = models.PositiveSmallIntegerField(default=30)
    min_judgment_ms = models.PositiveSmallIntegerField(
        default=300,
        db_default=300,
        help_text="A grade that comes sooner after its pair was served is refused; 0: none is.",
    )
    daily_target = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="Pairs that each annotator is asked to judge in a day; 0: no target."
    )
    document_format = models.CharField(
        max_length=8,
        choices=Formats,
        default=Formats.TEXT,
        db_default="text",
        help_text="Of documents and answers: how pages show them, and how importers read them.",
    )
    long_documents = models.CharField(
        max_length=7,
        choices=LongDocuments,
        default=LongDocuments.CUT,
        db_default="cut",
        help_text="What is done with documents of more than 24,000 characters (corpus.long_documents).",
    )
    seed = models.IntegerField(default=0)
    arms = models.JSONField(default=shown_only, help_text="Weights of the arms in which items are lent.")
    rounds = models.CharField(
        max_length=5,
        choices=Rounds,
        default=Rounds.ALL,
        db_default="all",
        help_text="What people read of a debate.",
    )
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
    lab = models.BooleanField(
        default=False, db_default=False, help_text="The menu has the pages for research (config.navigation.LAB)."
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        # Ranges are checked by the database as well, since pages, commands and importers change settings.
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

    @property
    def rest_ms(self) -> int:
        """The milliseconds in which the judging page accepts no grade."""
        # A little longer than the server requires, so that no click arrives too early.
        return self.min_judgment_ms and self.min_judgment_ms + 100

    @property
    def relevance(self) -> Rubric:
        return Rubric(self.rubric, self.instruction)


class Versioned(models.Model):
    """A text with an id in its collection; a change makes a new row, and the old one keeps its evidence.

    Importers add rows by set-based SQL, and rows are deleted only with their collection. So foreign
    keys, which the database would check row by row, are not declared here and on Pair (docs/adr/0007).
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
            # One version is current, and older versions have distinct contents.
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
    html = models.TextField(
        blank=True,
        default="",
        db_default="",
        help_text="The source of which `text` is the text, if it was imported as HTML (corpus.formats.html_documents).",
    )

    class Meta(Versioned.Meta):
        pass


class Query(Versioned):
    """A need for information, with zero or more answers that a relevant document supports."""

    answers = ArrayField(models.TextField(), default=list)
    answers_html = ArrayField(
        models.TextField(),
        default=list,
        db_default=[],
        blank=True,
        help_text='The answers\' sources, "" for an answer without markup; empty if none has any.',
    )
    instruction = models.TextField(blank=True, help_text="A definition of relevance for this query alone.")

    class Meta(Versioned.Meta):
        verbose_name_plural = "queries"


class Pair(models.Model):
    """A query with a document. It has no state of its own: work, items and labels have states."""

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
