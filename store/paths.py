"""Paths below VAR in the database: `$QUORUM_VAR/...`, for machines differ."""

from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

from django.conf import settings
from django.db import models

MARK = "$QUORUM_VAR"


def encode_path(text: str) -> str:
    """Return a text as it is stored: a path below this machine's VAR names VAR by its mark."""
    var = f"{settings.VAR}/"
    if text.startswith(var):
        return f"{MARK}/{text[len(var) :]}"
    # What somebody wrote with the mark is no path of ours: a second sign keeps it apart.
    return f"{MARK}${text[len(MARK) :]}" if text.startswith(MARK) else text


def decode_path(text: str) -> str:
    """Return what `encode_path` was given, with this machine's VAR."""
    if text.startswith(f"{MARK}/"):
        return f"{settings.VAR}/{text[len(MARK) + 1 :]}"
    return MARK + text[len(MARK) + 1 :] if text.startswith(f"{MARK}$") else text


def change_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON document with every text changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: change_texts(one, change) for key, one in value.items()}
    return [change_texts(one, change) for one in value] if isinstance(value, list | tuple) else value


def name_below_var(path: Path) -> str | None:
    """Return the name of a path below VAR, with slashes; None for a path elsewhere."""
    var, found = Path(settings.VAR), Path(path)
    if ".." in found.parts or not found.is_relative_to(var) or found == var:
        return None
    return str(PurePosixPath(found.relative_to(var)))


class VarPathField(models.CharField):  # type: ignore[type-arg]
    """A column of text that may be a path below VAR. A path elsewhere is kept as it is."""

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        return decode_path(value) if isinstance(value, str) else value

    def get_prep_value(self, value: Any) -> Any:
        found = super().get_prep_value(value)
        return encode_path(found) if isinstance(found, str) else found

    def deconstruct(self) -> Any:
        # For the database, and so for migrations, it is any other text.
        name, _path, args, kwargs = super().deconstruct()
        return name, "django.db.models.CharField", args, kwargs


class VarPathsJSONField(models.JSONField):
    """A JSON column in whose texts paths below VAR may stand."""

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        return change_texts(super().from_db_value(value, expression, connection), decode_path)

    def get_prep_value(self, value: Any) -> Any:
        return change_texts(super().get_prep_value(value), encode_path)

    def deconstruct(self) -> Any:
        name, _path, args, kwargs = super().deconstruct()
        return name, "django.db.models.JSONField", args, kwargs
