"""Documents and answers in HTML in a real Chromium: nothing runs, nothing leaves, marks keep their places."""

import json
from pathlib import Path

import pytest

from annotation.models import Role
from corpus.formats.html_documents import read_html
from corpus.importing.options import ImportOptions
from corpus.importing.service import ImportFiles, import_collection
from corpus.models import Collection, Document, Judgment, Pair
from tests.annotation.work.judging.open_desk import open_desk
from tests.factories import make_item, make_member
from tests.hostile_html import HOSTILE, PIXEL
from tests.judging_scene import debating_campaign, store_debate
from tests.looks import check_looks

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PAGE = f"""<h1>How water boils</h1><p>At <b>sea level</b> water boils at 100&nbsp;°C; on
  <a href="https://example.org/mountains">mountains</a> sooner.</p>
  <table><tr><th>Height</th><th>Point</th></tr><tr><td>0 m</td><td>100 °C</td></tr>
  <tr><td>3,000 m</td><td>90 °C</td></tr></table>
  <ul><li>Salt raises the point.</li><li>Pressure does, too.</li></ul>
  <p><img src="data:image/png;base64,{PIXEL}" alt="a kettle"> <img src="https://away.example/k.png" alt="a pot"></p>
  <pre>T = 100 - h / 300</pre>"""

# The characters of the element in their places, as the desk counts them: without the labels of quotes.
CHARACTERS = """element => {
    const copy = element.cloneNode(true);
    copy.querySelectorAll(".tag").forEach((tag) => tag.remove());
    return copy.textContent;
}"""


def imported(folder: Path, texts: list[str], answers: list[str]) -> Collection:
    """A collection of these documents for one query, whose pairs wait for people."""
    rows = [{"_id": f"d{number:02}", "text": text} for number, text in enumerate(texts)]
    files = {
        "corpus": rows,
        "queries": [{"_id": "q", "text": "When does water boil?", "answers": answers}],
        "pairs": [{"query_id": "q", "doc_id": row["_id"]} for row in rows],
    }
    for name, content in files.items():
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in content))
    options = ImportOptions(document_format="html", grades=1, empty="keep")
    import_collection("books", ImportFiles(options=options, **{name: folder / name for name in files}))
    Collection.objects.update(min_judgment_ms=0, audit=0)
    for pair in Pair.objects.order_by("document__external_id"):
        make_item(pair)
    return Collection.objects.get()


def test_sixty_hostile_documents_run_nothing_load_nothing_and_keep_their_text(tmp_path, new_page, instance, console):
    books = imported(tmp_path, HOSTILE, [f"Answer: {source}" for source in HOSTILE])
    page = new_page(user=make_member(books, "alice", Role.ADMIN).user)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: asked.append(f"dialog {dialog.message}"))
    page.context.on("page", lambda other: asked.append(f"window {other.url}"))
    for number, pair in enumerate(Pair.objects.order_by("document__external_id").select_related("document")):
        page.goto(f"/c/books/pairs/{pair.pk}/")
        address = page.url
        text = page.locator(".document .text")
        # What a person may do with it: tab through it, point at it and click. Only links lead elsewhere.
        for _ in range(3):
            page.keyboard.press("Tab")
        for link in page.locator(".document .text :is(.link, div):visible").all()[:3]:
            link.hover(timeout=2000)
            link.click(timeout=2000)
        assert page.url == address, HOSTILE[number]
        assert page.evaluate("() => window.ran") is None, HOSTILE[number]
        shown = "" if not pair.document.text else text.evaluate(CHARACTERS)
        assert shown == pair.document.text, HOSTILE[number]
        foreign = "script, style, svg, math, iframe, object, embed, form, input, button, select, video, [style], [id]"
        assert text.locator(foreign).count() == 0, HOSTILE[number]
    origin = page.url.split("/c/")[0]
    assert [url for url in asked if not url.startswith((f"{origin}/", "data:image/png;"))] == []
    page.goto("/c/books/judge/")
    assert page.evaluate("() => window.ran") is None
    assert console == []


def test_quotes_evidence_and_the_judges_text_are_the_same_characters(tmp_path, new_page, instance, violations, console):
    books = imported(tmp_path, [PAGE], ["At <b>100 °C</b><ul><li>at sea level</ul>", "Sooner on mountains"])
    document, pair = Document.objects.get(), Pair.objects.get()
    quote = "sea level water boils at 100\xa0°C; on mountains"
    store_debate(
        debating_campaign(books), pair, [("for", 1, 1, "It says so.", [quote]), ("against", 1, 0, "It does not.", [])]
    )
    assert document.text == read_html(PAGE).text and "<" not in document.text and document.html == PAGE
    alice = make_member(books, "alice", Role.ANNOTATOR)
    page = open_desk(new_page, alice)
    response = page.reload()
    assert response.headers["content-security-policy"].count("img-src 'self' data:") == 1
    text = page.locator(".document .text")
    assert text.evaluate(CHARACTERS) == document.text
    marks = text.locator("mark.for").evaluate_all("all => all.map((mark) => mark.lastChild.textContent)")
    assert "".join(marks) == quote and len(marks) > 2
    assert page.locator(".answers li strong").inner_text().strip() == "100 °C"
    image = text.locator("img")
    assert image.count() == 1 and image.evaluate("element => element.naturalWidth") == 1
    assert "[Image: a pot]" in text.inner_text() and "[Image: a kettle]" not in text.inner_text()
    assert violations(page) == []

    # Evidence that is marked on the page is stored as characters of the text that judges read.
    page.evaluate(
        """() => { const range = document.createRange(); const text = document.querySelector(".text");
        range.setStart(text.querySelector("strong").firstChild, 0);
        range.setEnd(text.querySelector("td").lastChild, 3);
        getSelection().removeAllRanges(); getSelection().addRange(range) }"""
    )
    page.keyboard.press("e")
    page.keyboard.press("1")
    page.wait_for_function("() => !document.querySelector('.document .text')")
    ((start, end),) = Judgment.objects.get(step="final").spans
    marked = document.text[start:end].strip()
    assert marked.startswith("sea level water boils") and marked.endswith("0 m")
    assert console == []


def test_a_wide_table_and_a_long_word_widen_no_page(tmp_path, new_page, instance, violations):
    wide = "<table><tr>" + "<td>wide-cell</td>" * 30 + "</tr></table><p>" + "long" * 100 + f"</p>{PAGE}"
    books = imported(tmp_path, [wide], ["<p>At <code>100</code></p>"])
    charlie = make_member(books, "charlie", Role.ADMIN)
    check_looks(new_page, violations, charlie.user, [f"/c/books/pairs/{Pair.objects.get().pk}/", "/c/books/judge/"])
