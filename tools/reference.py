"""Write docs/reference.md: options of actions, export formats, training recipes, providers.

`python -m tools.reference` writes the page; `make docs` does so first.
"""

import os
from collections.abc import Iterable
from dataclasses import fields
from enum import Enum
from typing import Any

import django
from django.utils import translation

from config.env import ROOT

PAGE = ROOT / "docs" / "reference.md"
HEAD = """# Reference

Options of actions, export formats and training recipes. Written from the program's own records by
`make docs`; do not edit. The keys of the judges file are under
[Judge](judge.md#every-key-of-a-judge), figures under [Performance figures](benchmarks.md).

## Exit codes

| code | meaning |
|---|---|
| 0 | done |
| 1 | an error of ours |
| 2 | bad input: one line says what, where and what to do; nothing changed |
| 3 | finished, but incomplete: failed pairs, stopped by the budget, or paused by an account; the gate cannot tell |
| 4 | the gate failed |
| 130, 143 | interrupted; what goes on was said |
"""


def table(headings: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a Markdown table."""
    names = list(headings)
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join("| " + " | ".join(_cell(value) for value in line) + " |" for line in lines)


def _cell(value: Any) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")


def _default(value: Any) -> str:
    if isinstance(value, Enum):
        value = value.value
    return "" if value in (None, "", [], (), {}) else f"`{value}`"


def title_of(service: Any) -> str:
    """Return an action's name in the audit log, or its function's name if the audit log's depends on the options."""
    from actions.services import ACTIONS

    name, options = ACTIONS[service].name, ACTIONS[service].options
    if not isinstance(name, str):
        return str(service.__name__)
    is_shared = sum(action.name == name for action in ACTIONS.values()) > 1
    return f"{name} ({options.__name__})" if is_shared and options else name


def actions() -> str:
    """Return a section on each action with its options, command and API operation."""
    from actions.options import choices_of, text_of
    from actions.services import ACTIONS
    from tests.actions.doors import DOORS

    parts = ["## Options of actions\n"]
    for service, doors in sorted(DOORS.items(), key=lambda item: title_of(item[0])):
        options = ACTIONS[service].options
        if options is None:
            continue
        commands = f"`{doors.command or doors.file}`" if doors.command or doors.file else "none"
        parts.append(f"### {title_of(service)}\n\n{next(iter((service.__doc__ or '').splitlines()), '')}\n")
        operation = f"`{doors.operation}`" if doors.operation else "none"
        is_elsewhere = doors.command or doors.file or doors.operation
        parts.append(f"Command: {commands}. Operation: {operation}.\n" if is_elsewhere else "In the browser only.\n")
        rows = []
        for name in options.names():
            field, text = options.model_fields[name], text_of(options, name)
            default = None if field.is_required() else field.get_default(call_default_factory=True, validated_data={})
            choices = ", ".join(f"`{value}`" for value, _title in choices_of(options, name))
            meaning = ". ".join(str(part).rstrip(".") for part in (text.title, text.help) if str(part))
            needed = "needed" if field.is_required() else _default(default)
            rows.append((f"`{name}`", needed, f"{meaning}. {choices}".removesuffix(". ")))
        parts.append(table(("option", "default", "meaning"), rows) + "\n")
    return "\n".join(parts)


def formats() -> str:
    """Return the export formats."""
    from annotation.exports.formats import ALL_FORMATS

    rows = ((f"`{form.name}`", form.file, form.about) for form in ALL_FORMATS.values())
    return "## Export formats\n\n" + table(("format", "files", "contents"), rows) + "\n"


def recipes() -> str:
    """Return the presets of each recipe, with the options that differ from the defaults of all recipes."""
    from training.recipes.table import TABLE, RecipeOptions

    common = RecipeOptions()
    rows = []
    for recipe, presets in TABLE.items():
        for name, preset in presets.items():
            own = {field.name: getattr(preset, field.name) for field in fields(preset)}
            changed = {key: value for key, value in own.items() if getattr(common, key, None) != value}
            changed.pop("preset", None)
            settings = ", ".join(f"`{key}` {value}" for key, value in changed.items())
            rows.append((f"`{recipe}`", f"`{name}`", settings))
    base = ", ".join(f"`{field.name}` {getattr(common, field.name)}" for field in fields(common))
    head = f"## Training recipes\n\nEvery recipe begins with: {base}.\n\n"
    return head + table(("recipe", "preset", "what it sets"), rows) + "\n"


def providers() -> str:
    """Return what each provider can do, with the source and date of every fact."""
    from judges.management.commands.presets import markdown
    from judges.presets import PRESETS

    return "\n".join(f"#{line}" if line.startswith("#") else line for line in markdown(PRESETS.values()).splitlines())


def page() -> str:
    """Return the whole page, in English."""
    with translation.override("en"):
        return "\n".join((HEAD, actions(), formats(), recipes(), providers())) + "\n"


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    PAGE.write_text(page(), encoding="utf-8")
