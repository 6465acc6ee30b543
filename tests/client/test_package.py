"""The package: its records are those of the API's document, its wheel has all of it, and its tables are filled."""

import subprocess
import sys
from datetime import datetime
from pathlib import Path
from shutil import copytree, ignore_patterns
from zipfile import ZipFile

import pytest
from django.test import Client

from config.env import ROOT
from quorum_client import records, tables
from quorum_client.records import LabelledText, Record

CLIENT = ROOT / "client"
OWN = {"Record", "WorkRecord", "CostRecord", "LabelledText"}
"""Records that no operation answers: base classes, and what the client puts together."""
LABELS = [
    LabelledText(query_id="q", document_id=f"d{grade}", query="q", document="d", grade=grade, origin="people")
    for grade in range(2)
]


@pytest.mark.django_db
def test_records_have_the_fields_of_the_api_document() -> None:
    schemas = Client().get("/api/v1/openapi.json").json()["components"]["schemas"]
    classes = {
        name: record
        for name, record in vars(records).items()
        if isinstance(record, type) and issubclass(record, Record) and name not in OWN
    }
    assert len(classes) > 20
    for name, record in classes.items():
        required = {field for field, value in record.model_fields.items() if value.is_required()}
        assert required <= set(schemas[name]["properties"]), name
    collection = {"name": "c", "title": "", "instruction": "", "grades": 3, "relevant_from": 1, "overlap": 1}
    read = records.CollectionOut.model_validate({**collection, "created_at": datetime(2026, 1, 1), "later": 5})
    assert not hasattr(read, "later")


@pytest.mark.parametrize("module", ["pandas", "datasets"])
def test_labels_become_tables_where_the_library_is_installed(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    convert = {"pandas": tables.to_pandas, "datasets": tables.to_dataset}[module]
    if module == "pandas":
        pytest.importorskip(module)
        table = convert(iter(LABELS))
        assert list(table["document_id"]) == ["d0", "d1"] and list(table["grade"]) == [0, 1]
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"pip install 'quorum-client\[{module}\]'"):
        convert(LABELS)


@pytest.mark.slow
def test_the_wheel_has_every_module_and_says_that_it_is_typed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    # setuptools builds beside the source.
    source = copytree(CLIENT, tmp_path / "source", ignore=ignore_patterns("build", "*.egg-info", "__pycache__"))
    done = subprocess.run([*command, "-w", str(tmp_path), str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(next(name for name in names if name.endswith("METADATA"))).decode()
    modules = {f"quorum_client/{path.name}" for path in (CLIENT / "quorum_client").glob("*.py")}
    assert modules | {"quorum_client/py.typed"} <= names
    required = [line for line in metadata.splitlines() if line.startswith("Requires-Dist") and "extra" not in line]
    libraries = [line.split()[1].split("<")[0].split(">")[0] for line in required]
    assert libraries == ["httpx2", "pydantic", "standardwebhooks"]
