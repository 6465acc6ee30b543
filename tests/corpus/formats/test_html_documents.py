"""HTML becomes a text for judges, and elements of a closed list around its characters; nothing of it runs."""

import re
import time
from html import unescape
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.work.judging.debates import Span, text_of
from annotation.work.judging.document import document_html, formatted_answers
from corpus.formats.html_documents import IMAGE_LIMIT, IMAGES_LIMIT, MOST_NESTED, has_markup, read_html
from tests.hostile_html import HOSTILE, PIXEL

ALLOWED = {
    "p": (), "br": (), "hr": (), "ul": (), "ol": ("start",), "li": (), "dl": (), "dt": (), "dd": (), "blockquote": (),
    "pre": (), "div": (), "h3": ("class",), "em": (), "strong": (), "del": (), "code": (), "sub": (), "sup": (),
    "table": (), "thead": (), "tbody": (), "tfoot": (), "caption": (), "tr": (), "td": ("colspan", "rowspan"),
    "th": ("colspan", "rowspan"), "span": ("class",), "a": ("class", "href", "rel", "target", "aria-label"),
    "img": ("src", "alt", "loading", "decoding"), "mark": ("class", "data-quotes"),
}  # fmt: skip

CLASSES = {"", "link", "image", "away", "syntax", "for", *(f"level-{n}" for n in range(1, 7))}


class Drawn(HTMLParser):
    """The elements of what is written, their attributes, and the text with hidden characters."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))

    def handle_data(self, data: str) -> None:
        self.text += data


def drawn(source: str, spans: tuple[Span, ...] = ()) -> Drawn:
    return Drawn(document_html(read_html(source).text, spans, source=source))


def check(page: Drawn) -> None:
    """Only elements and attributes of the list; addresses of links and images of the kinds that lead nowhere bad."""
    for tag, attributes in page.elements:
        assert set(attributes) <= set(ALLOWED[tag]), (tag, attributes)
        if tag == "a":
            assert re.match(r"(?i)(https?://|mailto:)", attributes["href"] or "")
            assert attributes["rel"] == "noopener noreferrer nofollow"
        if tag == "img":
            assert re.fullmatch(r"data:image/(png|jpeg|gif|webp);base64,[\w+/]+=*", attributes["src"] or "")
        assert attributes.get("class", "") in CLASSES


@pytest.mark.parametrize("source", HOSTILE)
def test_a_hostile_document_is_drawn_with_the_elements_of_the_list_alone(source: str) -> None:
    page = drawn(source)
    check(page)
    assert page.text == read_html(source).text


def test_blocks_lists_and_tables_read_as_lines_for_judges() -> None:
    source = """<html><head><title>Left out</title></head><body><h1>Boiling</h1>
      <p>Water boils at <b>100&nbsp;°C</b>
      at sea&#32;level.<br>Ice melts.</p><ul><li>one</li><li><p>two</p></li></ul><!-- no -->
      <table><caption>Points</caption><tr><th>Kind<th>At</tr><tr><td>water</td><td><p>100</p><p>°C</p></td></tr></table>
      <pre>  x = 1\n\n  y</pre>The end</body></html>"""
    assert read_html(source).text == (
        "Boiling\n\nWater boils at 100\xa0°C at sea level.\nIce melts.\n\n- one\n- two\n\nPoints\nKind | At\n"
        "water | 100 °C\n\n  x = 1\n\n  y\n\nThe end"
    )


def test_quotes_are_marked_across_elements_and_the_characters_keep_their_places() -> None:
    source = "<p>Water <b>boils</b> at 100.</p><p>Ice <a href='https://e.org/ice'>melts</a> at 0.</p>"
    text = read_html(source).text
    start, end = text.index("boils"), text.index("melts") + 3
    html = document_html(text, [Span(start, end, "for", "F1")], source=source)
    marked = re.sub(r"<a class=\"tag.*?</a>", "", html)
    pieces = [unescape(re.sub("<[^>]*>", "", piece)) for piece in re.findall(r"<mark[^>]*>(.*?)</mark>", marked)]
    assert "".join(pieces) == "boils at 100.Ice mel"
    assert Drawn(marked).text == text == "Water boils at 100.\n\nIce melts at 0."
    assert 'aria-label="e.org"' in html


def test_an_image_in_the_source_is_drawn_and_others_are_words() -> None:
    image = f"data:image/png;base64,{PIXEL}"
    page = drawn(f'<p>See <img src="{image}" alt="A &quot;dot&quot;"> and <img src="/x.png" alt="a cat"><img src="">')
    assert [dict(attributes)["alt"] for tag, attributes in page.elements if tag == "img"] == ['A "dot"']
    assert page.text == 'See [Image: A "dot"] and [Image: a cat][Image]'

    def shown(source: str) -> int:
        return sum(tag == "img" for tag, _attributes in drawn(source).elements)

    def one(size: int) -> str:
        return f'<img src="data:image/png;base64,{"A" * (size - 22)}">'

    assert [shown(one(IMAGE_LIMIT)), shown(one(IMAGE_LIMIT + 1))] == [1, 0]
    assert shown(one(IMAGE_LIMIT) * 5) == IMAGES_LIMIT // IMAGE_LIMIT == 3


def test_what_a_browser_would_move_out_of_a_table_is_written_without_one() -> None:
    assert "<table>" not in document_html("x", source="<table>x</table>")
    for source in ("<table>a<tr><td>b</table>", "<td>a<td>b", "<table><td>a", "<table><tr>a<td>b</table>c"):
        page = drawn(source)
        assert not {"table", "tr", "td"} & {tag for tag, _ in page.elements}
        assert page.text == read_html(source).text
    sound = drawn("<table><thead><tr><th>a</thead><tr><td colspan=2>b<td colspan=x rowspan=1000>c</table>")
    assert [attributes for tag, attributes in sound.elements if tag == "td"] == [{"colspan": "2"}, {}]


def test_answers_are_formatted_where_they_have_markup() -> None:
    texts = {"a < b && c > d": False, "a<b>c": True, "&amp;": True, "1\n2": False}
    assert {text: has_markup(text) for text in texts} == texts
    assert document_html("a < b", source="<p>another text</p>") == "a &lt; b", "it belongs to no such source"
    html = formatted_answers([text_of("bold"), text_of("a < b")], ["<b>bold</b>", ""], "html")
    assert [(text.text, shown) for text, shown in html] == [("bold", "<strong>bold</strong>"), ("a < b", "")]
    assert formatted_answers([text_of("**bold**")], [], "markdown")[0][1].count("<strong>") == 1
    assert formatted_answers([text_of("**bold**")], [], "text")[0][1] == ""


PIECES = st.sampled_from(
    ["<p>", "</p>", "<table>", "</table>", "<tr>", "<td>", "</td>", "<li>", "<ul>", "</ul>", "<b>", "</b>",
     "<pre>", "</pre>", "\n", " ", "a", "b c", "&lt;", "&#13;", "&#1;", "<br>", "<hr>", "<img alt=i>", "<div>",
     "</div>", "<h2>", "<caption>", "<svg>", "</svg>", "<a href=x>", "<a href=//e.org>", "<a href=http://e.org>",
     "</a>", "\x0c", "é", "<!--", "-->"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=40).map("".join), st.integers(0, 20), st.integers(0, 20))
def test_whatever_is_nested_how_characters_stay_in_order_and_elements_close(
    source: str, start: int, length: int
) -> None:
    text = read_html(source).text
    html = document_html(text, [Span(start, start + length, "for", "F1")], source=source)
    page = Drawn(re.sub(r"<a class=\"tag.*?</a>", "", html))
    check(page)
    assert page.text == text
    assert read_html(source) == read_html(source), "the same text each time"
    open_elements: list[str] = []
    for closing, name in re.findall(r"<(/?)(\w+)", html):
        if closing:
            assert open_elements.pop() == name
        elif name not in ("br", "hr", "img"):
            open_elements.append(name)
    assert not open_elements


@pytest.mark.parametrize(
    "source",
    ["<b></b>" * 100_000, "<table><tr><td>" * 20_000, "<" * 500_000, "<a href='" * 100_000, "<div>" * 100_000,
     "<li>x" * 50_000, f"<img src='data:image/png;base64,{'A' * 3_000_000}'>", " " * 2_000_000],
    ids=["empty", "tables", "brackets", "quotes", "deep", "items", "image", "spaces"],
)  # fmt: skip
def test_a_source_that_is_made_to_be_slow_is_read_in_a_moment(source: str) -> None:
    begin = time.perf_counter()
    page = read_html(source)
    assert time.perf_counter() - begin < 5
    depth = most = 0
    for part in page.parts:
        if isinstance(part, str):
            depth += part.startswith(("<div>", "<table>", "<td>")) - part.startswith(("</div>", "</table>", "</td>"))
            most = max(most, depth)
    assert most <= MOST_NESTED + 3
