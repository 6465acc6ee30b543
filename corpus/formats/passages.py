"""Documents and queries in cells: texts, objects, lists of either, and turns of a chat. Pure."""

import re
from typing import Any, NamedTuple

from corpus.formats.cell_values import as_cell, parse_cell

# Keys of an object by field, simplified as headers are; the first one that occurs counts.
_KEYS = {
    "id": "docid doc_id docno document_id _id id pid passage_id psg_id corpus_id did",
    "title": "title doc_title document_title headline",
    "text": "text contents content passage passage_text segment body document doc doc_text document_text chunk "
    "sentences",
    "grade": "grade label is_selected relevance relevant is_relevant relevance_label gold rel rating",
    "score": "score teacher_score relevance_score similarity",
    "assumed": "assumed",
}
_QUERY_KEYS = {
    "id": "qid query_id id _id topic_id topic num number",
    "title": "",
    "text": "text query question query_text title content",
    "grade": "", "score": "", "assumed": "",
}  # fmt: skip
# Keys of a document or its text, and of a query.
_IDS_OF_ANYTHING = {"_id", "id"}
DOCUMENT = " ".join(key for key in f"{_KEYS['id']} {_KEYS['text']} docs documents passages contexts".split()
                    if key not in _IDS_OF_ANYTHING)  # fmt: skip
QUERY = "qid query_id query question query_text"


class TextValue(NamedTuple):
    """A document, or a query, in a cell. `unread`: keys of its object that are ignored."""

    id: str = ""
    title: str = ""
    text: str | None = None
    grade: str = ""
    score: str = ""
    assumed: bool = False
    unread: tuple[str, ...] = ()


class NoPassageError(Exception):
    """A value is neither a text nor an object with one; the message shows the value."""


def read_passages(cell: str) -> list[TextValue]:
    """Return the documents in a cell: a text, or a list of texts, objects and chats. Raises NoPassageError."""
    value = parse_cell(cell)
    if isinstance(value, dict):
        value = as_rows(value)
    if isinstance(value, list):
        # A list of turns is a single chat, and one document.
        values = [value] if value and all(map(_is_turn, value)) else value
        return [_read_value(part, _KEYS) for part in values if part not in (None, "")]
    return [TextValue(text=cell)] if cell else []


def read_document(cell: str) -> TextValue:
    """Return the one document of a cell. Raises NoPassageError."""
    return _read_value(parse_cell(cell), _KEYS)


def read_query(cell: str) -> TextValue:
    """Return the one query of a cell. Raises NoPassageError."""
    return _read_value(parse_cell(cell), _QUERY_KEYS)


def read_values(cell: str) -> list[str]:
    """Return the parts of a list of numbers or texts, such as labels and ids; for other cells, the cell."""
    values = parse_cell(cell)
    if isinstance(values, list):
        return [as_cell(value) for value in values]
    return [cell]


def simplify(name: str) -> str:
    """Return a key in lower case, with "_" between its words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().replace("-", "_")


def as_rows(value: dict[str, Any]) -> Any:
    """Return the objects in an object of equally long lists, as in Parquet; otherwise the object in a list."""
    lists = {name: part for name, part in value.items() if isinstance(part, list)}
    lengths = {len(part) for part in lists.values()}
    if lists.keys() != value.keys() or len(lengths) != 1 or not find_key(lists, _KEYS["text"] + " " + _KEYS["id"]):
        return [value]
    return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]


def _read_value(value: Any, keys: dict[str, str]) -> TextValue:
    if isinstance(value, str):
        return TextValue(text=value)
    if isinstance(value, dict):
        return _read_object(value, keys)
    if isinstance(value, list) and value and all(map(_is_turn, value)):
        # The last turn: a query may have instructions before it.
        return TextValue(text=str(value[-1]["content"]))
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return TextValue(text="\n".join(value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return TextValue(text=as_cell(value))
    raise NoPassageError(as_cell(value)[:60])


def _is_turn(value: Any) -> bool:
    return isinstance(value, dict) and {"role", "content"} <= value.keys() and isinstance(value["content"], str)


def _read_object(value: dict[str, Any], keys: dict[str, str]) -> TextValue:
    names = {field: find_key(value, choices) for field, choices in keys.items()}
    inner_value = TextValue()
    if names["text"] and not isinstance(value[names["text"]], str | None):
        inner_value = _read_value(value[names["text"]], keys)
    elif names["text"]:
        inner_value = TextValue(text=as_cell(value[names["text"]]))
    fields = {field: as_cell(value[name]) for field, name in names.items() if name and field != "text"}
    if inner_value.text is None and not fields.get("id"):
        raise NoPassageError(", ".join(value))
    used_keys = set(names.values())
    return TextValue(
        fields.get("id", "") or inner_value.id,
        fields.get("title", "") or inner_value.title,
        inner_value.text,
        fields.get("grade", "") or inner_value.grade,
        fields.get("score", "") or inner_value.score,
        fields.get("assumed", "") == "true",
        (*(name for name in value if name not in used_keys), *inner_value.unread),
    )


def find_key(value: dict[str, Any], choices: str) -> str:
    """Return the key that matches the first of the choices to match any; "" for none."""
    name_of = {simplify(name): name for name in value}
    return next((name_of[choice] for choice in choices.split() if choice in name_of), "")
