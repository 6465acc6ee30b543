"""Passages of about 130 words, cut from the Python language reference that every CPython ships (`pydoc_data.topics`).

Its text is not in this repository: it is cut when the demo is built. A passage's id is its topic
and the first characters of its content hash, so a passage that another Python words alike keeps its
id there.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256

WORDS = 130
LONGEST = 260  # Tables and grammars that cannot be cut at a paragraph are left out.
SHORTEST = 40  # A rest of a section with fewer words joins the passage before it.

_UNDERLINE = re.compile(r"^([*=\-^~\"])\1{2,}$")
_CODE = re.compile(
    r">>>|::=|^\s*(def \w+\(|class \w+[(:]|(for|while|if|elif|with) .*:$|(try|else|finally):|import \w|from \w+ import"
    r"|async |@\w|print\(|# |\w+ = |Traceback \(|File \")",
    re.M,
)


@dataclass(frozen=True, slots=True)
class BundledPassage:
    """A document of the bundled collection."""

    id: str
    title: str
    text: str
    sha256: str


def cut_passages(topics: dict[str, str]) -> list[BundledPassage]:
    """Return every distinct passage, by topic. Texts that several topics repeat are kept once."""
    seen: dict[str, BundledPassage] = {}
    for topic in sorted(topics):
        for title, text in cut_topic(topics[topic]):
            digest = content_hash(text)
            if digest not in seen:
                seen[digest] = BundledPassage(f"{topic}-{digest[:6]}", title, text, digest)
    return list(seen.values())


def content_hash(text: str) -> str:
    """Return the sha256 of the words alone, so that white space does not count."""
    return sha256(" ".join(text.split()).encode()).hexdigest()


def cut_topic(topic: str) -> Iterator[tuple[str, str]]:
    """Yield (title, text) of a topic's passages: whole paragraphs, never across a heading."""
    title = ""
    for heading, paragraphs in split_sections(topic):
        title = title or heading
        name = title if heading in ("", title) else f"{title}: {heading}"
        for text in pack_paragraphs(paragraphs):
            yield name, text


def split_sections(topic: str) -> Iterator[tuple[str, list[str]]]:
    """Yield (heading, paragraphs) in their order, without footnotes."""
    heading, paragraphs = "", list[str]()
    for block in re.split(r"\n[ \t]*\n", topic.strip("\n")):
        lines = block.strip("\n").split("\n")
        # What follows refers to places in the text that a passage of its own no longer shows.
        if lines[0].startswith("-[ Footnotes"):
            break
        if len(lines) == 2 and _UNDERLINE.match(lines[1]):
            yield heading, paragraphs
            heading, paragraphs = lines[0].replace('"', "").strip(), []
        else:
            paragraphs.append(reflow_lines(lines))
    yield heading, paragraphs


def reflow_lines(lines: list[str]) -> str:
    """Return prose as one line, so that it fits every screen; code and grammar as they are."""
    text = "\n".join(lines)
    indents = {len(line) - len(line.lstrip()) for line in lines}
    if _CODE.search(text) or len(indents) > 2:
        return text
    return " ".join(text.split())


def pack_paragraphs(paragraphs: Iterable[str]) -> list[str]:
    """Join whole paragraphs until a passage has about WORDS words."""
    packed: list[list[str]] = []
    size = 0
    for paragraph in paragraphs:
        words = len(paragraph.split())
        # A paragraph joins as long as it brings the passage nearer to the wanted size.
        if packed and abs(size + words - WORDS) <= abs(size - WORDS):
            packed[-1].append(paragraph)
            size += words
        else:
            packed.append([paragraph])
            size = words
    if len(packed) > 1 and size < SHORTEST:
        packed[-2:] = [packed[-2] + packed[-1]]
    texts = ["\n\n".join(parts) for parts in packed]
    return [text for text in texts if 12 <= len(text.split()) <= LONGEST]
