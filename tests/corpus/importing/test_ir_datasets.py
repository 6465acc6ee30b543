"""A collection of ir_datasets by its name: from the cache on the disk, never from the network."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from config.env import ROOT
from corpus.importing import ir_datasets_cache
from tests.imported_files import import_files

VASWANI = {
    "docs.txt": "1\ncompact memories have flexible capacities\n   /\n2\nan electronic analogue computer\n   /\n",
    "queries.txt": "1\nMEASUREMENT OF DIELECTRIC CONSTANT\n/\n2\nMATHEMATICAL ANALYSIS\n/\n",
    "qrels.txt": "1\n 2\n   /\n2\n 1 2\n   /\n",
}
READ = """
import sys, pathlib
import django
from django.conf import settings
settings.configure(USE_I18N=False)
from corpus.errors import BadInput
from corpus.importing.ir_datasets_cache import write_files
try:
    print([path.name for path in write_files(sys.argv[1], pathlib.Path(sys.argv[2]))])
except BadInput as error:
    print(error)
"""


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """The package's home, with one small collection as it downloads and unpacks it."""
    folder = tmp_path / "cache" / "vaswani"
    folder.mkdir(parents=True)
    for name, content in VASWANI.items():
        (folder / name).write_text(content)
    return folder.parent


def read(cache: Path, name: str, folder: Path) -> str:
    """What another process says: the package finds its home once, when it is first imported."""
    pytest.importorskip("ir_datasets")
    folder.mkdir(exist_ok=True)
    values = {**os.environ, "IR_DATASETS_HOME": str(cache), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", READ, name, str(folder)]
    done = subprocess.run(command, env=values, capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.strip()


@pytest.mark.slow
@pytest.mark.django_db
def test_a_collection_in_the_cache_is_imported(cache, tmp_path, monkeypatch):
    folder = tmp_path / "out"
    assert read(cache, "vaswani", folder) == "['corpus.jsonl', 'queries.jsonl', 'qrels.txt']"
    monkeypatch.setattr(
        "corpus.management.commands.import_collection.write_files", lambda name, _folder: sorted(folder.iterdir())
    )
    report, said = import_files("vaswani", "--ir-datasets=vaswani")
    assert report["new"] == {"documents": 2, "queries": 2, "pairs": 3, "judgments": 3}
    assert "vaswani/corpus.jsonl: documents" in said


@pytest.mark.slow
def test_what_is_not_on_the_disk_is_not_downloaded(cache, tmp_path):
    (cache / "vaswani" / "docs.txt").unlink()
    said = read(cache, "vaswani", tmp_path / "out")
    assert '"vaswani"' in said and "ir_datasets export vaswani docs" in said
    assert '"no/such"' in read(cache, "no/such", tmp_path / "out")


@pytest.mark.django_db
def test_without_the_package_one_line_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    said = '"vaswani": the Python package ir_datasets is not installed; pip install ir_datasets\n'
    assert import_files("books", "--ir-datasets", "vaswani") == ({}, said)
    assert "http_proxy" in ir_datasets_cache._OFFLINE
