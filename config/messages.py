"""The strings that pages show, collected from templates and Python, and catalogues made of them (docs/languages.md).

Needs polib (requirements-dev.txt) and no GNU gettext: templates are read by Django's own parser, so that a string is
collected exactly as it is looked up.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.template import engines
from django.template.base import FilterExpression, Node, NodeList, Origin, Template, VariableNode
from django.templatetags.i18n import BlockTranslateNode, TranslateNode
from django.utils.functional import Promise

if TYPE_CHECKING:
    import polib

APPS = ("annotation", "benchmark", "charts", "config", "corpus", "jobs", "judges", "training")
SINGLE = {"_", "gettext", "gettext_lazy", "gettext_noop"}
PLURAL = {"ngettext", "ngettext_lazy"}
CONTEXT = {"pgettext", "pgettext_lazy"}
HEADER = {"Content-Type": "text/plain; charset=UTF-8", "Plural-Forms": "nplurals=1; plural=0;"}


@dataclass(frozen=True, slots=True)
class Message:
    """A string to translate: `plural` and `context` where it has them."""

    text: str
    plural: str = ""
    context: str = ""


def collected(root: Path) -> dict[Message, list[str]]:
    """Every marked string of the project with the files in which it stands, in the order of the files."""
    found: dict[Message, list[str]] = {}
    for path in sorted((root / "templates").rglob("*.html")):
        _add(found, in_template(path.read_text()), path.relative_to(root))
    for app in APPS:
        for path in sorted((root / app).rglob("*.py")):
            if "migrations" not in path.parts:
                _add(found, in_python(path.read_text()), path.relative_to(root))
    return found


def _add(found: dict[Message, list[str]], messages: Iterable[Message], place: Path) -> None:
    for message in messages:
        places = found.setdefault(message, [])
        if str(place) not in places:
            places.append(str(place))


def in_python(source: str) -> Iterator[Message]:
    """Strings in calls of gettext's functions, `_` among them."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        words = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        if node.func.id in SINGLE and words:
            yield Message(words[0])
        elif node.func.id in PLURAL and len(words) > 1:
            yield Message(words[0], words[1])
        elif node.func.id in CONTEXT and len(words) > 1:
            yield Message(words[1], context=words[0])


def in_template(source: str) -> Iterator[Message]:
    """Strings of {% translate %}, {% blocktranslate %} and _("..."), as the template will look them up."""
    engine = engines["django"].engine  # type: ignore[attr-defined]
    template = Template(source, Origin("messages"), "messages", engine)
    for node in _nodes(template.nodelist):
        if isinstance(node, BlockTranslateNode):
            yield _block(node)
        for expression in _expressions(node):
            yield from _literals(expression, forced=isinstance(node, TranslateNode), context=_context(node))


def _nodes(nodes: NodeList) -> Iterator[Node]:
    for node in nodes:
        yield node
        for name in node.child_nodelists:
            if isinstance(below := getattr(node, name, None), NodeList):
                yield from _nodes(below)
        for _, below in getattr(node, "conditions_nodelists", ()):
            yield from _nodes(below)


def _block(node: BlockTranslateNode) -> Message:
    singular = node.render_token_list(node.singular)[0]
    plural = node.render_token_list(node.plural)[0] if node.plural and node.countervar else ""
    return Message(singular, plural, _context(node))


def _context(node: Node) -> str:
    """What a tag names after `context`, which tells two uses of one word apart."""
    named = getattr(node, "message_context", None)
    return str(named.var) if named else ""


def _expressions(node: Node) -> Iterator[FilterExpression]:
    """Filter expressions of a node: {{ }}, arguments of tags, conditions."""
    if isinstance(node, VariableNode):
        yield node.filter_expression
    waiting = [
        value for name, value in vars(node).items() if name not in ("nodelist", "token", "origin", "message_context")
    ]
    for _ in range(2000):
        if not waiting:
            return
        value: Any = waiting.pop()
        if isinstance(value, FilterExpression):
            yield value
        elif isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list | tuple) and not isinstance(value, NodeList):
            waiting += value
        elif type(value).__module__ in ("django.template.smartif", "django.template.defaulttags"):
            waiting += [getattr(value, name) for name in ("value", "first", "second") if hasattr(value, name)]


def _literals(expression: FilterExpression, *, forced: bool, context: str) -> Iterator[Message]:
    """`forced`: the literal itself is translated, as {% translate %} does; percent signs are looked up doubled."""
    literal = getattr(expression.var, "literal", None)
    if forced and isinstance(literal, str):
        yield Message(literal.replace("%", "%%"), context=context)
    for value in [expression.var, *(argument for _, given in expression.filters for _, argument in given)]:
        if isinstance(value, Promise):
            yield Message(value._args[0])  # type: ignore[attr-defined]


def catalogue_path(root: Path, locale: str) -> Path:
    """locale/zh_Hans/LC_MESSAGES/django.po"""
    return root / "locale" / locale / "LC_MESSAGES" / "django.po"


def merged(path: Path, messages: dict[Message, list[str]]) -> "polib.POFile":
    """The catalogue at `path` with exactly these messages: translations are kept, what is not used any more goes."""
    import polib

    old = polib.pofile(str(path), wrapwidth=0) if path.exists() else polib.POFile(wrapwidth=0)
    known = {(entry.msgid, entry.msgctxt or ""): entry for entry in old}
    made = polib.POFile(wrapwidth=0)
    made.metadata = {**HEADER, "Language": path.parent.parent.name}
    for message, places in messages.items():
        made.append(_entry(message, places, known.get((message.text, message.context))))
    return made


def update(path: Path, messages: dict[Message, list[str]] | None) -> tuple[int, int]:
    """Merge (None: leave the strings alone), save and compile; how many strings, how many without a translation."""
    import polib

    made = polib.pofile(str(path), wrapwidth=0) if messages is None else merged(path, messages)
    made.save(str(path))
    path.with_suffix(".mo").write_bytes(made.to_binary())
    return len(made), len(made.untranslated_entries())


def _entry(message: Message, places: list[str], old: "polib.POEntry | None") -> "polib.POEntry":
    import polib

    entry = polib.POEntry(msgid=message.text, msgctxt=message.context or None, occurrences=[(p, "") for p in places])
    if message.plural:
        entry.msgid_plural = message.plural
        text = (old.msgstr_plural.get(0, "") or old.msgstr) if old else ""
        entry.msgstr_plural = {0: text}
    elif old:
        entry.msgstr = old.msgstr or old.msgstr_plural.get(0, "")
    return entry


def locales() -> list[str]:
    """Folders of the languages that are translated: zh_Hans."""
    from django.utils.translation import to_locale

    return [to_locale(code) for code, _ in settings.LANGUAGES if code != settings.LANGUAGE_CODE]
