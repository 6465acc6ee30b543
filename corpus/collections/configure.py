"""`configure_collection`: settings of a collection from a TOML file, all or nothing."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import transaction

from corpus.collections.arms import ARMS, weights_of
from corpus.collections.task_order import change_overlap, reprioritise
from corpus.errors import BadInput
from corpus.importing.files import read_text
from corpus.models import Assessor, Collection, Judgment
from corpus.models.texts import shown_only


@dataclass(frozen=True, slots=True)
class Key:
    """What a key may hold."""

    type: type
    low: float = 0
    high: float = 0
    removable: bool = False
    """"none" takes the value away."""


KEYS = {
    "rubric": Key(str),
    "instruction": Key(str),
    "grades": Key(int, 1, 100),
    "relevant_from": Key(int, 1, 100),
    "overlap": Key(int, 1, 25),
    "order": Key(str),
    "lease_minutes": Key(int, 1, 32_767),
    "min_judgment_ms": Key(int, 0, 10_000),
    "seed": Key(int, -(2**31), 2**31 - 1),
    "audit": Key(float, 0, 1),
    "checks": Key(float, 0, 0.5),
    "repeats": Key(float, 0, 0.5),
    "batch": Key(int, 5, 1000),
    "pass_mark": Key(int, 0, 100),
    "arms": Key(dict),
    "rounds": Key(str),
    "hourly_rate": Key(float, 0, 10_000, removable=True),
    "budget": Key(float, 0, 1e9, removable=True),
    "daily_budget": Key(float, 0, 1e9, removable=True),
}
PRESETS: dict[str, dict[str, Any]] = {
    "dream": {"overlap": 3, "rounds": "final", "checks": 0.1, "pass_mark": 90, "arms": shown_only()},
}
"""Settings by the paper that used them. DREAM 3.2.4, 4.1, F: three people a pair, and all read the final round."""
CHOICES = {
    "rubric": Collection.Rubrics.values,
    "order": Collection.Order.values,
    "rounds": Collection.Rounds.values,
}
NONE = "none"
TYPES = {str: "a string", int: "an integer", float: "a number", dict: "a table like {shown=1, hidden=0, reveal=0}"}


def read_settings(path: Path) -> dict[str, Any]:
    """Keys and values of the file, each of a known name and the right type; those of its `preset` come first.

    Raises BadInput that names the key.
    """
    try:
        found = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path}: not TOML: {error}") from None
    preset = found.pop("preset", None)
    if preset is not None and preset not in [*PRESETS]:
        raise BadInput(f'{path}: the key "preset" must be one of {", ".join(PRESETS)}, not {preset!r}')
    for key, value in found.items():
        _check(path, key, value)
    return PRESETS.get(preset, {}) | {key: _stored(key, value) for key, value in found.items()}


def _stored(key: str, value: Any) -> Any:
    if key == "arms":
        return {arm: value.get(arm, 0) for arm in ARMS}
    return None if value == NONE and KEYS[key].removable else value


def _check(path: Path, key: str, value: object) -> None:
    if key not in KEYS:
        raise BadInput(f'{path}: unknown key "{key}"; known are preset, {", ".join(KEYS)}')
    wanted = KEYS[key]
    if wanted.removable and value == NONE:
        return
    fits = (int, float) if wanted.type is float else wanted.type
    other = f' or "{NONE}"' if wanted.removable else ""
    if not isinstance(value, fits) or isinstance(value, bool):
        raise BadInput(f'{path}: the key "{key}" must be {TYPES[wanted.type]}{other}, not {value!r}')
    if isinstance(value, int | float) and not wanted.low <= value <= wanted.high:
        raise BadInput(f'{path}: the key "{key}" must be from {wanted.low} to {wanted.high}, not {value}')
    if key == "arms":
        try:
            weights_of(value)
        except ValueError as error:
            raise BadInput(f'{path}: the key "arms" {error}') from None
    choices = CHOICES.get(key)
    if choices and value not in choices:
        raise BadInput(f'{path}: the key "{key}" must be one of {", ".join(choices)}, not {value!r}')
    if isinstance(value, str) and "\0" in value:
        raise BadInput(f'{path}: the key "{key}" holds a NUL character')


@transaction.atomic
def configure(collection: Collection, settings: dict[str, Any]) -> list[str]:
    """Set the values that `read_settings` returned; the names of those that changed.

    A new order or seed gives open items their place anew; a new overlap holds for open items too, but never below
    what people already took. A new rubric or instruction is a new version of the guidelines, too: whoever changes one
    does so within `annotation.data.guidelines.redefining`. Raises BadInput for a scale that the judgments contradict.
    """
    collection = Collection.objects.select_for_update(no_key=True).get(pk=collection.pk)
    changed = [key for key, value in settings.items() if getattr(collection, key) != value]
    for key in changed:
        setattr(collection, key, settings[key])
    _check_scale(collection, changed)
    if changed:
        collection.save(update_fields=changed)
    if {"order", "seed"} & set(changed):
        reprioritise(collection)
    if "overlap" in changed:
        change_overlap(collection, collection.overlap)
    return changed


def _check_scale(collection: Collection, changed: list[str]) -> None:
    """Judgments must fit the scale; a policy's binary labels were written with the old `relevant_from`."""
    if collection.relevant_from > collection.grades:
        raise BadInput(
            f'the key "relevant_from" would be {collection.relevant_from}, above "grades" = {collection.grades}'
        )
    judged = Judgment.objects.filter(assessor__collection=collection)
    if "grades" in changed and judged.filter(grade__gt=collection.grades).exists():
        raise BadInput(f'the key "grades": judgments above {collection.grades} exist')
    if "relevant_from" in changed and judged.filter(assessor__kind=Assessor.Kind.POLICY).exists():
        raise BadInput('the key "relevant_from": a policy has already labelled pairs by the old one')
