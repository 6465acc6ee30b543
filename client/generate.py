"""Writes what is generated of the client: `models.py` of the API's document, and `_sync/` of `_async/`.

    python client/generate.py

The models are datamodel-code-generator's, the synchronous source is unasync's; both are formatted as the rest.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import unasync

HERE = Path(__file__).resolve().parent
PACKAGE = HERE / "quorum_client"
# Classes are found by their prefix in the source, so that a new one needs no entry here.
CLASSES = re.compile(r"\bAsync[A-Z]\w+")
# Beside the classes, which lose their first five letters.
NAMES = {
    "_async": "_sync", "asyncio": "time", "aclose": "close", "aread": "read", "aiter_bytes": "iter_bytes",
}  # fmt: skip
# ADR 0093. Literals, as callers write texts and no members of classes. Null and left out are told apart (strict-
# nullable), for a PATCH means different things by them. No time stamp: generating again must change nothing, which a
# test compares. Formatted by ruff below, as the rest of the tree, hence the builtin formatter.
OPTIONS = (
    "--input-file-type=openapi", "--output-model-type=pydantic_v2.BaseModel", "--target-python-version=3.11",
    "--base-class=quorum_client.answers.ApiModel", "--use-annotated", "--strict-nullable",
    "--use-schema-description", "--use-single-line-docstring", "--enum-field-as-literal=all", "--disable-timestamp",
    "--formatters=builtin", "--collapse-root-models",
)  # fmt: skip
FIRST_LINE = '"""The models of the API: generated (client/generate.py), not to be edited."""\n\n'


def read_document() -> dict[str, Any]:
    """Return the API's OpenAPI document without what would make the models longer and say nothing."""
    # Imported when Django is set up, by the test's settings or below.
    from api.urls import api

    # Lazy translations become texts, and statuses keys of JSON, as in the file that is served.
    document = json.loads(json.dumps(api.get_openapi_schema(path_prefix="/api/v1/"), default=str))
    for schema in document["components"]["schemas"].values():
        for field in schema.get("properties", {}).values():
            field.pop("title", None)
            _join_null(field)
    return dict(document)


def _join_null(field: dict[str, Any]) -> None:
    """Write "an integer from 1, or null" as one type with a limit: as two, the first would become a class."""
    match field.get("anyOf"):
        # A list of choices stays apart: null would become one of the choices.
        case [{"type": str(kind)} as value, {"type": "null"}] if "enum" not in value:
            del field["anyOf"]
            field |= {**value, "type": [kind, "null"]}


def write_models(document: dict[str, Any], to: Path) -> None:
    """Write the models of a document."""
    with TemporaryDirectory() as folder:
        source = Path(folder) / "openapi.json"
        source.write_text(json.dumps(document))
        command = [sys.executable, "-m", "datamodel_code_generator", f"--input={source}", f"--output={to}", *OPTIONS]
        subprocess.run(command, check=True)
    lines = to.read_text().splitlines(keepends=True)
    # The generator's own header names a temporary file.
    to.write_text(FIRST_LINE + "".join(line for line in lines if not line.startswith("#")).lstrip())
    format_source(to)


def write_sync(to: Path) -> None:
    """Write the synchronous source of the asynchronous one into a folder."""
    # The package's own docstring differs: each says which of the two clients it is.
    sources = [path for path in sorted((PACKAGE / "_async").glob("*.py")) if path.name != "__init__.py"]
    text = "".join(path.read_text() for path in sources)
    names = NAMES | {name: name.removeprefix("Async") for name in CLASSES.findall(text)}
    unasync.unasync_files(
        [str(path) for path in sources],
        # Both folders end with a slash, for unasync replaces the one text by the other in a path.
        [unasync.Rule(fromdir=f"{PACKAGE}/_async/", todir=f"{to}/", additional_replacements=names)],
    )
    (to / "__init__.py").write_text('"""The client that waits for each answer: generated of the one beside it."""\n')
    format_source(to)


def format_source(path: Path) -> None:
    """Format as the rest of the source is, and sort the imports."""
    settings = ["--config", str(HERE.parent / "pyproject.toml"), str(path)]
    # Sorted first: names without Async stand in another order.
    subprocess.run([sys.executable, "-m", "ruff", "check", "--quiet", "--select=I", "--fix", *settings], check=True)
    subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", *settings], check=True)


def generated_files(package: Path) -> Iterator[Path]:
    """Yield what is generated in a package, by its path there."""
    yield Path("models.py")
    yield from (Path("_sync") / path.name for path in sorted((package / "_sync").glob("*.py")))


def write_all(to: Path) -> None:
    """Write everything that is generated into a package's folder."""
    write_models(read_document(), to / "models.py")
    write_sync(to / "_sync")


if __name__ == "__main__":
    # The site's source is not installed; it lies one folder above the client's.
    sys.path.insert(0, str(HERE.parent))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    write_all(PACKAGE)
