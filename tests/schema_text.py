"""The schema of this instance's database as sorted text: two checkouts with equal text have equal databases.

`QUORUM_VAR=FOLDER python -m tests.schema_text` prints every table with its columns in the order of
their names, every index, constraint, trigger, function, view and sequence, as pg_dump writes them.
"""

import os
import re
import sys
import tempfile

from config.startup import ensure_for_command


def schema_text(dump: str) -> str:
    """Return the statements of a dump, sorted, each table's columns sorted too; comments and settings left out."""
    kept = "\n".join(line for line in dump.splitlines() if not re.match(r"--|SET |SELECT pg_catalog|\\", line))
    statements = []
    for part in _split(kept):
        if part.startswith("CREATE TABLE"):
            head, *columns, end = part.splitlines()
            part = "\n".join([head, *sorted(line.rstrip(",") for line in columns), end])
        statements.append(part)
    return "\n\n".join(sorted(statements)) + "\n"


def _split(text: str) -> list[str]:
    """Return the statements of SQL: cut at semicolons that end a line outside of dollar quotes."""
    found: list[str] = []
    lines: list[str] = []
    quote = ""
    for line in text.splitlines():
        lines.append(line)
        for mark in re.findall(r"\$\w*\$", line):
            quote = "" if mark == quote else quote or mark
        if line.endswith(";") and not quote:
            found.append("\n".join(lines).strip())
            lines = []
    return [*found, *(["\n".join(lines)] if "".join(lines).strip() else [])]


def main() -> None:
    """Print the schema's text."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    ensure_for_command(["manage.py", "migrate"])
    import django

    django.setup()
    from config.backup import run_postgres_program

    with tempfile.TemporaryFile("w+") as file:
        run_postgres_program("pg_dump", "--schema-only", "--no-owner", "--no-privileges", stdout=file)
        file.seek(0)
        text = file.read()
    sys.stdout.write(schema_text(text))


if __name__ == "__main__":
    main()
