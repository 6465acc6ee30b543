"""Every importer of files names what it got instead of what it reads (`corpus.formats.recognition`)."""

import bz2
import gzip
import io
import json
import lzma
import sqlite3
import tarfile
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pytest
from pyarrow import feather, parquet

from benchmark.runs.files import RunFile, read_qrels
from corpus.aspects.files import read_aspects
from corpus.errors import BadInput
from corpus.formats import recognition
from corpus.formats.files import FileSource
from corpus.importing import records
from corpus.importing.grades import read_grades
from corpus.importing.run_lines import top_of_run
from judges.management.commands import measure_evidence
from judges.panels import judges_file
from tests.corpus.importing.file_contents import zip_of
from tests.settings_files import read_settings
from tests.stages import crossed

ROW = {"_id": "d1", "title": "A title", "text": "Some text that says something."}
LINES = "".join(json.dumps({**ROW, "_id": f"d{n}"}) + "\n" for n in range(200))


def all_of(read: Callable[[FileSource], object]) -> Callable[[Path], object]:
    return lambda path: list(read(FileSource(path)))  # type: ignore[call-overload]


IMPORTERS = {
    "documents": all_of(records.read_documents),
    "queries": all_of(lambda source: records.read_queries(source, by_position=False)),
    "pairs": all_of(lambda source: records.read_pairs(source, 1)),
    "grades": all_of(lambda source: read_grades(source, 1)),
    "candidates of a run": all_of(lambda source: top_of_run(source, 10)),
    "run": RunFile,
    "qrels": read_qrels,
    "aspects": read_aspects,
    "judges": judges_file.read,
    "settings": read_settings,
    "answers of a model": measure_evidence.read_outputs,
}


def tarred(mode: str) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:  # type: ignore[call-overload]
        entry = tarfile.TarInfo("corpus.jsonl")
        entry.size = len(LINES)
        archive.addfile(entry, io.BytesIO(LINES.encode()))
    return file.getvalue()


def columns(write: Callable[[pyarrow.Table, io.BytesIO], None]) -> bytes:
    file = io.BytesIO()
    write(pyarrow.table({"text": ["one", "two"]}), file)
    return file.getvalue()


def database(folder: Path) -> bytes:
    with sqlite3.connect(folder / "texts.db") as connection:
        connection.execute("CREATE TABLE texts (text)")
    connection.close()
    return (folder / "texts.db").read_bytes()


FILES: dict[str, Callable[[Path], bytes]] = {
    "a Parquet file": lambda _: columns(parquet.write_table),
    "an Arrow or Feather file": lambda _: columns(feather.write_feather),
    "an SQLite database": database,
    "an Excel workbook": lambda _: zip_of(dict.fromkeys(("[Content_Types].xml", "xl/workbook.xml"), LINES)),
    "a Word document": lambda _: zip_of(dict.fromkeys(("[Content_Types].xml", "word/document.xml"), LINES)),
    "a zip archive": lambda _: zip_of(dict.fromkeys(("corpus.jsonl", "queries.jsonl"), LINES)),
    "text in UTF-16": lambda _: LINES.encode("utf-16"),
    "text in UTF-32": lambda _: LINES.encode("utf-32"),
    "a bzip2 archive": lambda _: bz2.compress(LINES.encode()),
    "an xz archive": lambda _: lzma.compress(LINES.encode()),
    "a tar archive": lambda _: tarred("w"),
    "a PDF": lambda _: b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n" + b"1 0 obj <<>> endobj\n" * 50,
    "a web page (HTML)": lambda _: b"\n<!DOCTYPE html>\n<html><body>Not found</body></html>",
    "a pointer of Git LFS": lambda _: b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n",
    "binary data": lambda _: bytes(range(256)) * 4,
}


OF_TABLES = ("documents", "queries", "pairs", "grades", "qrels")  # These read what has rows, in whatever form.
REFUSED = [
    (what, importer)
    for importer, what in crossed(sorted(IMPORTERS, key="run".__ne__), FILES)
    if importer not in OF_TABLES or what not in ("a Parquet file", "an Excel workbook")
]


@pytest.mark.parametrize(("what", "importer"), REFUSED)
def test_every_importer_says_which_file_it_got_and_what_to_do(what, importer, tmp_path):
    path = tmp_path / "given"
    path.write_bytes(FILES[what](tmp_path))
    with pytest.raises(BadInput) as refused:
        IMPORTERS[importer](path)
    assert str(refused.value).startswith(f"{path}: this is {what}, ")
    assert "NUL" not in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize("importer", IMPORTERS)
def test_a_folder_is_named_with_the_files_that_could_be_meant(importer, tmp_path):
    for name in ("corpus.jsonl", "qrels", "README.md"):
        (tmp_path / name).touch()
    with pytest.raises(BadInput, match=r"folder, .*corpus\.jsonl, qrels, "):
        IMPORTERS[importer](tmp_path)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (LINES.encode("utf-16-le"), "text in UTF-16"),
        (LINES.encode("utf-16-be"), "text in UTF-16"),
        (gzip.compress(tarred("w")), "a tar archive"),
        (tarred("w:gz"), "a tar archive"),
        (gzip.compress(columns(feather.write_feather)), "an Arrow or Feather file"),
    ],
)
def test_without_a_mark_and_inside_gzip_too(data, what, tmp_path):
    path = tmp_path / "given"
    path.write_bytes(data)
    with pytest.raises(BadInput, match=f"this is {what}"):
        list(records.read_documents(FileSource(path)))


LABEL_STUDIO = [{"id": 1, "data": {"text": "x"}, "annotations": [{"result": [], "lead_time": 3}]}]
ARGILLA = [{"id": "1", "fields": {"text": "x"}, "responses": {}, "suggestions": {}}]
DOCCANO = {"id": 1, "text": "x", "label": ["relevant"]}
PRODIGY = {"text": "x", "_input_hash": 1, "_task_hash": 2, "answer": "accept"}
TOOLS = {
    "a Label Studio export": [json.dumps(LABEL_STUDIO), json.dumps(LABEL_STUDIO, indent=2)],
    "an Argilla export": [json.dumps(ARGILLA), json.dumps(ARGILLA[0]) + "\n"],
    "JSON as doccano writes it": [json.dumps(DOCCANO) + "\n", json.dumps([DOCCANO])],
    "a Prodigy export": [json.dumps(PRODIGY) + "\n"],
    "JSON that maps queries to documents": [json.dumps({"q1": {"d1": 1}}), json.dumps({"q1": {"d1": 0.5}}, indent=4)],
    "one JSON list": [json.dumps([ROW]), json.dumps([ROW], indent=1)],
    "JSON over several lines": [json.dumps(ROW, indent=2)],
}
OF_LINES = ("documents", "queries", "pairs", "grades", "candidates of a run", "run", "qrels", "aspects")


READ = ("a Label Studio export", "an Argilla export", "one JSON list", "JSON over several lines")
NAMED = [
    (what, text, importer)
    for what, texts in TOOLS.items()
    for text in texts
    for importer in OF_LINES
    if importer not in OF_TABLES or what not in READ
]


@pytest.mark.parametrize(("what", "text", "importer"), NAMED)
def test_json_of_other_tools_is_named(what, text, importer, tmp_path):
    path = tmp_path / "given.json"
    path.write_text(text)
    with pytest.raises(BadInput) as refused:
        IMPORTERS[importer](path)
    assert f"this is {what}" in str(refused.value) and "\n" not in str(refused.value)


def test_what_is_ours_is_never_taken_for_another():
    """Texts may begin with letters that mark a binary file, and speak of other tools."""
    said = json.dumps({"_id": "d", "text": 'PAR1 {"annotations": [], "data": 1, "completions": 2}'})
    for text in ("ORC 0 d1 1\n", "PAR1 Q0 d1 1 2.0 tag\n", "BZh 0 d 1\n", "caf\u00e9\n" * 99, said, LINES, ""):
        assert recognition.recognise_format(text.encode()) is None
    assert recognition.recognise_format(("x" * 9 + "é").encode()[:-1]) is None
    assert recognition.json_of(said.encode()) is None and recognition.json_of(LINES.encode()) is None
    assert recognition.json_of(b'{"_id": "q", "text": "t", "answers": ["a"], "metadata": {"label": 1}}') is None
