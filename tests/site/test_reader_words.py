"""No page shows a command's flag or a backtick: what services say is put into the reader's words."""

import re
from html import unescape

import pytest
from django import forms
from django.template import Context, Template
from django.template.loader import render_to_string

from annotation.for_reader import say_to_reader
from annotation.templatetags.admin_text import in_reader_language
from tests.site.test_permissions import World, quiet, routes  # noqa: F401

# What a page means as code, or does not show at all.
CODE = re.compile(r"<(script|style|pre|code|svg|textarea|kbd)\b.*?</\1>|<!--.*?-->|<[^>]*>", re.S)
FLAG = re.compile(r"(?<![\w-])--[a-z]|`")
SAID = [
    ("no pair has all votes, so --teacher votes has nothing to teach", "so “Target score” votes has"),
    ('"x" has other text; --update takes the new one', "“Update documents whose text changed” takes the new one"),
    ("start one with `serve --gpu-workers 1`", "start one with serve “gpu workers” 1"),
    ("set `OPENAI_API_KEY` first", "set “OPENAI_API_KEY” first"),
    ("a range 1--3 and pre--post stay", "a range 1--3 and pre--post stay"),
]


@pytest.mark.parametrize(("said", "shown"), SAID)
def test_options_are_named_by_their_words(said: str, shown: str) -> None:
    assert shown in say_to_reader(said)
    assert in_reader_language(said) == say_to_reader(said)


class Form(forms.Form):
    name = forms.CharField()


@pytest.mark.parametrize(("said", "shown"), SAID)
def test_errors_of_forms_fields_and_messages_say_so_and_stay_escaped(said: str, shown: str) -> None:
    form = Form({"name": "x"})
    form.add_error(None, said + " <b>")
    form.add_error("name", said + " <b>")
    pages = [
        render_to_string("_form_errors.html", {"form": form}),
        render_to_string("_field.html", {"field": form["name"]}),
        Template("{{ problem|for_reader }}").render(Context({"problem": said + " <b>"})),
    ]
    for page in pages:
        assert shown in unescape(page) and "&lt;b&gt;" in page and not FLAG.search(CODE.sub("", page))


@pytest.mark.django_db
def test_no_page_of_an_admin_shows_a_flag_or_a_backtick() -> None:
    world = World()
    client, wrong = world.client("owner"), []
    for route in routes(world):
        if route.action == "public":
            client = world.client("owner")  # some of these end a session
        answer = client.get(route.path)
        if answer.streaming or not answer["Content-Type"].startswith("text/html"):
            continue
        if shown := FLAG.search(CODE.sub(" ", answer.text)):
            text = CODE.sub(" ", answer.text)
            wrong.append((route.path, " ".join(text[max(0, shown.start() - 60) : shown.end() + 40].split())))
    assert wrong == []
