"""Paths below VAR in the database, stored as `$QUORUM_VAR/...` because VAR differs between machines."""

from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

from django.conf import settings
from django.db import models

MARK = "$QUORUM_VAR"


def encode_path(text: str) -> str:
    """Return a text for storage, with the mark in place of this machine's VAR."""
    var = f"{settings.VAR}/"
    if text.startswith(var):
        return f"{MARK}/{text[len(var) :]}"
    # Other texts that begin with the mark get a second `$`, to be told apart.
    return f"{MARK}${text[len(MARK) :]}" if text.startswith(MARK) else text


def decode_path(text: str) -> str:
    """Reverse `encode_path`, with this machine's VAR."""
    if text.startswith(f"{MARK}/"):
        return f"{settings.VAR}/{text[len(MARK) + 1 :]}"
    return MARK + text[len(MARK) + 1 :] if text.startswith(f"{MARK}$") else text


def change_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON document with all its texts changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: change_texts(entry, change) for key, entry in value.items()}
    return [change_texts(entry, change) for entry in value] if isinstance(value, list | tuple) else value


def name_below_var(path: Path) -> str | None:
    """Return the name of a path below VAR, with slashes; None for a path elsewhere."""
    var, absolute = Path(settings.VAR), Path(path)
    if ".." in absolute.parts or not absolute.is_relative_to(var) or absolute == var:
        return None
    return str(PurePosixPath(absolute.relative_to(var)))


class VarPathField(models.CharField):  # type: ignore[type-arg]
    """A text column for paths, those below VAR independent of the machine."""

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        return decode_path(value) if isinstance(value, str) else value

    def get_prep_value(self, value: Any) -> Any:
        text = super().get_prep_value(value)
        return encode_path(text) if isinstance(text, str) else text

    def deconstruct(self) -> Any:
        # In migrations it is an ordinary text column.
        name, _path, args, kwargs = super().deconstruct()
        return name, "django.db.models.CharField", args, kwargs


class VarPathsJSONField(models.JSONField):
    """A JSON column whose texts may be paths below VAR."""

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        return change_texts(super().from_db_value(value, expression, connection), decode_path)

    def get_prep_value(self, value: Any) -> Any:
        return change_texts(super().get_prep_value(value), encode_path)

    def deconstruct(self) -> Any:
        name, _path, args, kwargs = super().deconstruct()
        return name, "django.db.models.JSONField", args, kwargs
