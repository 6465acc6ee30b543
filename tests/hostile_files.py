"""Files that claim or unpack to far more than they weigh, of every kind that an import reads, by their names."""

import bz2
import gzip
import io
import json
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Iterator

Build = Callable[[], bytes]
MEGA = 1 << 20
_RELATION = (
    '<Relationship Id="rId{n}" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/{kind}" '
    'Target="{target}"/>'
)
_MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_HEADER = '<row r="1"><c r="A1" t="str"><v>text</v></c></row>'


def zip_of(members: dict[str, str | bytes] | list[tuple[str, str | bytes]]) -> bytes:
    kept = io.BytesIO()
    with zipfile.ZipFile(kept, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, content in members.items() if isinstance(members, dict) else members:
            archive.writestr(name, content)
    return kept.getvalue()


def gzip_of(content: bytes) -> bytes:
    return gzip.compress(content, 6)


def workbook(rows: str | bytes, *, sheets: int = 1, parts: int = 1, styles: str = "", texts: str = "") -> bytes:
    """Return a workbook whose sheets all have these rows, as they are written; sheets beyond `parts` share one."""
    listed = "".join(f'<sheet name="S{n}" sheetId="{n}" r:id="rId{min(n, parts)}"/>' for n in range(1, sheets + 1))
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    types = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    data = rows if isinstance(rows, bytes) else rows.encode()
    related = [_RELATION.format(n=n, kind="worksheet", target=f"worksheets/sheet{n}.xml") for n in range(1, parts + 1)]
    kinds = [f'<Override PartName="/xl/workbook.xml" ContentType="{types}.sheet.main+xml"/>']
    for n in range(1, parts + 1):
        kinds.append(f'<Override PartName="/xl/worksheets/sheet{n}.xml" ContentType="{types}.worksheet+xml"/>')
    members: dict[str, str | bytes] = {}
    for place, (kind, content) in enumerate((("styles", styles), ("sharedStrings", texts))):
        if content:
            related.append(_RELATION.format(n=9_000 + place, kind=kind, target=f"{kind}.xml"))
            kinds.append(f'<Override PartName="/xl/{kind}.xml" ContentType="{types}.{kind}+xml"/>')
            members[f"xl/{kind}.xml"] = content
    namespace = "http://schemas.openxmlformats.org/package/2006"
    members |= {
        "[Content_Types].xml": f'<Types xmlns="{namespace}/content-types"><Default Extension="rels" ContentType='
        f'"application/vnd.openxmlformats-package.relationships+xml"/>{"".join(kinds)}</Types>',
        "_rels/.rels": f'<Relationships xmlns="{namespace}/relationships">'
        + _RELATION.format(n=1, kind="officeDocument", target="xl/workbook.xml")
        + "</Relationships>",
        "xl/workbook.xml": f'<workbook {_MAIN} xmlns:r="{office}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{namespace}/relationships">{"".join(related)}'
        "</Relationships>",
    }
    for n in range(1, parts + 1):
        members[f"xl/worksheets/sheet{n}.xml"] = (
            f"<worksheet {_MAIN}><sheetData>".encode() + data + b"</sheetData></worksheet>"
        )
    return zip_of(members)


def _far_rows() -> str:
    """Return a row of 16,384 columns, and rows with one cell at its end."""
    return '<row r="1"><c r="XFD1" t="str"><v>x</v></c></row>' + "".join(
        f'<row r="{n}"><c r="XFD{n}"><v>1</v></c></row>' for n in range(2, 60_000)
    )


_LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b0 "ha">'
    + "".join(f'<!ENTITY b{n} "{f"&b{n - 1};" * 10}">' for n in range(1, 12))
    + "]><a>&b11;</a>"
)
_XLSX: dict[str, Build] = {
    "row-10^12": lambda: workbook(_HEADER + '<row r="1000000000000"><c><v>1</v></c></row>'),
    "row-10^12-first": lambda: workbook('<row r="1000000000000"><c><v>1</v></c></row>'),
    "row-1048577": lambda: workbook(_HEADER + '<row r="1048577"><c><v>1</v></c></row>'),
    "row-negative": lambda: workbook('<row r="-5"><c><v>1</v></c></row>'),
    "row-no-number": lambda: workbook(f'<row r="{"9" * 9_000}"><c><v>1</v></c></row>'),
    "row-float": lambda: workbook('<row r="1e300"><c><v>1</v></c></row>'),
    "500-sheets-of-one-part": lambda: workbook(_HEADER, sheets=500),
    "99-sheets-of-one-part": lambda: workbook(_HEADER + "<row/>" * 40_000, sheets=99),
    "20-sheets-of-100000-empty-rows": lambda: workbook("<row/>" * 100_000, sheets=20, parts=20),
    "90-sheets-of-49000-empty-rows": lambda: workbook("<row/>" * 49_000, sheets=90, parts=90),
    "empty-rows-then-one": lambda: workbook("<row/>" * 2_000_000 + _HEADER),
    "empty-cells": lambda: workbook("<row>" + "<c/>" * 3_000_000 + "</row>"),
    "far-columns": lambda: workbook(_far_rows()),
    "column-ZZZ": lambda: workbook('<row r="1"><c r="ZZZ1" t="str"><v>x</v></c></row>'),
    "column-of-many-letters": lambda: workbook(f'<row r="1"><c r="{"A" * 90_000}1"><v>x</v></c></row>'),
    "texts": lambda: workbook(_HEADER, texts=f"<sst {_MAIN}>{'<si><t>a</t></si>' * 5_000_000}</sst>"),
    "formats": lambda: workbook(
        _HEADER, styles=f"<styleSheet {_MAIN}><cellXfs>{'<xf/>' * 3_000_000}</cellXfs></styleSheet>"
    ),
    "deep": lambda: workbook("<row>" * 300_000),
    "one-long-cell": lambda: workbook(f'<row><c t="inlineStr"><is><t>{"x" * 15 * MEGA}</t></is></c></row>'),
    "laughs": lambda: zip_of({"[Content_Types].xml": _LAUGHS, "xl/workbook.xml": _LAUGHS, "_rels/.rels": _LAUGHS}),
    "many-parts": lambda: workbook(_HEADER, sheets=90, parts=900),
    "nested-workbook": lambda: zip_of({"a.xlsx": workbook("<row/>" * 100_000, sheets=20, parts=20)}),
}
_CSV: dict[str, Build] = {
    "64000-columns": lambda: ",".join(f"c{n}" for n in range(64_000)).encode() + b"\n",
    "100000-columns": lambda: ",".join(f"column{n}" for n in range(100_000)).encode() + b"\n",
    "16384-columns": lambda: ",".join(f"c{n}" for n in range(16_384)).encode() + b"\n" + b"1," * 16_383 + b"1\n",
    "3000000-commas": lambda: b"," * 3_000_000,
    "commas-in-rows": lambda: b"id,text\n" + (b"," * 3_000_000 + b"\n") * 3,
    "open-quote": lambda: b'id,text\n1,"' + b"x\n" * 3_000_000,
    "quotes": lambda: b"id,text\n" + b'"' * 9_000_000,
    "one-line": lambda: b"x" * (15 * MEGA),
    "too-long-line": lambda: b"id,text\n" + b"x" * (20 * MEGA),
    "blank-lines": lambda: b"\n" * 5_000_000,
    "blank-lines-packed": lambda: gzip_of(b"\n" * (15 * MEGA)),
    "same-header": lambda: (b"a," * 9_000 + b"a\n") * 2,
    "blanks-header": lambda: b"\t" * 1_000_000 + b"\n",
    "spaces": lambda: b" " * 9_000_000 + b"\n1,2\n",
    "semicolons-of-quotes": lambda: b'";' * 2_000_000,
    "rows-packed": lambda: gzip_of(b"query_id,doc_id,grade\n" + b"1,1,1\n" * 2_500_000),
    "nul": lambda: b"id,text\n1," + b"\0" * 1_000_000,
    "carriage-returns": lambda: b"id,text\r" * 500_000,
    "escape-columns": lambda: b"\x1f" * 1_000_000,
    "qrels-of-tokens": lambda: b"1 2 " * 3_000_000,
    "qrels-of-one-query": lambda: b"".join(b"q1\t0\td%d\t1\n" % n for n in range(200_000)),
    "run-of-one-document": lambda: b"q1 Q0 d1 1 1.0 x\n" * 200_000,
    "run-of-tokens": lambda: b"q1 Q0 d1 1 1.0 x" + b" y" * 3_000_000,
    "three-columns": lambda: b"1\t2\t3\n" * 500_000,
    "long-id": lambda: b"q" * 5_000_000 + b"\t0\td1\t1\n",
}
_JSON: dict[str, Build] = {
    "deep-list": lambda: b"[" * 5_000_000,
    "deep-object": lambda: b'{"a":' * 500_000,
    "deep-in-line": lambda: b'{"_id": "1", "text": "a", "metadata": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
    "empty-lists": lambda: b'{"_id": "1", "text": "a", "x": [' + b"[]," * 4_000_000 + b"[]]}",
    "empty-objects": lambda: b"[" + b"{}," * 2_000_000 + b"{}]",
    "numbers": lambda: b'[{"id": 1, "text": [' + b"1," * 5_000_000 + b"1]}]",
    "long-number": lambda: b'{"id": ' + b"9" * 3_000_000 + b', "text": "a"}',
    "exponent": lambda: b'{"id": 1e999999999, "text": "a"}\n' * 3,
    "many-keys": lambda: json.dumps({f"k{n}": 1 for n in range(200_000)}).encode(),
    "other-keys": lambda: (
        b"".join(json.dumps({f"k{n}_{m}": 1 for m in range(16)}).encode() + b"\n" for n in range(1_000))
        + b"{}\n" * 500_000
    ),
    "open-text": lambda: b'{"_id": "1", "text": "' + b"x" * (14 * MEGA),
    "open-text-in-list": lambda: b'[{"_id": "1", "text": "' + b"x" * (14 * MEGA),
    "escapes": lambda: b'[{"_id": "1", "text": "' + b"\\u0041" * 2_000_000 + b'"}]',
    "nul-escapes": lambda: b'[{"_id": "1", "text": ["' + b'\\u0000","' * 300_000 + b'"]}]',
    "surrogates": lambda: b'[{"_id": "1", "text": "' + b"\\ud800" * 1_000_000 + b'"}]',
    "commas": lambda: b"[" + b"," * 9_000_000,
    "spaces": lambda: b"[" + b" " * 9_000_000,
    "one-line-of-small-objects": lambda: b"[" + b'{"id":1,"text":"a"},' * 300_000 + b'{"id":1}]',
    "label-studio-deep": lambda: b'[{"data": {"text": "a"}, "annotations": [' + b'{"result": [' * 50_000,
    "label-studio-many": lambda: (
        b'[{"data": {"text": "'
        + b"x" * 300_000
        + b'"}, "annotations": ['
        + b",".join(
            b'{"completed_by": %d, "result": [{"from_name": "g", "value": {"rating": 1}}]}' % n for n in range(20_000)
        )
        + b"]}]"
    ),
    "argilla-many": lambda: (
        b'{"fields": {"text": "'
        + b"x" * 300_000
        + b'"}, "responses": {"q": ['
        + b",".join(b'{"user_id": "%d", "value": 1}' % n for n in range(20_000))
        + b"]}}"
    ),
    "argilla-questions": lambda: json.dumps(
        {"fields": {"text": "a"}, "responses": {f"q{n}": [{"user_id": "u", "value": 1}] for n in range(100_000)}}
    ).encode(),
    "lines-packed": lambda: gzip_of(b'{"_id":"1","text":"a"}\n' * 700_000),
    "passages": lambda: b'{"query": "a", "positives": [' + b'"a",' * 2_000_000 + b'"b"], "negatives": []}',
}
_XML: dict[str, Build] = {
    "laughs": lambda: _LAUGHS.encode(),
    "one-line-of-records": lambda: b"<doc><docno>1</docno><text>a</text></doc>" * 300_000,
    "open-tags": lambda: b"<doc " * 2_000_000,
    "open-record": lambda: b"<doc>" + b"x\n" * 5_000_000,
    "open-fields": lambda: b"<doc><docno>1" + b"<text>" * 1_500_000 + b"</doc>",
    "unknown-tags": lambda: b"<doc><docno>1</docno><text>" + b"<b>" * 3_000_000 + b"</text></doc>",
    "cdata": lambda: b"<doc><docno>1</docno><text>" + b"<![CDATA[" * 1_000_000 + b"</text></doc>",
    "entities": lambda: b"<doc><docno>1</docno><text>" + b"&amp;" * 2_000_000 + b"</text></doc>",
    "ampersands": lambda: b"<doc><docno>1</docno><text>" + b"&" * 9_000_000 + b"</text></doc>",
    "nul-entities": lambda: b"<doc><docno>1</docno><text>&#" + b"0" * 9_000_000 + b"</text></doc>",
    "attributes": lambda: b"<topic " + b"number = " * 1_000_000 + b">a</topic>",
    "white-attributes": lambda: b"<topic" + b" " * 9_000_000 + b"number='1'>a</topic>",
    "doctype": lambda: b"<!DOCTYPE a [" + b"<!ENTITY b 'c'>" * 500_000,
    "doctypes": lambda: b"<!DOCTYPE a [" * 500_000 + b"<top><num>1<title>a</top>",
    "comments": lambda: b"<!-- " * 1_000_000 + b"<top>",
    "declarations": lambda: b"<?xml " * 1_000_000 + b"<top><num>1<title>a</top>",
    "topics": lambda: b"<top><num>1<title>a</top>\n" * 300_000,
    "closings": lambda: b"<top><num>1" + b"</title>" * 1_000_000 + b"</top>",
    "page": lambda: b"<html>" + b"<div>" * 1_000_000,
    "records-packed": lambda: gzip_of(b"<doc><docno>1</docno><text>a</text></doc>\n" * 380_000),
    "lessthan": lambda: b"<" * 5_000_000,
}
_TOML: dict[str, Build] = {
    "dotted": lambda: b".".join([b"a"] * 200_000) + b" = 1\n",
    "dotted-lines": lambda: b"".join(b"%s.b%d = 1\n" % (b".".join([b"a"] * 300), n) for n in range(1_500)),
    "tables": lambda: b"[a]\n" * 200_000,
    "deep-list": lambda: b"a = " + b"[" * 200_000,
    "deep-inline": lambda: b"a = " + b"{b = " * 200_000,
    "deep-header": lambda: b"[" + b".".join([b"a"] * 200_000) + b"]\n",
    "long-number": lambda: b"a = " + b"9" * 900_000,
    "keys": lambda: b"".join(b"k%d = 1\n" % n for n in range(80_000)),
    "open-text": lambda: b'a = """' + b"x\n" * 400_000,
    "long-text": lambda: b'a = "' + b"x" * 900_000 + b'"',
    "large": lambda: b"# x\n" * 5_000_000,
    "lists-of-tables": lambda: b"[[judge]]\n" * 90_000,
    "headers": lambda: b"".join(b"[a%d.b]\n" % n for n in range(80_000)),
    "nul": lambda: b"\0" * 500_000,
    "brackets": lambda: b"[" * 900_000,
    "spaces": lambda: b" " * 900_000,
    "quotes": lambda: b'"' * 900_000,
    "equals": lambda: b"=" * 900_000,
    "escapes": lambda: b'a = "' + b"\\u0041" * 150_000 + b'"',
    "comments": lambda: b"#" * 900_000,
}


def _overlapping() -> bytes:
    """Return a zip archive whose members are all the same bytes."""
    single = zip_of({"a.jsonl": b" " * (15 * MEGA)})
    start = single.index(b"PK\x01\x02")
    entry = single[start : single.index(b"PK\x05\x06")]
    entries = b"".join(entry.replace(b"a.jsonl", b"%07d" % n) for n in range(190))
    end = bytearray(single[single.index(b"PK\x05\x06") :])
    end[8:10] = end[10:12] = (190).to_bytes(2, "little")
    end[12:16] = len(entries).to_bytes(4, "little")
    return single[:start] + entries + bytes(end)


def _tar(mode: str) -> bytes:
    kept = io.BytesIO()
    with tarfile.open(fileobj=kept, mode=mode) as archive:  # type: ignore[call-overload]
        entry = tarfile.TarInfo("corpus.jsonl")
        entry.size = 5 * MEGA
        archive.addfile(entry, io.BytesIO(bytes(entry.size)))
    return kept.getvalue()


_PACKED: dict[str, Build] = {
    "gzip-of-nothing": lambda: gzip_of(bytes(300 * MEGA)),
    "gzip-of-spaces": lambda: gzip_of(b" " * (300 * MEGA)),
    "gzip-of-lines": lambda: gzip_of(b"{}\n" * (60 * MEGA)),
    "gzip-of-gzip": lambda: gzip_of(gzip_of(bytes(300 * MEGA))),
    "gzip-members": lambda: gzip_of(b"") * 500_000,
    "gzip-long-name": lambda: b"\x1f\x8b\x08\x08\0\0\0\0\0\x03" + b"x" * 9_000_000,
    "gzip-cut": lambda: gzip_of(b"x" * (15 * MEGA))[:-9],
    "bz2": lambda: bz2.compress(bytes(300 * MEGA)),
    "xz": lambda: lzma.compress(bytes(300 * MEGA)),
    "zst": lambda: b"\x28\xb5\x2f\xfd" + bytes(9_000_000),
    "tar": lambda: _tar("w"),
    "tar-gz": lambda: _tar("w:gz"),
    "tar-xz": lambda: _tar("w:xz"),
    "zip-bomb": lambda: zip_of({"corpus.jsonl": bytes(300 * MEGA)}),
    "zip-of-many": lambda: zip_of([(f"{n}.jsonl", "{}") for n in range(60_000)]),
    "zip-of-200": lambda: zip_of([(f"{n}.jsonl", '{"_id": "1", "text": "a"}') for n in range(200)]),
    "zip-of-200-lines": lambda: zip_of([(f"{n}.jsonl", "\n" * 15_000) for n in range(200)]),
    "zip-of-packed": lambda: zip_of([(f"{n}.jsonl.gz", gzip_of(b"\n" * (15 * MEGA))) for n in range(90)]),
    "zip-of-zips": lambda: zip_of([(f"{n}.zip", zip_of({"a": bytes(5 * MEGA)})) for n in range(90)]),
    "zip-overlapping": _overlapping,
    "zip-long-names": lambda: zip_of([(f"{n}" + "x" * 60_000, "{}") for n in range(90)]),
    "zip-hidden": lambda: zip_of([(f"__MACOSX/{n}", "{}") for n in range(30_000)]),
    "zip-same-names": lambda: zip_of([("a.jsonl", '{"_id": "1", "text": "a"}')] * 200),
    "zip-end-alone": lambda: b"PK\x05\x06" + bytes(18),
    "zip-lies": lambda: zip_of({"a.jsonl": "x"}).replace(
        b"PK\x05\x06\0\0\0\0\1\0\1\0", b"PK\x05\x06\0\0\0\0\xff\xff\xff\xff"
    ),
}


def _parquet(columns: dict[str, list[object]], **options: object) -> bytes:
    import pyarrow
    from pyarrow import parquet

    kept = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), kept, **options)
    return kept.getvalue()


def _broken(data: bytes) -> Iterator[bytes]:
    yield data[: len(data) // 2]


_PARQUET: dict[str, Build] = {
    "columns": lambda: _parquet({f"c{n}": [1] for n in range(20_000)}),
    "16000-columns": lambda: _parquet({f"c{n}": [None] * 1_000 for n in range(10_000)}),
    "rows-of-nothing": lambda: _parquet({"text": [None] * 5_000_000}),
    "rows-of-one": lambda: _parquet({"id": ["1"] * 5_000_000, "text": ["a"] * 5_000_000}),
    "long-text": lambda: _parquet({"text": ["x" * (200 * MEGA)]}, compression="zstd"),
    "long-texts": lambda: _parquet({"text": ["x" * MEGA] * 500}, compression="zstd"),
    "long-list": lambda: _parquet({"text": [["a"] * 10_000_000]}, compression="zstd"),
    "list-of-lists": lambda: _parquet({"text": [[[1] * 10] * 500_000]}, compression="zstd"),
    "names": lambda: _parquet({"x" * 5_000_000: [1]}),
    "cut": lambda: next(_broken(_parquet({"id": ["1"] * 50_000}))),
    "footer-lies": lambda: b"PAR1" + bytes(900) + (0x7FFFFFFF).to_bytes(4, "little") + b"PAR1",
    "footer-nothing": lambda: b"PAR1" + bytes(9_000_000) + (9_000_000).to_bytes(4, "little") + b"PAR1",
    "mark-alone": lambda: b"PAR1",
    "garbage": lambda: b"PAR1" + bytes(range(256)) * 9_000 + (4_000).to_bytes(4, "little") + b"PAR1",
    "groups": lambda: _parquet({"text": ["a"] * 20_000}, row_group_size=1),
    "in-zip": lambda: zip_of({"a.parquet": _parquet({"text": ["x" * (50 * MEGA)]}, compression="zstd")}),
    "in-gzip": lambda: gzip_of(_parquet({"text": ["x" * (50 * MEGA)]}, compression="zstd")),
    "dictionary": lambda: _parquet({"text": ["x" * 100_000] * 50_000}),
    "struct": lambda: _parquet({"text": [{f"k{n}": 1 for n in range(3_000)}] * 3_000}),
    "deep": lambda: _parquet({"text": [_nest(90)]}),
}


def _nest(depth: int) -> object:
    return [_nest(depth - 1)] if depth else 1


HOSTILE: dict[str, dict[str, Build]] = {
    "xlsx": _XLSX,
    "csv": _CSV,
    "json": _JSON,
    "xml": _XML,
    "packed": _PACKED,
    "parquet": _PARQUET,
    "toml": _TOML,
}
