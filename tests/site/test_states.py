"""States (annotation/templatetags/states.py) and empty pages (templates/_empty.html): one component each."""

import re
from pathlib import Path

import pytest
from django.apps import apps
from django.template import Context, Template
from django.template.loader import render_to_string
from django.utils import translation

from annotation.templatetags.states import STATES, TONES
from config.env import ROOT
from judges.campaigns.pair_states import PairState
from judges.models import Attempt

TEMPLATES = Path(ROOT) / "templates"


def stored_states() -> set[str]:
    fields = [field for model in apps.get_models() for field in model._meta.fields if field.name == "state"]
    stored = {str(value) for field in fields for value, _label in field.choices or ()}
    return stored | set(PairState.values) | set(Attempt.Outcome.values)


def test_each_stored_state_has_one_colour() -> None:
    assert stored_states() - TONES.keys() == set()
    named = [state for states in STATES.values() for state in states.split()]
    assert len(named) == len(set(named)) and len(stored_states()) > 25


def test_a_state_is_a_word_beside_its_colour_and_is_escaped() -> None:
    page = Template("{% state 'paused' _('paused') %} {% state 'cancelled' words %}").render(Context({"words": "<b>"}))
    assert page == '<span class="badge warn">paused</span> <span class="badge">&lt;b&gt;</span>'
    with translation.override("zh-hans"):
        assert "paused" not in Template("{% state 'paused' _('paused') %}").render(Context()).replace('"badge', "")


def test_no_template_chooses_the_colour_of_a_state_itself() -> None:
    own = [
        str(path.relative_to(TEMPLATES))
        for path in TEMPLATES.rglob("*.html")
        if re.search(r"badge\{% if \S*(state|outcome)", path.read_text())
    ]
    assert own == []


@pytest.mark.parametrize("picture", ["chart", "people", "search", "file", "pairs"])
def test_an_empty_page_is_a_sentence_a_picture_and_one_button(picture: str) -> None:
    words = {"title": "No runs yet", "about": "Upload files.", "to": "/c/books/", "action": "Add runs"}
    page = render_to_string("_empty.html", {**words, "picture": picture})
    assert all(word in page for word in words.values())
    assert page.count("<svg") == page.count('class="button') == 1 and 'aria-hidden="true"' in page


def test_empty_pages_of_collections_are_made_from_the_one_part() -> None:
    made = [path for path in TEMPLATES.rglob("*.html") if '"_empty.html"' in path.read_text()]
    assert len(made) > 35
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
