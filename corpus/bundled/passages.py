"""Passages of about 130 words, cut from the Python language reference that every CPython ships (`pydoc_data.topics`).

The text is not in this repository; it is cut when the demo is built. The id of a passage is its topic
and the first characters of its content hash, so that equal passages have equal ids under any Python.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

WORDS = 130
LONGEST = 260  # Tables and grammars that cannot be cut at a paragraph are left out.
SHORTEST = 40  # The rest of a section joins the passage before it if it has fewer words.

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
    """Return every distinct passage, by topic; texts that several topics repeat are returned once."""
    seen: dict[str, BundledPassage] = {}
    for topic in sorted(topics):
        for title, text in cut_topic(topics[topic]):
            digest = content_hash(text)
            if digest not in seen:
                seen[digest] = BundledPassage(f"{topic}-{digest[:6]}", title, text, digest)
    return list(seen.values())


def content_hash(text: str) -> str:
    """Return the sha256 of a text with its white space normalised."""
    return sha256(" ".join(text.split()).encode()).hexdigest()


def cut_topic(topic: str) -> Iterator[tuple[str, str]]:
    """Yield (title, text) of a topic's passages: whole paragraphs, never across a heading."""
    title = ""
    for heading, paragraphs in split_sections(topic):
        title = title or heading
        name = title if heading in ("", title) else f"{title}: {heading}"
        # Join whole paragraphs until a passage has about WORDS words.
        packed: list[list[str]] = []
        size = 0
        for paragraph in paragraphs:
            words = len(paragraph.split())
            # A paragraph is added as long as it brings the passage closer to the intended size.
            if packed and abs(size + words - WORDS) <= abs(size - WORDS):
                packed[-1].append(paragraph)
                size += words
            else:
                packed.append([paragraph])
                size = words
        if len(packed) > 1 and size < SHORTEST:
            packed[-2:] = [packed[-2] + packed[-1]]
        texts = ["\n\n".join(parts) for parts in packed]
        for text in [text for text in texts if 12 <= len(text.split()) <= LONGEST]:
            yield name, text


def split_sections(topic: str) -> Iterator[tuple[str, list[str]]]:
    """Yield (heading, paragraphs) in their order, without footnotes."""
    heading, paragraphs = "", list[str]()
    for block in re.split(r"\n[ \t]*\n", topic.strip("\n")):
        lines = block.strip("\n").split("\n")
        # Footnotes refer to positions in the text that a separate passage no longer shows.
        if lines[0].startswith("-[ Footnotes"):
            break
        if len(lines) == 2 and _UNDERLINE.match(lines[1]):
            yield heading, paragraphs
            heading, paragraphs = lines[0].replace('"', "").strip(), []
        else:
            # Prose becomes one line, so that it fits every screen; code and grammar keep their lines.
            text = "\n".join(lines)
            indents = {len(line) - len(line.lstrip()) for line in lines}
            is_code = _CODE.search(text) or len(indents) > 2
            paragraphs.append(text if is_code else " ".join(text.split()))
    yield heading, paragraphs
