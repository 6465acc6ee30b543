"""Plain text as people write it, as HTML: paragraphs, lists with - or 1., a heading before a list. Pure."""

import re
from html import escape

_BLOCK = re.compile(r"\n[ \t]*\n")
_BULLET = re.compile(r"[-*•]\s+")
_NUMBER = re.compile(r"\d{1,3}[.)]\s+")


def to_html(text: str) -> str:
    """Safe HTML: every character of the text is escaped, only our own tags are added."""
    blocks = _BLOCK.split(text.replace("\r\n", "\n").strip())
    return "".join(_block(block.split("\n")) for block in blocks if block.strip())


def _block(lines: list[str]) -> str:
    paragraph: list[str] = []
    for position, line in enumerate(lines):
        if _item(line):
            head = f"<h3>{escape(' '.join(paragraph))}</h3>" if paragraph else ""
            return head + _list(lines[position:])
        paragraph.append(line.strip())
    return f"<p>{'<br>'.join(escape(line) for line in paragraph)}</p>"


def _list(lines: list[str]) -> str:
    """Items, and the lines that go on from them."""
    items: list[str] = []
    for line in lines:
        if (bullet := _item(line)) or not items:
            items.append(line.strip()[len(bullet) :])
        else:
            items[-1] += " " + line.strip()
    tag = "ol" if _NUMBER.match(lines[0].strip()) else "ul"
    return f"<{tag}>" + "".join(f"<li>{escape(item)}</li>" for item in items) + f"</{tag}>"


def _item(line: str) -> str:
    """The mark that begins a list item; empty when the line begins none."""
    found = _BULLET.match(line.strip()) or _NUMBER.match(line.strip())
    return found.group() if found else ""
