"""Settings of a collection: what its settings page, its texts, its spending limits and its experiment arms hold."""

from typing import Annotated, Any, Literal

from django.db import transaction
from django.forms import model_to_dict
from django.http import HttpRequest
from ninja import Field, Router, Schema
from ninja.decorators import decorate_view

from annotation import guidelines
from annotation.audit_log.recording import record
from annotation.data import texts
from annotation.data.forms import NAMES, ArmWeightsForm, CostSettingsForm, SettingsForm, TextForm
from annotation.permissions import Scope
from api.authentication import may, scope_of
from api.etags import require_match
from api.idempotency import once
from api.models import AccessToken
from api.problems import Given, validate_form
from corpus.collections.arm_allocation import ARMS
from corpus.collections.configure import (
    HIGHEST_BUDGET,
    HIGHEST_RATE,
    HIGHEST_TARGET,
    LONGEST_LEASE,
    PRESETS,
    configure_collection,
)
from corpus.holding import hold
from corpus.models import Collection

router = Router(tags=["settings"])
MANAGE = AccessToken.TokenScope.MANAGE
LONGEST = 50_000
Text = Annotated[str, Field(max_length=LONGEST)]
Weight = Annotated[int, Field(ge=0, le=1000)]


class ArmsIn(Given):
    """Weights of the experiment arms, by which they are drawn; at least one is above 0."""

    shown: Weight = 0
    hidden: Weight = 0
    reveal: Weight = 0


class ArmsOut(Schema):
    """Weights of the experiment arms, by which they are drawn."""

    shown: int
    hidden: int
    reveal: int


class SettingsIn(Given):
    """Changes of settings. A field that is left out, or null, stays; of the three amounts null means no amount."""

    title: Annotated[str, Field(max_length=200)] | None = None
    rubric: Collection.Rubrics | None = None
    overlap: Annotated[int, Field(ge=1, le=25)] | None = Field(None, description="People for each pair.")
    order: Collection.Order | None = None
    rounds: Collection.Rounds | None = None
    lease_minutes: Annotated[int, Field(ge=1, le=LONGEST_LEASE)] | None = None
    min_judgment_ms: Annotated[int, Field(ge=0, le=10_000)] | None = None
    relevant_from: Annotated[int, Field(ge=1, le=100)] | None = None
    daily_target: Annotated[int, Field(ge=0, le=HIGHEST_TARGET)] | None = None
    markdown: bool | None = None
    long_documents: Collection.LongDocuments | None = Field(
        None, description="What is done with documents above 24,000 characters."
    )
    hourly_rate: Annotated[float, Field(ge=0, le=HIGHEST_RATE)] | None = Field(None, description="USD.")
    budget: Annotated[float, Field(ge=0, le=HIGHEST_BUDGET)] | None = Field(None, description="USD, all campaigns.")
    daily_budget: Annotated[float, Field(ge=0, le=HIGHEST_BUDGET)] | None = Field(None, description="USD in a day.")
    arms: ArmsIn | None = None
    instruction: Text | None = Field(None, description="What makes a document relevant: a new version of it.")
    guidelines: Text | None = Field(None, min_length=1, description="What annotators are told: a new version of it.")


class PresetIn(Given):
    """The settings of a paper's study: dream is DREAM's."""

    preset: Literal["dream"]


class SettingsOut(Schema):
    """Current settings of a collection."""

    title: str
    rubric: str
    overlap: int
    order: str
    rounds: str
    lease_minutes: int
    min_judgment_ms: int
    relevant_from: int
    daily_target: int
    markdown: bool
    long_documents: str
    hourly_rate: float | None
    budget: float | None
    daily_budget: float | None
    arms: ArmsOut
    instruction: str
    instruction_version: int
    guidelines: str
    guidelines_version: int


@router.get("/collections/{slug:name}/settings", auth=may("admin"), response=SettingsOut)
def read_settings(request: HttpRequest, name: str) -> Any:
    """Read the settings."""
    return _show_settings(scope_of(request).collection)


@router.patch("/collections/{slug:name}/settings", auth=may("admin", MANAGE), response=SettingsOut)
def change_settings(request: HttpRequest, name: str, body: SettingsIn) -> Any:
    """Change settings, all that are given or none."""
    scope = scope_of(request)
    with transaction.atomic():
        # The lock comes before the comparison: of two changes with the same ETag the second is refused.
        held = hold(Collection.objects, scope.collection.pk)
        require_match(request, SettingsOut, _show_settings(held))
        _change_settings(scope, held, body.dict(exclude_unset=True))
        # Read again: the services write rows of their own, and the object here may be older.
        return _show_settings(Collection.objects.get(pk=held.pk))


@router.post("/collections/{slug:name}/settings/preset", auth=may("admin", MANAGE), response=SettingsOut)
@decorate_view(once)
def apply_preset(request: HttpRequest, name: str, body: PresetIn) -> Any:
    """Set what a paper's study used; every value can be changed again."""
    scope, preset = scope_of(request), PRESETS[body.preset]
    with transaction.atomic():
        if changed := configure_collection(scope.collection, preset):
            record(scope, "settings.changed", **{key: preset[key] for key in changed})
    return _show_settings(Collection.objects.get(pk=scope.collection.pk))


def _show_settings(row: Collection) -> dict[str, Any]:
    shown = model_to_dict(row, fields=[*SettingsForm.Meta.fields, *NAMES])
    instruction_version, instruction = texts.current_instruction(row)
    guidelines_version, written = guidelines.current(row)
    return {
        **shown,
        "arms": {arm: row.arms.get(arm, 0) for arm in ARMS},
        "instruction": instruction,
        "instruction_version": instruction_version,
        "guidelines": written,
        "guidelines_version": guidelines_version,
    }


def _change_settings(scope: Scope, row: Collection, given: dict[str, Any]) -> None:
    """Do what the page's forms do, each where something of it is given."""
    fields = {key: given[key] for key in SettingsForm.Meta.fields if given.get(key) is not None}
    if fields:
        form = SettingsForm(model_to_dict(row, fields=SettingsForm.Meta.fields) | fields, instance=row)
        validate_form(form)
        texts.save_settings(collection=form.save(commit=False), changed=form.changed_data, by=scope.user)
    # Null takes an amount away, so here what is given counts and not what differs from null.
    if amounts := {key: given[key] for key in NAMES if key in given}:
        wanted = {key: getattr(row, key) for key in NAMES} | amounts
        validate_form(CostSettingsForm(wanted))
        configure_collection(row, wanted)
        record(scope, "settings.money", **wanted)
    if given.get("arms") is not None:
        # The weights are one setting: an arm that is left out gets none.
        form_of_arms = ArmWeightsForm(dict.fromkeys(ARMS, 0) | given["arms"])
        validate_form(form_of_arms)
        if configure_collection(row, {"arms": form_of_arms.weights}):
            record(scope, "settings.arms", arms=form_of_arms.weights)
    for kind in ("instruction", "guidelines"):
        if given.get(kind) is not None:
            editor = texts.EDITORS[kind]
            form_of_text = TextForm({"text": given[kind]}, label=editor.label, required=editor.required)
            text = validate_form(form_of_text, {"text": kind})["text"]
            # Which version the writer saw is what If-Match says.
            editor.write(collection=row, text=text, author=scope.user, base=None)
