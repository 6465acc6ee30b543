"""`configure_collection`: settings of a collection from a TOML file, all or nothing."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from django.db import transaction
from django.utils.translation import gettext as _
from pydantic import AfterValidator, BeforeValidator, Field

from corpus.collections.arm_allocation import ARMS, weights_of
from corpus.collections.task_order import change_overlap, reprioritise_tasks
from corpus.errors import BadInput
from corpus.formats.files import read_text
from corpus.holding import hold
from corpus.importing.toml_files import Line, Switch, Table, one_of, otherwise, problem, read_toml
from corpus.models import Assessor, Collection, Judgment
from corpus.models.texts import shown_only

# Settings by the paper that used them. DREAM 3.2.4, 4.1, F: three people a pair say yes or no, and all read the final
# round.
PRESETS: dict[str, dict[str, Any]] = {
    "dream": {
        "grades": 1,
        "relevant_from": 1,
        "overlap": 3,
        "rounds": "final",
        "checks": 0.1,
        "pass_mark": 90,
        "arms": shown_only(),
    },
}
NONE = "none"  # Takes a value away.
HIGHEST_RATE, HIGHEST_BUDGET, HIGHEST_TARGET = 10_000, 1e9, 10_000
LONGEST_LEASE = 1_440  # Minutes: a day.
LEASE = f"must be an integer from 1 to {LONGEST_LEASE}"


def _text(given: str) -> str:
    if "\0" in given:
        raise problem("holds a NUL character")
    return given


def _arms(given: object) -> dict[str, int]:
    try:
        weights_of(given)
    except ValueError as error:
        raise problem(str(error)) from None
    return {arm: given.get(arm, 0) for arm in ARMS} if isinstance(given, dict) else {}


Grade = Annotated[int, Field(ge=1, le=100), otherwise("must be an integer from 1 to 100")]
Milliseconds = Annotated[int, Field(ge=0, le=10_000), otherwise("must be an integer from 0 to 10000")]
DailyTarget = Annotated[
    int, Field(ge=0, le=HIGHEST_TARGET), otherwise(f"must be an integer from 0 to {HIGHEST_TARGET}")
]
HalfShare = Annotated[int | float, Field(ge=0, le=0.5), otherwise("must be a number from 0 to 0.5")]
Rate = Annotated[
    Literal["none"] | Annotated[int | float, Field(ge=0, le=HIGHEST_RATE)],
    otherwise(f'must be a number from 0 to {HIGHEST_RATE}, or "{NONE}"'),
]
Budget = Annotated[
    Literal["none"] | Annotated[int | float, Field(ge=0, le=HIGHEST_BUDGET)],
    otherwise(f'must be a number from 0 to {HIGHEST_BUDGET:g}, or "{NONE}"'),
]


class Settings(Table):
    """A collection's settings file; settings that it does not name stay as they are."""

    preset: Annotated[Line, one_of(*PRESETS)] | None = None
    rubric: Annotated[Line, one_of(*Collection.Rubrics.values)] | None = None
    instruction: Annotated[str, otherwise("must be a string"), AfterValidator(_text)] | None = None
    grades: Grade | None = None
    relevant_from: Grade | None = None
    overlap: Annotated[int, Field(ge=1, le=25), otherwise("must be an integer from 1 to 25")] | None = None
    order: Annotated[Line, one_of(*Collection.Order.values)] | None = None
    lease_minutes: Annotated[int, Field(ge=1, le=LONGEST_LEASE), otherwise(LEASE)] | None = None
    min_judgment_ms: Milliseconds | None = None
    daily_target: DailyTarget | None = None
    markdown: Switch | None = None
    long_documents: Annotated[Line, one_of(*Collection.LongDocuments.values)] | None = None
    seed: Annotated[int, Field(ge=-(2**31), le=2**31 - 1), otherwise("must be an integer of 32 bits")] | None = None
    audit: Annotated[int | float, Field(ge=0, le=1), otherwise("must be a number from 0 to 1")] | None = None
    checks: HalfShare | None = None
    repeats: HalfShare | None = None
    batch: Annotated[int, Field(ge=5, le=1000), otherwise("must be an integer from 5 to 1000")] | None = None
    pass_mark: Annotated[int, Field(ge=0, le=100), otherwise("must be an integer from 0 to 100")] | None = None
    arms: Annotated[dict[str, int], BeforeValidator(_arms)] | None = None
    rounds: Annotated[Line, one_of(*Collection.Rounds.values)] | None = None
    hourly_rate: Rate | None = None
    budget: Budget | None = None
    daily_budget: Budget | None = None


KEYS = [key for key in Settings.model_fields if key != "preset"]


def read_settings(path: Path) -> dict[str, Any]:
    """Return the file's keys and values, over those of its `preset`. Raises BadInput."""
    given = read_toml(Settings, read_text(path), str(path)).model_dump(exclude_unset=True)
    found = PRESETS.get(given.pop("preset", ""), {})
    return found | {key: None if value == NONE else value for key, value in given.items()}


@transaction.atomic
def configure_collection(collection: Collection, settings: dict[str, Any]) -> list[str]:
    """Set the values that `read_settings` returned; return the names of those that changed.

    A new rubric or instruction is a new version of the guidelines, too: whoever changes one does so within
    `guidelines.record_redefinition`. Raises BadInput for a scale that the judgments contradict.
    """
    collection = hold(Collection.objects, collection.pk, no_key=True)
    changed = [key for key, value in settings.items() if getattr(collection, key) != value]
    if refused := scale_problem(collection, {key: settings[key] for key in changed}):
        raise BadInput(": ".join(refused))
    for key in changed:
        setattr(collection, key, settings[key])
    if changed:
        collection.save(update_fields=changed)
    if {"order", "seed"} & set(changed):
        reprioritise_tasks(collection)
    if "overlap" in changed:
        change_overlap(collection, collection.overlap)
    return changed


def scale_problem(collection: Collection, settings: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return which of these new values the scale or the grades given so far contradict, and why; None: none.

    The one rule of the command, the page and the API.
    """
    grades = settings.get("grades", collection.grades)
    lowest = settings.get("relevant_from", collection.relevant_from)
    if not 1 <= lowest <= grades:
        key = "relevant_from" if "relevant_from" in settings else "grades"
        reason = _(
            "the lowest relevant grade would be %(lowest)s, and the scale goes from 0 to %(grades)s: "
            "choose 1 to %(grades)s"
        )
        return key, reason % {"lowest": lowest, "grades": grades}
    judged = Judgment.objects.filter(assessor__collection=collection)
    if grades != collection.grades and judged.filter(grade__gt=grades).exists():
        return "grades", _("judgments above %(grades)s exist") % {"grades": grades}
    # What a policy says is stored as 0 or as the lowest relevant grade of that moment.
    if lowest != collection.relevant_from and judged.filter(assessor__kind=Assessor.Kind.POLICY).exists():
        return "relevant_from", _("judges have labelled pairs by the present value, %(value)s, so it stays") % {
            "value": collection.relevant_from
        }
    return None
