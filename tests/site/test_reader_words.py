"""No page shows a command's flag or a backtick: what services say is put into the reader's words."""

import ast
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from html import unescape
from pathlib import Path

import pytest
from django import forms
from django.conf import settings
from django.template import Context, Template
from django.template.loader import render_to_string

from annotation.for_reader import BEGINNINGS, begin_sentence, say_to_program, say_to_reader
from annotation.templatetags.admin_text import in_reader_language
from api.problems import refuse
from tests.called import call
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
        assert shown[1:] in unescape(page) and "&lt;b&gt;" in page and not FLAG.search(CODE.sub("", page))


# Begins of errors that are keys of files and names of things, or what stands for a sentence until a page says it.
KEYS = frozenset({"act:", "binarize:", "k", "large", "slow", "spans:"})
ERRORS = frozenset(
    {"BadInput", "DecisionRefused", "Deleted", "Incomplete", "Invalid", "QuorumError", "RefusedTraining"}
)
ROOMS = ("annotation", "api", "benchmark", "corpus", "judges", "training")


def texts_of(node: ast.expr, named: dict[str, list[ast.expr]]) -> Iterator[str]:
    """Yield what an error may say, with X for each value, as far as it is written where it is raised."""
    match node:
        case ast.Constant(value=str(text)):
            yield re.sub(r"%\(\w+\)[sdg]", "X", text).replace("%%", "%")
        case ast.JoinedStr(values=parts):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in parts)
        case ast.BinOp(left=left, op=ast.Mod()):
            yield from texts_of(left, named)
        case ast.IfExp(body=body, orelse=other):
            yield from [*texts_of(body, named), *texts_of(other, named)]
        case ast.Name(id=name):
            for value in named[name]:
                yield from texts_of(value, {**named, name: []})
        case ast.Call(func=ast.Name(id="_" | "gettext" | "ngettext"), args=args):
            for arg in args[:2]:
                yield from texts_of(arg, named)


@cache
def written_errors() -> list[tuple[str, str]]:
    """Return where an error is raised, and what it says."""
    found = []
    for room in ROOMS:
        for path in sorted((Path(settings.BASE_DIR) / room).rglob("*.py")):
            if "management" in path.parts:
                continue  # only a command says it
            for function in ast.walk(ast.parse(path.read_text())):
                if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                    continue
                named: dict[str, list[ast.expr]] = defaultdict(list)
                for node in ast.walk(function):
                    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                        named[node.targets[0].id].append(node.value)
                for node in ast.walk(function):
                    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ERRORS and node.args:
                        place = f"{path.name}:{node.lineno}"
                        found += [(place, text) for text in texts_of(node.args[0], named)]
    return found


def test_no_written_error_shows_a_flag_and_each_still_reads_as_a_sentence() -> None:
    flags = [(place, text) for place, text in written_errors() if "--" in text or "`" in text]
    assert len(flags) > 20 and len(written_errors()) > 500, "the walk finds them"
    wrong = [
        (place, shown)
        for place, text in flags
        for shown in (say_to_reader(text), say_to_program(text))
        if FLAG.search(shown)
        or shown.count("“") != shown.count("”")
        or re.search(r"““|“”|”“|” ?=|  |\( ?\)|^[“\s]*$", shown)
    ]
    assert wrong == []


def test_every_written_error_begins_with_a_capital_letter_a_value_or_a_key() -> None:
    """A page cannot know names from words, so the first words of errors are listed (annotation.for_reader)."""
    small = [(place, begin_sentence(text)) for place, text in written_errors()]
    words = [(place, text.split()[0], text) for place, text in small if text[:1].islower()]
    assert [one for one in words if one[1].isalpha() and one[1] not in KEYS] == []
    assert all(word.isalpha() and word.islower() for word in BEGINNINGS)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("no file contains queries, and there are none", "No file contains queries, and there are none"),
        ('there is no collection "a"', 'There is no collection "a"'),
        ("solar has no queries", "solar has no queries"),
        ("docs.csv, line 3: the id is empty", "docs.csv, line 3: the id is empty"),
        ("text: unknown field", "text: unknown field"),
        ("k1 of BM25 must be a number", "k1 of BM25 must be a number"),
        ('"x" exists with different text', '"x" exists with different text'),
        pytest.param(f"{settings.VAR}/uploads/7/docs.csv: the file is empty", "docs.csv: the file is empty", id="path"),
        ("https://example.org/var/x cannot be reached", "https://example.org/var/x cannot be reached"),
    ],
)
def test_page_and_api_begin_a_sentence_and_leave_names_alone(said: str, shown: str) -> None:
    form = Form({"name": "x"})
    form.add_error(None, said)
    form.add_error("name", said)
    assert [unescape(text) for text in re.findall("<li[^>]*>(.*?)</li>", render_errors(form))] == [shown, shown]
    problem = json.loads(refuse(422, said, [{"field": "body.name", "problem": said}]).content)
    assert problem["errors"][0]["problem"] == shown and problem["detail"] == f"body.name: {shown}"
    assert json.loads(refuse(422, said).content)["detail"] == shown


def render_errors(form: Form) -> str:
    return render_to_string("_form_errors.html", {"form": form}) + render_to_string(
        "_field.html", {"field": form["name"]}
    )


@pytest.mark.django_db
def test_a_command_keeps_its_line_as_it_is() -> None:
    done = call("status", "nowhere")
    assert done.code == 2 and done.err.startswith("there is no collection")


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
