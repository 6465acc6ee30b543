"""One record of options for each action, and the form and the arguments that are made from it.

pydantic makes the API's body and reads TOML; two mappings below make a form's fields and a
command's arguments. The title, help, bounds and choices of an option stand in its record and
nowhere else.
"""

import json
import re
from argparse import BooleanOptionalAction
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, Union, get_args, get_origin

from django import forms
from django.core.management.base import CommandParser
from django.core.validators import (
    MaxLengthValidator,
    MaxValueValidator,
    MinLengthValidator,
    MinValueValidator,
    ProhibitNullCharactersValidator,
)
from django.utils.translation import gettext_lazy
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from actions.errors import BadOption, OptionWouldHelp

Door = Literal["page", "operation", "command"]
Choices = Iterable[tuple[Any, Any]]
O = TypeVar("O", bound="Options")  # noqa: E741


def split_names(value: Any) -> Any:
    """Return the names in a comma-separated list; a list stays one."""
    if not isinstance(value, str):
        return value
    return tuple(name.strip() for name in value.split(",") if name.strip())


UNSTORABLE = re.compile("[\0\ud800-\udfff]")  # NUL, and halves of surrogate pairs.
# In a command one word with commas; a list is several words.
Names = Annotated[tuple[str, ...], BeforeValidator(split_names)]


@dataclass(frozen=True)
class OptionText:
    """Texts of an option: they describe it on a page, in --help and in the API's document."""

    title: Any
    help: Any
    choices: Mapping[Any, Any] = field(default_factory=dict)
    initial: Any = None
    is_secret: bool = False
    is_long: bool = False
    clears: bool = False

    def __call__(self, schema: dict[str, Any]) -> None:
        """Describe the option in a JSON schema."""
        schema["title"], schema["description"] = str(self.title), str(self.help) or str(self.title)


def option(
    title: Any,
    help: Any = "",
    *,
    default: Any = ...,
    at_least: int | None = None,
    at_most: int | None = None,
    choices: Mapping[Any, Any] | None = None,
    initial: Any = None,
    secret: bool = False,
    long: bool = False,
    clears: bool = False,
    **bounds: Any,
) -> Any:
    """Return a field of a record. Without a default the option has to be given.

    `at_least`, `at_most`: length of a list or text; `bounds`: as pydantic has them (ge, gt, le,
    lt). `choices`: titles of a Literal's values, for an enum has its own. `initial`: what a form
    shows first where that is not the default. `secret`: not in the audit log. `long`: a text of
    several lines. `clears`: a field left empty takes the value away.
    """
    words = OptionText(title, help, choices or {}, initial, secret, long, clears)
    if isinstance(default, list | dict | set):
        bounds["default_factory"] = default.copy
    else:
        bounds["default"] = default
    return Field(min_length=at_least, max_length=at_most, json_schema_extra=words, **bounds)


class Options(BaseModel):
    """What an action can be told. An unknown option is refused: most often it is a typing error."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # Door -> option -> why it is not there.
    leaves_out: ClassVar[Mapping[Door, Mapping[str, str]]] = {}

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_null_characters(cls, value: Any) -> Any:
        """PostgreSQL stores neither a NUL nor half a surrogate pair."""
        if not _is_storable(value):
            raise PydanticCustomError("null_characters", "Null characters are not allowed.")
        return value

    @classmethod
    def read(cls, given: Mapping[str, Any], *, strict: bool = False) -> Self:
        """Return the record of what was given. Raises BadOption, which names each wrong option.

        `strict`: a number in quotes is none, as in a file.
        """
        try:
            return (
                cls.model_validate_json(json.dumps(given, default=str), strict=True)
                if strict
                else cls.model_validate(given)
            )
        except ValidationError as error:
            raise refuse_options(error.errors()) from None

    @classmethod
    def names(cls, door: Door | None = None) -> list[str]:
        """Return the names of all options, or of those that a door has."""
        without = cls.leaves_out.get(door, {}) if door else {}
        return [name for name in cls.model_fields if name not in without]

    def noted(self) -> dict[str, Any]:
        """Return what the audit log keeps: the options given, a long list by its length."""
        shown = {name: value for name, value in self.model_dump(mode="json", exclude_defaults=True).items()}
        shown = {name: value for name, value in shown.items() if not text_of(type(self), name).is_secret}
        return {name: _shorten(value) for name, value in shown.items()}


def _is_storable(value: Any) -> bool:
    if isinstance(value, str):
        return UNSTORABLE.search(value) is None
    if isinstance(value, Mapping):
        return all(_is_storable(part) for entry in value.items() for part in entry)
    return not isinstance(value, list | tuple) or all(map(_is_storable, value))


def _shorten(value: Any) -> Any:
    longest = 20
    if isinstance(value, list | str) and len(value) > (longest if isinstance(value, list) else 200):
        return len(value)
    return value


def text_of(record: type[Options], name: str) -> OptionText:
    """Return the words of an option."""
    words = record.model_fields[name].json_schema_extra
    return words if isinstance(words, OptionText) else OptionText(name.replace("_", " ").capitalize(), "")


def kind_of(info: FieldInfo) -> tuple[Any, bool]:
    """Return what an option's values are, and whether it may be empty (None)."""
    kind, parts = info.annotation, get_args(info.annotation)
    if get_origin(kind) in (Union, UnionType) and NoneType in parts:
        return next(part for part in parts if part is not NoneType), True
    return kind, False


def bound_of(info: FieldInfo, *names: str) -> Any:
    """Return the first of these bounds that an option has."""
    found = (getattr(rule, name, None) for name in names for rule in info.metadata)
    return next((bound for bound in found if bound is not None), None)


def choices_of(record: type[Options], name: str) -> list[tuple[Any, Any]]:
    """Return the values that an option may have, with their titles; none where any will do."""
    kind, _empty = kind_of(record.model_fields[name])
    if get_origin(kind) in (list, tuple):
        kind = get_args(kind)[0]
    titles = text_of(record, name).choices
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [(one.value, titles.get(one.value, getattr(one, "label", one.value))) for one in kind]
    if get_origin(kind) is Literal:
        return [(value, titles.get(value, value)) for value in get_args(kind)]
    return list(titles.items())


# What is wrong, as pydantic calls it -> Django's sentence, which is translated.
_NUMBER, _FLOAT, _CHOICE = forms.IntegerField, forms.FloatField, forms.ChoiceField
SENTENCES: dict[str, Any] = {
    "missing": forms.Field.default_error_messages["required"],
    "greater_than_equal": MinValueValidator.message,
    "less_than_equal": MaxValueValidator.message,
    "greater_than": gettext_lazy("Enter a number greater than %(limit_value)s."),
    "less_than": gettext_lazy("Enter a number less than %(limit_value)s."),
    "string_too_short": MinLengthValidator.message,
    "string_too_long": MaxLengthValidator.message,
    "too_long": gettext_lazy("Choose at most %(limit_value)s."),
    "enum": _CHOICE.default_error_messages["invalid_choice"],
    "literal_error": _CHOICE.default_error_messages["invalid_choice"],
    "extra_forbidden": gettext_lazy("There is no such option."),
    "list_type": forms.MultipleChoiceField.default_error_messages["invalid_list"],
    "finite_number": _FLOAT.default_error_messages["invalid"],
    **{f"int_{what}": _NUMBER.default_error_messages["invalid"] for what in ("type", "parsing", "from_float")},
    **{f"float_{what}": _FLOAT.default_error_messages["invalid"] for what in ("type", "parsing")},
    **{f"bool_{what}": gettext_lazy("Enter yes or no.") for what in ("type", "parsing")},
    "string_type": gettext_lazy("Enter a text."),
    "null_characters": ProhibitNullCharactersValidator.message,
    "model_type": gettext_lazy("Enter a table of options."),
}
LIMITS = ("ge", "le", "gt", "lt", "min_length", "max_length")


def say_problem(error: Mapping[str, Any]) -> str:
    """Return a problem that pydantic found as a sentence for the reader."""
    kind, context = error["type"], error.get("ctx", {})
    if kind == "too_short":
        kind = "missing" if context["min_length"] == 1 else kind
    sentence = SENTENCES.get(kind)
    if sentence is None:
        return str(error["msg"])
    limit = next((context[name] for name in LIMITS if name in context), None)
    # As a form has it: 0 and not 0.0.
    limit = int(limit) if isinstance(limit, float) and limit.is_integer() else limit
    length = context.get("actual_length", len(error["input"]) if isinstance(error.get("input"), str) else 0)
    return str(sentence) % {"limit_value": limit, "value": error.get("input"), "show_value": length}


def refuse_options(errors: Iterable[Any]) -> BadOption:
    """Return the error that names each wrong option once."""
    problems: dict[str, str] = {}
    for error in errors:
        problems.setdefault(str(error["loc"][0]) if error["loc"] else "", say_problem(error))
    (first, sentence), *others = problems.items()
    return BadOption(first, sentence, others=others)


# The form of an action


class ActionForm(forms.Form):
    """A form made from a record of options; when it is valid, `options` is the record.

    `choices`: of options whose values depend on the collection; `initial`: what is chosen first;
    `only`: the options that are shown; `fixed`: options that the page knows by itself.
    """

    options: Options

    def __init__(
        self,
        record: type[Options],
        *args: Any,
        choices: Mapping[str, Choices] | None = None,
        only: Sequence[str] = (),
        fixed: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.record, self.fixed = record, fixed or {}
        for name in only or record.names("page"):
            if name not in self.fixed:
                self.fields[name] = make_field(record, name, (choices or {}).get(name))

    def clean(self) -> dict[str, Any]:
        """Read the record from what was filled in; an empty field takes the option's default."""
        given = {name: value for name, value in self.cleaned_data.items() if self._is_told(name, value)}
        if not self.errors:
            try:
                self.options = self.record.read({**given, **self.fixed})
            except BadOption as error:
                show_refusal(self, error)
        return self.cleaned_data

    def _is_told(self, name: str, value: Any) -> bool:
        # A page may have fields of its own, such as files.
        is_option = name in self.record.model_fields
        return is_option and (value not in (None, "", []) or text_of(self.record, name).clears)


def show_refusal(form: forms.BaseForm, error: Exception) -> None:
    """Put what a service refused under the fields it names, or above the form if it has none."""
    problems = error.problems if isinstance(error, BadOption) else [("", str(error))]
    for name, sentence in problems:
        form.add_error(name if name in form.fields else None, sentence)


def make_field(record: type[Options], name: str, choices: Choices | None = None) -> forms.Field:
    """Return the form's field of an option."""
    info, words = record.model_fields[name], text_of(record, name)
    kind, may_be_empty = kind_of(info)
    several = get_origin(kind) in (list, tuple)
    default = info.get_default(call_default_factory=True, validated_data={})
    initial = words.initial if words.initial is not None else None if info.is_required() else default
    common: dict[str, Any] = {
        "label": words.title,
        "help_text": words.help,
        "required": info.is_required() or bool(bound_of(info, "min_length")),
        "initial": initial.value if isinstance(initial, Enum) else initial,
    }
    known = choices_of(record, name) if choices is None else list(choices)
    if several and (known or choices is not None):
        return forms.MultipleChoiceField(choices=known, widget=forms.CheckboxSelectMultiple, **common)
    if known or choices is not None:
        blank = [("", "")] if may_be_empty and not any(value == "" for value, _title in known) else []
        return forms.ChoiceField(choices=[*blank, *known], **common)
    if kind is bool and may_be_empty:
        answer = forms.NullBooleanField(**common)
        answer.widget.choices = [("unknown", ""), *answer.widget.choices[1:]]
        return answer
    if kind is bool:
        return forms.BooleanField(**{**common, "required": False})
    if kind in (int, float):
        number = forms.IntegerField if kind is int else forms.FloatField
        return number(min_value=bound_of(info, "ge", "gt"), max_value=bound_of(info, "le"), **common)
    if kind is date:
        return forms.DateField(widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"), **common)
    if several:
        common["initial"] = ", ".join(map(str, initial or ()))
    widget = forms.Textarea(attrs={"rows": 4}) if words.is_long else None
    longest = None if several else bound_of(info, "max_length")
    return forms.CharField(max_length=longest, widget=widget, **common)


# The arguments of a command


def add_arguments(
    parser: CommandParser, record: type[Options], positional: Sequence[str] = (), without: Sequence[str] = ()
) -> None:
    """Add the options of a record to a command. The record checks values, not argparse."""
    for name in record.names("command"):
        if name in without:
            continue
        info = record.model_fields[name]
        kind, _empty = kind_of(info)
        more: dict[str, Any] = {"help": _help_of(record, name)}
        if name in positional:
            parser.add_argument(name, **more)
            continue
        if kind is bool:
            more["action"] = BooleanOptionalAction if info.default is not False else "store_true"
            more["default"] = None
        elif get_origin(kind) is list:
            more["nargs"] = "+"
        if kind is not bool:
            more["metavar"] = "N" if kind in (int, float) else name.upper()
        parser.add_argument("--" + name.replace("_", "-"), dest=name, **more)


def _help_of(record: type[Options], name: str) -> str:
    info, words = record.model_fields[name], text_of(record, name)
    text = f"{words.title}. {words.help}".strip().removesuffix(".")
    if choices := choices_of(record, name):
        text += ": " + ", ".join(str(value) for value, _title in choices)
    default = None if info.is_required() else info.get_default(call_default_factory=True, validated_data={})
    if default not in (None, "", [], (), False):
        text += f" (default: {default.value if isinstance(default, Enum) else default})"
    return text.replace("%", "%%")


def read_arguments(record: type[O], given: Mapping[str, Any], **known: Any) -> O:
    """Return the record of what a command was given. Raises BadOption."""
    said = {name: given[name] for name in record.names("command") if given.get(name) is not None}
    return record.read({**said, **known})


def flags_of(error: BadOption, known: Container[str] | None = None) -> str:
    """Return an error as a command writes it: each option by its flag, or by its name where it is none of `known`."""
    lines = []
    for name, sentence in error.problems:
        flag = "--" + name.replace("_", "-")
        option = flag if known is None or flag in known else name
        named = f"{sentence} ({option})" if isinstance(error, OptionWouldHelp) else f"{option}: {sentence}"
        lines.append(named if name else sentence)
    return "; ".join(lines)
