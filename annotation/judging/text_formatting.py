"""Plain text as people write it, in blocks: paragraphs, lists with - or 1., a heading before a list. Pure."""

import re
from typing import Any

_BLOCK = re.compile(r"\n[ \t]*\n")
_BULLET = re.compile(r"[-*•]\s+")
_NUMBER = re.compile(r"\d{1,3}[.)]\s+")


def split_blocks(text: str) -> list[dict[str, Any]]:
    """Split a text into paragraphs (kind p) and lists (ul, ol, with the `heading` before them) at empty lines."""
    found = _BLOCK.split(text.replace("\r\n", "\n").strip())
    return [_parse_block(block.split("\n")) for block in found if block.strip()]


def _parse_block(lines: list[str]) -> dict[str, Any]:
    """Parse a block into a paragraph or a list; lines that go on from an item are joined to it."""
    first = next((position for position, line in enumerate(lines) if _list_marker(line)), None)
    before = tuple(line.strip() for line in lines[:first])
    if first is None:
        return {"kind": "p", "lines": before, "heading": ""}
    items: list[str] = []
    for line in lines[first:]:
        if bullet := _list_marker(line):
            items.append(line.strip()[len(bullet) :])
        else:
            items[-1] += " " + line.strip()
    kind = "ol" if _NUMBER.match(lines[first].strip()) else "ul"
    return {"kind": kind, "lines": items, "heading": " ".join(before)}


def _list_marker(line: str) -> str:
    """Return the mark that begins a list item; "" when the line begins none."""
    found = _BULLET.match(line.strip()) or _NUMBER.match(line.strip())
    return found.group() if found else ""
