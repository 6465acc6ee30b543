"""The look (docs/developers.md), read out of stylesheets and pages: grid, weights, colours, states and empty pages."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps
from django.template import Context, Template
from django.template.loader import render_to_string
from django.utils import translation

from annotation.templatetags import states
from charts.drawing import SERIES, TONES
from config.env import ROOT
from judges.campaigns.pair_states import PairState
from judges.models import Attempt

TEMPLATES = Path(ROOT) / "templates"
SHEETS = sorted((Path(ROOT) / "static" / "css").glob("*.css"))
SPACING = re.compile(r"(padding|margin|gap|row-gap|column-gap|inset|top|bottom|min-height)(-[a-z-]+)?")
HALF_STEP = 4
HAIRLINE = 2  # px: outlines, borders and what keeps a mark off the line below it.

ACTIONS = re.compile(
    r"^a$|:focus|:checked|:target|aria-current|aria-pressed|aria-selected|\.button|\.badge\.accent|\.card\.link|\.selected"
    r"|\.pair-card\.current|mark\.lit|::highlight\(sentence\)|summary|input\[type="
)
"""What is done, or chosen and about to be: links, buttons, the focus, the current and the selected one."""
SEMI_BOLD = re.compile(
    r"\bh[1-6]\b|\.brand"  # headings
    r"|\.stat > strong|strong, b|\.promise \.figure"  # figures
)
BY_COLOUR = {
    "accent": ACTIONS,
    "for": re.compile(r"\bfor\b|tag-for|\.turn$"),
    "against": re.compile(r"\bagainst\b|tag-against"),
    "warn": re.compile(r"\.warn|\.open|\.escalated|\.hole|\.handed"),
    "danger": re.compile(r"\.danger|error|\.failed|\.missing"),
}


def declarations(sheet: Path) -> Iterator[tuple[str, str, str]]:
    """Selectors (of nested rules the innermost), property and value of everything that a stylesheet says."""
    text = re.sub(r"/\*.*?\*/", "", sheet.read_text(), flags=re.DOTALL)
    stack: list[str] = []
    for piece, end in re.findall(r"((?:\"[^\"]*\"|\([^()]*(?:\([^()]*\)[^()]*)*\)|[^{};\"(])*)([{};])", text):
        said = " ".join(piece.split())
        if end == "{":
            stack.append(said)
            continue
        name, colon, value = said.partition(":")
        if colon and stack:
            yield stack[-1], name.strip(), value.strip()
        if end == "}":
            stack.pop()


def everything() -> list[tuple[str, str, str, str]]:
    return [(sheet.name, *said) for sheet in SHEETS for said in declarations(sheet)]


def test_spaces_are_multiples_of_eight_pixels_or_half_of_it() -> None:
    off = [
        (sheet, selector, name, value)
        for sheet, selector, name, value in everything()
        if SPACING.fullmatch(name)
        for pixels in re.findall(r"(?<![\d.])\d+(?:\.\d+)?(?=px)", value)
        if float(pixels) > HAIRLINE and float(pixels) % HALF_STEP
    ]
    assert off == []
    serif = {(sheet, selector) for sheet, selector, _name, value in everything() if "var(--serif)" in value}
    assert serif == {("judging.css", ':root[data-typeface="serif"] .text')}, "documents, where the reader chose it"


def test_headings_and_the_number_that_matters_are_semi_bold_and_nothing_else_is() -> None:
    weights = [
        (sheet, selector, int(weight))
        for sheet, selector, name, value in everything()
        if name in ("font-weight", "font") and (weight := (re.match(r"[1-9]\d\d\b", value) or [""])[0])
    ]
    assert [one for one in weights if one[2] > 500 and not SEMI_BOLD.search(one[1])] == []
    assert {weight for _sheet, _selector, weight in weights} == {400, 500, 600}
    assert len(weights) > 40 and not any(value == "bold" for _s, _w, name, value in everything() if "font" in name)


@pytest.mark.parametrize("colour", BY_COLOUR)
def test_each_colour_says_one_thing(colour: str) -> None:
    """Indigo acts, blue and ochre are the sides of a debate, amber waits, red alarms."""
    uses = [one for one in everything() if re.search(rf"var\(--{colour}(-soft|-ink)?\)", one[3])]
    # Commas in brackets part nothing.
    selectors = [part.strip() for one in uses for part in re.split(r",(?![^(]*\))", one[1])]
    assert [part for part in selectors if not BY_COLOUR[colour].search(part)] == []
    assert len(uses) > 2


def test_charts_have_the_colours_of_figures_and_none_of_actions_or_sides() -> None:
    light: dict[str, str] = {}
    for _sheet, selector, name, value in everything():
        if selector == ":root" and name.startswith("--"):  # the first: a high contrast has others
            light.setdefault(name[2:], re.sub(r"light-dark\((#\w+).*", r"\1", value))
    assert tuple(light[name] for name in ("data", "data-2", "data-3", "ink", "data-4", "ink-2")) == SERIES
    assert {tone: light[tone] for tone in ("data", "warn", "danger", "good")}.items() <= TONES.items()
    assert not {light[name] for name in ("accent", "for", "against")} & {*SERIES, *TONES.values()}


def elements(template: str) -> Iterator[tuple[str, str]]:
    """A template's elements of class `card`: the opening tag, and what stands within."""
    for opened in re.finditer(r"<([a-z]+)\b[^>]*class=\"[^\"]*\bcard\b(?!-)[^>]*>", template):
        depth = 0
        for tag in re.finditer(rf"<(/?){opened[1]}\b", template[opened.start() :]):
            depth += -1 if tag[1] else 1
            if not depth:
                yield opened[0], template[opened.end() : opened.start() + tag.start()]
                break


def can_be_acted_on(within: str) -> bool:
    """Whether there is a link, a button or a field, here or in a template that is included."""
    if re.search(r"<(a|button|input|select|textarea|summary)\s|<summary>|{{ (form|field|choice)\b", within):
        return True
    within = re.sub(r"{% comment %}.*?{% endcomment %}", "", within, flags=re.DOTALL)
    return any(
        can_be_acted_on((TEMPLATES / name).read_text()) for name in re.findall(r"{% include \"([^\"]+)\"", within)
    )


def test_a_card_is_something_that_can_be_acted_on() -> None:
    cards = [
        (str(path.relative_to(TEMPLATES)), opened, within)
        for path in sorted(TEMPLATES.rglob("*.html"))
        for opened, within in elements(path.read_text())
    ]
    assert [(path, opened) for path, opened, within in cards if not can_be_acted_on(opened + within)] == []
    assert len(cards) > 150


def stored_states() -> set[str]:
    fields = [field for model in apps.get_models() for field in model._meta.fields if field.name == "state"]
    stored = {str(value) for field in fields for value, _label in field.choices or ()}
    return stored | set(PairState.values) | set(Attempt.Outcome.values)


def test_each_stored_state_has_one_colour_and_is_an_escaped_word_beside_it() -> None:
    assert stored_states() - states.TONES.keys() == set()
    named = [state for names in states.STATES.values() for state in names.split()]
    assert len(named) == len(set(named)) and len(stored_states()) > 25
    texts = {path.name: path.read_text() for path in TEMPLATES.rglob("*.html")}
    assert [name for name, text in texts.items() if re.search(r"badge\{% if \S*(state|outcome)", text)] == []
    page = Template("{% state 'paused' _('paused') %} {% state 'cancelled' words %}").render(Context({"words": "<b>"}))
    assert page == '<span class="badge warn">paused</span> <span class="badge">&lt;b&gt;</span>'
    with translation.override("zh-hans"):
        assert "paused" not in Template("{% state 'paused' _('paused') %}").render(Context()).replace('"badge', "")


def test_an_empty_page_is_a_sentence_a_picture_and_one_button() -> None:
    words = {"title": "No runs yet", "about": "Upload files.", "to": "/c/books/", "action": "Add runs"}
    for picture in ("chart", "people", "search", "file", "pairs"):
        page = render_to_string("_empty.html", {**words, "picture": picture})
        assert all(word in page for word in words.values())
        assert page.count("<svg") == page.count('class="button') == 1 and 'aria-hidden="true"' in page


def test_empty_pages_of_collections_are_made_from_the_one_part() -> None:
    assert len([path for path in TEMPLATES.rglob("*.html") if '"_empty.html"' in path.read_text()]) > 35
    # Not those of refusals and of accounts, in the folder itself and in `account`.
    pages = [path for path in TEMPLATES.rglob("*.html") if path.parent.name not in ("templates", "account")]
    buttons = {str(path.relative_to(TEMPLATES)): several(path.read_text()) for path in pages}
    assert {name for name, has_several in buttons.items() if has_several} <= {
        # One for each collection of a suite, and a choice of two.
        "benchmark/answers/suite.html", "benchmark/suite.html", "benchmark/agents/suite.html", "benchmark/_report.html",
    }  # fmt: skip


def several(template: str) -> bool:
    """Whether an empty page of the template has more than one button."""
    pages = re.findall(r'<section class="empty">.*?</section>', template, flags=re.DOTALL)
    return any(len(re.findall(r'class="button|class="row"', page)) > 1 for page in pages)
