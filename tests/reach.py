"""What a module reaches: the project modules that it imports, and those that they import, found in the source by ast.

Imports inside functions count, as they run sooner or later; imports for type checkers alone do not.
A package's `__init__` counts where it has content. `python -m tests.reach MODULE` prints the list,
each with the module through which it is reached; without a MODULE it is that of the judging page.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
APPS = (
    "config", "embedded", "actions", "charts", "jobs", "store", "corpus", "judges", "annotation", "benchmark",
    "training",
)  # fmt: skip

JUDGING_PAGE = "annotation.work.judging.views"


def _file(module: str) -> Path | None:
    path = ROOT / module.replace(".", "/")
    return next((found for found in (path.with_suffix(".py"), path / "__init__.py") if found.exists()), None)


def _statements(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            yield from (found for branch in node.orelse for found in _statements(branch))
        else:
            yield from _statements(node)


def _named(statement: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(statement, ast.Import):
        yield from (alias.name for alias in statement.names)
    elif statement.module:
        for alias in statement.names:
            inside = f"{statement.module}.{alias.name}"
            yield inside if _file(inside) else statement.module


def _with_packages(module: str) -> Iterator[str]:
    parts = module.split(".")
    yield from (".".join(parts[: count + 1]) for count in range(len(parts)))


def imported(module: str) -> set[str]:
    """Project modules that a module imports, with the packages that they lie in."""
    path = _file(module)
    if path is None:
        return set()
    named = {name for statement in _statements(ast.parse(path.read_text())) for name in _named(statement)}
    ours = (name for name in named if name.split(".")[0] in APPS)
    return {found for name in ours for found in _with_packages(name) if _file(found)}


def _has_content(module: str) -> bool:
    path = _file(module)
    assert path is not None
    if path.name != "__init__.py":
        return True
    body = ast.parse(path.read_text()).body
    return any(not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)) for node in body)


def reached(module: str) -> dict[str, str]:
    """Each reached module with content, without the first itself, and the module that it was found through."""
    through, waiting = {module: ""}, [module]
    for name in waiting:
        new = sorted(imported(name) - through.keys())
        through |= dict.fromkeys(new, name)
        waiting += new
    return {name: by for name, by in sorted(through.items()) if by and _has_content(name)}


def as_text(found: dict[str, str]) -> str:
    """The list, one line for each module, and how many there are."""
    return "".join(f"{name}  <- {by}\n" for name, by in found.items()) + f"{len(found)} modules\n"


if __name__ == "__main__":
    sys.stdout.write(as_text(reached(sys.argv[1] if len(sys.argv) > 1 else JUDGING_PAGE)))
