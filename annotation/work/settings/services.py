"""Changing the settings of a collection, and its versioned texts: instruction and guidelines."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from actions.services import Actor, Unchanged, action
from annotation.models import InstructionVersion
from annotation.work.settings import guidelines
from corpus.collections.configure import configure_collection
from corpus.collections.options import TEXTS, SettingsOptions
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
    # write(actor=, collection=, text=, base=) stores a new version and returns its number. It raises
    # BadInput where there is a newer one than `base`, the version that the writer saw.
    write: Callable[..., int]


def current_instruction(collection: Collection) -> tuple[int, str]:
    """Return number and text of the instruction; 0 until it was edited here."""
    newest = collection.instruction_versions.order_by("-version").values_list("version", flat=True).first()
    return newest or 0, collection.instruction


def instruction_versions(collection: Collection) -> QuerySet[InstructionVersion]:
    """Return all versions, newest first, with their writers."""
    return collection.instruction_versions.select_related("written_by").order_by("-version")


@transaction.atomic
def write_instruction(*, actor: Actor, collection: Collection, text: str, base: int | None) -> int:
    """Change the instruction for future campaigns, as a new version. Return its number."""
    # Of two people who save at once, the second waits for the lock and is then refused.
    row = hold(Collection.objects, collection.pk)
    version, before = current_instruction(row)
    _refuse_stale(base, version)
    text = text.replace("\r\n", "\n").strip()
    if text == before:
        return version
    # The text before the first change on this page becomes version 1.
    if not version and before:
        version = 1
        InstructionVersion.objects.create(collection=row, version=version, text=before)
    InstructionVersion.objects.create(collection=row, version=version + 1, text=text, written_by=actor.user)
    with guidelines.record_redefinition(row, actor.user):
        Collection.objects.filter(pk=row.pk).update(instruction=text)
    actor.record("settings.instruction", collection, version=version + 1)
    return version + 1


@transaction.atomic
def write_guidelines(*, actor: Actor, collection: Collection, text: str, base: int | None) -> int:
    """Change the guidelines, as a new version; judgments keep the number of theirs. Return the new number."""
    hold(Collection.objects, collection.pk)
    _refuse_stale(base, guidelines.current(collection)[0])
    version = guidelines.write(collection=collection, text=text, author=actor.user)
    actor.record("settings.guidelines", collection, version=version)
    return version


@action("settings.changed", noted=lambda options, changed: _noted(options, changed))
def change_settings(actor: Actor, collection: Collection, options: SettingsOptions) -> list[str] | Unchanged:
    """Change the given settings, all or none; return the names of those that changed.

    A new rubric or instruction is also a new version of the guidelines. Each text has its own versions and
    audit-log entries. Raises BadOption for a value that contradicts existing judgments.
    """
    with guidelines.record_redefinition(collection, actor.user):
        changed = {*configure_collection(collection, options.values())}
    changed_texts = set()
    for name in TEXTS:
        text = getattr(options, name)
        if text is not None and text != EDITORS[name].current(collection)[1].strip():
            EDITORS[name].write(actor=actor, collection=collection, text=text, base=None)
            changed_texts.add(name)
    names = [name for name in SettingsOptions.model_fields if name in changed | changed_texts]
    return names if changed else Unchanged(names)


def _noted(options: SettingsOptions, changed: list[str]) -> dict[str, Any]:
    """Return the new values of changed settings for the audit log, without the versioned texts."""
    return {name: value for name, value in options.values().items() if name in changed}


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
