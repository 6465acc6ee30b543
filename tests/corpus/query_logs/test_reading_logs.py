"""Query logs of many forms: what their queries are, and how often each was asked."""

import gzip
import io
from pathlib import Path

import openpyxl
import pytest

from corpus.errors import BadInput
from corpus.formats.files import FileSource
from corpus.query_logs.reading import QueryLog, id_of, read_log


def read(folder: Path, content: bytes | str, name: str = "log.csv", **columns: str) -> QueryLog:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_log(FileSource(path), columns)


def counted(log: QueryLog) -> dict[str, int]:
    return {query.text: query.times for query in log.queries}


SHOES = {"red shoes": 120, "boots": 7}


def workbook(rows: list[list[object]]) -> bytes:
    book, packed = openpyxl.Workbook(), io.BytesIO()
    for row in rows:
        book.active.append(row)
    book.save(packed)
    return packed.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        "query,count\nred shoes,120\nboots,7\n",
        "count,query\n120,red shoes\n7,boots\n",
        "Search term;Impressions\nred shoes;120\nboots;7\n",
        "query\tsearch_volume\r\nred shoes\t120\r\nboots\t7\r\n",
        "\ufeffquery,count\r\nred shoes,120\r\nboots,7\r\n",
        'n,query,count\n1,"red shoes","120"\n2,boots,7.0\n',
        "red shoes\t120\nboots\t7\n",
        "red shoes,120\nboots,7\n",
        gzip.compress(b"query,count\nred shoes,120\nboots,7\n"),
        '{"query": "red shoes", "count": 120}\n{"query": "boots", "count": 7}\n',
        "query,user\n" + "red shoes,ann\n" * 120 + "boots,bo\n" * 7,
        "red shoes\n" * 120 + "boots\n" * 7,
        gzip.compress(("red shoes\r\n" * 120 + "boots\r\n" * 7).encode()),
        workbook([["query", "count"], ["red shoes", 120], ["boots", 7]]),
    ],
    ids=lambda content: type(content).__name__,  # compressed bytes have the time in them
)
def test_logs_of_many_forms_say_the_same(tmp_path: Path, content: bytes | str) -> None:
    assert counted(read(tmp_path, content)) == SHOES


def test_columns_are_named_where_headers_do_not_say_so(tmp_path: Path) -> None:
    content = "Suchbegriff,Anzahl\nred shoes,120\nboots,7\n"
    with pytest.raises(BadInput, match="Suchbegriff, Anzahl"):
        read(tmp_path, content)
    assert counted(read(tmp_path, content, Suchbegriff="query", Anzahl="count")) == SHOES
    with pytest.raises(BadInput, match="Nummer"):
        read(tmp_path, content, Nummer="count")


def test_lines_with_commas_and_words_with_digits_are_queries(tmp_path: Path) -> None:
    assert counted(read(tmp_path, "query,count\niphone13,5\nps5,4\n")) == {"iphone13": 5, "ps5": 4}
    log = read(tmp_path, "shoes, red\nboots\nhats\ngloves\n\n", "log.txt")
    assert counted(log) == {"shoes, red": 1, "boots": 1, "hats": 1, "gloves": 1}
    assert (log.lines, log.empty, log.has_counts) == (5, 1, False)


def test_queries_that_differ_in_case_spaces_or_composition_are_one(tmp_path: Path) -> None:
    """The most frequent form stays; of equally frequent ones the first by its letters, in any order of the file."""
    rows = ["Cafe\u0301  Crème,2", "café crème,3", " CAFÉ CRÈME ,1", ",9", "boots,0", "b,1", "B,1"]
    logs = [read(tmp_path, "\n".join(["query,count", *order])) for order in (rows, rows[::-1])]
    assert logs[0] == logs[1]
    assert counted(logs[0]) == {"café crème": 6, "B": 2}
    assert (logs[0].lines, logs[0].empty, logs[0].unasked, logs[0].traffic) == (7, 1, 1, 8)
    assert id_of("CAFÉ  crème") == logs[0].queries[0].id


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "empty"),
        ("query,count\n", "no query"),
        ("query,count\n,3\n", "no query"),
        ("query,count\nboots,many\n", "line 2"),
        ("query,count\nboots,\n", "line 2"),
        ("query,count\nboots,-1\n", "line 2"),
        ("query,count\nboots,1.5\n", "line 2"),
        ("query,count\nboots,99999999999999\n", "line 2"),
        ("query,count\nred, shoes,3\n", "line 2"),
        (b"query,count\n\xff\xfe,3\n", "UTF-8"),
        ("<log><q>boots</q></log>", "log.csv"),
        ('{"_id": "1", "text": "boots"}', "log.csv"),
        (gzip.compress(b"query,count\n" + b"boots,3\n" * 99)[:-9], "gzip"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isalpha() else "log",
)
def test_a_bad_log_is_refused_with_its_line(tmp_path: Path, content: bytes | str, words: str) -> None:
    with pytest.raises(BadInput, match=words) as error:
        read(tmp_path, content)
    assert "\n" not in str(error.value)
