"""SQL stands whole: a long statement in a file that psql takes as it is, and nothing puts statements together."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.backup import run_postgres_program
from store.sql import fetch_row, read_sql
from tests.config.test_names import modules

ROOT = Path(__file__).parents[2]

COMPOSERS = ("format", "join", "replace", "split", "partition", "removesuffix")
LONGEST = 10
"""Lines of SQL in a Python string."""
SQL = re.compile(
    r"\b(SELECT\b.*\bFROM|INSERT INTO|UPDATE \w+( \w+)?\s+SET|DELETE FROM|LEFT JOIN)\b"
    r"|\b(WHERE|AND) \S+ (=|<|>|IN|IS|NOT)\b",
    re.DOTALL,
)
FILES = sorted(path for path in ROOT.glob("*/**/*.sql") if path.parts[len(ROOT.parts)] not in ("tests", "var", ".venv"))
STATEMENTS = [path for path in FILES if path.parent.name != "migrations"]


# A column to sort by, around the SQL that Django makes of a filter; restoring writes the script that psql runs.
NAMES_ALONE = {"annotation/data/pair_order.py", "config/backup.py", "config/restoring.py", "embedded/postgres.py"}
NAMES_ALONE |= {"corpus/collections/removal.py"}
NAMES_ALONE |= {f"corpus/importing/{name}.py" for name in ("left_out", "staging", "texts")}
"""Modules that run one statement on tables, or by columns, whose names they are told."""
TEMPORARY = """
CREATE TEMP TABLE import_grade (line int, query_id bigint, document_id bigint, grade smallint, assessor_id bigint,
    file int, step text, said_at text);
CREATE TEMP TABLE import_found (line int, query text, document text, grade int, assessor text, kind text, step text,
    said_at text, query_id bigint, document_id bigint);
CREATE TEMP TABLE import_assessor (kind text, name text, assessor_id bigint);
CREATE TEMP TABLE import_compared (line int, grade smallint, query_id bigint, document_id bigint, assessor_id bigint,
    step text, said_at text, before smallint, place bigint, first_line int, first smallint);
"""
"""Tables that an import makes for itself."""


def literals(tree: ast.AST) -> Iterator[ast.Constant]:
    """Texts of a module but its docstrings."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node


def is_composing(tree: ast.AST) -> bool:
    """Whether SQL is formatted, joined or split."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value for part in node.values if isinstance(part, ast.Constant)]
            text = "x".join(map(str, parts)) if len(parts) < len(node.values) else ""
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod):
            text = " ".join(str(part.value) for part in literals(node))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in COMPOSERS:
            text = " ".join(str(part.value) for part in literals(node.func))
        else:
            continue
        if SQL.search(text):
            return True
    return False


def test_a_long_statement_stands_in_a_file_and_nothing_puts_statements_together() -> None:
    long, composing = [], set()
    for path in modules():
        name, tree = str(path.relative_to(ROOT)), ast.parse(path.read_text())
        texts = [text for text in literals(tree) if SQL.search(text.value)]
        long += [f"{name}:{text.lineno}" for text in texts if len(text.value.strip().splitlines()) > LONGEST]
        composing |= {name} if is_composing(tree) else set()
    assert (long, composing) == ([], NAMES_ALONE)


@pytest.mark.django_db
def test_every_file_says_what_it_is_for_is_read_by_a_module_beside_it_and_prepared_by_psql(tmp_path: Path) -> None:
    for path in STATEMENTS:
        assert path.read_text().startswith("-- ")
        assert any(f'read_sql(__file__, "{path.stem}")' in module.read_text() for module in path.parent.glob("*.py"))
    script = tmp_path / "prepare.psql"
    with script.open("w") as file:
        file.write(TEMPORARY)
        for path in STATEMENTS:
            text = path.read_text()
            names = re.findall(r"%\((\w+)\)s", read_sql(str(path), path.stem))
            for number, name in enumerate(dict.fromkeys(names), 1):
                file.write(f"\\set {name} ${number}\n")
            file.write(f"\\echo {path.relative_to(ROOT)}\nPREPARE statement AS\n{text}\nDEALLOCATE statement;\n")
    run_postgres_program("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(script))


@pytest.mark.django_db
def test_a_parameter_is_found_beside_texts_casts_and_comments(tmp_path: Path) -> None:
    (tmp_path / "example.sql").write_text("-- Not :this.\nSELECT ':x', '50%', :value::int; -- nor :that\n")
    sql = read_sql(str(tmp_path / "module.py"), "example")
    assert sql == "SELECT ':x', '50%%', %(value)s::int"
    assert fetch_row(sql, value=7) == (":x", "50%", 7)
