"""Names in code: the field's words, verbs with objects, classes that occur once (CONTRIBUTING, "Rules")."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
APPS = (
    "config", "embedded", "actions", "jobs", "store", "charts", "corpus", "judges", "annotation", "benchmark",
    "training", "api",
)  # fmt: skip
_LEFT = """
    alone aside asking assessments auditing booking caps care claims collapse desk drain even fairness fence
    fetching fill fleet flight gains gone land lend lent letters lost making marks money numbers orderings paying
    phrases placing prose said safety seat settle settled settling spending spent spool standing stopped stopping take
    takeover tallies teachers telling tested tried trial trust truth waits waiting waking wakeups welcome words working
    written
"""
LEFT = frozenset(_LEFT.split())
"""Words that said nothing to a stranger; the field has its own for each ("assign" for lend, "resolve" for settle)."""
STANDARD = {"LeaseLost", "WaitingForBatch"}
"""The field's own terms that have such a word."""
PRESCRIBED = {"Meta", "Command", "Migration"}
TABLES = {"Batch"}
"""Tables of two apps, each of which has its app's name before it: annotation_batch, judges_batch."""
_FILLERS = "one found known asked given told said wanted kept what chosen place desk story"
FILLERS = frozenset(_FILLERS.split())
"""Names that fit every variable, and so say nothing of any."""
OF_TEXTS = frozenset(("letters", "marks", "numbers", "phrases", "words"))
"""What stands in texts: as a variable it is the noun of the thing."""


def modules() -> Iterator[Path]:
    for app in APPS:
        yield from (path for path in (ROOT / app).rglob("*.py") if "migrations" not in path.parts)


def names(path: Path) -> Iterator[tuple[str, str]]:
    """(kind, name) of the module, its classes and its functions, wherever they stand in it."""
    yield "module", path.parent.name if path.stem == "__init__" else path.stem
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef):
            yield "class", node.name
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("__"):
            yield "function", node.name


def words(name: str) -> set[str]:
    """Whole words between underscores or capitals."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def test_no_name_has_a_word_that_a_stranger_would_not_search_for_and_few_functions_are_one_word() -> None:
    named = [(path, kind, name) for path in modules() for kind, name in names(path)]
    found = {
        f"{path.relative_to(ROOT)}: {kind} {name}"
        for path, kind, name in named
        if words(name) & LEFT and name not in STANDARD
    }
    assert sorted(found) == []
    functions = [name for _path, kind, name in named if kind == "function"]
    one = sum("_" not in name.strip("_") for name in functions)
    assert one / len(functions) < 0.5, f"{one} of {len(functions)}"


def test_no_class_name_occurs_twice() -> None:
    where: dict[str, list[str]] = defaultdict(list)
    for path in modules():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and node.name not in PRESCRIBED | TABLES:
                where[node.name].append(str(path.relative_to(ROOT)))
    assert {name: places for name, places in where.items() if len(places) > 1} == {}


def bound(source: str, *, with_fields: bool = True) -> Iterator[str]:
    """What a module binds: variables wherever they are assigned, and parameters.

    Without fields: those of classes are columns of tables and keys of documents, which others read.
    """
    tree = ast.parse(source)
    if not with_fields:
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                node.body = [part for part in node.body if not isinstance(part, ast.Assign | ast.AnnAssign)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def test_variables_are_nouns_of_the_thing_and_have_no_name_that_a_function_may_not_have() -> None:
    names = [name for path in modules() for name in bound(path.read_text())]
    fillers = Counter(name for name in names if name in FILLERS)
    assert len(names) > 40_000 and fillers.total() / len(names) < 0.015, fillers.most_common()
    left = LEFT - OF_TEXTS
    assert {path for path in modules() if left & {*bound(path.read_text(), with_fields=False)}} == set()
