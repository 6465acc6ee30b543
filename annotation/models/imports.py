"""Models of imports into a collection: uploads, and the jobs that check and import them."""

from django.db import models
from django.db.models.functions import Now

from annotation.models import User
from corpus.models import NUMBER, Collection, Numbered
from jobs.models import LeasedJob


class FileImport(Numbered, LeasedJob):
    """Files that are imported together. The job first checks them, as a dry run, and imports them when asked to."""

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="file_imports")
    owner = models.ForeignKey(User, models.PROTECT, related_name="+", db_index=False)
    files = models.JSONField(
        default=list, help_text="What each file contains (annotation.data.imports.files.RecognisedFile)."
    )
    looked_at = models.BooleanField(
        default=False, db_default=True, help_text="The job has found out what the files contain."
    )
    corrections = models.JSONField(
        default=dict,
        db_default=models.Value({}, models.JSONField()),
        help_text="A person's corrections, which the job applies.",
    )
    options = models.JSONField(default=dict)
    dry_run = models.BooleanField(default=True, help_text="The job checks; false: it imports.")
    language = models.CharField(
        max_length=10,
        blank=True,
        default="",
        db_default="",
        help_text="Language of the requester's pages, for errors.",
    )
    report = models.JSONField(default=dict, help_text="What the check found or the import did.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["collection", "number"], name="file_import_number")]
        triggers = [NUMBER]

    def __str__(self) -> str:
        return f"{self.number} of {self.collection.name}"

    @property
    def is_imported(self) -> bool:
        return self.state == self.READY and not self.dry_run

    @property
    def can_resume(self) -> bool:
        """Return whether repeating the last step may help; files that a check refused would be refused again."""
        return self.state == self.CANCELLED or (self.state == self.FAILED and not self.dry_run)

    @property
    def is_checked(self) -> bool:
        """Return whether the check has passed and the import can be started."""
        return self.state == self.READY and self.dry_run


class Upload(models.Model):
    """A file that is uploaded in parts. The size of the file on disk is the number of bytes received."""

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="uploads")
    owner = models.ForeignKey(User, models.PROTECT, related_name="+", db_index=False)
    file_import = models.ForeignKey(FileImport, models.CASCADE, null=True, related_name="uploads")
    name = models.CharField(max_length=255)
    size = models.PositiveBigIntegerField()
    modified = models.CharField(
        max_length=40, blank=True, help_text="When the file changed, as reported by the browser."
    )
    created_at = models.DateTimeField(db_default=Now())
    changed_at = models.DateTimeField(db_default=Now(), db_index=True, help_text="When the last part was received.")

    def __str__(self) -> str:
        return self.name
