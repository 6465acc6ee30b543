"""Every action at every door: the same options with the same words and bounds, and the same refusals."""

from argparse import ArgumentParser
from collections import Counter
from typing import Any

import pytest
from django import forms
from django.core.management import get_commands, load_command_class
from django.utils.module_loading import import_string

from actions.errors import BadOption
from actions.options import (
    ActionForm,
    Options,
    bound_of,
    choices_of,
    flags_of,
    kind_of,
    option,
    read_arguments,
    text_of,
)
from actions.services import ACTIONS
from api.urls import api
from tests.actions.doors import DOORS, Doors

RECORDS = [pytest.param(ACTIONS[service].options, doors, id=service.__name__) for service, doors in DOORS.items()]


def command_options(name: str) -> dict[str, Any]:
    parser: ArgumentParser = load_command_class(get_commands()[name], name).create_parser("manage.py", name)
    return {one.dest: one for one in parser._actions}


def body_of(operation: str) -> dict[str, Any]:
    method, path = operation.split()
    document = api.get_openapi_schema()
    found = document["paths"]["/api/v1" + path.replace("{slug:name}", "{name}")][method.lower()]
    reference = found["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    return document["components"]["schemas"][reference.rpartition("/")[2]]["properties"]


@pytest.mark.parametrize(("record", "doors"), RECORDS)
def test_each_door_has_all_options_but_those_that_it_leaves_out(record: type[Options], doors: Doors) -> None:
    for names in record.leaves_out.values():
        assert set(names) <= set(record.model_fields) and all(names.values()), "each with its reason"
    if doors.command:
        assert set(record.names("command")) <= set(command_options(doors.command))
    if doors.operation:
        assert set(record.names("operation")) == set(body_of(doors.operation))
    if doors.page:
        shown = [name for form in doors.forms for name in import_string(form)] or ActionForm(record).fields
        assert set(record.names("page")) == set(shown)


@pytest.mark.parametrize(("record", "doors"), RECORDS)
def test_each_door_says_an_options_words_bounds_and_choices(record: type[Options], doors: Doors) -> None:
    fields = ActionForm(record).fields
    arguments = command_options(doors.command) if doors.command else {}
    body = body_of(doors.operation) if doors.operation else {}
    for name, info in record.model_fields.items():
        words, values = text_of(record, name), [value for value, _title in choices_of(record, name)]
        assert str(words.title)[:1].isupper() and not str(words.title).endswith(".")
        if name in fields:
            assert (fields[name].label, fields[name].help_text) == (words.title, words.help)
            if isinstance(fields[name], forms.IntegerField | forms.FloatField):
                assert fields[name].min_value == bound_of(info, "ge", "gt")
                assert fields[name].max_value == bound_of(info, "le")
            if isinstance(fields[name], forms.ChoiceField):
                assert values == [value for value, _title in fields[name].choices if value != ""]
        if name in arguments and arguments[name].help:
            help = arguments[name].help.replace("%%", "%")
            assert help.startswith(str(words.title)) and all(str(value) in help for value in values)
        if name in body:
            assert body[name]["title"] == str(words.title)


def test_the_help_of_each_option_exists_once() -> None:
    own: Counter[str] = Counter()
    for record in {about.options for about in ACTIONS.values() if about.options}:
        for name in vars(record).get("__annotations__", {}):
            if name in record.model_fields and text_of(record, name).help:
                own[str(text_of(record, name).help)] += 1
    assert not [help for help, times in own.items() if times > 1]


@pytest.mark.parametrize(("record", "doors"), RECORDS)
def test_what_is_refused_is_refused_alike(record: type[Options], doors: Doors) -> None:
    """A number below its bound, and a value that is no choice: one sentence, under the option's name."""
    for name, info in record.model_fields.items():
        kind, _empty = kind_of(info)
        least = bound_of(info, "ge", "gt")
        wrong = least - 1 if kind in (int, float) and least is not None else None
        wrong = "nonsense" if choices_of(record, name) and kind is not bool else wrong
        if wrong is None:
            continue
        with pytest.raises(BadOption) as refused:
            record.read({name: wrong})
        problems = dict(refused.value.problems)
        if name in record.names("command"):
            with pytest.raises(BadOption) as at_command:
                read_arguments(record, {name: str(wrong)})
            assert problems[name] == dict(at_command.value.problems)[name]
            assert f"--{name.replace('_', '-')}: {problems[name]}" in flags_of(at_command.value)
        form = ActionForm(record, {name: str(wrong)})
        if name in form.fields:
            assert form.errors[name] == [problems[name]]


def test_a_text_that_is_too_long_or_that_postgresql_cannot_store_is_refused_by_the_option() -> None:
    class Noted(Options):
        note: str = option("Note", default="", at_most=3)
        any: Any = None

    with pytest.raises(BadOption, match=r"at most 3 characters \(it has 5"):
        Noted.read({"note": "12345"})
    for text in ("a\0b", "half a pair: \ud800"):
        for value in (text, [text]):
            with pytest.raises(BadOption) as refused:
                Noted.read({"any": value})
            assert [name for name, _sentence in refused.value.problems] == ["any"]
