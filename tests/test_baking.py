"""A baked fragment of the desk gives the same bytes as its template, whatever is shown (docs/adr/0038)."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from django.template import Context, Template, engines
from django.template.base import TextNode
from django.template.loader import get_template
from django.utils.translation import gettext_lazy, override

from annotation.baking import baked
from annotation.debating import debate_of, text_of
from annotation.judging import TYPED, Desktop, Work
from annotation.views.judging import addresses, buttons

TURNS = [
    {"side": side, "round": number, "verdict": verdict, "reason": f'{side} <b>says</b> "so"', "quotes": quotes}
    for number in (1, 2)
    for side, verdict, quotes in (
        ("for", 1, [{"text": "Water & ice", "start": 0, "end": 11}]),
        ("against", 0, [{"text": "<gone>", "start": None, "end": None}]),
    )
]
WORK = Work(
    item=7,
    token="t<o>ken",
    seconds=1500,
    why="The two sides did not agree in 2 rounds.",
    query=text_of("what is <ice>?"),
    answers=(text_of("Frozen water."), text_of("冰是固态的水")),
    need=text_of("Only what says it & why."),
    title=text_of(""),
    document=text_of("Water & ice are one."),
    source="doc-1",
    debate=debate_of(TURNS),
    typed=dict.fromkeys(TYPED, ""),
)
WORKS = {
    "plain": WORK,
    "blind": replace(WORK, blind=True, debate=debate_of([]), answers=()),
    "one answer": replace(WORK, answers=WORK.answers[:1], need=text_of("")),
    "no debate": replace(WORK, debate=debate_of([])),
    "late": replace(WORK, seconds=-3),
    "soon over": replace(WORK, seconds=40, step="final"),
    "typed": replace(WORK, typed={**WORK.typed, "comment": "<i>", "note": 'say "it"', "spans": "0-5"}, spans="1-2"),
    "empty": replace(WORK, query=text_of(""), document=text_of(""), comment="kept & shown"),
}
DESKTOPS = {
    "first": Desktop(0, 3, None, None, None),
    "just now": Desktop(1200, 101, 5, "flagged", 2),
    "later": Desktop(12, 40, 5, "saved", 200),
}


def both(fragment: str, context: dict[str, Any], language: str) -> tuple[str, str]:
    """The fragment baked, and as Django renders it."""
    with override(language):
        known = {**addresses("books"), **buttons("books", 3, 1, language)}
        template: Template = get_template(fragment).template  # type: ignore[attr-defined]
        plain = template.render(Context({**context, **known}, use_l10n=False))
        return baked(fragment, known).render(Context(context, use_l10n=False)), plain


@pytest.mark.parametrize("language", ["en", "zh-hans"])
@pytest.mark.parametrize("desktop", DESKTOPS)
@pytest.mark.parametrize("work", WORKS)
def test_a_baked_page_is_the_page(work: str, desktop: str, language: str) -> None:
    context = {
        "work": WORKS[work],
        "desktop": DESKTOPS[desktop],
        "typed": WORKS[work].typed,
        "taken_back": desktop == "later",
        "problem": "No <grade> was chosen." if work == "late" else "",
        "announced": work == "typed",
        "scope": SimpleNamespace(membership=SimpleNamespace(pk=12), collection=SimpleNamespace(name="books")),
        "collection": SimpleNamespace(name="books", rest_ms=400),
        "csrf_token": "token",
    }
    found, wanted = both("judging/_work.html", context, language)
    assert found == wanted
    assert "desk" in found


TEXTS = [
    "{{ a }}{{ a|length }}{{ known|upper }}{{ words }}{{ True }}{{ a|default:known }}",
    "{% if known %}{{ a }}{% elif a %}no{% endif %}{% if not known %}no{% else %}{{ b.c }}{% endif %}",
    "{% if a and known %}x{% endif %}{% if number > 3 %}big{% elif known %}{{ known }}{% else %}never{% endif %}",
    "{% for known in list %}{{ forloop.counter }}{{ known }}{% empty %}nothing{% endfor %}{{ known }}",
    "{% for one in list %}{% if forloop.first %}{{ one }}{% endif %}{% endfor %}{{ b.items }}{{ list.0 }}",
    "{% load i18n %}{% translate 'Undo' %}{% translate 'Undo' as u %}{{ u }}{% translate a %}",
    "{% load i18n %}{% blocktranslate with n=number %}<b>{{ n }}</b> today{% endblocktranslate %}",
    "{% load i18n %}{% blocktranslate trimmed with today=a waiting_words=known %}<strong>{{ today }}</strong> today "
    '<span class="muted">· {{ waiting_words }} waiting</span>{% endblocktranslate %}',
    "{% load i18n %}{% blocktranslate count n=number %}one{% plural %}{{ n }} many{% endblocktranslate %}",
    "{{ none }}{{ yes }}{{ half }}{{ call }}{{ safe }}{{ thing.name }}",
    "{% if thing.name %}y{% endif %}{% if gone.x %}n{% endif %}{% if call %}c{% endif %}",
]


@pytest.mark.parametrize("language", ["en", "zh-hans"])
@pytest.mark.parametrize("text", TEXTS)
def test_every_tag_comes_to_the_same(text: str, language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = engines["django"].from_string(text)
    monkeypatch.setattr("annotation.baking.get_template", lambda name: made)
    values = {
        "a": "<a & b>", "number": 4, "list": ["x", "<y>"], "b": {"c": "'c'", "items": "i"}, "none": None, "yes": True,
        "half": 0.5, "call": lambda: "called", "safe": TextNode("<i>").render(Context()),
        "words": gettext_lazy("Undo"), "thing": SimpleNamespace(name="<n>"),
    }  # fmt: skip
    with override(language):
        wanted = made.template.render(Context({**values, "known": "<k>"}, use_l10n=False))  # type: ignore[attr-defined]
        assert baked("any", {"known": "<k>"}).render(Context({**values, "known": "<k>"}, use_l10n=False)) == wanted


def test_words_addresses_and_includes_are_worked_out_beforehand() -> None:
    with override("en"):
        page = baked("judging/_work.html", {**addresses("books"), **buttons("books", 3, 1, "en")})
    kinds = [type(node).__name__ for node in page.nodelist]
    assert "IncludeNode" not in kinds
    assert "TranslateNode" not in kinds
    assert "/c/books/judge/submit/" in "".join(node.s for node in page.nodelist if isinstance(node, TextNode))
