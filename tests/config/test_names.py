"""Names in code: the field's words, verbs with objects, classes that occur once (CONTRIBUTING, "Rules")."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
APPS = (
    "config", "embedded", "actions", "jobs", "store", "charts", "corpus", "judges", "annotation", "benchmark",
    "training", "api",
)  # fmt: skip
_LEFT = """
    alone aside asking assessments auditing booking caps care claims collapse desk drain even fairness fence
    fetching fill fleet flight gains gates gone land lend lent letters lost making marks money numbers orderings paying
    phrases placing prose said safety seat settle settled settling spending spent spool standing stopped stopping take
    takeover tallies teachers telling tested tried trial trust truth waits waiting waking wakeups welcome words working
    written
"""
LEFT = frozenset(_LEFT.split())
"""Words that said nothing to a stranger; the field has its own for each ("assign" for lend, "resolve" for settle)."""
STANDARD = {"LeaseLost", "WaitingForBatch"}
"""The field's own terms that have such a word."""
PRESCRIBED = {"Meta", "Command", "Migration"}


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


Named = list[tuple[Path, str, str]]


@pytest.fixture(scope="module")
def named() -> Named:
    """(path, kind, name) of all modules."""
    return [(path, kind, name) for path in modules() for kind, name in names(path)]


def words(name: str) -> set[str]:
    """Whole words between underscores or capitals."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def test_no_name_has_a_word_that_a_stranger_would_not_search_for(named: Named) -> None:
    assert len(LEFT) >= 60
    found = {
        f"{path.relative_to(ROOT)}: {kind} {name}"
        for path, kind, name in named
        if words(name) & LEFT and name not in STANDARD
    }
    assert sorted(found) == []


def test_fewer_than_half_of_the_functions_are_one_word(named: Named) -> None:
    functions = [name for _path, kind, name in named if kind == "function"]
    one = sum("_" not in name.strip("_") for name in functions)
    assert one / len(functions) < 0.5, f"{one} of {len(functions)}"


def test_at_most_fifteen_class_names_occur_twice(named: Named) -> None:
    where = defaultdict(list)
    for path, kind, name in named:
        if kind == "class" and name not in PRESCRIBED:
            where[name].append(str(path.relative_to(ROOT)))
    twice = {name: places for name, places in where.items() if len(places) > 1}
    assert len(twice) <= 15, twice
    assert max(Counter({name: len(set(places)) for name, places in twice.items()}).values(), default=0) <= 8
