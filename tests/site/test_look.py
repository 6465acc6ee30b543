"""The look (docs/developers.md), read out of the stylesheets and pages: grid, weights, and what each colour says."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from charts.drawing import SERIES, TONES
from config.env import ROOT

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


def test_headings_and_the_number_that_matters_are_semi_bold_and_nothing_else_is() -> None:
    weights = [
        (sheet, selector, int(weight))
        for sheet, selector, name, value in everything()
        if name in ("font-weight", "font") and (weight := (re.match(r"[1-9]\d\d\b", value) or [""])[0])
    ]
    assert [one for one in weights if one[2] > 500 and not SEMI_BOLD.search(one[1])] == []
    assert {weight for _sheet, _selector, weight in weights} == {400, 500, 600}
    assert len(weights) > 40 and not any(value == "bold" for _s, _w, name, value in everything() if "font" in name)


def test_only_documents_have_a_typeface_of_their_own_where_the_reader_chose_it() -> None:
    chosen = {(sheet, selector) for sheet, selector, _name, value in everything() if "var(--serif)" in value}
    assert chosen == {("judging.css", ':root[data-typeface="serif"] .text')}


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
    idle = [(path, opened) for path, opened, within in cards if not can_be_acted_on(opened + within)]
    assert idle == []
    assert len(cards) > 150
