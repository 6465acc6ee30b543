"""Templates with everything constant worked out beforehand: words in one language, addresses, buttons, includes.

The desk's fragment is rendered some hundred times a second, and most of it is the same each time (docs/adr/0038). A
baked template gives the same bytes as the one that it was made of, for any context that agrees with what was known.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from html import escape
from operator import attrgetter
from typing import Any, cast

from django.template import Context, Node, NodeList, Template
from django.template.base import FilterExpression, TextNode, Variable, VariableNode
from django.template.defaultfilters import default
from django.template.defaulttags import CsrfTokenNode, ForNode, IfNode, LoadNode, TemplateLiteral
from django.template.loader import get_template
from django.template.loader_tags import IncludeNode
from django.templatetags.i18n import BlockTranslateNode, TranslateNode
from django.utils.safestring import SafeString, mark_safe

Known = Mapping[str, Any]
Finder = Callable[[Context], Any]
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
    elif isinstance(node, CsrfTokenNode):
        yield _Token(node)
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
    """{{ a.b }} and {{ a.b|default:c }}, looked up without Django's filters; any other as it stands."""
    expression = node.filter_expression
    if not expression.is_var or not _is_path(expression.var):
        return node
    if not expression.filters:
        return _Value(node, _finder(expression.var))
    (filtered, arguments), *more = expression.filters
    if filtered is not default or more:
        return node
    ((is_variable, argument),) = arguments
    if not is_variable:
        return _Value(node, _finder(expression.var), _constant(SafeString(argument)))
    return _Value(node, _finder(expression.var), _finder(argument)) if _is_path(argument) else node


def _is_path(variable: Variable) -> bool:
    return variable.lookups is not None and not variable.translate


def _finder(variable: Variable) -> Finder:
    """Looks a path up by attributes, where Django tries items first and catches errors.

    It raises KeyError or AttributeError where that is not all there is to it, as for what is to be called.
    """
    assert variable.lookups is not None
    root, *path = variable.lookups
    rest = attrgetter(".".join(path)) if path else None

    def find(context: Context) -> Any:
        value = context[root] if rest is None else rest(context[root])
        if callable(value):
            raise AttributeError
        return value

    return find


def _constant(value: Any) -> Finder:
    return lambda context: value


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
        left.append((None if constant else _condition(template, condition, known), body))
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


def _condition(template: Template, condition: Any, known: Known) -> Any:
    """The same condition: what is known is worked out, plain values in it are looked up as values are."""
    if not isinstance(condition, TemplateLiteral):
        made = copy(condition)
        for side in ("first", "second"):
            if (part := getattr(condition, side)) is not None:
                setattr(made, side, _condition(template, part, known))
        return made
    expression = _asked(condition)
    if _is_known(condition, known):
        with (context := Context(dict(known))).bind_template(template):
            return _Asked(_constant(condition.eval(cast(dict[Any, Any], context))), condition)
    if expression.is_var and not expression.filters and _is_path(expression.var):
        return _Asked(_finder(expression.var), condition)
    return condition


def _loop(template: Template, node: ForNode, known: Known) -> ForNode:
    inside = {name: value for name, value in known.items() if name not in (*node.loopvars, "forloop")}
    body = _baked(template, cast(NodeList, node.nodelist_loop), inside)
    empty = _baked(template, cast(NodeList, node.nodelist_empty), known)
    return ForNode(node.loopvars, node.sequence, node.is_reversed, body, empty)


class _Value(Node):
    """{{ root.path }}, or what `other` finds where it is empty."""

    def __init__(self, node: VariableNode, find: Finder, other: Finder | None = None) -> None:
        self.node, self.find, self.other = node, find, other

    def render(self, context: Context) -> SafeString:
        """As VariableNode does it, for text and whole numbers; else by it."""
        try:
            value = self.find(context)
            if self.other is not None and not value:
                value = self.other(context)
        except (KeyError, AttributeError):
            return SafeString(self.node.render(context))
        kind = type(value)
        if kind is SafeString or kind is int:
            return SafeString(value)
        return SafeString(escape(value) if kind is str else self.node.render(context))


class _Asked:
    """A value in the condition of an {% if %}."""

    def __init__(self, find: Finder, condition: TemplateLiteral) -> None:
        self.find, self.condition = find, condition

    def eval(self, context: Context) -> Any:
        """Its value."""
        try:
            return self.find(context)
        except (KeyError, AttributeError):
            return self.condition.eval(cast(dict[Any, Any], context))


class _Token(Node):
    """{% csrf_token %}, of a token that needs no escaping."""

    def __init__(self, node: CsrfTokenNode) -> None:
        self.node = node

    def render(self, context: Context) -> SafeString:
        """The hidden field."""
        token = context.get("csrf_token")
        if type(token) is not str or not token.isalnum():
            return SafeString(self.node.render(context))
        return SafeString(f'<input type="hidden" name="csrfmiddlewaretoken" value="{token}">')
