"""What files hold shows in their content: one file each, a BEIR folder as zip, and archives that are refused."""

import gzip
import io
import zipfile
from pathlib import Path

import pytest

from corpus.errors import BadInput
from corpus.formats import archives, files
from corpus.formats.files import FileSource
from corpus.importing.detection import DetectedFile, detect, list_sources
from corpus.models import Collection, Document
from tests.corpus.importing.file_contents import zip_of
from tests.imported_files import import_files

DOCUMENTS = '{"_id": "d1", "title": "One", "text": "First."}\n{"_id": "d2", "title": "", "text": "Second."}\n'
QUERIES = '{"_id": "q1", "text": "Which?", "metadata": {}}\n{"_id": "q2", "text": "Why?", "metadata": {}}\n'
TEST_QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t1\n"
BEIR = {
    "scifact/corpus.jsonl": DOCUMENTS,
    "scifact/queries.jsonl": QUERIES,
    "scifact/qrels/train.tsv": "query-id\tcorpus-id\tscore\nq2\td2\t1\n",
    "scifact/qrels/test.tsv": TEST_QRELS,
    "scifact/README.md": "A data set.\n",
    "__MACOSX/scifact/._corpus.jsonl": "x",
}


def zip_at(path: Path, members: dict[str, str | bytes]) -> Path:
    path.write_bytes(zip_of(members))
    return path


def detected(folder: Path, name: str, content: str) -> DetectedFile:
    (folder / name).write_text(content)
    return detect(FileSource(folder / name, name=name))


@pytest.mark.parametrize(
    ("name", "content", "kind", "row"),
    [
        ("queries.jsonl", '{"_id": "q1", "text": "Which?"}\n', "queries", ["q1", "Which?"]),
        ("sq.jsonl", '{"_id": "1", "text": "what must be obeyed ."}\n', "queries", ["1", "what must be obeyed ."]),
        ("a.jsonl", '{"_id": "1", "title": "", "text": "Why?"}\n', "documents", ["1", "", "Why?"]),
        ("x.jsonl", '{"_id": "q1", "text": "Which?", "answers": ["A"]}\n', "queries", ["q1", "Which?", "['A']"]),
        ("x", '{"query_id": "q1", "doc_id": "d1"}\n', "pairs", ["q1", "d1", "", ""]),
        ("x", "<?xml version='1.0'?>\n<top>\n<num>1</num><title>Why?</title></top>", "queries", ["1", "Why?", ""]),
        ("x", TEST_QRELS, "qrels", ["q1", "d1", "1"]),
        ("x", "q1 Q0 d1 1 2.5 bm25\n", "runs", ["q1", "Q0", "d1", "1", "2.5", "bm25"]),
    ],
)
def test_a_file_is_known_by_its_content(tmp_path, name, content, kind, row):
    found = detected(tmp_path, name, content)
    assert (found.kind, found.problem, found.rows[0]) == (kind, "", row)
    assert len(found.header) == len(row)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "x: the file is empty"),
        ("One line.\nAnother.\n", "x, line 1: not JSON, XML, a table, qrels or a run"),
        ("Frage,Antwort\nWarum?,Darum.\n", "say what its columns are"),
        ('{"id": 1, "data": {}}\n', "say what its columns are"),
        ("<html><body>x</body></html>\n", "x: this is a web page"),
    ],
)
def test_what_is_left_out_has_its_reason(tmp_path, content, said):
    found = detected(tmp_path, "x", content)
    assert found.kind == "" and found.problem.startswith(said)


def test_only_five_short_rows_are_kept(tmp_path):
    found = detected(tmp_path, "x.csv", "id,text\n" + "".join(f"d{n},{'word ' * 99}\n" for n in range(9)))
    assert len(found.rows) == 5 and max(len(cell) for row in found.rows for cell in row) == 200


SHORT = "".join(f'{{"_id": "{n}", "text": "papers on flow number {n} past a slender wing ."}}\n' for n in range(9))
LONG = "".join(f'{{"_id": "d{n}", "text": "{"The flow past a slender wing. " * 20}"}}\n' for n in range(9))


@pytest.mark.parametrize("corpus", [("docs.jsonl", DOCUMENTS), ("docs.jsonl", LONG), ("docs.csv", "id,text\nd1,x\n")])
def test_short_texts_without_titles_beside_documents_are_queries(db, tmp_path, corpus):
    """A name such as sq.jsonl says nothing, and these texts are no questions."""
    documents, queries = tmp_path / corpus[0], tmp_path / "sq.jsonl"
    documents.write_text(corpus[1])
    queries.write_text(SHORT)
    report, said = import_files("books", documents, queries)
    assert report["new"]["queries"] == 9 and report["documents"] == len(corpus[1].splitlines()) - ("csv" in corpus[0])
    assert f"{queries}: queries (" in said and "name the file by --corpus" in said


def test_short_texts_alone_or_beside_queries_are_documents_and_the_option_is_named(db, tmp_path):
    (tmp_path / "sq.jsonl").write_text(SHORT)
    (tmp_path / "queries.jsonl").write_text(QUERIES)
    report, said = import_files("books", tmp_path / "queries.jsonl", tmp_path / "sq.jsonl")
    assert report["documents"] == 9 and "sq.jsonl: documents (" in said and "name the file by --queries" in said
    again, _said = import_files("birds", "--corpus", tmp_path / "sq.jsonl", "--queries", tmp_path / "queries.jsonl")
    assert (again["documents"], again["queries"]) == (9, 2)


# Archives


SPLIT = "query-id\tcorpus-id\tscore\n"


def test_splits_that_say_the_same_of_a_pair_count_it_once_and_others_name_both_files(db, tmp_path):
    same = BEIR | {"scifact/qrels/train.tsv": SPLIT + "q1\td1\t1\nq2\td2\t1\n",
                   "scifact/qrels/test.tsv": SPLIT + "q2\td1\t1\nq1\td1\t1\n"}  # fmt: skip
    report, said = import_files("books", zip_at(tmp_path / "same.zip", same))
    assert (report["pairs"], report["judgments"], [*report["qrels"].values()]) == (3, 3, [2, 2]), said
    other = same | {"scifact/qrels/test.tsv": SPLIT + "q2\td1\t1\nq1\td1\t2\n"}
    first, second = (f"{tmp_path}/other.zip/scifact/qrels/{split}.tsv" for split in ("train", "test"))
    report, said = import_files("birds", zip_at(tmp_path / "other.zip", other))
    assert not report and not Collection.objects.filter(name="birds").exists()
    assert f"{second}, line 3: grade 2" in said and f"{first}, line 2, has 1" in said


def test_files_that_are_named_are_never_left_out_in_silence(db, tmp_path):
    def refused(*arguments: str) -> str:
        report, said = import_files("books", *arguments)
        assert not report and not Collection.objects.exists()
        return said

    contents = ("id,text\n1,x\n", "id,text\n2,y\n", "q,w\n1,x\n", "id,title,text\n2,y,z\n", "query,text\nWhy?,z\n")
    a, b, c, d, e = paths = [str(tmp_path / f"{name}.csv") for name in "abcde"]
    for path, content in zip(paths, contents, strict=True):
        Path(path).write_text(content)
    assert f"{d}: it contains documents, as {a} does, in other columns; leave one of them out\n" in refused(a, d)
    assert "file contains queries" in refused(a, b), "of the same columns, so they are parts of one"
    assert refused(a, c).endswith(f"{c}: say what its columns are\n")
    assert "file of queries\n" in refused(a)
    assert "--corpus: " in refused(a, "--corpus", a) and "--column: " in refused(a, "--column", "text")
    assert "HEADER=FIELD" in refused(a, "--column", "text")
    import_files("books", e)
    import_files("books", "--corpus", a)
    assert Document.objects.count() == 2, "documents alone join a collection that has queries"


@pytest.mark.parametrize(
    "name", ["../../evil.jsonl", "/etc/evil.jsonl", "..\\evil.jsonl", "C:\\evil.jsonl", "a/../../b"]
)
def test_a_member_outside_of_the_archive_is_refused(tmp_path, name):
    path = zip_at(tmp_path / "x.zip", {"corpus.jsonl": DOCUMENTS, name: "x"})
    with pytest.raises(BadInput, match=r"x\.zip: .*outside"):
        archives.list_members(FileSource(path, name="x.zip"))


def test_a_zip_bomb_is_refused_unopened_and_one_that_lies_while_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "UNPACKED", 1 << 20)
    bomb = zip_at(tmp_path / "bomb.zip", {"corpus.jsonl": " " * (8 << 20)})
    with pytest.raises(BadInput, match="200 times its size"):
        archives.list_members(FileSource(bomb))
    many = zip_at(tmp_path / "many.zip", {f"{n}": b" " * (1 << 19) for n in range(9)})
    with pytest.raises(BadInput, match="200 times its size"):
        archives.list_members(FileSource(many))
    inner = io.BytesIO()
    with gzip.GzipFile(fileobj=inner, mode="wb") as packed:
        packed.write((b" " * 1023 + b"\n") * (8 << 10))
    nested = zip_at(tmp_path / "nested.zip", {"corpus.jsonl.gz": inner.getvalue()})
    (member,) = archives.list_members(FileSource(nested))
    with pytest.raises(BadInput, match="200 times its size"):
        list(FileSource(nested, member=member).lines(blank=True))


def test_archives_that_are_none_locked_empty_too_many_or_whose_bytes_were_damaged(tmp_path, monkeypatch):
    (tmp_path / "cut.zip").write_bytes(zip_at(tmp_path / "x.zip", BEIR).read_bytes()[:-30])
    with pytest.raises(BadInput, match=r"cut\.zip: .*damaged"):
        list_sources(tmp_path / "cut.zip")
    with pytest.raises(BadInput, match="empty"):
        list_sources(zip_at(tmp_path / "none.zip", {}))
    monkeypatch.setattr(archives, "MAX_MEMBERS", 2)
    with pytest.raises(BadInput, match=r"5 files.* 2"):
        list_sources(tmp_path / "x.zip")
    data = bytearray(zip_at(tmp_path / "one.zip", {"corpus.jsonl": DOCUMENTS}).read_bytes())
    for mark, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.index(mark) + at] |= 1
    (tmp_path / "locked.zip").write_bytes(data)
    with pytest.raises(BadInput, match="encrypted"):
        list_sources(tmp_path / "locked.zip")
    with pytest.raises(BadInput, match=r"sheet\.xlsx: .*damaged"):
        list_sources(zip_at(tmp_path / "sheet.xlsx", {"[Content_Types].xml": "", "xl/workbook.xml": ""}))
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("corpus.jsonl", DOCUMENTS)
    path.write_bytes(path.read_bytes().replace(b"Second", b"Secund"))
    (source,) = list_sources(path, "x.zip")
    with pytest.raises(BadInput, match=r"x\.zip/corpus\.jsonl: .*damaged"):
        list(source.lines())


def test_a_folder_is_read_as_an_archive_is_and_links_out_of_it_are_not(db, tmp_path):
    folder = tmp_path / "scifact"
    for name, content in BEIR.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    (tmp_path / "secret.jsonl").write_text('{"_id": "d9", "text": "Secret."}\n')
    (folder / "a.jsonl").symlink_to(tmp_path / "secret.jsonl")
    (folder / ".hidden").write_text("x")
    report, said = import_files("books", folder)
    assert report["new"] == {"documents": 2, "queries": 2, "pairs": 2, "judgments": 2}
    assert f"{folder}/README.md, line 1" in said and "a.jsonl" not in said and "hidden" not in said
    path = zip_at(tmp_path / "beir.zip", BEIR)
    again, said = import_files("books", path)
    assert f"{path}/scifact/README.md, line 1" in said and "; left out\n" in said
    assert again["changed"] is False and again["unchanged"] == report["new"]
    (tmp_path / "none").mkdir()
    with pytest.raises(BadInput, match="no files"):
        list_sources(tmp_path / "none")
