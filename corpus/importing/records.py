"""Readers of documents, queries and pairs in JSON lines, TREC XML or tables. Pure."""

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _

from corpus.errors import BadInput
from corpus.formats import html_documents, recognition
from corpus.formats.files import FileSource
from corpus.formats.grade_values import GradeReader
from corpus.formats.json_objects import read_objects
from corpus.formats.trec import TOPIC_TEXTS, find_record, read_elements
from corpus.importing import table_records, tables
from corpus.importing.confinement import confinable
from corpus.importing.table_records import CandidateRecord, TextRecord, content_hash

_OWN_KEYS = {"_id", "title", "text", "metadata", "answers", "instruction"}  # All other keys are metadata.
_TOPIC_IDS = ("num", "number", "identifier", "id")
_PREFIX = re.compile(
    r"\A(?:Number|Topic|Description|Narrative|Domain|Summary|Concept(?:\(s\))?|Factor(?:\(s\))?|Nationality|Time"
    r"|Definition(?:\(s\))?):"
)


@confinable
def read_documents(source: FileSource, *, html: bool = False) -> Iterator[TextRecord]:
    """Yield the documents of a BEIR corpus, of TREC XML or of a table, by the content of the file.

    `html`: texts with markup are HTML, and become the source of their text.
    """
    for document in _documents(source):
        if not html or not html_documents.has_markup(document.text):
            yield document
            continue
        text = html_documents.read_html(document.text).text
        digest = content_hash(document.title, text, document.text)
        yield document._replace(text=text, html=document.text, hash=digest)


def _documents(source: FileSource) -> Iterator[TextRecord]:
    if table := tables.read_table(source):
        yield from table_records.read_documents(source, table)
        return
    if _is_xml(source):
        for line, fields in read_elements(source, "doc"):
            name = fields.pop("docno", None) or fields.pop("docid", None) or fields.pop("id", None)
            if name is None:
                raise source.bad(line, _("a <doc> without <docno>"))
            title = " ".join((fields.pop("title", None) or fields.pop("headline", "")).split())
            if "text" not in fields:
                raise source.bad(line, _("document %(id)s: no <text>") % {"id": name})
            text = fields.pop("text")
            metadata = json.dumps({key: value for key, value in fields.items() if value}, ensure_ascii=False)
            name = source.identifier(line, name, "docno")
            yield TextRecord(line, name, title, text, metadata, content_hash(title, text))
        return
    for number, row in read_objects(source):
        title = _text_field(source, number, row, "title", "")
        text = _text_field(source, number, row, "text")
        name = source.identifier(number, _required_field(source, number, row, "_id"), "_id")
        yield TextRecord(number, name, title, text, _metadata_json(source, number, row), content_hash(title, text))


@confinable
def read_queries(source: FileSource, *, by_position: bool, html: bool = False) -> Iterator[TextRecord]:
    """Yield the queries of a file; with `by_position` their ids are 1, 2, ... in its order.

    `html`: answers with markup are HTML, and become the sources of their texts.
    """
    if table := tables.read_table(source):
        rows = table_records.read_queries(source, table)
    else:
        rows = _trec_queries(source) if _is_xml(source) else _json_queries(source, by_position)
    for position, query in enumerate(rows, 1):
        if not query.text.strip():
            raise source.bad(query.line, _("the query has no text"))
        name = str(position) if by_position else source.identifier(query.line, query.id, "_id")
        answers: list[str] = json.loads(query.answers) if html else []
        if any(map(html_documents.has_markup, answers)):
            sources = [answer if html_documents.has_markup(answer) else "" for answer in answers]
            texts = [
                html_documents.read_html(answer).text if has else answer
                for answer, has in zip(answers, sources, strict=True)
            ]
            query = query._replace(
                answers=json.dumps(texts, ensure_ascii=False),
                answers_html=json.dumps(sources, ensure_ascii=False),
                hash=content_hash(query.text, query.instruction, *answers, "html"),
            )
        yield query._replace(id=name)


@confinable
def read_pairs(source: FileSource, top: int, relevant_from: int = 1) -> Iterator[CandidateRecord]:
    """Yield the pairs of a file; `top` is the highest grade, `relevant_from` the lowest relevant one."""
    if table := tables.read_table(source):
        yield from table_records.read_pairs(source, table, GradeReader(top, relevant_from))
        return
    for number, row in read_objects(source):
        query = source.identifier(number, _required_field(source, number, row, "query_id"), "query_id")
        document = source.identifier(number, _required_field(source, number, row, "doc_id"), "doc_id")
        score = row.get("teacher_score")
        if score is not None and (isinstance(score, bool) or not isinstance(score, int | float)):
            raise source.bad(number, _('"teacher_score" is not a number'))
        gold = row.get("gold")
        if gold is not None and (isinstance(gold, bool) or not isinstance(gold, int)):
            raise source.bad(number, _('"gold" is not an integer: %(value)r') % {"value": gold})
        if gold is not None and gold > top:
            message = _('"gold" is %(grade)s, above the highest grade %(top)s; raise the scale to %(grade)s')
            raise source.bad(number, message % {"grade": gold, "top": top})
        if score is not None and not math.isfinite(score):
            raise source.bad(number, _('"teacher_score" is not a finite number'))
        yield CandidateRecord(number, query, document, score, gold)


def _is_xml(source: FileSource) -> bool:
    """Return whether a file is XML, and not JSON, by its first character. Raises BadInput for anything else."""
    number, line = source.first()
    if not number:
        raise BadInput(_("%(file)s: the file is empty") % {"file": source})
    if line[:1] in b"{[<":
        return line[:1] == b"<"
    foreign = source.foreign()
    problem = _("neither JSON (which begins with { or [), nor TREC XML (with <), nor a table (with commas or tabs)")
    raise source.bad(number, f"{problem}: {foreign}" if foreign else problem)


def _json_queries(source: FileSource, by_position: bool) -> Iterator[TextRecord]:
    for number, row in read_objects(source):
        text = _text_field(source, number, row, "text")
        instruction = _text_field(source, number, row, "instruction", "")
        answers = row.get("answers") or []
        if not isinstance(answers, list) or not all(isinstance(answer, str) for answer in answers):
            raise source.bad(number, _('"answers" is not a list of strings'))
        name = "" if by_position else _required_field(source, number, row, "_id")
        digest = content_hash(text, instruction, *answers)
        metadata = _metadata_json(source, number, row)
        yield TextRecord(number, name, "", text, metadata, digest, json.dumps(answers, ensure_ascii=False), instruction)


def _trec_queries(source: FileSource) -> Iterator[TextRecord]:
    """Yield the topics with their number and their shortest text; the other fields become metadata."""
    for line, topic in read_elements(source, find_record(source, ("top", "topic")) or "top"):
        # TREC topics repeat the field's name in its text: `Number: 301`, `Description: ...`.
        fields = {key: _PREFIX.sub("", value).strip() for key, value in topic.items()}
        name = next((fields.pop(key) for key in _TOPIC_IDS if fields.get(key)), "")
        text_key = next((key for key in TOPIC_TEXTS if fields.get(key)), "")
        # A description that replaces a title is also kept as metadata.
        text = fields.get(text_key, "") if text_key in ("desc", "smry") else fields.pop(text_key, "")
        # Without these fields, as in TREC's precision medicine with disease and gene, all fields are the query.
        text = " ".join((text or " ".join(fields.values())).split())
        metadata = json.dumps({key: value for key, value in fields.items() if value}, ensure_ascii=False)
        yield TextRecord(line, name, "", text, metadata, content_hash(text, ""))


def _required_field(source: FileSource, number: int, row: dict[str, Any], field: str) -> Any:
    if field in row:
        return row[field]
    # If the first object is of another tool, the error names it.
    tool = str(recognition.tool_of(source.head()) or "") if source.first()[0] == number else ""
    missing = _('the field "%(field)s" is missing') % {"field": field}
    raise source.bad(number, f"{missing}; {tool}" if tool else missing)


def _text_field(source: FileSource, number: int, row: dict[str, Any], field: str, default: str | None = None) -> str:
    """Return a string field, or the default if it is missing or null. Raises BadInput without a default."""
    value = row.get(field)
    if value is None:
        value = _required_field(source, number, {}, field) if default is None else default
    if not isinstance(value, str):
        raise source.bad(number, _('"%(field)s" is not a string') % {"field": field})
    return value


def _metadata_json(source: FileSource, number: int, row: dict[str, Any]) -> str:
    value = row.get("metadata") or {}
    if not isinstance(value, dict):
        raise source.bad(number, _('"metadata" is not an object'))
    if others := row.keys() - _OWN_KEYS:
        value = {**{name: row[name] for name in row if name in others and row[name] not in (None, "")}, **value}
    if not value:
        return "{}"
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise source.bad(number, _('"metadata" cannot be stored: it contains a number that is not finite')) from None
