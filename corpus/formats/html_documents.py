"""HTML as a plain text, and as elements around the characters of that text. Pure.

Nothing of the source is copied but its characters: the elements that are written are the few below, with
attributes that are read and written again, so a parser that reads the source otherwise finds nothing to run.
Judges read the text, quotes are checked against it, and the page draws the elements around the same characters.
"""

import re
from dataclasses import dataclass
from html import escape
from urllib.parse import urlsplit

from lxml import etree  # type: ignore[import-untyped]

IMAGE_LIMIT = 700_000  # Characters of an image as a data URL: about 500 kB.
IMAGES_LIMIT = 2_100_000  # Of all images of a text together.
MOST_NESTED = 50  # Elements within one another; what is deeper is written without elements.
LONGEST_ADDRESS = 2_000

# Elements that are left out with all that they hold.
LEFT_OUT = frozenset({
    "head", "title", "script", "style", "template", "noscript", "svg", "math", "iframe", "frame", "frameset",
    "noframes", "object", "embed", "applet", "audio", "video", "canvas", "select", "datalist", "textarea", "noembed",
    "col", "colgroup",
})  # fmt: skip
# Element: what is written for it, and the least break of the text before and behind it.
BLOCKS = {
    "p": ("p", "\n\n"), "ul": ("ul", "\n\n"), "ol": ("ol", "\n\n"), "dl": ("dl", "\n\n"), "table": ("table", "\n\n"),
    "blockquote": ("blockquote", "\n\n"), "pre": ("pre", "\n\n"), "listing": ("pre", "\n\n"), "xmp": ("pre", "\n\n"),
    "plaintext": ("pre", "\n\n"), "figure": ("div", "\n\n"), "section": ("div", "\n\n"), "article": ("div", "\n\n"),
    "li": ("li", "\n"), "dt": ("dt", "\n"), "dd": ("dd", "\n"), "tr": ("tr", "\n"), "td": ("td", ""), "th": ("th", ""),
    "caption": ("caption", "\n"), "thead": ("thead", "\n"), "tbody": ("tbody", "\n"), "tfoot": ("tfoot", "\n"),
    **dict.fromkeys(
        ("div", "main", "header", "footer", "nav", "aside", "address", "center", "form", "fieldset", "details",
         "summary", "figcaption", "legend", "dir", "menu", "hgroup", "search", "dialog"),
        ("div", "\n"),
    ),
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), ("h3", "\n\n")),
}  # fmt: skip
INLINE = {
    "em": "em", "i": "em", "strong": "strong", "b": "strong", "del": "del", "s": "del", "strike": "del", "code": "code",
    "kbd": "code", "samp": "code", "tt": "code", "sub": "sub", "sup": "sup", "a": "span",
}  # fmt: skip
CELLS = ("td", "th")
# Elements of tables, and the elements directly within which a browser leaves them where they are.
PARENTS = {
    "caption": ("table",), "thead": ("table",), "tbody": ("table",), "tfoot": ("table",),
    "tr": ("table", "thead", "tbody", "tfoot"), "td": ("tr",), "th": ("tr",),
}  # fmt: skip

_MARKUP = re.compile(r"<[a-zA-Z/!?]|&#?\w+;")
_SPACES = re.compile(r"[ \t\n\r\f]+")
# Characters that browsers change or drop, or that PostgreSQL cannot store.
_CONTROLS = re.compile("[\0-\x08\x0b\x0e-\x1f\x7f\ud800-\udfff]")
_IMAGE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}")
_BREAKS = ("", " ", " | ", "\n", "\n\n")  # Of two breaks between the same words the later one holds.


@dataclass(frozen=True, slots=True)
class HtmlText:
    """The text of an HTML source, and what is written: elements, and the characters (start, end) between them.

    Characters that no part names are breaks between blocks, and the words for an image that is shown.
    """

    text: str
    parts: tuple[str | tuple[int, int], ...]


def has_markup(text: str) -> bool:
    """Return whether a text has tags or entities; without any, its line breaks mean what they show."""
    return _MARKUP.search(text) is not None


def read_html(source: str) -> HtmlText:
    """Return the text of an HTML source with the elements around it; whatever the source is, without an error."""
    reader = _Reader()
    parser = etree.HTMLParser(
        encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True, huge_tree=True, recover=True
    )
    try:
        root = etree.fromstring(source.encode(errors="replace"), parser)
    except etree.LxmlError:
        root = None
    if root is not None:
        reader.read(root)
    return HtmlText("".join(reader.characters), tuple(reader.parts))


class _Reader:
    """The characters and parts so far, and what has to be written before the next characters."""

    def __init__(self) -> None:
        self.characters: list[str] = []
        self.length = 0
        self.parts: list[str | tuple[int, int]] = []
        self.gap = ""  # A break that waits for the next characters.
        self.marker = ""  # The "- " of a list's item, which waits too.
        self.open: list[str] = []  # Written elements that are open.
        self.images = 0  # Characters of the images so far.
        self.cells = self.verbatim = 0

    def read(self, root: etree._Element) -> None:
        # By element: what is written at its end, and the break behind it.
        ends: list[tuple[str, str]] = []
        walk = etree.iterwalk(root, events=("start", "end"))
        for event, element in walk:
            name = element.tag if isinstance(element.tag, str) else ""
            if event == "start":
                if name in LEFT_OUT:
                    walk.skip_subtree()
                    ends.append(("", ""))
                    continue
                ends.append(self.begin(name, element))
                self.write(element.text or "")
                continue
            closing, gap = ends.pop()
            if name in CELLS and closing:
                self.cells -= 1
            if closing:
                self.parts.append(closing)
                self.verbatim -= self.open.pop() == "pre"
            if name in ("ul", "ol"):
                self.marker = ""
            self.need(gap)
            if name == "a" and closing and (link := _link(element.get("href", ""))):
                self.parts.append(link)
            if element is not root:
                self.write(element.tail or "")

    def begin(self, name: str, element: etree._Element) -> tuple[str, str]:
        """Write the beginning of an element; return what is written at its end, and the break behind it."""
        if name == "br":
            self.parts.append("<br>")
            self.need("\n")
        elif name == "hr" and not self.in_table():
            self.parts.append("<hr>")
            self.need("\n\n")
        elif name == "img":
            self.add_image(element)
        if name not in BLOCKS and name not in INLINE:
            return "", ""
        output_name, gap = BLOCKS.get(name, (INLINE.get(name, ""), ""))
        if name in CELLS and self.gap not in ("\n", "\n\n"):
            self.need(" | ")
        self.need(gap)
        if name == "li":
            self.marker = "- "
        parent = self.open[-1] if self.open else ""
        if output_name in PARENTS and parent not in PARENTS[output_name]:
            # A cell without a row: a browser would move it.
            output_name = "div"
        # A table that is begun is written as a whole.
        if output_name not in PARENTS and len(self.open) >= MOST_NESTED:
            return "", gap
        if output_name == "table" and not _is_sound(element):
            return "", gap
        self.open.append(output_name)
        self.parts.append(f"<{output_name}{_attributes(name, output_name, element)}>")
        if output_name == "pre":
            # Directly behind <pre> a browser drops a line break.
            self.parts.append("<code>")
        self.cells += name in CELLS
        self.verbatim += output_name == "pre"
        return "</code></pre>" if output_name == "pre" else f"</{output_name}>", gap

    def in_table(self) -> bool:
        return bool(self.open) and self.open[-1] in ("table", "thead", "tbody", "tfoot", "tr")

    def need(self, gap: str) -> None:
        """Have the next characters come after this break, or after a wider one that is needed already."""
        # An item begins on the line of its marker, and a cell is one line of the text.
        if self.marker:
            return
        gap = " " if self.cells and gap else gap
        if _BREAKS.index(gap) > _BREAKS.index(self.gap):
            self.gap = gap

    def write(self, data: str) -> None:
        """Write characters with the break before them; white space counts as in HTML."""
        data = _CONTROLS.sub("", data.replace("\r\n", "\n").replace("\r", "\n").replace("\f", " "))
        if self.verbatim and not self.in_table():
            self.add(data)
            return
        words = _SPACES.sub(" ", data)
        if words.startswith(" "):
            self.need(" ")
        self.add(words.strip(" "))
        if words.endswith(" ") and words != " ":
            self.need(" ")

    def add(self, words: str, *, shown: bool = True) -> None:
        """Add words to the text, and to what is shown."""
        if not words:
            return
        gap = (self.gap if self.length else "") + self.marker
        # A space between two words of a line is shown with the word behind it.
        start = self.length + (0 if gap == " " else len(gap))
        self.gap = self.marker = ""
        self.characters += (gap, words)
        self.length += len(gap) + len(words)
        if shown:
            self.parts.append((start, self.length))

    def add_image(self, element: etree._Element) -> None:
        """Add an image that the source itself holds, of a size that a page bears; any other by its description."""
        alt = _SPACES.sub(" ", _CONTROLS.sub("", element.get("alt", ""))).strip()
        source = re.sub(r"\s", "", element.get("src", "")[: IMAGE_LIMIT * 2])
        words = f"[Image: {alt}]" if alt else "[Image]"
        if self.in_table():
            return
        fits = len(source) <= IMAGE_LIMIT and self.images + len(source) <= IMAGES_LIMIT
        if fits and _IMAGE.fullmatch(source):
            self.images += len(source)
            self.parts.append(f'<img src="{source}" alt="{escape(alt)}" loading="lazy" decoding="async">')
            self.add(words, shown=False)
            return
        self.parts.append('<span class="image">')
        self.add(words)
        self.parts.append("</span>")


def _attributes(name: str, output_name: str, element: etree._Element) -> str:
    """Return the few attributes that are written, each read as what it has to be."""
    if output_name == "h3":
        return f' class="level-{name[1]}"'
    if name == "a":
        return ' class="link"'
    if output_name == "ol":
        start = element.get("start", "")
        return f' start="{int(start)}"' if re.fullmatch(r"\d{1,6}", start, re.ASCII) else ""
    if output_name in CELLS:
        spans = ((key, element.get(key, "")) for key in ("colspan", "rowspan"))
        return "".join(f' {key}="{int(n)}"' for key, n in spans if re.fullmatch(r"[1-9]\d?", n, re.ASCII))
    return ""


def _link(address: str) -> str:
    """Return the way to the address of a link, behind its words; "" where it may not be followed.

    The words themselves lead nowhere, so that people can mark evidence in them, and quotes can be links too.
    """
    address = address.strip()
    try:
        parts = urlsplit(address)
        place = parts.hostname or parts.path
    except ValueError:
        return ""
    if (
        parts.scheme not in ("http", "https", "mailto")
        or len(address) > LONGEST_ADDRESS
        or not place
        or re.search(r"[\s\0-\x1f\x7f\\<>]", address)
        or (parts.scheme != "mailto" and not parts.hostname)
    ):
        return ""
    return (
        f'<a class="away" href="{escape(address)}" rel="noopener noreferrer nofollow" target="_blank" '
        f'aria-label="{escape(place)}"></a>'
    )


def _is_sound(part: etree._Element) -> bool:
    """Return whether a table holds sections, rows and cells alone, each in its place, and text in cells alone.

    A browser moves anything else to a place before the table.
    """
    if (part.text or "").strip():
        return False
    return all(
        not (child.tail or "").strip()
        and (
            child.tag in LEFT_OUT
            or (
                part.tag in PARENTS.get(child.tag, ())
                and (child.tag in CELLS or child.tag == "caption" or _is_sound(child))
            )
        )
        for child in part
    )
