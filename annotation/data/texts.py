"""Texts that an admin writes for a collection, in versions: the instruction of prompts and the guidelines of people."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotation import guidelines
from annotation.audit_log.recording import record
from annotation.models import InstructionVersion, User
from corpus.collections.configure import configure_collection
from corpus.errors import BadInput
from corpus.holding import hold
from corpus.models import Collection


@dataclass(frozen=True)
class Editor:
    """A kind of text that the editor's page can show and save."""

    label: str
    rows: int
    required: bool
    current: Callable[[Collection], tuple[int, str]]
    versions: Callable[[Collection], QuerySet[Any]]
    # write(collection=, text=, author=, base=): keep a new version, return its number. Raises BadInput where there is
    # a newer one than `base`, which the writer saw.
    write: Callable[..., int]


def current_instruction(collection: Collection) -> tuple[int, str]:
    """Return number and text of the instruction; 0 until it was edited here."""
    newest = collection.instruction_versions.order_by("-version").values_list("version", flat=True).first()
    return newest or 0, collection.instruction


def instruction_versions(collection: Collection) -> QuerySet[InstructionVersion]:
    """Return all versions, newest first, with their writers."""
    return collection.instruction_versions.select_related("written_by").order_by("-version")


@transaction.atomic
def write_instruction(*, collection: Collection, text: str, author: User, base: int | None) -> int:
    """Change the instruction of campaigns to come; the text before is kept as a version of its own."""
    # Of two who save at once the second waits, then sees the first one's version and is refused.
    held = hold(Collection.objects, collection.pk)
    version, before = current_instruction(held)
    _refuse_stale(base, version)
    text = text.replace("\r\n", "\n").strip()
    if text == before:
        return version
    # What stood there before the first change on this page is kept as version 1.
    if not version and before:
        version = 1
        InstructionVersion.objects.create(collection=held, version=version, text=before)
    InstructionVersion.objects.create(collection=held, version=version + 1, text=text, written_by=author)
    with guidelines.record_redefinition(held, author):
        Collection.objects.filter(pk=held.pk).update(instruction=text)
    record(author, "settings.instruction", collection, version=version + 1)
    return version + 1


@transaction.atomic
def write_guidelines(*, collection: Collection, text: str, author: User, base: int | None) -> int:
    """Change what people are told from now on; judgments keep the number of the version that held."""
    hold(Collection.objects, collection.pk)
    _refuse_stale(base, guidelines.current(collection)[0])
    version = guidelines.write(collection=collection, text=text, author=author)
    record(author, "settings.guidelines", collection, version=version)
    return version


@transaction.atomic
def save_settings(*, collection: Collection, changed: Sequence[str], by: User | None = None) -> None:
    """Save changed settings of a collection, with the checks and effects of `configure_collection`. Raises BadInput."""
    if not changed:
        return
    values = {name: getattr(collection, name) for name in changed}
    with guidelines.record_redefinition(collection, by):
        configure_collection(collection, values)
    # Long texts have versions of their own.
    said: dict[str, Any] = {name: value[:200] if isinstance(value, str) else value for name, value in values.items()}
    record(by, "settings.changed", collection, **said)


def _refuse_stale(base: int | None, version: int) -> None:
    if base is not None and base != version:
        raise BadInput(
            _(
                "Version %(version)s was saved by someone else while you were writing. Nothing was overwritten; your "
                "text is kept below. Compare it with the newest version, then save again."
            )
            % {"version": version}
        )


EDITORS = {
    "instruction": Editor(
        label=gettext_noop("Instruction"),
        rows=6,
        required=False,
        current=current_instruction,
        versions=instruction_versions,
        write=write_instruction,
    ),
    "guidelines": Editor(
        label=gettext_noop("Guidelines"),
        rows=22,
        required=True,
        current=guidelines.current,
        versions=guidelines.versions,
        write=write_guidelines,
    ),
}
