"""Errors name no flag, backtick, class or path: a page, a problem of the API and a command show the same sentence."""

import ast
import builtins
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from html import unescape
from pathlib import Path

import polib
import pytest
from django import forms
from django.conf import settings
from django.db import connection
from django.http import HttpRequest
from django.template.loader import render_to_string

from actions.errors import BadInput, BadOption, OptionWouldHelp
from actions.options import flags_of, show_refusal
from api.problems import refuse, refuse_option
from tests.called import call
from tests.site.test_permissions import World, html_pages

# What a page means as code, or does not show at all.
CODE = re.compile(r"<(script|style|pre|code|svg|textarea|kbd)\b.*?</\1>|<!--.*?-->|<[^>]*>", re.S)
FLAG = re.compile(r"(?<![\w-])--[a-z]|`")
ROOMS = ("actions", "annotation", "api", "benchmark", "config", "corpus", "jobs", "judges", "store", "training")
# Calls that make an error or a message, and the place of its sentence among their arguments.
ERRORS = (
    "BadInput BadRequest DecisionRefused Deleted DoesNotFit Http404 Incomplete MergeDiffers PermissionDenied "
    "QuorumError RefusedTraining StateConflict StoreUnavailable ValidationError"
)
SENTENCE = dict.fromkeys(ERRORS.split(), 0) | {"BadOption": 1, "OptionWouldHelp": 1, "add_error": 1}
MESSAGES = ("error", "info", "success", "warning")  # of django.contrib.messages
# Begins of sentences that are keys of files and names of things.
KEYS = frozenset({"act:", "binarize:", "ir_datasets", "k", "k1", "spans:"})


def texts_of(node: ast.expr, named: dict[str, list[ast.expr]]) -> Iterator[str]:
    """Yield what an error may say, with X for each value, as far as it is written where it is raised."""
    match node:
        case ast.Constant(value=str(text)):
            yield re.sub(r"%\(\w+\)[sdgr]", "X", text).replace("%%", "%")
        case ast.JoinedStr(values=parts):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in parts)
        case ast.BinOp(left=left, op=ast.Mod()):
            yield from texts_of(left, named)
        case ast.IfExp(body=body, orelse=other):
            yield from [*texts_of(body, named), *texts_of(other, named)]
        case ast.Name(id=name):
            for value in named[name]:
                yield from texts_of(value, {**named, name: []})
        case ast.Call(func=ast.Name(id="_" | "gettext" | "gettext_lazy" | "ngettext"), args=args):
            for arg in args[:2]:
                yield from texts_of(arg, named)


def sentence_of(node: ast.AST) -> ast.expr | None:
    """Return the sentence of a call that makes an error or a message."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="messages"), attr=name), args=[_request, sentence, *_rest]):
            return sentence if name in MESSAGES else None
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args):
            place = SENTENCE.get(name, len(args))
            return args[place] if place < len(args) else None
    return None


@cache
def written_errors() -> list[tuple[str, str]]:
    """Return where an error or a message is made outside commands, and what it says."""
    found = []
    for path in (path for room in ROOMS for path in sorted((Path(settings.BASE_DIR) / room).rglob("*.py"))):
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
                if (sentence := sentence_of(node)) is not None:
                    place = f"{path.name}:{sentence.lineno}"
                    found += [(place, text) for text in texts_of(sentence, named)]
    return found


@cache
def class_names() -> frozenset[str]:
    """Return the names of the product's classes and of Python's exceptions, as far as no text would have them."""
    paths = (path for room in ROOMS for path in (Path(settings.BASE_DIR) / room).rglob("*.py"))
    trees = (ast.walk(ast.parse(path.read_text())) for path in paths)
    own = {node.name for tree in trees for node in tree if isinstance(node, ast.ClassDef)}
    known = {name for name, kind in vars(builtins).items() if isinstance(kind, type)}
    return frozenset(name for name in own | known if re.search(r"[a-z][A-Z]", name))


def is_plain(text: str) -> bool:
    return not FLAG.search(text) and class_names().isdisjoint(re.findall(r"\w+", text))


def test_a_written_sentence_names_no_flag_or_class_and_begins_with_a_capital_letter_a_value_or_a_key() -> None:
    assert len(written_errors()) > 800, "the walk finds them"
    assert [(place, text) for place, text in written_errors() if not is_plain(text)] == []
    words = [(place, text.split()[0], text) for place, text in written_errors() if text[:1].islower()]
    assert [row for row in words if row[1].isalpha() and row[1] not in KEYS and " " in row[2]] == []


def test_no_translated_text_but_a_commands_names_a_flag() -> None:
    """Pages, operations and errors; a command that a page shows stands beside the sentence, as code."""
    entries = polib.pofile(str(Path(settings.BASE_DIR) / "locale/zh_Hans/LC_MESSAGES/django.po"))
    flagged = [entry for entry in entries if re.search(r"(?<![\w-])--[a-z]", entry.msgid + entry.msgid_plural)]
    paths = {entry.msgid: [path for path, _line in entry.occurrences] for entry in flagged}
    assert {text: path for text, path in paths.items() if not all("management/" in one for one in path)} == {}


class ExampleForm(forms.Form):
    max_calls = forms.IntegerField(required=False)


@pytest.mark.parametrize("option", ["max_calls", "panel", ""])
def test_three_doors_show_each_sentence_as_it_is_with_their_own_name_of_the_option(option: str) -> None:
    """A page shows it under the field, or above the form where it has no such field."""
    for place, text in written_errors():
        error = BadOption(option, text) if option else BadInput(text)
        form = ExampleForm({})
        show_refusal(form, error)
        field = render_to_string("_field.html", {"field": form["max_calls"]})
        above = render_to_string("_form_errors.html", {"form": form})
        page = unescape(CODE.sub(" ", field if option == "max_calls" else above))
        answer = refuse_option(HttpRequest(), error) if isinstance(error, BadOption) else refuse(422, str(error))
        problem = json.loads(answer.content)
        line = flags_of(error) if isinstance(error, BadOption) else str(error)
        assert " ".join(text.split()) in " ".join(page.split()) and is_plain(page), place
        assert problem["errors"] == ([{"field": f"body.{option}", "problem": text, "option": option}] if option else [])
        assert is_plain(problem["detail"]) and problem["detail"].endswith(text), place
        flag = f"--{option.replace('_', '-')}: " if option else ""
        assert line == flag + text and is_plain(line.removeprefix(flag)), place


@pytest.mark.django_db
def test_a_command_says_the_sentence_of_the_page_and_names_an_option_that_would_help_last() -> None:
    error = OptionWouldHelp("skip_unknown", "a.csv, line 2: no such query")
    assert flags_of(error) == "a.csv, line 2: no such query (--skip-unknown)"
    assert flags_of(error, flags=["--update"]) == "a.csv, line 2: no such query (skip_unknown)"
    done = call("status", "nowhere")
    assert done.code == 2 and done.err.startswith("There is no collection")


# Rows with a number of their collection, and tables that such rows belong to.
KEYED = (
    "judges_campaign", "annotation_fileimport", "annotation_snapshot", "annotation_bulkact", "annotation_study",
    "annotation_websearch", "training_job", "training_learningcurve", "benchmark_filling", "benchmark_gate",
    "benchmark_report", "benchmark_answerevaluation", "benchmark_agentjob", "benchmark_synthesis", "benchmark_run",
    "api_webhook", "api_webhookdelivery",
)  # fmt: skip
KEY = 7_654_321


@pytest.mark.django_db
def test_no_page_of_an_admin_shows_a_flag_a_backtick_or_the_key_of_a_row_that_has_a_number() -> None:
    with connection.cursor() as cursor:
        for table in KEYED:
            cursor.execute(f"ALTER TABLE {table} ALTER COLUMN id RESTART WITH {KEY}")
    wrong = []
    for path, html in html_pages(World(), "owner"):
        text = CODE.sub(" ", html)
        if shown := re.search(f"{FLAG.pattern}|{KEY}", text):
            wrong.append((path, " ".join(text[max(0, shown.start() - 60) : shown.end() + 40].split())))
    assert wrong == []
