"""Records of options, one for each action, and the form and command arguments made from them.

pydantic makes the API's body and reads TOML; the functions below make a form's fields and a command's
arguments. The title, help, bounds and choices of an option are defined only in its record.
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
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from actions.errors import BadOption, OptionWouldHelp

Door = Literal["page", "operation", "command"]
Choices = Iterable[tuple[Any, Any]]
O = TypeVar("O", bound="Options")  # noqa: E741


def split_names(value: Any) -> Any:
    """Split a comma-separated text into names; return other values unchanged."""
    if not isinstance(value, str):
        return value
    return tuple(name.strip() for name in value.split(",") if name.strip())


UNSTORABLE = re.compile("[\0\ud800-\udfff]")  # NUL and lone surrogates, which PostgreSQL refuses.
# Names separated by commas, as one argument of a command; a list takes several arguments.
Names = Annotated[tuple[str, ...], BeforeValidator(split_names)]


@dataclass(frozen=True)
class OptionText:
    """Texts of an option for pages, the help of commands and the OpenAPI document, and how a form shows it."""

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
    """Return a field of a record. Without a default the option is required.

    `at_least`, `at_most`: length of a list or text; `bounds`: pydantic's ge, gt, le and lt. `choices`:
    titles of a Literal's values (an enum has its own). `initial`: what a form shows at first, if not the
    default. `secret`: not in the audit log. `long`: a text of several lines. `clears`: an empty field
    removes the value.
    """
    words = OptionText(title, help, choices or {}, initial, secret, long, clears)
    if isinstance(default, list | dict | set):
        bounds["default_factory"] = default.copy
    else:
        bounds["default"] = default
    return Field(min_length=at_least, max_length=at_most, json_schema_extra=words, **bounds)


class Options(BaseModel):
    """Base of records of options. Unknown options are refused, since they are most often typing errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # By door and option, why the door does not have it.
    leaves_out: ClassVar[Mapping[Door, Mapping[str, str]]] = {}

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_null_characters(cls, value: Any) -> Any:
        """Refuse texts that PostgreSQL cannot store."""
        if not _is_storable(value):
            raise PydanticCustomError("null_characters", "Null characters are not allowed.")
        return value

    @classmethod
    def read(cls, values: Mapping[str, Any], *, strict: bool = False) -> Self:
        """Return the record with these values. Raises BadOption, which names each wrong option.

        `strict`: refuse a text in place of a number, as in a file.
        """
        try:
            return (
                cls.model_validate_json(json.dumps(values, default=str), strict=True)
                if strict
                else cls.model_validate(values)
            )
        except ValidationError as error:
            # Each wrong option is named once, with its first problem.
            problems: dict[str, str] = {}
            for details in error.errors():
                name = str(details["loc"][0]) if details["loc"] else ""
                problems.setdefault(name, say_problem(details))
            (first, sentence), *others = problems.items()
            raise BadOption(first, sentence, others=others) from None

    @classmethod
    def names(cls, door: Door | None = None) -> list[str]:
        """Return the names of all options, or of those that a door has."""
        without = cls.leaves_out.get(door, {}) if door else {}
        return [name for name in cls.model_fields if name not in without]

    def noted(self) -> dict[str, Any]:
        """Return the options for the audit log: without defaults and secrets, long lists and texts by their length."""
        details: dict[str, Any] = {}
        for name, value in self.model_dump(mode="json", exclude_defaults=True).items():
            if text_of(type(self), name).is_secret:
                continue
            longest = 20 if isinstance(value, list) else 200
            is_long = isinstance(value, list | str) and len(value) > longest
            details[name] = len(value) if is_long else value
        return details


def _is_storable(value: Any) -> bool:
    if isinstance(value, str):
        return UNSTORABLE.search(value) is None
    if isinstance(value, Mapping):
        return all(_is_storable(part) for entry in value.items() for part in entry)
    return not isinstance(value, list | tuple) or all(map(_is_storable, value))


def text_of(record: type[Options], name: str) -> OptionText:
    """Return the texts of an option."""
    words = record.model_fields[name].json_schema_extra
    return words if isinstance(words, OptionText) else OptionText(name.replace("_", " ").capitalize(), "")


def kind_of(info: FieldInfo) -> tuple[Any, bool]:
    """Return the type of an option's values, and whether it may be None."""
    kind, parts = info.annotation, get_args(info.annotation)
    if get_origin(kind) in (Union, UnionType) and NoneType in parts:
        return next(part for part in parts if part is not NoneType), True
    return kind, False


def bound_of(info: FieldInfo, *names: str) -> Any:
    """Return the first of the named bounds that an option has."""
    bounds = (getattr(rule, name, None) for name in names for rule in info.metadata)
    return next((bound for bound in bounds if bound is not None), None)


def choices_of(record: type[Options], name: str) -> list[tuple[Any, Any]]:
    """Return the values that an option may have, with their titles; empty where any value is allowed."""
    kind, _empty = kind_of(record.model_fields[name])
    if get_origin(kind) in (list, tuple):
        kind = get_args(kind)[0]
    titles = text_of(record, name).choices
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [(member.value, titles.get(member.value, getattr(member, "label", member.value))) for member in kind]
    if get_origin(kind) is Literal:
        return [(value, titles.get(value, value)) for value in get_args(kind)]
    return list(titles.items())


# Django's messages, which are translated, by pydantic's types of errors.
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
    **{f"int_{kind}": _NUMBER.default_error_messages["invalid"] for kind in ("type", "parsing", "from_float")},
    **{f"float_{kind}": _FLOAT.default_error_messages["invalid"] for kind in ("type", "parsing")},
    **{f"bool_{kind}": gettext_lazy("Enter yes or no.") for kind in ("type", "parsing")},
    "string_type": gettext_lazy("Enter a text."),
    "null_characters": ProhibitNullCharactersValidator.message,
    "model_type": gettext_lazy("Enter a table of options."),
}
LIMITS = ("ge", "le", "gt", "lt", "min_length", "max_length")


def say_problem(error: Mapping[str, Any]) -> str:
    """Return the sentence for an error of pydantic."""
    kind, context = error["type"], error.get("ctx", {})
    if kind == "too_short":
        kind = "missing" if context["min_length"] == 1 else kind
    sentence = SENTENCES.get(kind)
    if sentence is None:
        return str(error["msg"])
    limit = next((context[name] for name in LIMITS if name in context), None)
    # As in forms: 0 instead of 0.0.
    limit = int(limit) if isinstance(limit, float) and limit.is_integer() else limit
    length = context.get("actual_length", len(error["input"]) if isinstance(error.get("input"), str) else 0)
    # Not str() first: a lazy plural takes its form from `limit_value`, and alone it is empty.
    return str(sentence % {"limit_value": limit, "value": error.get("input"), "show_value": length})


# The form of an action


class ActionForm(forms.Form):
    """A form made from a record of options; when it is valid, `options` is the record.

    `choices`: of options whose values depend on the collection; `initial`: initial values; `only`: the
    options that are shown; `fixed`: values of options that the page sets itself.
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
        """Read the record from the fields; an empty one takes the option's default, or clears it (`clears`)."""
        values = {
            name: value
            for name, value in self.cleaned_data.items()
            # A page may have fields beside the options, such as files.
            if name in self.record.model_fields and (value not in (None, "", []) or text_of(self.record, name).clears)
        }
        if not self.errors:
            try:
                self.options = self.record.read({**values, **self.fixed})
            except BadOption as error:
                show_refusal(self, error)
        return self.cleaned_data


def show_refusal(form: forms.BaseForm, error: Exception) -> None:
    """Add the refusal of a service to the fields that it names, or to the form where it has none of them."""
    problems = error.problems if isinstance(error, BadOption) else [("", str(error))]
    for name, sentence in problems:
        form.add_error(name if name in form.fields else None, sentence)


def make_field(record: type[Options], name: str, choices: Choices | None = None) -> forms.Field:
    """Return a form field for an option."""
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
    allowed = choices_of(record, name) if choices is None else list(choices)
    if several and (allowed or choices is not None):
        return forms.MultipleChoiceField(choices=allowed, widget=forms.CheckboxSelectMultiple, **common)
    if allowed or choices is not None:
        blank = [("", "")] if may_be_empty and not any(value == "" for value, _title in allowed) else []
        if not blank:
            # What an empty option means is said by the choice itself, or there is none.
            common["help_text"] = str(words.help).partition(_("Empty:"))[0].strip()
        return forms.ChoiceField(choices=[*blank, *allowed], **common)
    if kind is bool and may_be_empty:
        yes_or_no = forms.NullBooleanField(**common)
        yes_or_no.widget.choices = [("unknown", ""), *yes_or_no.widget.choices[1:]]
        return yes_or_no
    if kind is bool:
        return forms.BooleanField(**{**common, "required": False})
    if kind in (int, float):
        number = forms.IntegerField if kind is int else forms.FloatField
        return number(min_value=bound_of(info, "ge", "gt"), max_value=bound_of(info, "le"), **common)
    if kind is date:
        return forms.DateField(widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"), **common)
    if several:
        common["initial"] = ", ".join(map(str, initial or ()))
    widget: forms.Widget | None = forms.Textarea(attrs={"rows": 4}) if words.is_long else None
    if words.is_secret:
        # Never filled in again, and browsers do not offer their owner's password.
        widget = forms.PasswordInput(attrs={"autocomplete": "new-password"})
    # Of a list or a table, the bound is of its parts.
    longest = None if get_origin(kind) is not None else bound_of(info, "max_length")
    return forms.CharField(max_length=longest, widget=widget, **common)


# The arguments of a command


def add_arguments(
    parser: CommandParser, record: type[Options], positional: Sequence[str] = (), without: Sequence[str] = ()
) -> None:
    """Add the options of a record to a command. The record checks values, not argparse."""
    for name in record.names("command"):
        if name in without:
            continue
        info, words = record.model_fields[name], text_of(record, name)
        kind, _empty = kind_of(info)
        text = f"{words.title}. {words.help}".strip().removesuffix(".")
        if choices := choices_of(record, name):
            text += ": " + ", ".join(str(value) for value, _title in choices)
        default = None if info.is_required() else info.get_default(call_default_factory=True, validated_data={})
        if default not in (None, "", [], (), False):
            text += f" (default: {default.value if isinstance(default, Enum) else default})"
        settings: dict[str, Any] = {"help": text.replace("%", "%%")}
        if name in positional:
            parser.add_argument(name, **settings)
            continue
        if kind is bool:
            settings["action"] = BooleanOptionalAction if info.default is not False else "store_true"
            settings["default"] = None
        elif get_origin(kind) is list:
            settings["nargs"] = "+"
        if kind is not bool:
            settings["metavar"] = "N" if kind in (int, float) else name.upper()
        parser.add_argument("--" + name.replace("_", "-"), dest=name, **settings)


def read_arguments(record: type[O], arguments: Mapping[str, Any], **fixed: Any) -> O:
    """Return the record with a command's arguments. `fixed`: values of other options. Raises BadOption."""
    values = {name: arguments[name] for name in record.names("command") if arguments.get(name) is not None}
    return record.read({**values, **fixed})


def flags_of(error: BadOption, flags: Container[str] | None = None) -> str:
    """Return an error as commands print it, with each option by its flag, or by its name where not in `flags`."""
    lines = []
    for name, sentence in error.problems:
        flag = "--" + name.replace("_", "-")
        option = flag if flags is None or flag in flags else name
        line = f"{sentence} ({option})" if isinstance(error, OptionWouldHelp) else f"{option}: {sentence}"
        lines.append(line if name else sentence)
    return "; ".join(lines)
