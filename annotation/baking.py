"""Templates with everything constant worked out beforehand: words in one language, addresses, buttons, includes.

The desk's fragment is rendered some hundred times a second, and most of it is the same each time (docs/adr/0038). A
baked template gives the same bytes as the one that it was made of, for any context that agrees with what was known.
"""

from collections.abc import Iterable, Iterator, Mapping
from html import escape
from operator import attrgetter
from typing import Any, cast

from django.template import Context, Node, NodeList, Template
from django.template.base import FilterExpression, TextNode, VariableNode
from django.template.defaulttags import ForNode, IfNode, LoadNode, TemplateLiteral
from django.template.loader import get_template
from django.template.loader_tags import IncludeNode
from django.templatetags.i18n import BlockTranslateNode, TranslateNode
from django.utils.safestring import SafeString, mark_safe

Known = Mapping[str, Any]
ALWAYS = ("True", "False", "None")
MARK = "\x00"
"""Around a variable's name in a sentence, to find it in the translation. No catalogue and no template holds it."""


def baked(name: str, known: Known) -> Template:
    """The template with the values of `known`, in the language that is active now."""
    template: Template = get_template(name).template  # type: ignore[attr-defined]
    made: Template = Template.__new__(Template)
    made.__dict__.update(template.__dict__)
    made.nodelist = _baked(template, template.nodelist, known)
    return made


def _baked(template: Template, nodes: Iterable[Node], known: Known) -> NodeList:
    """Nodes that do the same, constant text joined."""
    found: list[Node] = []
    for node in (new for old in nodes for new in _parts(template, old, known)):
        if isinstance(node, TextNode) and found and isinstance(found[-1], TextNode):
            found[-1] = TextNode(found[-1].s + node.s)
        else:
            found.append(node)
    return NodeList(found)


def _parts(template: Template, node: Node, known: Known) -> Iterator[Node]:
    """What stands for one node."""
    if isinstance(node, LoadNode):
        return
    if isinstance(node, TranslateNode) and not node.asvar and _is_constant(node.filter_expression, known):
        yield _rendered(template, node, known)
    elif isinstance(node, VariableNode):
        fixed = _is_constant(node.filter_expression, known)
        yield _rendered(template, node, known) if fixed else _value(node)
    elif isinstance(node, BlockTranslateNode) and not node.plural and not node.asvar:
        yield from _sentence(template, node)
    elif isinstance(node, IncludeNode) and isinstance(node.template.var, str) and not node.isolated_context:
        yield from _included(template, node, known)
    elif isinstance(node, IfNode):
        yield from _branches(template, node, known)
    elif isinstance(node, ForNode):
        yield _loop(template, node, known)
    else:
        yield node


def _rendered(template: Template, node: Node, known: Known) -> TextNode:
    return TextNode(str(_context(template, known, node)))


def _context(template: Template, known: Known, node: Node) -> str:
    context = Context(dict(known), use_l10n=False)
    with context.bind_template(template):
        return str(node.render(context))


def _is_constant(expression: FilterExpression, known: Known) -> bool:
    """It depends on nothing but what is known."""
    variables = [expression.var] if expression.is_var else []
    variables += [argument for _, given in expression.filters for is_variable, argument in given if is_variable]
    return all(one.lookups is None or one.lookups[0] in known or one.lookups[0] in ALWAYS for one in variables)


def _value(node: VariableNode) -> Node:
    expression = node.filter_expression
    plain = expression.is_var and not expression.filters and expression.var.lookups is not None
    return _Value(node) if plain and not expression.var.translate else node


def _sentence(template: Template, node: BlockTranslateNode) -> Iterator[Node]:
    """The translation, with the values that it takes as nodes in their places."""
    names = {name: mark_safe(f"{MARK}{name}{MARK}") for name in node.extra_context}
    tokens = {token.contents for token in node.singular if token.token_type.name == "VAR"}
    if not tokens <= names.keys() or node.message_context:
        yield node
        return
    bare = BlockTranslateNode({}, node.singular, trimmed=node.trimmed)
    for place, part in enumerate(_context(template, names, bare).split(MARK)):
        yield _value(VariableNode(node.extra_context[part])) if place % 2 else TextNode(part)


def _included(template: Template, node: IncludeNode, known: Known) -> Iterator[Node]:
    """The other template's nodes in place; as it stands where it is given values that are not known yet."""
    given = node.extra_context
    if not all(_is_constant(value, known) for value in given.values()):
        yield node
        return
    context = Context(dict(known))
    with context.bind_template(template):
        more = {name: value.resolve(context) for name, value in given.items()}
    other: Template = get_template(node.template.var).template  # type: ignore[attr-defined]
    yield from _baked(other, other.nodelist, {**known, **more})


def _branches(template: Template, node: IfNode, known: Known) -> Iterator[Node]:
    """Without the branches that are never taken; what is always taken stands without its condition."""
    left: list[tuple[Any, NodeList]] = []
    for condition, nodes in cast(list[tuple[Any, NodeList]], node.conditions_nodelists):
        constant = condition is None or _is_known(condition, known)
        if constant and condition is not None and not _holds(template, condition, known):
            continue
        body = _baked(template, nodes, known)
        if constant and not left:
            yield from body
            return
        left.append((None if constant else _condition(condition), body))
        if constant:
            break
    if left:
        yield IfNode(left)


def _is_known(condition: Any, known: Known) -> bool:
    if isinstance(condition, TemplateLiteral):
        return _is_constant(_asked(condition), known)
    return all(_is_known(part, known) for part in (condition.first, condition.second) if part is not None)


def _asked(condition: TemplateLiteral) -> FilterExpression:
    return cast(FilterExpression, condition.value)


def _holds(template: Template, condition: Any, known: Known) -> bool:
    context = Context(dict(known))
    with context.bind_template(template):
        return bool(condition.eval(context))


def _condition(condition: Any) -> Any:
    """A condition that is one plain value is looked up as values are."""
    if not isinstance(condition, TemplateLiteral):
        return condition
    value = _value(VariableNode(_asked(condition)))
    return _Truth(value, condition) if isinstance(value, _Value) else condition


def _loop(template: Template, node: ForNode, known: Known) -> ForNode:
    inside = {name: value for name, value in known.items() if name not in (*node.loopvars, "forloop")}
    body = _baked(template, cast(NodeList, node.nodelist_loop), inside)
    empty = _baked(template, cast(NodeList, node.nodelist_empty), known)
    return ForNode(node.loopvars, node.sequence, node.is_reversed, body, empty)


class _Value(Node):
    """{{ root.path }} without filters: looked up by attributes first, where Django tries items and catches errors."""

    def __init__(self, node: VariableNode) -> None:
        self.node = node
        root, *path = node.filter_expression.var.lookups
        self.root = root
        self.path = attrgetter(".".join(path)) if path else None

    def find(self, context: Context) -> Any:
        """The value. Raises KeyError, AttributeError where it takes Django's way, as it does for what is called."""
        value = context[self.root]
        if self.path is not None:
            value = self.path(value)
        if callable(value):
            raise AttributeError
        return value

    def render(self, context: Context) -> SafeString:
        """As VariableNode does it, for text and whole numbers; else by it."""
        try:
            value = self.find(context)
        except (KeyError, AttributeError):
            return SafeString(self.node.render(context))
        kind = type(value)
        if kind is SafeString or kind is int:
            return SafeString(value)
        return SafeString(escape(value) if kind is str else self.node.render(context))


class _Truth:
    """The condition of an {% if %} that asks for one value."""

    def __init__(self, value: _Value, condition: TemplateLiteral) -> None:
        self.value, self.condition = value, condition

    def eval(self, context: Context) -> Any:
        """Its value, true or not."""
        try:
            return self.value.find(context)
        except (KeyError, AttributeError):
            return self.condition.eval(cast(dict[Any, Any], context))
